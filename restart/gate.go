package restart

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// gateWaits are the pauses between the tries at the gate. A disk that fails for a moment is no reason to lose the one
// do-over; one that fails for longer is, for nothing may run whose launch is not on record.
var gateWaits = [...]time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second}

// PassGate binds launch to the run that by is about to start, durably, and returns nil exactly when that program may run.
// A launch that is over or bound to another process, or about which a person decided, is ledger.ErrBound and final. Any
// other failure leaves it open whether the bind was written, and the same process may bind again: it does, a few times
// within some two seconds, and then returns the last error.
func PassGate(ctx context.Context, s ledger.Store, k ledger.Key, launch, run string, by ledger.Instance) error {
	for try := 0; ; try++ {
		err := bind(ctx, s, k, launch, run, by, try > 0)
		if err == nil || refused(err) || try == len(gateWaits) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(gateWaits[try]):
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// bind is one try at the gate. What an earlier try wrote may be visible and not flushed, and a repeated bind writes
// nothing: then it is made durable here.
func bind(ctx context.Context, s ledger.Store, k ledger.Key, launch, run string, by ledger.Instance, again bool) error {
	_, err := s.Update(ctx, k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		return ledger.Apply(cur, ledger.Change{Event: ledger.Bind, Now: now, Actor: by, Launch: launch, Run: run})
	})
	if err != nil {
		return fmt.Errorf("pass the launch gate of %s: %w", k, err)
	}
	if sync, ok := s.(ledger.Syncer); ok && again {
		if err := sync.Sync(ctx, k); err != nil {
			return fmt.Errorf("make the passed gate of %s durable: %w", k, err)
		}
	}
	return nil
}
