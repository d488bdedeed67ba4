package sessions

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// hints is the store's watch of a session, or a channel on which nothing comes.
func (s *Service) hints(ctx context.Context, name string) <-chan struct{} {
	if w, ok := s.Store.(session.Watcher); ok {
		if c, err := w.Watch(ctx, name); err == nil {
			return c
		} // without hints there is the poll
	}
	return nil
}

// Tail yields the events of a session after a sequence, each once and in order, and waits for more until the context
// ends, which ends the sequence without an error. An error of the store is yielded and ends it.
func (s *Service) Tail(ctx context.Context, name string, after uint64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		// The watch begins before the first read, so nothing falls between them.
		hint := s.hints(ctx, name)
		tick := time.NewTicker(s.Poll)
		defer tick.Stop()
		for {
			page, err := s.Store.Read(ctx, name, after, 0)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(session.Event{}, fmt.Errorf("tail session %s: %w", name, err))
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if len(page) > 0 {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-hint:
			case <-tick.C:
			}
		}
	}
}
