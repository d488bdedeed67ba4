package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

func held(p *parts) restart.Launcher {
	return &process.HeldLauncher{Log: func(run string) string { return filepath.Join(p.home.Dir(), "runs", run+".log") }}
}

// TestHeldLauncher: a launcher without a runner. The program waits on a pipe until it has the name and is bound, and
// its end is recorded, or rung, as a runner would.
func TestHeldLauncher(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]string{"say:fine": "settled_ok replacement_ok", "bug": "settled_failed already_restarted"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{launcher: held})
			w.branch("v2", renamed...)
			scout := w.start("scout", "count:starts", "mark:preparing", "wait:update", "encode", end).waits("update")
			w.update("v2")
			w.tell("update")
			scout.dies()
			w.passUntil("its end to be settled", func() bool { return w.record(scout) != nil && w.record(scout).State.Final() })
			w.healer.Wait()
			w.wantStands(scout, want)
			second := scout.replacement()
			if w.times("starts") != 2 || second.PID == 0 || second.Ended == nil {
				t.Errorf("%d starts, replacement %+v", w.times("starts"), second)
			}
			if b := w.record(scout).Launch.Bound; !b.Unlocked || b.PID != second.PID {
				t.Errorf("the gate bound %+v, want the program's own process %d", b, second.PID)
			}
			if st, err := os.Stat(second.Log); err != nil || st.Mode().Perm() != 0o600 {
				t.Errorf("the log: %v %v", st, err)
			}
		})
	}
}

// TestHealerKilledInALaunch: the healer is killed at a moment of the launch. What was held never runs a line; what has
// a runner of its own runs once; another healer closes the record and starts nothing.
func TestHealerKilledInALaunch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, moment string
		held         bool
		starts       int
		want         string
	}{
		{"held, before the gate", "started", true, 1, "settled_failed launch_aborted"},
		{"held, between gate and release", "bound", true, 1, "settled_failed replacement_lost"},
		{"runner, before the gate", "started", false, 2, "settled_ok replacement_ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			scout := w.after("scout", "count:starts", "wait:update", "encode")
			r := role{Play: "healer", Go: w.state, Die: c.moment}
			if c.held {
				r.Held = w.dir
			}
			healer := w.play(r).ends()
			if healer.err == nil || !strings.Contains(healer.err.Error(), "killed") {
				t.Fatalf("the story is wrong: the healer ended with %v\n%s", healer.err, healer.out.String())
			}
			// The next healer gives the replacement one lease to pass the gate, and then closes the record.
			w.pass()
			if !c.held {
				w.until("the replacement to pass the gate", func() bool { return w.record(scout).State != ledger.Launching })
			}
			w.clock.forward(2 * time.Minute)
			w.passUntil("the record to be closed", func() bool { return w.record(scout).State.Final() })
			w.wantStands(scout, c.want)
			for range 5 {
				w.pass()
			}
			if n := w.times("starts"); n != c.starts {
				t.Errorf("the program was started %d times, want %d", n, c.starts)
			}
		})
	}
}

// TestRunnerLauncher: the replacement has a process of its own, which passes the gate and outlives the healer.
func TestRunnerLauncher(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{launcher: func(p *parts) restart.Launcher { return runnerLauncher(p.home.Dir(), 0) }})
	scout := w.after("scout", "count:starts", "mark:preparing", "wait:update", "encode")
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
	if w.times("starts") != 2 {
		t.Errorf("the program was started %d times, want twice", w.times("starts"))
	}
	if b := w.record(scout).Launch.Bound; b.PID == os.Getpid() || b.ID == w.home.Instances().Self().ID {
		t.Errorf("the gate bound %+v, want the runner's process", b)
	}
}

// TestPreflightForNow: what cannot be started now waits, costs nothing, and is put back when it can be.
func TestPreflightForNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{launcher: func(p *parts) restart.Launcher { return runnerLauncher(p.home.Dir(), 0) }})
	scout := w.after("scout", "wait:update", "encode")
	away := scout.ws + "-away"
	if err := os.Rename(scout.ws, away); err != nil {
		t.Fatal(err)
	}
	w.passUntil("the preflight to refuse", func() bool { return w.stands(scout) == "deferred program_missing" })
	w.wantLoud()
	if st, err := w.home.Breaker().State(w.ctx); err != nil || len(st.Slots) != 0 {
		t.Errorf("a refusal took %d slots (%v)", len(st.Slots), err)
	}
	if err := os.Rename(away, scout.ws); err != nil {
		t.Fatal(err)
	}
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
}

// deafLauncher says that it started something and never does; the lease is over soon, and a story starts the runner
// itself, when it likes.
type deafLauncher struct {
	w     *world
	order chan restart.Order
	// after is when the lease begins to run out; nil is at once.
	after <-chan struct{}
}

func (l *deafLauncher) Mode() restart.Mode { return restart.Runner }

func (l *deafLauncher) Preflight(context.Context, restart.Order) (p preflight) { return p }

func (l *deafLauncher) Launch(_ context.Context, o restart.Order) (restart.Started, error) {
	l.order <- o
	l.w.agents.Go(func() { l.w.hurry(o.Key, l.after) })
	return restart.Started{}, nil
}

// hurry lets the time pass until a lineage's record is closed.
func (w *world) hurry(k ledger.Key, after <-chan struct{}) {
	if after != nil {
		select {
		case <-after:
		case <-w.ctx.Done():
		}
	}
	for w.ctx.Err() == nil {
		rec, err := w.home.Ledger().Get(w.ctx, k)
		if err != nil || rec.State.Final() {
			return
		}
		w.clock.forward(61 * time.Second)
		time.Sleep(5 * time.Millisecond)
	}
}

// TestLateStart: a replacement that is started after its record was settled does not run a line.
func TestLateStart(t *testing.T) {
	t.Parallel()
	deaf := &deafLauncher{order: make(chan restart.Order, 1)}
	w := newWorld(t, options{launcher: func(*parts) restart.Launcher { return deaf }})
	deaf.w = w
	scout := w.after("scout", "count:starts", "wait:update", "encode")
	w.passUntil("the launch to be given up", func() bool { return w.record(scout) != nil && w.record(scout).State.Final() })
	w.wantStands(scout, "settled_failed launch_aborted")
	w.wantLoud("launch_aborted")
	o := <-deaf.order
	for range 2 {
		if _, err := w.runs.Replace(w.ctx, o.Key, o.Launch); !errors.Is(err, ledger.ErrBound) {
			t.Errorf("the late replacement: %v, want ErrBound", err)
		}
	}
	w.pass()
	if w.times("starts") != 1 {
		t.Errorf("the program was started %d times, want once", w.times("starts"))
	}
}

// lateLedger holds a bind up until it is told to go on.
type lateLedger struct {
	ledger.Store
	arrived chan struct{}
	goOn    chan struct{}
	once    *sync.Once
}

func (l lateLedger) Update(ctx context.Context, k ledger.Key, f func(ledger.Record, stamp.Time) (ledger.Record, error)) (ledger.Record, error) {
	l.once.Do(func() {
		close(l.arrived)
		<-l.goOn
	})
	return l.Store.Update(ctx, k, f)
}

// TestLateBind: the replacement was on its way, has taken the name, and comes to the gate when its record is settled.
// It is refused, its program does not run a line, and the name is free for a person.
func TestLateBind(t *testing.T) {
	t.Parallel()
	deaf := &deafLauncher{order: make(chan restart.Order, 1)}
	w := newWorld(t, options{launcher: func(*parts) restart.Launcher { return deaf }})
	gate := lateLedger{w.home.Ledger(), make(chan struct{}), make(chan struct{}), &sync.Once{}}
	deaf.w, deaf.after = w, gate.arrived
	scout := w.after("scout", "count:starts", "wait:update", "encode")
	s := w.home.Stores()
	s.Ledger = gate
	runner, err := managed.New(managed.Config{Stores: s, Sources: w.sources, Programs: process.Programs{NoSignals: true, NoTerminal: true},
		Dir: filepath.Join(w.home.Dir(), "runs"), Now: w.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan error, 1)
	go func() {
		o := <-deaf.order
		_, err := runner.Replace(w.ctx, o.Key, o.Launch)
		came <- err
	}()
	w.passUntil("the launch to be given up", func() bool { return w.record(scout) != nil && w.record(scout).State.Final() })
	w.wantStands(scout, "settled_failed launch_aborted")
	close(gate.goOn)
	if err := <-came; !errors.Is(err, ledger.ErrBound) {
		t.Errorf("the late replacement: %v, want ErrBound", err)
	}
	w.pass()
	w.wantStands(scout, "settled_failed launch_aborted")
	w.wantLoud("launch_aborted")
	if w.times("starts") != 1 {
		t.Errorf("the program was started %d times, want once", w.times("starts"))
	}
	scout.byHand()
}

// TestLaunchThatComesToNothing: a runner that ends before the gate is found at once, not after the lease; one that
// cannot be started is no launch. Both spent the do-over, so they are told and not tried again.
func TestLaunchThatComesToNothing(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{"false": "launch_aborted", "/no/such/program": "launch_failed"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{launcher: func(*parts) restart.Launcher {
				return &process.RunnerLauncher{Command: func(restart.Order) []string { return []string{command} }, Env: []string{"PATH=" + os.Getenv("PATH")}}
			}})
			scout := w.after("scout", "count:starts", "wait:update", "encode")
			w.until("the launch to be given up", func() bool {
				// A launcher that fails is also an error of the pass.
				if _, err := w.healer.Pass(w.ctx, everything); err != nil {
					t.Fatal(err)
				}
				return w.record(scout) != nil && w.record(scout).State.Final()
			})
			w.wantStands(scout, "settled_failed "+want)
			w.wantLoud(want)
			for range 3 {
				w.pass()
			}
			if w.times("starts") != 1 || w.bells() != 0 || w.rows.Toasts() != 1 {
				t.Errorf("%d starts, %d doorbells, %d toasts", w.times("starts"), w.bells(), w.rows.Toasts())
			}
		})
	}
}
