package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// Many sessions run turns, ask, give up and are aborted at once. Whoever is told yes is in order and has a notice;
// whoever is told no has none, and its turn is open; and no turn is cut off that nobody forced.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		bubble(t, nil, func(t *testing.T, w *world) {
			const n = 8
			var all sync.WaitGroup
			var mu sync.Mutex
			yes := map[string]bool{}
			for i := range n {
				name := fmt.Sprintf("s%d", i)
				handle, err := w.s.Open(t.Context(), name)
				w.must(err)
				w.handles[name] = handle
			}
			for i := range n {
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				name := fmt.Sprintf("s%d", i)
				pause := func() { time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond) }
				all.Go(func() {
					for range 5 {
						pause()
						mu.Lock()
						turn, err := w.try(name)
						mu.Unlock()
						if err != nil {
							if session.CodeOf(err) != handoff.ErrRestarting {
								t.Error(err)
							}
							continue
						}
						pause()
						if rnd.IntN(2) == 0 {
							w.done(turn)
							continue
						}
						if rnd.IntN(3) == 0 {
							time.AfterFunc(time.Duration(rnd.IntN(2000))*time.Millisecond, func() { turn.Cancel(errors.New("stop")) })
						}
						args := `{"wait":true}`
						if rnd.IntN(3) == 0 {
							args = `{}`
						}
						if res := w.ask(turn, args); res.OK {
							mu.Lock()
							yes[name] = true
							mu.Unlock()
							return
						}
						if st := w.status(name); st.Head.Turn == nil {
							t.Errorf("%s was told no, and its turn is over: %+v", name, st.Head)
						}
						w.must(turn.End(context.Background(), session.TurnEnded{End: session.EndDone}))
					}
				})
			}
			all.Wait()
			time.Sleep(2 * time.Second)
			noticed := map[string]bool{}
			for _, name := range w.box.sessions() {
				if noticed[name] {
					t.Errorf("two notices for %s", name)
				}
				noticed[name] = true
			}
			for i := range n {
				name := fmt.Sprintf("s%d", i)
				if yes[name] != noticed[name] {
					t.Errorf("seed %d: %s was told %t and has a notice: %t", seed, name, yes[name], noticed[name])
				}
				if yes[name] {
					w.restarted(name)
				}
			}
			if got := w.r.count(); got > 1 || (got == 1) != (len(yes) > 0) {
				t.Errorf("seed %d: %d restarts for %v", seed, got, yes)
			}
		})
	}
}

// looked calls a hook each time somebody looks at the open turns.
type looked struct {
	*sessions.Service
	hook func()
}

func (l *looked) Turns() []*sessions.Turn {
	out := l.Service.Turns()
	if hook := l.hook; hook != nil {
		l.hook = nil
		hook()
	}
	return out
}

// One that waited gives up in the very moment in which the last one at work was seen to have ended: from then on it is at
// work itself, and is not cut off.
func TestOneThatGivesUpIsAtWorkAgain(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		s := &looked{Service: w.s}
		w.h.Attach(s)
		one, two, three := w.begin("one"), w.begin("two"), w.begin("three")
		a := w.later(one, `{"wait":true}`)
		synctest.Wait()
		b := w.later(two, `{"wait":true}`)
		synctest.Wait()
		left := make(chan handoff.Result, 1)
		s.hook = func() {
			two.Cancel(errors.New("the user said stop"))
			left <- <-b
		}
		w.done(three)
		if res := <-left; res.OK {
			t.Errorf("%+v", res)
		}
		synctest.Wait()
		select {
		case res := <-a:
			t.Fatalf("a turn under way would be cut off: %+v", res)
		default:
		}
		w.done(two)
		if res := <-a; !res.OK {
			t.Errorf("%+v", res)
		}
	})
}
