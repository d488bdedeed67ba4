package faultfs

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// node is one file or folder: as it is now, as it was when it was last flushed, and what happened in between. Content is
// never changed in place, so that copies may share it.
type node struct {
	ino    uint64
	folder bool
	mtime  int64
	links  int // names it has now

	content, kept []byte
	writes        []write // since the last flush

	names, keptNames map[string]*node
	moves            []move // since the last flush

	holders map[*lock]bool // true is exclusive
}

// write is one change of content: bytes at an offset, or, with cut set, a new size.
type write struct {
	off  int64
	data []byte
	cut  bool
}

// move is one change of names, which happens as a whole; nil is a name that is gone.
type move map[string]*node

func (n *node) info() durable.Info {
	return durable.Info{Ino: n.ino, Size: int64(len(n.content)), MTime: n.mtime, Links: uint64(n.links),
		Regular: !n.folder, Folder: n.folder}
}

// write changes the content.
func (n *node) write(w write, now int64) {
	n.content, n.mtime = w.on(n.content), now
	n.writes = append(n.writes, w)
}

// on is the content after the write.
func (w write) on(b []byte) []byte {
	size := w.off
	if !w.cut {
		size = max(int64(len(b)), w.off+int64(len(w.data)))
	}
	out := make([]byte, size)
	copy(out, b)
	if !w.cut {
		copy(out[w.off:], w.data)
	}
	return out
}

// move changes names.
func (n *node) move(m move, now int64) {
	for name, to := range m {
		n.set(name, to)
	}
	n.mtime = now
	n.moves = append(n.moves, m)
}

// set gives a name to a node, or takes it away, as it is now.
func (n *node) set(name string, to *node) {
	if old := n.names[name]; old != nil {
		old.links--
	}
	if to == nil {
		delete(n.names, name)
		return
	}
	to.links++
	n.names[name] = to
}

// flush makes durable what is there now.
func (n *node) flush() {
	n.kept, n.writes = n.content, nil
	n.keptNames, n.moves = maps.Clone(n.names), nil
}

// survivors are the names and the content that a power cut leaves. Without chance and all it is what was flushed.
func (n *node) survivors(all bool, chance *rand.Rand) (map[string]*node, []byte) {
	switch {
	case all:
		return n.names, n.content
	case chance == nil:
		return n.keptNames, n.kept
	}
	names := maps.Clone(n.keptNames)
	for _, m := range n.moves[:chance.IntN(len(n.moves)+1)] {
		for name, to := range m {
			if to == nil {
				delete(names, name)
			} else {
				names[name] = to
			}
		}
	}
	content := n.kept
	for _, w := range n.writes {
		if chance.IntN(2) == 0 {
			content = w.torn(chance).on(content)
		}
	}
	return names, content
}

// torn is what is left of a write that was under way: most often all of it.
func (w write) torn(chance *rand.Rand) write {
	if w.cut || len(w.data) == 0 {
		return w
	}
	switch chance.IntN(4) {
	case 0:
		w.data = w.data[:chance.IntN(len(w.data))]
	case 1: // the size is there and the content is not
		w.data = make([]byte, len(w.data))
	}
	return w
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
