package framelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// Position is the place of a record: its block's offset in the file, and its index in the block.
type Position struct {
	Block int64
	Index int32
}

// Gap is a place where damage was repaired: what stood there is lost to the log.
type Gap struct {
	// Block is where it begins, Size how long it is, in bytes.
	Block, Size int64
	// Lost is how many records stood there.
	Lost uint64
}

// Entry is one step of a scan: a record, or a gap.
type Entry struct {
	Position Position
	// Record is valid until the next step.
	Record []byte
	// Gap is set instead of a record.
	Gap *Gap
}

// DamageError tells of a log that has good blocks behind a bad one. Nothing is written to it before [Repair].
type DamageError struct {
	Path string
	// At is where the bad block begins; Next where the next good one does.
	At, Next int64
	lost     uint64 // number of the first record behind it
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged: bytes %d to %d are no block, and good ones follow. It can be read, not written, until it is repaired", e.Path, e.At, e.Next)
}

// file is what reading and writing have in common.
type file struct {
	f    durable.File
	path string
	salt salt
}

// open reads the head of the file.
func open(d durable.Dir, name string, get func(string) (durable.File, error)) (*file, error) {
	f, err := get(name)
	if err != nil {
		return nil, err
	}
	out := &file{f: f, path: d.Path() + "/" + name}
	b := make([]byte, fileHead)
	_, err = f.ReadAt(b, 0)
	problem := ""
	switch {
	case errors.Is(err, io.EOF):
		problem, err = "it is too short for a log", nil
	case err == nil:
		out.salt, problem = readHead(b)
	}
	if problem != "" {
		err = fmt.Errorf("read log %s: %s", out.path, problem)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return out, nil
}

// block reads the block at an offset into buf, which is grown as needed. Nil is no block.
func (f *file) block(at int64, buf []byte) (*block, error) {
	buf = grown(buf, blockHead)
	if n, err := f.f.ReadAt(buf, at); n < blockHead {
		return nil, ended(err)
	}
	h := decodeHead(buf)
	if !h.plausible() {
		return nil, nil
	}
	buf = grown(buf, blockHead+int(h.size))
	if n, err := f.f.ReadAt(buf[blockHead:], at+blockHead); n < int(h.size) {
		return nil, ended(err)
	}
	if f.salt.sum(buf, at) != h.sum {
		return nil, nil
	}
	return &block{head: h, bytes: buf}, nil
}

// ended is nil for the end of the file, which is what a reader finds behind a block that was cut off.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func grown(b []byte, n int) []byte {
	if cap(b) < n {
		grown := make([]byte, n, max(n, 2*cap(b)))
		copy(grown, b)
		return grown
	}
	return b[:n]
}

// state is where a log stands.
type state struct {
	end  int64  // where the next block goes
	next uint64 // number of the next record
}

// scan goes through the blocks between two places and yields what they hold. It ends early where there is no block.
func (f *file) scan(at state, until int64, yield func(Entry) bool) (state, error) {
	var buf []byte
	for at.end < until {
		b, err := f.block(at.end, buf)
		switch {
		case err != nil:
			return at, fmt.Errorf("read log %s at %d: %w", f.path, at.end, err)
		case b == nil:
			return at, nil
		}
		buf = b.bytes
		if b.kind == gap {
			g := b.gap(at.end)
			if !yield(Entry{Gap: &g}) {
				return at, nil
			}
		}
		body := b.body()
		for i := range int(b.count) {
			r, ok := record(body, 0)
			if !ok {
				return at, fmt.Errorf("read log %s at %d: the lengths of its records do not add up", f.path, at.end)
			}
			if !yield(Entry{Position: Position{Block: at.end, Index: int32(i)}, Record: r}) {
				return at, nil
			}
			body = body[4+len(r):]
		}
		at = b.after(at.end)
	}
	return at, nil
}

// tail looks at what stands behind the last good block: nothing but zeros, the rest of a block that was never finished,
// or damage with good blocks behind it.
func (f *file) tail(end int64) (used int64, err error) {
	in, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	used = end
	buf := make([]byte, 1<<20)
	for at := end; at < in.Size; {
		n, err := f.f.ReadAt(buf[:min(int64(len(buf)), in.Size-at)], at)
		if err = ended(err); err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		for i := 0; i < n; i += align {
			word := buf[i:min(i+align, n)]
			if zero(word) {
				continue
			}
			here := at + int64(i)
			used = here + int64(len(word))
			if here == end || !begins(word) {
				continue
			}
			if b, err := f.block(here, nil); err != nil {
				return 0, err
			} else if b != nil {
				return 0, &DamageError{Path: f.path, At: end, Next: here, lost: b.first}
			}
		}
		at += int64(n)
	}
	return used, nil
}

// begins tells whether a block may begin with these bytes.
func begins(word []byte) bool {
	if len(word) < 4 {
		return false
	}
	k := kind(binary.LittleEndian.Uint32(word))
	return k == records || k == gap
}

// Reader reads a log beside its writer. It is not safe for concurrent use.
type Reader struct {
	*file
	at state
}

// Read opens a log for reading, in any process. fs.ErrNotExist when there is none.
func Read(d durable.Dir, name string) (*Reader, error) {
	f, err := open(d, name, d.Open)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &Reader{file: f, at: state{end: fileHead}}, nil
}

// Next yields what came since the last call that was gone through to its end. What the writer has not flushed yet may be
// among it: a reader that must not tell of it reads in the writer's process.
func (r *Reader) Next(yield func(Entry) bool) error {
	whole := true
	at, err := r.scan(r.at, math.MaxInt64, func(e Entry) bool { whole = yield(e); return whole })
	if err == nil && whole {
		r.at = at
	}
	return err
}

// Damage is a [*DamageError] when good blocks stand behind the place where Next ended, else nil. A writer that is at
// work is not taken for damage: its unfinished block has nothing behind it.
func (r *Reader) Damage() error {
	_, err := r.tail(r.at.end)
	return err
}

// Cursor reads single records of the log.
func (r *Reader) Cursor() *Cursor { return &Cursor{file: r.file} }

// Close releases the file.
func (r *Reader) Close() error { return r.f.Close() }

// Cursor reads single records. Records that stand close to one another are read together. It is not safe for concurrent
// use, and lives no longer than what it was made from.
type Cursor struct {
	*file
	at  int64 // of the window
	win []byte
	one []byte
}

// window is how much a cursor reads at once.
const window = 64 << 10

// Record is the record at a position; it is valid until the next call.
func (c *Cursor) Record(p Position) ([]byte, error) {
	b, err := c.find(p.Block)
	if err != nil {
		return nil, fmt.Errorf("read log %s at %d: %w", c.path, p.Block, err)
	}
	if int(p.Index) >= int(b.count) || p.Index < 0 {
		return nil, fmt.Errorf("read log %s at %d: no record %d there", c.path, p.Block, p.Index)
	}
	r, ok := record(b.body(), int(p.Index))
	if !ok {
		return nil, fmt.Errorf("read log %s at %d: the lengths of its records do not add up", c.path, p.Block)
	}
	return r, nil
}

// find is a whole, checked block.
func (c *Cursor) find(at int64) (block, error) {
	// A second look is needed too when the window holds what stood there before the block was written.
	for range 2 {
		if b, ok := c.inWindow(at); ok {
			return b, nil
		}
		c.win = grown(c.win, window)
		n, err := c.f.ReadAt(c.win, at)
		if err = ended(err); err != nil {
			return block{}, err
		}
		c.at, c.win = at, c.win[:n]
	}
	b, err := c.block(at, c.one)
	switch {
	case err != nil:
		return block{}, err
	case b == nil:
		return block{}, errors.New("no block there")
	}
	c.one = b.bytes
	return *b, nil
}

func (c *Cursor) inWindow(at int64) (block, bool) {
	off := at - c.at
	if off < 0 || off+blockHead > int64(len(c.win)) {
		return block{}, false
	}
	h := decodeHead(c.win[off:])
	end := off + blockHead + int64(h.size)
	if !h.plausible() || end > int64(len(c.win)) {
		return block{}, false
	}
	b := block{head: h, bytes: c.win[off:end]}
	return b, c.salt.sum(b.bytes, at) == h.sum
}
