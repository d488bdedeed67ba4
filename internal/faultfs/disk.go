package faultfs

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// Disk is a file system in memory. What was flushed is kept apart from what was only written, so that [Disk.Boot] can
// tell what a power cut leaves. The zero value is an empty one. It is safe for concurrent use.
type Disk struct {
	// Plain takes away what not every file system has: unnamed files, and the exchange of two names.
	Plain bool

	mu    sync.Mutex
	roots map[string]*node
	inos  uint64
	clock int64
}

// Survival says what a power cut leaves of that which was not flushed. The zero value leaves nothing of it.
type Survival struct {
	// All leaves everything: the cut came late.
	All bool
	// Seed, when it is not zero, decides by chance. Each folder keeps some of its latest changes of names, never a later
	// one without those before; each write is kept, lost, torn, or kept as zeros; files and folders know nothing of each
	// other.
	Seed uint64
}

// Open implements durable.FS. The root, with its parents, is durable at once.
func (d *Disk) Open(path string) (durable.Dir, error) {
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.roots[path]
	if n == nil {
		if d.roots == nil {
			d.roots = map[string]*node{}
		}
		n = d.newNode(true)
		n.links = 1
		d.roots[path] = n
	}
	return &dir{d: d, n: n, path: path}, nil
}

// Boot is the disk as the next start of the machine finds it, should the power go now. It shares nothing with d, which
// goes on: nobody's handles and locks are carried over.
func (d *Disk) Boot(s Survival) *Disk {
	var chance *rand.Rand
	if s.Seed != 0 {
		chance = rand.New(rand.NewPCG(s.Seed, 0))
	}
	return d.copied(func(c *copier, from, to *node) {
		names, content := from.survivors(s.All, chance)
		to.content, to.kept = content, content
		for _, name := range sorted(names) {
			to.set(name, c.node(names[name]))
		}
		to.flush()
	})
}

// Kill is the disk as another process finds it after all that had it open were killed: nothing is lost, what was not
// flushed is still not flushed, and the locks are free. It shares nothing with d, which goes on.
func (d *Disk) Kill() *Disk {
	return d.copied(func(c *copier, from, to *node) {
		to.content, to.kept, to.writes = from.content, from.kept, from.writes
		for _, name := range sorted(from.keptNames) {
			to.keptNames[name] = c.node(from.keptNames[name])
		}
		for _, m := range from.moves {
			move := move{}
			for _, name := range sorted(m) {
				move[name] = c.node(m[name])
			}
			to.moves = append(to.moves, move)
		}
		for _, name := range sorted(from.names) {
			to.set(name, c.node(from.names[name]))
		}
	})
}

// copied makes a disk of the nodes that fill decides upon.
func (d *Disk) copied(fill func(c *copier, from, to *node)) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &copier{fill: fill, made: map[*node]*node{}}
	out := &Disk{Plain: d.Plain, roots: map[string]*node{}, inos: d.inos, clock: d.clock}
	for _, path := range sorted(d.roots) {
		n := c.node(d.roots[path])
		n.links++
		out.roots[path] = n
	}
	return out
}

type copier struct {
	fill func(c *copier, from, to *node)
	made map[*node]*node
}

// node copies one node once, however many names it has. Nil, a name that is gone, stays nil.
func (c *copier) node(from *node) *node {
	if from == nil {
		return nil
	}
	to := c.made[from]
	if to == nil {
		to = &node{ino: from.ino, folder: from.folder, mtime: from.mtime, names: map[string]*node{}, keptNames: map[string]*node{}}
		c.made[from] = to
		c.fill(c, from, to)
	}
	return to
}

// now is a time that never repeats, so that two written states of a file are never taken for one.
func (d *Disk) now() int64 {
	d.clock = max(d.clock+1, time.Now().UnixNano())
	return d.clock
}

func (d *Disk) newNode(folder bool) *node {
	d.inos++
	return &node{ino: d.inos, folder: folder, mtime: d.now(), names: map[string]*node{}, keptNames: map[string]*node{}}
}
