//go:build unix

package durable

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// Patience is how long a lock is waited for that is held for one small write: as long as a lease of the ledger. Whoever has
// it for longer is stopped, or hangs on a dead disk, and would have everybody else wait for ever.
const Patience = time.Minute

// HeldError is a lock that [Take] did not get.
type HeldError struct {
	// Path is the lock's file, empty where the lock has none.
	Path   string
	Waited time.Duration
	// Holder says who has it and what he does ("process 12 (acme), which is stopped (kill -CONT 12 continues it),"), empty
	// when that cannot be known.
	Holder string
}

func (e *HeldError) Error() string {
	lock := "a lock"
	if e.Path != "" {
		lock = "the lock " + e.Path
	}
	if e.Holder == "" {
		return fmt.Sprintf("%s was not to be had for %v, and it is not known who has it: fuser or lslocks may tell", lock, e.Waited)
	}
	return fmt.Sprintf("%s was not to be had for %v: %s has it", lock, e.Waited, e.Holder)
}

// Await takes a lock for itself alone, and waits for it until ctx ends; then it is the context's cause, and a context that
// has ended before takes nothing. The kernel offers no wait that a context could end, so the tries are spaced, from a tenth
// of a millisecond up to most: as long as whoever waits may come too late for a lock that is free.
func Await(ctx context.Context, l Lock, most time.Duration) error { return await(ctx, l, most, 0) }

// Take is Await for a lock that everybody holds for a moment only: after within it gives up with a [*HeldError]. What
// counts are the rests between the tries, so that a process that was itself stopped has lost no patience meanwhile.
func Take(ctx context.Context, l Lock, most, within time.Duration) error {
	return await(ctx, l, most, within)
}

func await(ctx context.Context, l Lock, most, within time.Duration) error {
	rested := time.Duration(0)
	for pause := min(100*time.Microsecond, most); ; pause = min(2*pause, most) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if ok, err := l.Try(false); ok || err != nil {
			return err
		}
		if within > 0 && rested >= within {
			return Held(l, within)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
		rested += pause
	}
}

// Held is the error about a lock that was waited for in vain.
func Held(l Lock, waited time.Duration) *HeldError {
	e := &HeldError{Waited: waited}
	if s, ok := l.(*sysLock); ok {
		e.Path = filepath.Join(s.dir.path, s.name)
		e.Holder = holder(e.Path)
	}
	return e
}
