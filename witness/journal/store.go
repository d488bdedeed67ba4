package journal

import (
	"context"
	"fmt"
	"iter"
)

// Store is the update journal: rows are appended, never altered.
type Store interface {
	// Append adds a row. It is durable when Append returns; a row whose Append did not return may be there or not.
	Append(ctx context.Context, r Row) error
	// Rows yields one row for each ID, the last that was appended, in the order in which the updates began. A line that
	// cannot be read is yielded as an error and does not end the list; a torn last line was never acknowledged and is
	// left out.
	Rows(ctx context.Context) iter.Seq2[Row, error]
}

// Lock is the writer lock of the managed trees: an update holds it exclusively while it changes them, a healer shared
// from its quiet check to the replacement's handshake. It ends with the process that holds it and is not inherited by
// the processes which that one starts.
type Lock interface {
	// Exclusive waits for the lock until ctx ends, and then reports a [*HeldError] that also wraps the context's error. A
	// lock that nobody holds is taken without any wait, and so also when no time is left.
	// holder is shown to others that wait: the command, as a person would recognise it.
	Exclusive(ctx context.Context, holder string) (release func() error, err error)
	// Shared takes the lock beside other shared holders. It never waits: a lock that is held exclusively is a
	// [*HeldError] at once, and the tree is not quiet.
	Shared(ctx context.Context, holder string) (release func() error, err error)
	// Holder says who holds the lock now, in words: the command, its pid and since when. ok is false when nobody does.
	Holder(ctx context.Context) (holder string, ok bool, err error)
}

// HeldError means that somebody else holds the writer lock.
type HeldError struct {
	// Holder is who has it, in words; "unknown" when the holder left no name.
	Holder string
	// Err is why the wait ended, nil when there was none.
	Err error
}

func (e *HeldError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the writer lock is held by %s: %v", e.Holder, e.Err)
	}
	return fmt.Sprintf("the writer lock is held by %s", e.Holder)
}

func (e *HeldError) Unwrap() error { return e.Err }
