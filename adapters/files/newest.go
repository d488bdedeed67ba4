package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
)

// The index is ledger/.newest: a line for each write of a record, in the order of writing, with the record in it. It is
// never flushed and decides nothing. A line is appended before the write that it tells of becomes visible, so a process
// that is killed leaves a line too many and never one too few. A line counts only while the record's file is the one
// that it describes (inode, size and time of its content).
//
// Its first line says that everything is in it, in this kernel boot: a power cut can take lines away, and ends the
// boot. Without that line, or when a line cannot be explained, it is made anew from the records by whoever reads it
// next. Whoever writes while it is made anew sees afterwards that it is another file and writes its line again.
const (
	indexName = ".newest"
	indexTemp = ".newest-new"
	indexHead = "complete "
	// indexKeep is how many lines an index that is made anew gets; who wants more records reads them all.
	indexKeep = 1024
	// indexLimit is the size at which an index is dropped when a home is opened.
	indexLimit = 32 << 20
	// tailBlock is how much is read at a time from the end.
	tailBlock = 64 << 10
)

type index struct {
	s *records

	mu   sync.Mutex
	file durable.File
	ino  uint64
}

func newIndex(s *records) *index {
	x := &index{s: s}
	switch in, err := s.dir.Stat(indexName); {
	case err == nil && in.Size > indexLimit:
		_ = s.dir.Remove(indexName)
	case errors.Is(err, fs.ErrNotExist):
		// A ledger that is still empty has a complete index for the asking.
		if names, err := s.dir.Names(2); err == nil && len(names) == 0 {
			_, _, _ = x.rebuild(context.Background(), 0)
		}
	}
	return x
}

func (x *index) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.file != nil {
		_ = x.file.Close()
		x.file = nil
	}
}

// indexNote is the line of one write.
type indexNote struct {
	x          *index
	name       string
	body, line []byte
	ino        uint64 // of the index that has the line
}

// note prepares the line of a write. Its before runs right before the write may become visible, its after when that is
// decided.
func (x *index) note(name string, body []byte) *indexNote {
	return &indexNote{x: x, name: name, body: body}
}

func (n *indexNote) before(in durable.Info) {
	n.line = indexLine(n.name, in, n.body)
	n.ino = n.x.append(n.line)
}

// after appends the line again when the index was made anew meanwhile: its maker may have read the record before it
// changed.
func (n *indexNote) after() {
	if n.line == nil {
		return
	}
	if in, err := n.x.s.dir.Stat(indexName); err != nil || in.Ino != n.ino {
		n.x.append(n.line)
	}
}

func indexLine(name string, in durable.Info, body []byte) []byte {
	b := make([]byte, 0, len(name)+len(body)+64)
	b = strconv.AppendUint(b, in.Ino, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, in.Size, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, in.MTime, 10)
	b = append(b, ' ')
	b = append(b, name...)
	b = append(b, ' ')
	b = append(b, body...)
	return append(b, '\n')
}

// append adds a line to the index that lies there now, and returns which that is. An index that cannot be written is
// taken away: it would be believed to be complete.
func (x *index) append(line []byte) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	for range 3 {
		if x.open() != nil {
			break
		}
		if _, err := x.file.Write(line); err != nil {
			break
		}
		if in, err := x.s.dir.Stat(indexName); err == nil && in.Ino == x.ino {
			return x.ino
		}
	}
	_ = x.s.dir.Remove(indexName)
	return 0
}

// open opens the index that lies there now. One that is not there is begun; it lacks the line that makes it complete.
func (x *index) open() error {
	in, err := x.s.dir.Stat(indexName)
	if err == nil && x.file != nil && in.Ino == x.ino {
		return nil
	}
	if x.file != nil {
		_ = x.file.Close()
		x.file = nil
	}
	f, err := x.s.dir.Append(indexName)
	if err != nil {
		return err
	}
	if in, err = f.Stat(); err != nil {
		_ = f.Close()
		return err
	}
	x.file, x.ino = f, in.Ino
	return nil
}

// Newest implements ledger.Newest.
func (s *records) Newest(ctx context.Context, n int) ([]ledger.Record, error) {
	if n <= 0 {
		return nil, nil
	}
	if out, ok := s.index.newest(n); ok {
		return out, nil
	}
	out, _, err := s.index.rebuild(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("newest records: %w", err)
	}
	return out, nil
}

// newest reads the index from its end. ok is false when it cannot be relied on.
func (x *index) newest(n int) (out []ledger.Record, ok bool) {
	f, err := x.s.dir.Open(indexName)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	in, err := f.Stat()
	if err != nil || host.BootID() == "" {
		return nil, false
	}
	head := make([]byte, len(indexHead)+len(host.BootID())+1)
	if _, err := f.ReadAt(head, 0); err != nil || string(head) != indexHead+host.BootID()+"\n" {
		return nil, false
	}
	r := reader{x: x, want: n, settled: map[string]bool{}, open: map[string]bool{}}
	if !r.backward(f, int64(len(head)), in.Size) {
		return nil, false
	}
	return r.out, r.explained()
}

// reader collects records from the end of an index.
type reader struct {
	x    *index
	want int
	out  []ledger.Record
	// settled are names whose present record was found; open are those of which only outdated lines were.
	settled, open map[string]bool
	oldest        int64 // content time of the last record that was taken
	bad           bool
}

// backward goes through the lines between start and end, the last first, until enough records are found or a line makes
// no sense. It reads by blocks from the end and splits each forward.
func (r *reader) backward(f durable.File, start, end int64) bool {
	var rest []byte // the beginning of it lies in the block before
	for end > start {
		from := max(start, end-tailBlock)
		b := make([]byte, end-from, end-from+int64(len(rest)))
		if _, err := f.ReadAt(b, from); err != nil {
			return false
		}
		b = append(b, rest...)
		cut := 0
		if from > start {
			// What comes before the first newline may be a part of a line.
			if cut = bytes.IndexByte(b, '\n') + 1; cut == 0 {
				rest, end = b, from
				continue
			}
		}
		var lines [][]byte
		for at := cut; at < len(b); {
			i := bytes.IndexByte(b[at:], '\n')
			if i < 0 {
				return false // being written, or cut off
			}
			lines = append(lines, b[at:at+i])
			at += i + 1
		}
		for _, line := range slices.Backward(lines) {
			if r.take(line); r.bad {
				return false
			}
			if len(r.out) == r.want {
				return true
			}
		}
		rest, end = b[:cut:cut], from
	}
	// Everything was read. An index that was made anew has no more than its newest lines.
	return len(r.settled) < indexKeep
}

// take looks at one line.
func (r *reader) take(line []byte) {
	in, name, body, ok := parseIndexLine(line)
	if !ok {
		r.bad = true
		return
	}
	if r.settled[name] {
		return
	}
	is, err := r.x.s.dir.Stat(name)
	if err != nil || is.Ino != in.Ino || is.Size != in.Size || is.MTime != in.MTime {
		// Written by somebody who did not come to it, or replaced since by a later line that did not count either.
		r.open[name] = true
		return
	}
	var rec ledger.Record
	if json.Unmarshal(body, &rec) != nil || fileName(rec.Key)+recordSuffix != name {
		r.bad = true
		return
	}
	r.settled[name] = true
	delete(r.open, name)
	r.out, r.oldest = append(r.out, rec), in.MTime
}

// explained reports whether every record of which only outdated lines were found is older than all that were taken, or
// not there at all. One that is newer was written by somebody who keeps no index.
func (r *reader) explained() bool {
	for name := range r.open {
		in, err := r.x.s.dir.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || len(r.out) < r.want || in.MTime >= r.oldest {
			return false
		}
	}
	return true
}

func parseIndexLine(line []byte) (in durable.Info, name string, body []byte, ok bool) {
	var field [4][]byte
	for i := range field {
		if field[i], line, ok = bytes.Cut(line, []byte{' '}); !ok {
			return in, "", nil, false
		}
	}
	ino, err1 := strconv.ParseUint(string(field[0]), 10, 64)
	size, err2 := strconv.ParseInt(string(field[1]), 10, 64)
	mtime, err3 := strconv.ParseInt(string(field[2]), 10, 64)
	return durable.Info{Ino: ino, Size: size, MTime: mtime}, string(field[3]), line, err1 == nil && err2 == nil && err3 == nil
}

// rebuild makes the index anew from the records, and returns the n newest and what it wrote. Where it cannot be written
// the answer is right all the same.
func (x *index) rebuild(ctx context.Context, n int) (out []ledger.Record, made []byte, err error) {
	err = x.s.h.locks.with(ctx, "index", func() error {
		var old durable.Info
		if in, err := x.s.dir.Stat(indexName); err == nil {
			old = in
		}
		if out, made, err = x.scan(ctx, n); err != nil {
			return err
		}
		x.install(made, old)
		return nil
	})
	return out, made, err
}

// scan reads the newest records as they lie there.
func (x *index) scan(ctx context.Context, n int) (out []ledger.Record, lines []byte, err error) {
	names, err := x.s.dir.Names(0)
	if err != nil {
		return nil, nil, err
	}
	type file struct {
		name string
		in   durable.Info
	}
	files := make([]file, 0, len(names))
	for _, name := range names {
		if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, recordSuffix) {
			continue
		}
		if in, err := x.s.dir.Stat(name); err == nil {
			files = append(files, file{name, in})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(b.in.MTime, a.in.MTime) })
	var newest [][]byte
	for _, f := range files {
		if len(newest) >= max(n, indexKeep) {
			break
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		rec, err := x.s.read(f.name, ledger.Key{})
		if err != nil {
			continue // List and Get report it
		}
		body, err := json.Marshal(rec)
		if err != nil {
			return nil, nil, err
		}
		newest = append(newest, indexLine(f.name, f.in, body))
		if len(out) < n {
			out = append(out, rec)
		}
	}
	lines = append([]byte(indexHead), host.BootID()...)
	lines = append(lines, '\n')
	for _, l := range slices.Backward(newest) {
		lines = append(lines, l...)
	}
	return out, lines, nil
}

// install puts a new index in the place of the old one, and adds what was appended to that one while the records were
// read. What goes wrong leaves no index, or an old one that is known not to be complete.
func (x *index) install(b []byte, old durable.Info) {
	dir := x.s.dir
	_ = dir.Remove(indexTemp)
	f, err := dir.Create(indexTemp)
	if err != nil {
		return
	}
	_, err = f.Write(b)
	_ = f.Close()
	was, _ := dir.Open(indexName)
	if err == nil {
		err = dir.Rename(indexTemp, indexName)
	}
	if err != nil {
		_ = dir.Remove(indexTemp)
	}
	if was == nil {
		return
	}
	defer was.Close()
	if in, e := was.Stat(); e != nil || err != nil || in.Size <= old.Size && in.Ino == old.Ino {
		return
	} else if rest, ok := between(was, in, old); ok {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.open() == nil {
			_, err = x.file.Write(rest)
		}
		if err == nil {
			return
		}
	}
	_ = dir.Remove(indexName)
}

// between is what was appended since the old index was looked at.
func between(f durable.File, in, old durable.Info) ([]byte, bool) {
	from := old.Size
	if in.Ino != old.Ino {
		from = 0
	}
	b := make([]byte, in.Size-from)
	_, err := f.ReadAt(b, from)
	return b, err == nil
}
