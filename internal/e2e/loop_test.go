package e2e

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/restart"
)

// countingStorm counts the passes: each reads the breaker's state first.
type countingStorm struct {
	storm.Store
	reads atomic.Int32
}

func (c *countingStorm) State(ctx context.Context) (storm.State, error) {
	c.reads.Add(1)
	return c.Store.State(ctx)
}

// TestLoopWakesAtOnce: the loop's tick is an hour away. A doorbell wakes it, a deferral is looked at again when it is
// due, and the replacement is up long before any tick; then the loop is idle.
func TestLoopWakesAtOnce(t *testing.T) {
	t.Parallel()
	count := &countingStorm{}
	w := newWorld(t, options{settings: restart.Settings{Quiescence: 300 * time.Millisecond, Tick: time.Hour}, stores: func(s restart.Stores) restart.Stores {
		count.Store = s.Storm
		s.Storm = count
		return s
	}})
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.healer.Run(ctx) }()
	w.until("the loop's first look", func() bool { return count.reads.Load() > 0 })

	w.branch("v2", renamed...)
	scout := w.broken("scout")
	w.update("v2")
	w.tell("update")
	scout.dies()
	w.until("scout to be put back", func() bool { return w.has("scout-done") })
	w.until("its record to be bound", func() bool { return w.record(scout).Launch != nil && w.record(scout).Launch.Bound != nil })
	rung, bound := scout.res.Run, w.record(scout).Launch.BoundAt
	dead, err := w.home.Runs().Get(w.ctx, rung.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("from death to gate in %s", bound.Sub(dead.Ended.At))

	rate := w.start("rate", "rate_limit").dies()
	w.until("the other death to be answered", func() bool { return w.stands(rate) == "answer rate_limit" })
	w.until("the doorbells to be gone", func() bool { return w.bells() == 1 || w.bells() == 0 })

	stop()
	if err := <-ended; err != nil {
		t.Errorf("the loop ended with %v", err)
	}
	if n := count.reads.Load(); n > 40 {
		t.Errorf("the loop read the state %d times for two deaths", n)
	}
}

// TestLoopSeesTheEndOfItsLaunch: a replacement is killed together with its runner, so that nobody rings. The loop that
// launched it settles its record then, although its tick is an hour away.
func TestLoopSeesTheEndOfItsLaunch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: restart.Settings{Quiescence: rest, Tick: time.Hour},
		launcher: func(p *parts) restart.Launcher { return runnerLauncher(p.home.Dir(), 0) }})
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.healer.Run(ctx) }()

	scout := w.after("scout", "mark:preparing", "wait:update", "encode", "wait:end")
	w.until("the replacement to run", func() bool { return w.has("scout-waits-for-end") && w.stands(scout) == "launched relaunch" })
	runner := w.record(scout).Launch.Bound.PID
	w.until("its process to be known", func() bool { return scout.replacement().PID != 0 })
	if err := syscall.Kill(runner, syscall.SIGSTOP); err != nil { // it is not to see what becomes of its program
		t.Fatal(err)
	}
	terminate(t, scout.replacement().PID)
	terminate(t, runner)
	w.until("its record to be settled", func() bool { return w.record(scout).State.Final() })
	w.wantStands(scout, "settled_failed replacement_lost")
	w.until("its owner to be told", func() bool { return len(w.loud()) > 0 }) // the pass writes that after the record

	stop()
	if err := <-ended; err != nil {
		t.Errorf("the loop ended with %v", err)
	}
	w.wantLoud("replacement_lost")
}
