package restart_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
)

// forgetful is a store that makes its first changes and says that it could not, as a disk does that fails to flush.
type forgetful struct {
	ledger.Store
	lies, noSync  int
	tries, synced int
}

var errFlush = errors.New("the flush failed")

func (s *forgetful) Update(ctx context.Context, k ledger.Key, f func(ledger.Record, stamp.Time) (ledger.Record, error)) (ledger.Record, error) {
	s.tries++
	rec, err := s.Store.Update(ctx, k, f)
	if err == nil && s.tries <= s.lies {
		return ledger.Record{}, errFlush
	}
	return rec, err
}

func (s *forgetful) Sync(context.Context, ledger.Key) error {
	if s.synced++; s.synced <= s.noSync {
		return errFlush
	}
	return nil
}

// TestPassGate: a bind that was not acknowledged is said again, and made durable before the program may run; a refusal is
// final at once, and a disk that goes on failing is given up after some tries.
func TestPassGate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lies, noSync  int
		launch        string
		want          error
		tries, synced int
	}{
		"acknowledged":                      {tries: 1},
		"not acknowledged once":             {lies: 1, tries: 2, synced: 1},
		"and not durable at the next":       {lies: 1, noSync: 1, tries: 3, synced: 2},
		"never acknowledged":                {lies: 99, want: errFlush, tries: 4},
		"a launch that is not the record's": {launch: "other", want: ledger.ErrBound, tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := memory.New(memory.Config{})
			k, self := ledger.Key{Project: "acme", Lineage: "l"}, home.Instances().Self()
			rec, err := ledger.New(k, ledger.Change{Event: ledger.Claim, Now: stamp.Wall(time.Now(), 0), Actor: self})
			if err == nil {
				err = home.Ledger().Create(t.Context(), rec)
			}
			if err == nil {
				_, err = home.Ledger().Update(t.Context(), k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
					c := ledger.Change{Event: ledger.Takeover, Now: now, Actor: self}
					cur, err := ledger.Apply(cur, c)
					if err != nil {
						return cur, err
					}
					c.Event, c.Launch, c.Episode, c.Evidence = ledger.BeginLaunch, "launch", "e", "evidence/e"
					return ledger.Apply(cur, c)
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			s := &forgetful{Store: home.Ledger(), lies: c.lies, noSync: c.noSync}
			launch := "launch"
			if c.launch != "" {
				launch = c.launch
			}
			err = restart.PassGate(t.Context(), s, k, launch, "run", self)
			if !errors.Is(err, c.want) || s.tries != c.tries || s.synced != c.synced {
				t.Errorf("%v after %d tries and %d flushes, want %v after %d and %d", err, s.tries, s.synced, c.want, c.tries, c.synced)
			}
		})
	}
}
