package durable

import (
	"context"
	"time"
)

// Await takes a lock for itself alone, and waits for it until ctx ends; then it is the context's cause, and a context that
// has ended before takes nothing. The kernel offers no wait that a context could end, so the tries are spaced, from a tenth
// of a millisecond up to most: as long as whoever waits may come too late for a lock that is free.
func Await(ctx context.Context, l Lock, most time.Duration) error {
	for pause := min(100*time.Microsecond, most); ; pause = min(2*pause, most) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if ok, err := l.Try(false); ok || err != nil {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}
