package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestHealersRace: several healers, each a process of its own, look at the same deaths at the same time. Each death is
// put back exactly once.
func TestHealersRace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ healers, deaths int }{{2, 1}, {20, 10}} {
		t.Run(fmt.Sprintf("%d over %d", c.healers, c.deaths), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			w.branch("v2", renamed...)
			var dead []*agent
			for i := range c.deaths {
				name := fmt.Sprintf("agent-%d", i)
				dead = append(dead, w.broken(name, "count:starts-"+name, "mark:preparing"))
			}
			w.update("v2")
			w.tell("update")
			for _, a := range dead {
				a.dies()
			}
			var healers []*actor
			for range c.healers {
				healers = append(healers, w.play(role{Play: "healer", Go: filepath.Join(w.state, "heal"), Stop: filepath.Join(w.state, "stop")}))
			}
			w.tell("heal")
			w.until("every death to be settled", func() bool {
				for _, a := range dead {
					if rec := w.record(a); rec == nil || !rec.State.Final() {
						return false
					}
				}
				return true
			})
			w.tell("stop")
			for _, h := range healers {
				h.endsWell()
			}
			by := map[string]bool{}
			for _, a := range dead {
				w.wantStands(a, "settled_ok replacement_ok")
				if n := w.times("starts-" + a.name); n != 2 {
					t.Errorf("%s was started %d times, want twice", a.name, n)
				}
				if n := w.runsOf(a.name); n != 2 {
					t.Errorf("%s has %d runs, want two", a.name, n)
				}
				for _, h := range w.record(a).History {
					by[h.Actor] = true
				}
			}
			if st, err := w.home.Breaker().State(w.ctx); err != nil || len(st.Slots) != c.deaths {
				t.Errorf("%d slots for %d launches (%v)", len(st.Slots), c.deaths, err)
			}
			if w.bells() != 0 {
				t.Errorf("%d doorbells are left", w.bells())
			}
			t.Logf("%d instances had a hand in it", len(by))
		})
	}
}

// TestTwoHealersInOneProcess: healers of one process are no different from those of two.
func TestTwoHealersInOneProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: slow})
	other := w.another(options{})
	scout := w.after("scout", "count:starts", "wait:update", "encode")
	w.pass()
	w.wantStands(scout, "deferred not_quiet")
	w.clock.forward(hourAndMore)
	errs := make(chan error, 2)
	for _, p := range []*parts{w.parts, other} {
		go func() {
			res, err := p.healer.Pass(w.ctx, everything)
			if err == nil && res.Failed() {
				err = fmt.Errorf("%+v", res.Outcomes)
			}
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	w.passUntil("scout to be settled", func() bool { return strings.HasPrefix(w.stands(scout), "settled") })
	w.wantStands(scout, "settled_ok replacement_ok")
	if w.times("starts") != 2 {
		t.Errorf("the program was started %d times, want twice", w.times("starts"))
	}
}
