package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
)

// wallClock is a machine whose wall clock is moved alone. With bare it has no other clock.
type wallClock struct {
	clock
	skew atomic.Int64
	bare bool
}

func (c *wallClock) now() stamp.Time {
	t := c.clock.now()
	t.Wall = t.Wall.Add(time.Duration(c.skew.Load()))
	if c.bare {
		t = stamp.Wall(t.Wall, 0)
	}
	return t
}

func (c *wallClock) jump(d time.Duration) { c.skew.Store(int64(d)) }

// TestClockJumpsADay moves the wall clock by a day, both ways, at each moment at which somebody measures a time, on a
// machine with a clock that runs since the boot and on one without. With it nothing changes. Without it nothing is
// started on a time that cannot be known: what is not put back is shown with its reason, and nothing is put back twice.
func TestClockJumpsADay(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	healed := "settled_ok replacement_ok"
	for _, c := range []struct {
		moment string
		bare   bool
		jump   time.Duration
		want   string
	}{
		{"in the life of the run", false, day, healed},
		{"in the life of the run", false, -day, healed},
		{"in the life of the run", true, day, healed},
		{"in the life of the run", true, -day, "declined clock_jump"},
		{"between death and claim", false, day, healed},
		{"between death and claim", false, -day, healed},
		{"between death and claim", true, day, "declined healer_absent"},
		{"between death and claim", true, -day, healed},
		{"between claim and launch", false, day, healed},
		{"between claim and launch", false, -day, healed},
		{"between claim and launch", true, day, "declined deferred_expired"},
		{"between claim and launch", true, -day, healed},
	} {
		t.Run(fmt.Sprintf("%s, bare %t, %s", c.moment, c.bare, c.jump), func(t *testing.T) {
			t.Parallel()
			clock := &wallClock{bare: c.bare}
			at := func(moment string) {
				if c.moment == moment {
					clock.jump(c.jump)
				}
			}
			w := newWorld(t, options{now: clock.now, launcher: func(p *parts) restart.Launcher {
				return meddlePreflight{p.launcher, func() { at("between claim and launch") }}
			}})
			w.branch("v2", renamed...)
			r, err := w.runs.Start(w.ctx, w.spec("scout", "count:starts"))
			if err != nil {
				t.Fatal(err)
			}
			at("in the life of the run")
			w.update("v2")
			if err := r.Fail(w.ctx, managed.Failure{Text: w.traceback(), Exit: classify.Exit{Code: 1}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * rest) // what changed the tree is stamped by a clock that no story moves
			at("between death and claim")
			w.lookUntil("the end", func() bool { return !w.undecided(r.Registered()) })
			if got := strings.TrimSuffix(w.standsRun(r.Registered()), " <nil>"); got != c.want {
				t.Errorf("it stands at %q, want %q", got, c.want)
			}
			if n := w.times("starts"); n > 1 || (n == 1) != (c.want == healed) {
				t.Errorf("it was put back %d times", n)
			}
			if c.want != healed {
				_, reason, _ := strings.Cut(c.want, " ")
				w.wantLoud(reason)
			}
		})
	}
}

// TestClockJumpsWhileItWaits: a deferral is as old as the boot's clock says, whatever the wall clock does. Without such a
// clock it ends early, loudly, or waits on; it is never put back on a guess.
func TestClockJumpsWhileItWaits(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		for _, bare := range []bool{false, true} {
			t.Run(fmt.Sprintf("bare %t, %s", bare, jump), func(t *testing.T) {
				t.Parallel()
				clock := &wallClock{bare: bare}
				w := newWorld(t, options{now: clock.now})
				dead := w.fallen(plain(1)...)[0]
				over := w.updating()
				w.pass()
				if got := w.standsRun(dead); got != "deferred not_quiet <nil>" {
					t.Fatalf("it stands at %q", got)
				}
				clock.jump(jump)
				for range 3 {
					w.pass()
				}
				if bare && jump > 0 {
					w.wantLoud("deferred_expired")
				} else if got := w.standsRun(dead); got != "deferred not_quiet <nil>" {
					t.Errorf("after the jump it stands at %q", got)
				}
				if !bare {
					clock.forward(31 * time.Minute)
					w.pass()
					w.wantLoud("deferred_expired")
				}
				if w.times("starts-0") != 0 {
					t.Error("it was put back while an update was under way")
				}
				over()
			})
		}
	}
}

// updating is an update that goes on until its end is called.
func (w *world) updating() (end func()) {
	w.t.Helper()
	done := make(chan error, 1)
	until := filepath.Join(w.state, "updated")
	go func() {
		_, err := w.updater.Run(w.ctx, []witness.Root{w.root}, update.Command{Args: []string{"sh", "-c", "touch '" + until + "-begun'; until [ -e '" + until + "' ]; do sleep 0.01; done"},
			Dir: w.dir, Env: w.env}, patience)
		done <- err
	}()
	w.until("the update to begin", func() bool { return w.has("updated-begun") })
	return func() {
		w.t.Helper()
		w.tell("updated")
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}
