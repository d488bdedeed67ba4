package handoff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// ErrBudget means that as many restarts as are allowed were asked for in the window.
var ErrBudget = errors.New("the budget of restarts is used up")

// Entry is a restart that was asked for. A boot that finds one from right before it, not withdrawn, was no crash.
type Entry struct {
	ID       string     `json:"id"`
	At       stamp.Time `json:"at"`
	Sessions []string   `json:"sessions,omitempty"` // those that asked; none for an operator
	Unit     string     `json:"unit,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Cause    string     `json:"cause,omitempty"`
	// Withdrawn is set when it was refused, and did not come. It counts all the same.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// History is the durable record of restarts: the budget, and the proof that a stop was meant.
type History interface {
	// Entries are those that still matter, oldest first. One that cannot be read is an error, never a shorter list.
	Entries(ctx context.Context) ([]Entry, error)
	// Reserve adds an entry, durably when it returns, unless Limit were asked for in Window before it (ErrBudget). Judging
	// and writing are one step against every other process.
	Reserve(ctx context.Context, e Entry) error
	// Withdraw marks an entry as one that did not come; one that is not there is no error.
	Withdraw(ctx context.Context, id string) error
}

// Recent counts the entries that are in the window. One from the future counts: a clock that was set back frees no budget.
func Recent(entries []Entry, now stamp.Time) (n int) {
	for _, e := range entries {
		if now.Sub(e.At) < Window {
			n++
		}
	}
	return n
}

const (
	// keepFor is how long an entry can be read after it.
	keepFor = 7 * 24 * time.Hour
	// lockRest is the longest rest between two tries for the lock, which is held for one small write.
	lockRest = 20 * time.Millisecond
)

// File is a History in a folder. It is safe for concurrent use, by several processes too.
type File struct {
	dir  durable.Dir
	lock durable.Lock
	turn chan struct{} // one at a time in this process
}

// OpenHistory opens the history in a folder of the state folder, made when it is absent. It may be the folder of a
// boot.Keeper, where `mulligan self-restart` counts its restarts too: only then do both keep to one budget.
func OpenHistory(dir string) (*File, error) {
	if err := inside.Refuse(dir); err != nil {
		return nil, fmt.Errorf("open the history of restarts: %w", err)
	}
	d, err := durable.System{}.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the history of restarts: %w", err)
	}
	if err := durable.Private(d); err != nil {
		return nil, errors.Join(fmt.Errorf("open the history of restarts: %w", err), d.Close())
	}
	l, err := d.Lock("restarts.lock")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the history of restarts: %w", err), d.Close())
	}
	return &File{dir: d, lock: l, turn: make(chan struct{}, 1)}, nil
}

// Close releases the handles. Nothing may be under way.
func (f *File) Close() error { return errors.Join(f.lock.Close(), f.dir.Close()) }

// Entries implements History.
func (f *File) Entries(context.Context) ([]Entry, error) {
	entries, err := f.read()
	if err != nil {
		return nil, fmt.Errorf("read the history of restarts: %w", err)
	}
	return entries, nil
}

// Reserve implements History.
func (f *File) Reserve(ctx context.Context, e Entry) error {
	err := f.update(ctx, func(entries []Entry) ([]Entry, error) {
		if n := Recent(entries, e.At); n >= Limit {
			return nil, fmt.Errorf("%w: %d were asked for in the last %v", ErrBudget, n, Window)
		}
		entries = slices.DeleteFunc(entries, func(old Entry) bool { return e.At.Sub(old.At) > keepFor })
		return append(entries, e), nil
	})
	if err != nil {
		return fmt.Errorf("write a restart down: %w", err)
	}
	return nil
}

// Withdraw implements History.
func (f *File) Withdraw(ctx context.Context, id string) error {
	err := f.update(ctx, func(entries []Entry) ([]Entry, error) {
		for i := range entries {
			if entries[i].ID == id {
				entries[i].Withdrawn = true
			}
		}
		return entries, nil
	})
	if err != nil {
		return fmt.Errorf("withdraw restart %s: %w", id, err)
	}
	return nil
}

// history is the file.
func history() durable.Sealed {
	return durable.Sealed{Name: "restarts.json", Limit: 1 << 20, Schema: 1, Body: "entries"}
}

func (f *File) read() (entries []Entry, err error) {
	if err := history().Load(f.dir, &entries); err != nil && !durable.Absent(err) {
		return nil, err
	}
	return entries, nil
}

// update is one durable change, alone among all processes.
func (f *File) update(ctx context.Context, change func([]Entry) ([]Entry, error)) (err error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := durable.Take(ctx, f.lock, lockRest, durable.Patience); err != nil {
		return fmt.Errorf("wait for the file: %w", err)
	}
	defer func() {
		if e := f.lock.Unlock(); err == nil {
			err = e
		}
	}()
	entries, err := f.read()
	if err != nil {
		return err
	}
	if entries, err = change(entries); err != nil {
		return err
	}
	return history().Save(f.dir, entries)
}
