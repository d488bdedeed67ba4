package restart_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// TestLoopPrunes: the loop takes what is older than a month, a day late at most, and goes on deciding; an agent that
// dies afterwards under the same name is a lineage of its own.
func TestLoopPrunes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := newSim(dir, restart.Settings{Quiescence: -1, Tick: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.healer.Run(ctx) }()
		r, err := s.breaks(ctx, "scout", "v2")
		if err != nil {
			t.Fatal(err)
		}
		key := r.Registered().Key()
		time.Sleep(29 * 24 * time.Hour)
		synctest.Wait()
		if rec, err := s.stores.Ledger.Get(ctx, key); err != nil || rec.State != ledger.SettledOK || !rec.Pruned.IsZero() {
			t.Errorf("after 29 days: %s, pruned %v (%v)", rec.State, rec.Pruned, err)
		}
		time.Sleep(3 * 24 * time.Hour)
		synctest.Wait()
		if rec, err := s.stores.Ledger.Get(ctx, key); err != nil || rec.Pruned.IsZero() {
			t.Errorf("after 32 days it is not pruned (%v)", err)
		}
		if _, err := s.stores.Runs.Get(ctx, r.ID()); !errors.Is(err, run.ErrNotFound) {
			t.Errorf("its run: %v, want that it is gone", err)
		}
		again, err := s.breaks(ctx, "scout", "v3")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if rec, err := s.stores.Ledger.Get(ctx, again.Registered().Key()); err != nil || rec.State != ledger.SettledOK {
			t.Errorf("the next lineage is %s (%v), want that it was put back", rec.State, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.launcher.Wait()
	})
}

// TestPruneLeavesWhatIsOwed: however old, nothing goes of a record that is open or whose notice nobody took, and nothing
// at all while the healer is held or told to keep everything.
func TestPruneLeavesWhatIsOwed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := newSim(dir, restart.Settings{Quiescence: -1, MaxDefer: 10 * 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		var shown board
		with := func(change func(c *restart.Config)) *restart.Healer {
			h, err := restart.New(s.config(change))
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		deaf := with(func(c *restart.Config) { c.Notifiers = []notify.Notifier{deafEar{}} })
		open := with(func(c *restart.Config) {
			c.Notifiers = []notify.Notifier{deafEar{}}
			c.Launcher = &refuser{Launcher: s.launcher, says: policy.Preflight{Code: "no_gpu", Text: "No GPU."}}
		})
		if _, err := s.breaks(t.Context(), "untold", "v2"); err != nil {
			t.Fatal(err)
		}
		if _, err := deaf.Pass(t.Context(), restart.Scope{}); err == nil {
			t.Fatal("the story is wrong: the notice was taken")
		}
		s.launcher.Wait()
		if _, err := deaf.Pass(t.Context(), restart.Scope{}); err == nil {
			t.Fatal("the story is wrong: the notice was taken")
		}
		if _, err := s.breaks(t.Context(), "open", "v3"); err != nil {
			t.Fatal(err)
		}
		if _, err := open.Pass(t.Context(), restart.Scope{Name: "open"}); err == nil {
			t.Fatal("the story is wrong: the notice was taken")
		}
		time.Sleep(100 * 24 * time.Hour)
		held := func(what string, h *restart.Healer, why string) {
			t.Helper()
			n, err := h.Prune(t.Context())
			if err != nil || n != (restart.Pruned{Held: why}) {
				t.Errorf("%s: %+v, %v, want nothing, held by %q", what, n, err, why)
			}
		}
		nothing := func(what string, h *restart.Healer) {
			t.Helper()
			held(what, h, "")
		}
		told := with(func(c *restart.Config) { c.Notifiers = []notify.Notifier{&shown} })
		nothing("open and untold", told)
		if _, err := told.Pass(t.Context(), restart.Scope{}); err != nil {
			t.Fatal(err)
		}
		nothing("the open one has only just been declined", with(func(c *restart.Config) { c.Settings.Retention = -1 }))
		pause := func(f func(storm.State, stamp.Time) storm.State) {
			_, err := s.stores.Storm.UpdateState(t.Context(), func(cur storm.State, now stamp.Time) (storm.State, error) { return f(cur, now), nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		pause(func(cur storm.State, now stamp.Time) storm.State {
			return cur.Pause(storm.Pause{Since: now, Reason: storm.ReasonByHand})
		})
		held("paused", told, policy.Paused)
		held("disabled", with(func(c *restart.Config) { c.Settings.Disabled = true }), policy.Disabled)
		pause(func(cur storm.State, now stamp.Time) storm.State { return cur.Resume(now) })
		n, err := told.Prune(t.Context())
		if err != nil || n.Records != 1 || n.Evidence != 1 || n.Runs != 2 {
			t.Errorf("once it was told: %+v, %v, want its record, evidence, run and replacement", n, err)
		}
	})
}

// deafEar takes no notice.
type deafEar struct{}

func (deafEar) Notify(context.Context, notify.Row) error { return errors.New("nobody listens") }

// TestShortRetentionIsRefused: what may still be decided must not be pruned.
func TestShortRetentionIsRefused(t *testing.T) {
	t.Parallel()
	for _, set := range []restart.Settings{{Retention: time.Hour}, {Retention: 48 * time.Hour, MaxDefer: 36 * time.Hour}} {
		if _, err := restart.New(restart.Config{Settings: set}); err == nil || !strings.Contains(err.Error(), "Settings.Retention") {
			t.Errorf("%s with %s: %v", set.Retention, set.MaxDefer, err)
		}
	}
	for _, set := range []restart.Settings{{}, {Retention: -1, MaxDefer: 1000 * time.Hour}, {Retention: 24 * time.Hour}} {
		if _, err := restart.New(restart.Config{Settings: set}); strings.Contains(err.Error(), "Settings.Retention") {
			t.Errorf("%s with %s is refused: %v", set.Retention, set.MaxDefer, err)
		}
	}
}
