package restart

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// Run is the healer's loop: a full pass at the start and on every tick, and a pass at once when a doorbell rings, a
// deferred death is due, or a launch of its own has ended: one that was killed rings no doorbell. The ends of what others
// launched are seen at the tick. Between them it sleeps; a healer for whom nothing happens costs its tick and nothing
// else. A pass that fails is logged and tried again at the next. Run returns nil when ctx ends.
// In a canary it does nothing else.
func (h *Healer) Run(ctx context.Context) error {
	if inside.Inert() {
		<-ctx.Done()
		return nil
	}
	wake := make(chan struct{}, 1)
	watching := make(chan error, 1)
	watch, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	watchers.Go(func() { watching <- h.cfg.Stores.Doorbells.Watch(watch, wake) })
	// Nothing of the loop is left when Run returns, so that a host may close its stores then.
	defer watchers.Wait()
	defer stop()
	ended := make(chan struct{}, 1)
	follow := func(exited <-chan struct{}) {
		watchers.Go(func() {
			select {
			case <-exited:
			case <-watch.Done():
				return
			}
			select {
			case ended <- struct{}{}:
			default: // a pass is on its way, and sees this end too
			}
		})
	}

	tick := time.NewTicker(h.set.Tick)
	defer tick.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	full := true
	prune := daily{h: h, busy: make(chan struct{}, 1)}
	defer prune.wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watching:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("watch for doorbells: %w", err)
		case <-wake:
		case <-ended:
		case <-due.C:
		case <-tick.C:
			full = true
			prune.maybe(ctx)
		}
		res, err := h.passOver(ctx, Scope{}, full, follow)
		switch {
		case err == nil:
			full = false
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil
		default:
			h.log.Error("the pass failed and is tried again at the next tick", "error", err)
		}
		if !res.Next.IsZero() {
			due.Reset(max(time.Millisecond, res.Next.Sub(h.cfg.Now())))
		}
	}
}

// daily runs the pruning beside the passes, which never wait for it.
type daily struct {
	h    *Healer
	due  stamp.Time
	busy chan struct{}
	wg   sync.WaitGroup
}

// maybe begins a pruning when one is due and none is under way. What one call leaves is taken at the next tick.
func (d *daily) maybe(ctx context.Context) {
	select {
	case d.busy <- struct{}{}:
	default:
		return
	}
	now := d.h.cfg.Now()
	if d.due.IsZero() {
		d.due = now.Add(pruneFirst)
	}
	if now.Before(d.due) {
		<-d.busy
		return
	}
	d.wg.Go(func() {
		defer func() { <-d.busy }()
		n, err := d.h.Prune(ctx)
		if err != nil && ctx.Err() == nil {
			d.h.log.Error("what is old could not be pruned and is tried again tomorrow", "error", err)
		}
		if d.due = now.Add(pruneEvery); n.More && err == nil {
			d.due = now
		}
	})
}
