package framelog

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"runtime"
	"sync"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// ErrBroken refuses to add to a log after a write or a flush failed. [Log.Recover] mends that.
var ErrBroken = errors.New("an earlier write to the log failed")

// ErrUnknown is returned by Wait when the context ended before it was known whether the record is durable.
var ErrUnknown = errors.New("it is not known whether the record was written")

// BusyError refuses a log that another process writes.
type BusyError struct {
	Path   string
	Holder string // as the holder called itself; empty when it has not said so yet
}

func (e *BusyError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another process"
	}
	return fmt.Sprintf("log %s is being written by %s: one process writes at a time", e.Path, holder)
}

// Config says which log.
type Config struct {
	Dir durable.Dir
	// Name of the file. Its lock, and who holds it, are files beside it with this name and an ending.
	Name string
	// Holder is how this process calls itself to others that want to write ("mulligan daemon, pid 4711").
	Holder string
	// Ahead is how far the file is filled with zeros, in bytes; 0 is 1 MiB.
	Ahead int64
}

// Log is a log that this process writes. It is safe for concurrent use.
type Log struct {
	*file
	lock  durable.Lock
	ahead int64
	torn  int64

	mu     sync.Mutex
	idle   *sync.Cond // busy became false
	closed bool
	busy   bool   // somebody writes a block
	last   int    // how many records the last block had
	spare  []byte // a block's memory, for the next one
	open   *group // where records are added
	at     state  // behind all that is durable
	coming state  // behind all that was added
	filled int64  // up to where the file has its zeros
	failed error
}

// yields is how often a writer lets others run before it flushes, when the last flush served more than have come so far.
const yields = 4

// group is one block under way.
type group struct {
	buf     []byte
	at      state // where it goes
	count   int
	waiting int
	done    chan struct{}
	lead    chan struct{}
	ended   bool
	err     error
}

// Open opens a log for writing and makes it when it is absent. It reads through the whole file once.
//
// Errors: a [*BusyError] when another process writes it, a [*DamageError] when it needs repair.
func Open(c Config) (*Log, error) {
	path := c.Dir.Path() + "/" + c.Name
	lock, err := hold(c.Dir, c.Name, c.Holder)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l, err := c.open()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log %s: %w", path, err), lock.Close())
	}
	l.lock = lock
	return l, nil
}

// hold takes the log's lock, or names who has it.
func hold(d durable.Dir, name, holder string) (durable.Lock, error) {
	lock, err := d.Lock(name + ".lock")
	if err != nil {
		return nil, err
	}
	got, err := lock.Try(false)
	switch {
	case err != nil:
		return nil, errors.Join(err, lock.Close())
	case !got:
		b, _, _ := durable.ReadFile(d, name+".holder", 1000) // a name is help, not proof
		return nil, errors.Join(&BusyError{Path: d.Path() + "/" + name, Holder: string(b)}, lock.Close())
	}
	if err := durable.Replace(d, "."+name+".holder", name+".holder", []byte(holder), nil); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func (c Config) open() (*Log, error) {
	if _, err := c.Dir.Stat(c.Name); errors.Is(err, fs.ErrNotExist) {
		var s salt
		rand.Read(s[:])
		if err := durable.Replace(c.Dir, "."+c.Name, c.Name, newHead(s), nil); err != nil {
			return nil, err
		}
	}
	f, err := open(c.Dir, c.Name, c.Dir.Overwrite)
	if err != nil {
		return nil, err
	}
	l := &Log{file: f, ahead: padded(c.Ahead)}
	l.idle = sync.NewCond(&l.mu)
	if c.Ahead <= 0 {
		l.ahead = 1 << 20
	}
	if err := l.settle(); err != nil {
		return nil, errors.Join(err, f.f.Close())
	}
	return l, nil
}

// settle finds the end and clears away what was never finished.
func (l *Log) settle() error {
	at, err := l.scan(state{end: fileHead}, math.MaxInt64, func(Entry) bool { return true })
	if err != nil {
		return err
	}
	used, err := l.tail(at.end)
	if err != nil {
		return err
	}
	l.torn = used - at.end
	l.at, l.coming = at, at
	in, err := l.f.Stat()
	if err != nil {
		return err
	}
	// What a killed writer wrote and did not flush can be read, so it counts from now on: it has to be durable before
	// anybody acts on it.
	l.filled = in.Size
	if l.torn > 0 {
		return l.clear(at.end, used)
	}
	return l.f.Sync()
}

// clear writes zeros over a part of the file and flushes them.
func (l *Log) clear(from, to int64) error {
	if err := l.zeros(from, to); err != nil {
		return err
	}
	return l.f.Sync()
}

// nothing is what zeros writes, in pieces. It is never changed.
var nothing [256 << 10]byte

func (l *Log) zeros(from, to int64) error {
	for from < to {
		n, err := l.f.WriteAt(nothing[:min(int64(len(nothing)), to-from)], from)
		from += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// Torn is how many bytes of a block that was never finished were cleared away when the log was opened.
func (l *Log) Torn() int64 { return l.torn }

// Ticket stands for a record that was added, and is waited for.
type Ticket struct{ g *group }

// Add puts a record behind all that was added before and says where it will stand. It writes nothing: [Log.Wait] does.
// Every ticket must be waited for. The record is copied.
func (l *Log) Add(rec []byte) (Position, Ticket, error) {
	if len(rec) > MaxRecord {
		return Position{}, Ticket{}, fmt.Errorf("add to log %s: the record has %d bytes, at most %d are taken", l.path, len(rec), MaxRecord)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return Position{}, Ticket{}, fmt.Errorf("add to log %s: %w", l.path, fs.ErrClosed)
	case l.failed != nil:
		return Position{}, Ticket{}, fmt.Errorf("add to log %s: %w: %w", l.path, ErrBroken, l.failed)
	}
	g := l.open
	if g == nil {
		g = &group{at: l.coming, done: make(chan struct{}), lead: make(chan struct{}, 1), buf: grown(l.spare, blockHead)}
		l.open, l.spare = g, nil
	}
	g.buf = binary.LittleEndian.AppendUint32(g.buf, uint32(len(rec)))
	g.buf = append(g.buf, rec...)
	p := Position{Block: g.at.end, Index: int32(g.count)}
	g.count++
	l.coming = state{end: g.at.end + padded(int64(len(g.buf))), next: g.at.next + uint64(g.count)}
	g.waiting++
	if len(g.buf) >= maxBlock {
		// It takes no more. Who wants to add has to see it written first.
		l.full(g)
	}
	return p, Ticket{g}, nil
}

// Also is a ticket for one more who waits for the same record.
func (l *Log) Also(t Ticket) Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.g.waiting++
	return t
}

// full writes a block that takes no more records, once the one before it is done.
func (l *Log) full(g *group) {
	for l.busy && !g.ended {
		l.idle.Wait()
	}
	if !g.ended {
		l.write()
	}
}

// Wait returns when the record is durable. It may do the flush for all that wait, and then ends it even if the context
// does, so that nobody is left behind. [ErrUnknown] tells that the context ended first; [ErrBroken] that writing failed,
// and what was waiting is in the log only if it is still there after [Log.Recover].
func (l *Log) Wait(ctx context.Context, t Ticket) error {
	g := t.g
	for {
		l.mu.Lock()
		if !g.ended && !l.busy {
			l.write()
		}
		if g.ended {
			g.waiting--
			err := g.err
			l.mu.Unlock()
			return err
		}
		l.mu.Unlock()
		select {
		case <-g.done:
		case <-g.lead:
		case <-ctx.Done():
			l.mu.Lock()
			g.waiting--
			ended, err := g.ended, g.err
			if !ended && g.waiting == 0 && !l.busy {
				l.write() // the last one to give up its wait, and nobody else would write it
				ended, err = true, g.err
			}
			l.mu.Unlock()
			if ended {
				return err
			}
			return fmt.Errorf("append to log %s: %w: %w", l.path, ErrUnknown, context.Cause(ctx))
		}
	}
}

// write writes the open group, and those after it for which nobody waits any more. It is called with the lock, and
// gives it away while it writes.
func (l *Log) write() {
	for l.open != nil {
		g := l.open
		l.busy = true
		// Those whom the last flush woke are about to add again: a moment for them saves a flush for each.
		for range yields {
			if g.count >= l.last {
				break
			}
			l.mu.Unlock()
			runtime.Gosched()
			l.mu.Lock()
		}
		l.last = g.count
		l.open = nil
		filled := l.filled
		l.mu.Unlock()
		filled, err := l.put(g, filled)
		l.mu.Lock()
		l.busy, l.filled = false, filled
		l.finish(g, err)
		l.idle.Broadcast()
		if l.open == nil || l.open.waiting > 0 {
			break
		}
	}
	if l.open != nil {
		select {
		case l.open.lead <- struct{}{}: // one of those who wait goes on
		default:
		}
	}
}

// put makes a block durable.
func (l *Log) put(g *group, filled int64) (int64, error) {
	l.salt.seal(g.buf, g.at.end, records, g.at.next, g.count)
	end := g.at.end + padded(int64(len(g.buf)))
	if end <= filled {
		if _, err := l.f.WriteAt(g.buf, g.at.end); err != nil {
			return filled, err
		}
		return filled, l.f.Datasync()
	}
	// The zeros first: on a full disk they fail, and no part of the block is there yet.
	to := end + l.ahead
	if err := l.zeros(filled, to); err != nil {
		return filled, err
	}
	if _, err := l.f.WriteAt(g.buf, g.at.end); err != nil {
		return filled, err
	}
	return to, l.f.Sync()
}

// finish tells those who wait. A failure is one of all that was added since, too: it would stand behind a hole.
func (l *Log) finish(g *group, err error) {
	if err == nil {
		l.at = state{end: g.at.end + padded(int64(len(g.buf))), next: g.at.next + uint64(g.count)}
		if cap(g.buf) <= maxBlock {
			l.spare = g.buf[:0]
		}
		g.end(nil)
		return
	}
	l.failed = err
	err = fmt.Errorf("append to log %s: %w: %w", l.path, ErrBroken, err)
	g.end(err)
	if l.open != nil {
		l.open.end(err)
		l.open = nil
	}
}

func (g *group) end(err error) {
	g.buf, g.ended, g.err = nil, true, err
	close(g.done)
}

// Recover makes a log that refused to go on usable again: what was not durable is taken away. The caller sees to it
// that nothing is added meanwhile, and forgets all records at or behind [Log.End] when it is told that the log recovered.
// A log that works is left alone.
func (l *Log) Recover() (recovered bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil || l.busy {
		return false, nil
	}
	in, err := l.f.Stat()
	if err == nil {
		err = l.clear(l.at.end, in.Size)
	}
	if err != nil {
		return false, fmt.Errorf("recover log %s: %w", l.path, err)
	}
	l.failed, l.coming, l.filled = nil, l.at, in.Size
	return true, nil
}

// End is where the next record goes, when all that was added is durable: positions before it are.
func (l *Log) End() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at.end
}

// Records is how many records were made durable, those that were lost to damage among them.
func (l *Log) Records() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at.next
}

// Scan goes through what is durable, from the start.
func (l *Log) Scan(yield func(Entry) bool) error {
	_, err := l.scan(state{end: fileHead}, l.End(), yield)
	return err
}

// Cursor reads single records that are durable.
func (l *Log) Cursor() *Cursor { return &Cursor{file: l.file} }

// Close writes what still waits and gives the log away.
func (l *Log) Close() error {
	l.mu.Lock()
	for l.busy {
		l.idle.Wait()
	}
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true // before the write, which gives the lock away: what is added from here on would never be written
	l.write()
	l.mu.Unlock()
	return errors.Join(l.f.Close(), l.lock.Close())
}
