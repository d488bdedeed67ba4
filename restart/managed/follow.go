package managed

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/run"
)

const (
	// followFirst is the rest before the second look after a doorbell rang: a replacement is up within moments, or much later.
	followFirst = 10 * time.Millisecond
	// followMost is the rest between two looks while nothing rings.
	followMost = time.Second
)

// WaitSuccessor is [Host.Successor] for whoever has nothing else to do: it returns when somebody has taken the run's place
// (ok), when the run has ended well, so that nobody will (not ok), or when ctx ends, with its cause. A run that died and is
// not put back may still be started again by a person, so waiting for it ends with ctx alone: give that a deadline.
//
// It looks when a doorbell rings, then at growing distances up to once a second, and so sees what other processes do too.
func (h *Host) WaitSuccessor(ctx context.Context, id string) (last run.Run, ok bool, err error) {
	ringing, stop := context.WithCancel(ctx)
	wake := make(chan struct{}, 1)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		if err := h.cfg.Stores.Doorbells.Watch(ringing, wake); err != nil && ringing.Err() == nil {
			h.log.Warn("the doorbells cannot be watched, so a successor is seen a second later", "run", id, "error", err)
		}
	})
	defer watcher.Wait()
	defer stop()
	for rest := followFirst; ; {
		last, ok, err = h.Successor(ctx, id)
		if ctx.Err() != nil {
			return last, ok, fmt.Errorf("wait for the successor of run %s: %w", id, context.Cause(ctx))
		}
		if err != nil || ok || endedWell(last) {
			return last, ok, err
		}
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
		case <-wake:
			rest = followFirst
		case <-timer.C:
			rest = min(2*rest, followMost)
		}
		timer.Stop()
	}
}
