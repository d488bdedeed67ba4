package files

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Which records still need work is known from a note, ledger/.working: the names that needed it when the index (see
// newest.go) was read last, and up to where that was. A reader takes the note, adds the names in the lines since, and
// reads those records themselves. The note is written by readers alone, never flushed, and decides nothing: it only
// keeps settled records from being read again.
//
// A name leaves the note when its record is at rest and lies there as its last line says. A line whose write has not
// become visible keeps its name in the note, so that a writer who was stopped in between is waited for.
//
// All records are read again when the note is of another kernel boot, of another index, damaged, or an hour old. So
// whatever is wrong with it, and whoever writes records behind our back, an open record is found within that hour.
const (
	workingName = ".working"
	workingTemp = ".working-new"
	// workingTrust is how long all but the noted records are taken to be at rest.
	workingTrust = time.Hour
	// workingLag is how much of the index may be read anew each time before a newer note is worth its write.
	workingLag = 64 << 10
	// workingFew is up to how many files a folder is read as it is, without a note.
	workingFew = 64
	// workingLimit bounds the note.
	workingLimit = 32 << 20
	// anchorSize is how much of the index before the place that was read must still be there.
	anchorSize = 256
)

// note is what a reader of the index leaves for the next.
type note struct {
	Schema int    `json:"schema"`
	Rule   string `json:"rule"`
	Boot   string `json:"boot"`
	// Index is the file that was read, Offset up to where, and Anchor what stands right before that. A number alone may
	// come back with another file.
	Index  uint64     `json:"index"`
	Offset int64      `json:"offset"`
	Anchor []byte     `json:"anchor"`
	All    stamp.Time `json:"all"` // when all records were read
	// Names are the files that need work or whose last line is not explained, with what that line says.
	Names map[string]fileState `json:"names"`
}

// fileState is one written state of a file; the zero value is unknown.
type fileState struct {
	Ino   uint64 `json:"ino"`
	Size  int64  `json:"size"`
	MTime int64  `json:"mtime"`
}

func stateOf(in durable.Info) fileState { return fileState{in.Ino, in.Size, in.MTime} }

// working is the note in memory.
type working struct {
	s *records

	mu      sync.Mutex
	now     *note
	written int64 // the offset of what lies on disk
}

// Working implements ledger.Working.
func (s *records) Working(ctx context.Context, rule string, wants func(ledger.Record) bool) iter.Seq2[ledger.Record, error] {
	return func(yield func(ledger.Record, error) bool) {
		found, err := s.working.read(ctx, rule, wants)
		if err != nil {
			yield(ledger.Record{}, err)
			return
		}
		for _, f := range found {
			if !yield(f.rec, f.err) {
				return
			}
		}
	}
}

// finding is a record that needs work, or why it cannot be used.
type finding struct {
	rec ledger.Record
	err error
}

// read brings the note up to date and returns the records that need work.
func (w *working) read(ctx context.Context, rule string, wants func(ledger.Record) bool) ([]finding, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.now
	if n == nil || !w.usable(n, rule) {
		n = w.load()
	}
	if n != nil && w.usable(n, rule) {
		if next, ok := w.follow(n); ok {
			out, err := w.look(ctx, next, wants)
			if err == nil {
				w.keep(next, next.Offset-w.written > workingLag)
			}
			return out, err
		}
	}
	if out, ok := w.few(ctx, wants); ok {
		return out, nil
	}
	return w.all(ctx, rule, wants)
}

// few reads a ledger that is so small that no note is worth while; ok is false for any other.
func (w *working) few(ctx context.Context, wants func(ledger.Record) bool) (out []finding, ok bool) {
	names, err := w.s.dir.Names(workingFew + 1)
	if err != nil || len(names) > workingFew {
		return nil, false
	}
	for r, err := range w.s.List(ctx) {
		if err != nil || r.Open() || wants(r) {
			out = append(out, finding{r, err})
		}
	}
	return out, true
}

func (w *working) usable(n *note, rule string) bool {
	age := w.s.h.now().Sub(n.All)
	return n.Schema == 1 && n.Rule == rule && n.Boot == host.BootID() && n.Boot != "" && age >= 0 && age < workingTrust
}

// load is the note on disk, nil when there is none that can be read.
func (w *working) load() *note {
	b, _, err := durable.ReadFile(w.s.dir, workingName, workingLimit)
	if err != nil {
		return nil
	}
	var n note
	if open(b, &n, func() int { return n.Schema }, 1) != nil {
		return nil
	}
	w.written = n.Offset
	return &n
}

// keep is the note from now on. Where it cannot be written, the next process begins with an older one or none.
func (w *working) keep(n *note, write bool) {
	w.now = n
	if !write {
		return
	}
	if b, _, err := sealed(n); err == nil && durable.Leave(w.s.dir, workingTemp, workingName, b) == nil {
		w.written = n.Offset
	}
}

// follow is the note with the lines that came since. ok is false when the index is another one or makes no sense.
func (w *working) follow(n *note) (next *note, ok bool) {
	f, err := w.s.dir.Open(indexName)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	in, err := f.Stat()
	if err != nil || in.Ino != n.Index || in.Size < n.Offset || n.Offset < int64(len(n.Anchor)) || len(n.Anchor) == 0 {
		return nil, false
	}
	b := make([]byte, in.Size-n.Offset+int64(len(n.Anchor)))
	if _, err := f.ReadAt(b, n.Offset-int64(len(n.Anchor))); err != nil || !bytes.HasPrefix(b, n.Anchor) {
		return nil, false
	}
	lines := b[len(n.Anchor):]
	lines = lines[:bytes.LastIndexByte(lines, '\n')+1] // the rest is being written
	c := *n
	c.Names = make(map[string]fileState, len(n.Names))
	for name, st := range n.Names {
		c.Names[name] = st
	}
	for line := range bytes.Lines(lines) {
		in, name, _, ok := parseIndexLine(bytes.TrimSuffix(line, []byte{'\n'}))
		if !ok {
			return nil, false
		}
		c.Names[name] = stateOf(in)
	}
	c.Offset += int64(len(lines))
	end := len(n.Anchor) + len(lines)
	c.Anchor = bytes.Clone(b[max(0, end-anchorSize):end])
	return &c, true
}

// look reads the noted records, and drops the names of those that are at rest.
func (w *working) look(ctx context.Context, n *note, wants func(ledger.Record) bool) (out []finding, err error) {
	for name, last := range n.Names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// The state first: what changes in between has a line of its own, which is read the next time.
		in, err := w.s.dir.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its claim may still become visible
		}
		f := w.s.readNamed(name)
		if f.err != nil || f.rec.Open() || wants(f.rec) {
			out = append(out, f)
		} else if err == nil && (last == fileState{} || stateOf(in) == last) {
			delete(n.Names, name)
		}
	}
	return out, nil
}

// readNamed reads the record in a file, which must be the one that the name says.
func (s *records) readNamed(name string) finding {
	r, err := s.read(name, ledger.Key{})
	if err == nil && fileName(r.Key)+recordSuffix != name {
		r, err = ledger.Record{}, damaged(&ledger.DamageError{Why: "it is the record of " + r.Key.String()}, s.dir, name, r.Key)
	}
	return finding{r, err}
}

// all reads every record and begins a note. The index is made anew first: who has announced a write and not made it by
// then sees that the index is another, and announces it again.
func (w *working) all(ctx context.Context, rule string, wants func(ledger.Record) bool) (out []finding, err error) {
	now := w.s.h.now()
	_, made, err := w.s.index.rebuild(ctx, 0)
	if err != nil {
		return nil, err
	}
	n := &note{Schema: 1, Rule: rule, Boot: host.BootID(), All: now, Offset: int64(len(made)), Names: map[string]fileState{},
		Anchor: bytes.Clone(made[max(0, len(made)-anchorSize):])}
	if in, err := w.s.dir.Stat(indexName); err == nil {
		n.Index = in.Ino
	}
	names, err := w.s.dir.Names(0)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, recordSuffix) {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f := w.s.readNamed(name)
		if errors.Is(f.err, ledger.ErrNotFound) {
			continue
		}
		if f.err != nil || f.rec.Open() || wants(f.rec) {
			out, n.Names[name] = append(out, f), fileState{}
		}
	}
	w.now = nil
	if n.Index != 0 && n.Boot != "" {
		w.keep(n, true)
	}
	return out, nil
}
