package handoff_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

func TestARestartLeavesTheRequesterInOrder(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		turn := w.begin("s")
		began := time.Now()
		res := w.ask(turn, `{"reason":"a new build","cause":"deploy"}`)
		if !res.OK || !res.Restarting || res.SessionID != "s" || res.Reason != "a new build" || res.Error != "" || res.Canary != "" || res.WaitedMs != 0 {
			t.Errorf("%+v", res)
		}
		w.restarted("s")
		// All is durable, and nothing is asked for before the answer is out.
		if got := w.box.sessions(); len(got) != 1 || got[0] != "s" || w.box.kept[0].Reason != "a new build" || w.box.kept[0].At.IsZero() {
			t.Errorf("notices %+v", w.box.kept)
		}
		if e := w.hist.list(); len(e) != 1 || e[0].Cause != "deploy" || e[0].Sessions[0] != "s" || e[0].Withdrawn {
			t.Errorf("history %+v", e)
		}
		time.Sleep(handoff.DefaultDelay - time.Millisecond)
		synctest.Wait()
		if w.r.count() != 0 {
			t.Error("asked before the delay was over")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if w.r.count() != 1 || w.r.at[0].Sub(began) != time.Second {
			t.Errorf("asked %d times, at %v", w.r.count(), w.r.at)
		}
		if _, err := w.try("t"); session.CodeOf(err) != handoff.ErrRestarting {
			t.Error("a turn began during a restart:", err)
		}
		// Accepted is no refusal: the notice stays also when it takes long, and work goes on.
		time.Sleep(handoff.Settle)
		synctest.Wait()
		if len(w.box.sessions()) != 1 || len(w.failures) != 0 {
			t.Error("the notice of an accepted restart is gone")
		}
		w.begin("t")
	})
}

func TestEverySequenceOfTheBatch(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		turn := w.begin("s")
		w.ask(turn, `{"reason":"r"}`)
		events, err := w.s.Store.Read(t.Context(), "s", 0, 0)
		w.must(err)
		var kinds []string
		for _, e := range events {
			kinds = append(kinds, string(e.Kind))
		}
		if got := strings.Join(kinds, " "); got != "lease turn_begun call result turn_ended" {
			t.Errorf("the log is %s", got)
		}
	})
}

func TestOthersStandInTheWay(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		one, two := w.begin("one"), w.begin("two")
		res := w.ask(one, `{}`)
		if res.OK || res.Restarting || !slices.Equal(res.InFlight, []string{"two"}) || res.Error != "in the middle of a turn: two; wait for them, or have a person allow force" {
			t.Errorf("%+v", res)
		}
		// A refused request leaves the turn open, turns are admitted, and nothing was spent.
		if st := w.status("one"); st.Headline != session.Running || len(w.hist.list()) != 0 || len(w.box.sessions()) != 0 {
			t.Errorf("%+v", st)
		}
		w.done(two)
		w.done(w.begin("three"))
		if res := w.ask(one, `{}`); !res.OK {
			t.Errorf("%+v", res)
		}
	})
}

func TestAWaitEndsWithTheOthersTurns(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		one, two := w.begin("one"), w.begin("two")
		answer := w.later(one, `{"wait":true}`)
		time.Sleep(40 * time.Second)
		if _, err := w.try("three"); session.CodeOf(err) != handoff.ErrRestarting {
			t.Error("a turn began while a restart waits:", err)
		}
		w.done(two)
		if res := <-answer; !res.OK || res.WaitedMs < 40000 || res.WaitedMs > 41000 || len(res.InFlight) != 0 {
			t.Errorf("%+v", res)
		}
		w.restarted("one")
	})
}

func TestOneDeadlineForAllStages(t *testing.T) {
	t.Parallel()
	slow := func(c *handoff.Config) {
		c.Canary = func(ctx context.Context) (handoff.Outcome, string) {
			time.Sleep(50 * time.Second)
			return handoff.Passed, "alive"
		}
	}
	bubble(t, slow, func(t *testing.T, w *world) {
		one := w.begin("one")
		w.begin("two")
		began := time.Now()
		res := w.ask(one, `{"wait":true,"canary":true}`)
		if took := time.Since(began); took != handoff.DefaultDeadline {
			t.Errorf("it took %v", took)
		}
		if res.OK || res.Error != "still in the middle of a turn after 2m0s: two" || !slices.Equal(res.InFlight, []string{"two"}) || res.WaitedMs != 120000 || res.Canary != handoff.Passed {
			t.Errorf("%+v", res)
		}
		synctest.Wait()
		w.begin("three")
		if w.r.count() != 0 || len(w.box.sessions()) != 0 {
			t.Error("something was left behind")
		}
	})
}

// Each of two turns waits for the other to end, and neither would: both count as idle, and one restart serves them.
func TestPredecessorTwoWaitersDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		one, two, three := w.begin("one"), w.begin("two"), w.begin("three")
		a := w.later(one, `{"wait":true,"reason":"x"}`)
		synctest.Wait()
		b := w.later(two, `{"reason":"y"}`) // joins, and waits as the first one does
		synctest.Wait()
		select {
		case <-a:
			t.Fatal("a third is at work")
		default:
		}
		w.done(three)
		for _, res := range []handoff.Result{<-a, <-b} {
			if !res.OK {
				t.Errorf("%+v", res)
			}
		}
		w.restarted("one")
		w.restarted("two")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if w.r.count() != 1 || len(w.hist.list()) != 1 || !slices.Equal(w.box.sessions(), []string{"one", "two"}) {
			t.Errorf("asked %d times, %d entries, notices %v", w.r.count(), len(w.hist.list()), w.box.sessions())
		}
	})
	bubble(t, nil, func(t *testing.T, w *world) { // and nobody else is there
		one, two := w.begin("one"), w.begin("two")
		a := w.later(one, `{"wait":true}`)
		time.Sleep(10 * time.Second)
		b := w.later(two, `{"wait":true}`)
		if x, y := <-a, <-b; !x.OK || !y.OK || x.WaitedMs != 10000 || y.WaitedMs != 0 {
			t.Errorf("%+v, %+v", x, y)
		}
	})
}

func TestOneThatAsksDuringTheDelayJoins(t *testing.T) {
	t.Parallel()
	allow := func(c *handoff.Config) {
		c.Confirm = func(_ context.Context, q handoff.Question) (bool, error) { return q.Why == handoff.WhyForce, nil }
	}
	bubble(t, allow, func(t *testing.T, w *world) {
		one, two := w.begin("one"), w.begin("two")
		if res := w.ask(one, `{"force":true}`); !res.OK || !slices.Equal(res.InFlight, []string{"two"}) {
			t.Fatalf("%+v", res)
		}
		if res := w.ask(two, `{}`); !res.OK {
			t.Errorf("%+v", res)
		}
		w.restarted("two")
		if len(w.hist.list()) != 1 || len(w.box.sessions()) != 2 {
			t.Errorf("%d entries, %d notices", len(w.hist.list()), len(w.box.sessions()))
		}
	})
}

func TestForceIsNotTheAgentsToGive(t *testing.T) {
	t.Parallel()
	var asked []handoff.Question
	var allow bool
	confirm := func(_ context.Context, q handoff.Question) (bool, error) { asked = append(asked, q); return allow, nil }
	for name, c := range map[string]func(*handoff.Config){"nobody to ask": nil, "asked": func(c *handoff.Config) { c.Confirm = confirm }} {
		bubble(t, c, func(t *testing.T, w *world) {
			one := w.begin("one")
			w.begin("two")
			if res := w.ask(one, `{"force":true}`); res.OK || res.Error != "cutting off turns that are under way was not allowed: two" {
				t.Errorf("%s: %+v", name, res)
			}
			if name == "asked" {
				allow = true
				if res := w.ask(one, `{"force":true}`); !res.OK {
					t.Errorf("%+v", res)
				}
				if len(asked) != 2 || asked[1].Session != "one" || !slices.Equal(asked[1].InFlight, []string{"two"}) {
					t.Errorf("asked %+v", asked)
				}
			}
		})
	}
}

// A turn that nobody will ever end, of a session that was aborted or is another process's by now, is in nobody's way.
func TestPredecessorRetiredSessionHoldsNothingUp(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		one := w.begin("one")
		w.begin("aborted") // its host never ends the turn
		w.begin("lost")
		if res := w.ask(one, `{}`); !slices.Equal(res.InFlight, []string{"aborted", "lost"}) {
			t.Fatalf("%+v", res)
		}
		w.must(w.s.Abort(t.Context(), "aborted", "enough"))
		// Another process takes the session of one that it has reason to think dead.
		w.home.Kill(w.s.Instances.Self())
		other, err := sessions.New(sessions.Config{Store: w.s.Store, Instances: memory.As(w.home, w.home.Spawn())})
		w.must(err)
		_, err = other.Open(t.Context(), "lost")
		w.must(err)
		time.Sleep(3 * time.Second)
		if res := w.ask(one, `{}`); !res.OK {
			t.Errorf("%+v", res)
		}
		w.must(other.Close())
	})
}

func TestAnAbortedOrLostTurnLetsAWaitGoOn(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		one := w.begin("one")
		w.begin("aborted")
		answer := w.later(one, `{"wait":true}`)
		time.Sleep(3 * time.Second)
		w.must(w.s.Abort(t.Context(), "aborted", "enough"))
		if res := <-answer; !res.OK || res.WaitedMs > 10000 {
			t.Errorf("%+v", res)
		}
	})
}

func TestAnAbortWhileWaitingEndsTheRequestAlone(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		one, two, three := w.begin("one"), w.begin("two"), w.begin("three")
		a := w.later(one, `{"wait":true}`)
		synctest.Wait()
		b := w.later(two, `{"wait":true}`)
		time.Sleep(3 * time.Second)
		w.must(w.s.Abort(t.Context(), "one", "enough"))
		if res := <-a; res.OK || !strings.Contains(res.Error, "the session was aborted") {
			t.Errorf("%+v", res)
		}
		w.done(three)
		if res := <-b; !res.OK {
			t.Errorf("%+v", res)
		}
		if !slices.Equal(w.box.sessions(), []string{"two"}) {
			t.Errorf("notices for %v", w.box.sessions())
		}
	})
	// The only one: turns are admitted again.
	bubble(t, nil, func(t *testing.T, w *world) {
		one := w.begin("one")
		w.begin("two")
		a := w.later(one, `{"wait":true}`)
		synctest.Wait()
		one.Cancel(errors.New("the user said stop"))
		if res := <-a; res.OK || !strings.Contains(res.Error, "the user said stop") {
			t.Errorf("%+v", res)
		}
		synctest.Wait()
		w.begin("three")
	})
}

func TestAuthorityComesBeforeTheCanary(t *testing.T) {
	t.Parallel()
	ran := 0
	c := func(c *handoff.Config) {
		c.Restarter.(*restarter).check = errors.New("user 7 may not")
		c.Canary = func(context.Context) (handoff.Outcome, string) { ran++; return handoff.Passed, "" }
	}
	bubble(t, c, func(t *testing.T, w *world) {
		if res := w.ask(w.begin("s"), `{"canary":true}`); res.OK || res.Error != "user 7 may not" || ran != 0 {
			t.Errorf("%+v, the canary ran %d times", res, ran)
		}
	})
}

func TestTheCanaryIsAGate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args    string
		always  bool
		canary  func(context.Context) (handoff.Outcome, string)
		ok      bool
		outcome handoff.Outcome
		detail  string
		err     string
	}{
		{args: `{}`, ok: true},
		{args: `{"canary":true}`, ok: true, outcome: handoff.Skipped, detail: "no canary is configured: the new code was not tried"},
		{args: `{}`, always: true, canary: says(handoff.Passed, "alive"), ok: true, outcome: handoff.Passed, detail: "alive"},
		{args: `{"canary":true}`, canary: says(handoff.Skipped, "no recipe"), ok: true, outcome: handoff.Skipped, detail: "no recipe"},
		{args: `{"canary":true}`, canary: says(handoff.Failed, "exit 1"), outcome: handoff.Failed, detail: "exit 1",
			err: "the new code did not come up, so nothing is restarted: exit 1"},
		{args: `{"canary":true}`, canary: says("", "?"), detail: "?", err: "the new code did not come up, so nothing is restarted: ?"},
	} {
		bubble(t, func(hc *handoff.Config) { hc.Canary, hc.Always = c.canary, c.always }, func(t *testing.T, w *world) {
			res := w.ask(w.begin("s"), c.args)
			if res.OK != c.ok || res.Canary != c.outcome || res.CanaryDetail != c.detail || res.Error != c.err {
				t.Errorf("%+v: %+v", c, res)
			}
			if !c.ok && (len(w.box.sessions()) != 0 || len(w.hist.list()) != 0 || w.status("s").Headline != session.Running) {
				t.Error("a failed canary left something behind")
			}
		})
	}
}

// The canary runs while others work, so one may have begun a turn meanwhile.
func TestATurnThatBeganDuringTheCanaryStandsInTheWay(t *testing.T) {
	t.Parallel()
	slow := func(c *handoff.Config) {
		c.Canary = func(context.Context) (handoff.Outcome, string) {
			time.Sleep(10 * time.Second)
			return handoff.Passed, ""
		}
	}
	bubble(t, slow, func(t *testing.T, w *world) {
		a := w.later(w.begin("one"), `{"canary":true}`)
		time.Sleep(5 * time.Second)
		w.begin("two")
		if res := <-a; res.OK || res.WaitedMs != 10000 || !slices.Equal(res.InFlight, []string{"two"}) {
			t.Errorf("%+v", res)
		}
		w.begin("three")
	})
}

func says(o handoff.Outcome, detail string) func(context.Context) (handoff.Outcome, string) {
	return func(context.Context) (handoff.Outcome, string) { return o, detail }
}

func TestTheBudget(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		for i := range handoff.Limit {
			if res := w.h.Ask(t.Context(), handoff.Asker{}, handoff.Request{}); !res.OK {
				t.Fatalf("%d: %+v", i, res)
			}
			time.Sleep(handoff.Settle + 2*time.Second) // nothing restarts us
		}
		res := w.h.Ask(t.Context(), handoff.Asker{}, handoff.Request{})
		if res.OK || res.Code != handoff.CodeBudget || res.Error != "3 restarts were asked for in the last 10m0s, and 3 is the limit: something is going round in circles" {
			t.Errorf("%+v", res)
		}
		time.Sleep(handoff.Window - 3*handoff.Settle)
		if res := w.h.Ask(t.Context(), handoff.Asker{}, handoff.Request{}); !res.OK {
			t.Errorf("after the window: %+v", res)
		}
		w.hist.read = errors.New("disk gone")
		if res := w.h.Ask(t.Context(), handoff.Asker{}, handoff.Request{}); res.OK || res.Error != "it cannot be told how often this process was restarted lately: disk gone" {
			t.Errorf("unreadable: %+v", res)
		}
	})
}

func TestASessionThatARestartStartedHasToCompleteATurn(t *testing.T) {
	t.Parallel()
	const text = "a restart started this session, and it has completed no turn since: only a person may let it restart again"
	bubble(t, nil, func(t *testing.T, w *world) {
		w.h.Woken("s")
		turn := w.begin("s")
		if res := w.ask(turn, `{}`); res.OK || res.Error != text {
			t.Errorf("woken: %+v", res)
		}
		w.must(turn.End(t.Context(), session.TurnEnded{End: session.EndFailed}))
		turn = w.begin("s")
		if res := w.ask(turn, `{}`); res.OK {
			t.Error("a failed turn completed nothing")
		}
		w.done(turn)
		if res := w.ask(w.begin("s"), `{}`); !res.OK {
			t.Errorf("after a completed turn: %+v", res)
		}
		time.Sleep(handoff.Settle + 2*time.Second)
		// The log alone tells, too: the last turn ended by a restart.
		if res := w.ask(w.begin("s"), `{}`); res.OK || res.Error != text {
			t.Errorf("right after a restart: %+v", res)
		}
	})
	yes := func(c *handoff.Config) {
		c.Confirm = func(_ context.Context, q handoff.Question) (bool, error) { return q.Why == handoff.WhyLoop, nil }
	}
	bubble(t, yes, func(t *testing.T, w *world) {
		w.h.Woken("s")
		if res := w.ask(w.begin("s"), `{}`); !res.OK {
			t.Errorf("confirmed: %+v", res)
		}
	})
}

func TestARefusedRestartLeavesNoNotice(t *testing.T) {
	t.Parallel()
	refused := errors.New("the job was refused")
	bubble(t, func(c *handoff.Config) { c.Restarter.(*restarter).answer = refused }, func(t *testing.T, w *world) {
		if res := w.ask(w.begin("s"), `{}`); !res.OK {
			t.Fatalf("%+v", res)
		}
		f := <-w.failures
		if !errors.Is(f.Err, refused) || f.Unknown || !slices.Equal(f.Sessions, []string{"s"}) {
			t.Errorf("%+v", f)
		}
		if len(w.box.sessions()) != 0 || w.box.all != 1 || !w.hist.list()[0].Withdrawn {
			t.Errorf("left: %+v, %+v", w.box.kept, w.hist.list())
		}
		w.begin("t")
	})
}

func TestAnUnknownAnswerIsWaitedOut(t *testing.T) {
	t.Parallel()
	for _, lost := range []error{fmt.Errorf("the bus broke: %w", handoff.ErrUnknown), context.DeadlineExceeded} {
		bubble(t, func(c *handoff.Config) { c.Restarter.(*restarter).answer = lost }, func(t *testing.T, w *world) {
			if res := w.ask(w.begin("s"), `{}`); !res.OK {
				t.Fatalf("%+v", res)
			}
			time.Sleep(time.Second + handoff.Settle - time.Millisecond)
			synctest.Wait()
			if len(w.box.sessions()) != 1 || len(w.failures) != 0 {
				t.Error("withdrawn too early")
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if f := <-w.failures; !f.Unknown || len(w.box.sessions()) != 0 {
				t.Errorf("%+v, left %+v", f, w.box.kept)
			}
		})
	}
}

func TestWhatCannotBeWrittenStopsTheRestart(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		w.box.fail = errors.New("disk full")
		turn := w.begin("s")
		if res := w.ask(turn, `{}`); res.OK || res.Error != "the notice for after the restart could not be written: disk full" {
			t.Errorf("%+v", res)
		}
		time.Sleep(time.Minute)
		if w.r.count() != 0 || w.status("s").Headline != session.Running || !w.hist.list()[0].Withdrawn {
			t.Error("it went on")
		}
		// One whose part cannot be written stops nobody else's.
		w.box.fail = nil
		if res := w.ask(turn, `{}`); !res.OK {
			t.Errorf("%+v", res)
		}
	})
}

// A restart that nobody waits for any more is on its way out, and its canary with it. Who asks then is not told that they
// have given up.
func TestNobodyJoinsARestartThatWasGivenUp(t *testing.T) {
	t.Parallel()
	slow := func(c *handoff.Config) {
		c.Canary = func(ctx context.Context) (handoff.Outcome, string) {
			<-ctx.Done()
			time.Sleep(10 * time.Second) // what it started has to be ended
			return handoff.Failed, "it was given up"
		}
	}
	bubble(t, slow, func(t *testing.T, w *world) {
		one, two, three := w.begin("one"), w.begin("two"), w.begin("three")
		answer := w.later(one, `{"canary":true,"wait":true}`)
		synctest.Wait()
		one.Cancel(errors.New("the user said stop"))
		if res := <-answer; res.OK || !strings.Contains(res.Error, "the user said stop") {
			t.Errorf("%+v", res)
		}
		// One that gives up as well is told so, in its own words.
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if res := w.h.Ask(short, handoff.Asker{Turn: three}, handoff.Request{}); res.OK || res.Code != handoff.CodeCanceled || res.WaitedMs != 1000 {
			t.Errorf("%+v", res)
		}
		w.done(one)
		w.done(three)
		if res := w.ask(two, `{}`); !res.OK || res.WaitedMs != 9000 {
			t.Errorf("%+v", res)
		}
		w.restarted("two")
	})
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unit string
		own  handoff.Unit
		want string
	}{
		{want: "restartUnit not configured"},
		{own: own{err: errors.New("not in a unit")}, want: "restartUnit not configured: not in a unit"},
		{own: own{name: "a\\x2db.service"}, want: `restartUnit not configured: this process runs in "a\\x2db.service", which is no name that can be passed on`},
		{own: own{name: "acme@1.service"}},
		{unit: "a_b-C.service", own: own{err: errors.New("not asked")}},
	} {
		bubble(t, func(hc *handoff.Config) { hc.Unit, hc.Own, hc.Restarter.(*restarter).needs = c.unit, c.own, true }, func(t *testing.T, w *world) {
			res := w.ask(w.begin("s"), `{}`)
			if res.Error != c.want || res.OK != (c.want == "") {
				t.Errorf("%+v: %+v", c, res)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if res.OK && (len(w.r.asked) != 1 || !handoff.Token(w.r.asked[0])) {
				t.Errorf("asked for %v", w.r.asked)
			}
		})
	}
}

type own struct {
	name string
	err  error
}

func (o own) Own(context.Context) (string, error) { return o.name, o.err }

// A process that is told to stop in the second before its restart is asked for: the session's turn has ended, so it has
// to be told by whoever comes next.
func TestCloseKeepsTheNotice(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		w.ask(w.begin("s"), `{}`)
		w.must(w.h.Close())
		if w.r.count() != 0 || len(w.box.sessions()) != 1 || w.hist.list()[0].Withdrawn || len(w.failures) != 0 {
			t.Error("it was asked for, or its notice is gone")
		}
		if res := w.h.Ask(t.Context(), handoff.Asker{}, handoff.Request{}); res.Code != handoff.CodeClosed {
			t.Errorf("%+v", res)
		}
	})
}

func TestTheToolsTextAndJSON(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		turn := w.begin("s")
		who := handoff.Asker{Turn: turn}
		tool := w.h.Tool()
		if tool.Name != "self_restart" || !json.Valid(tool.Schema) || tool.Description == "" {
			t.Errorf("%+v", tool)
		}
		const bad = `{"ok":false,"restarting":false,"sessionId":"s","reason":"","error":"the arguments are no request for a restart: json: unknown field \"confirmed\"","canary":"","canaryDetail":"","inFlight":[],"waitedMs":0}`
		if got := string(tool.Call(t.Context(), who, json.RawMessage(`{"confirmed":true}`))); got != bad {
			t.Errorf("got  %s\nwant %s", got, bad)
		}
		if res := w.h.Ask(t.Context(), who, handoff.Request{Reason: strings.Repeat("x", handoff.MaxReason+1)}); res.Code != handoff.CodeMalformed {
			t.Errorf("%+v", res)
		}
		const good = `{"ok":true,"restarting":true,"sessionId":"s","reason":"r","error":"","canary":"","canaryDetail":"","inFlight":[],"waitedMs":0}`
		if got := string(tool.Call(t.Context(), who, json.RawMessage(`{"reason":"r"}`))); got != good {
			t.Errorf("got  %s\nwant %s", got, good)
		}
	})
}

func TestACanaryRestartsNothing(t *testing.T) {
	w := newWorld(t, nil)
	t.Setenv(inside.Var, "c1")
	if res := w.h.Ask(t.Context(), handoff.Asker{}, handoff.Request{}); res.Code != handoff.CodeInert || w.r.checked != 0 {
		t.Errorf("%+v", res)
	}
	if _, err := handoff.OpenHistory(t.TempDir()); !errors.Is(err, inside.ErrOutside) {
		t.Errorf("it opens the live history: %v", err)
	}
}

func TestNewSaysAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := handoff.New(handoff.Config{Deadline: -1, Unit: "a b"})
	for _, want := range []string{"Restarter", "History", "Deadline", `"a b"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s: %v", want, err)
		}
	}
}

func TestTheHistoryFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *handoff.File {
		f, err := handoff.OpenHistory(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	one, two := open(), open()
	s, err := sessions.New(sessions.Config{Store: memory.NewSessions(memory.SessionsConfig{}), Instances: memory.New(memory.Config{}).Instances()})
	if err != nil {
		t.Fatal(err)
	}
	// Two processes ask at once: the limit holds.
	var all sync.WaitGroup
	var mu sync.Mutex
	ok := 0
	for i := range 10 {
		all.Go(func() {
			err := []*handoff.File{one, two}[i%2].Reserve(t.Context(), handoff.Entry{ID: fmt.Sprint(i), At: s.Now()})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				ok++
			} else if !errors.Is(err, handoff.ErrBudget) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	entries, err := open().Entries(t.Context())
	if err != nil || ok != handoff.Limit || len(entries) != handoff.Limit {
		t.Errorf("%d were reserved, %d are there, %v", ok, len(entries), err)
	}
	if err := two.Withdraw(t.Context(), entries[0].ID); err != nil {
		t.Error(err)
	}
	if entries, err = one.Entries(t.Context()); err != nil || !entries[0].Withdrawn {
		t.Errorf("%+v, %v", entries, err)
	}
	// A clock that was set back frees nothing.
	past := s.Now().Add(-time.Hour)
	if handoff.Recent(entries, past) != handoff.Limit {
		t.Error("entries from the future do not count")
	}
	path := filepath.Join(dir, "restarts.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"", "{}", strings.Replace(string(b), `"withdrawn"`, `"withdrown"`, 1), `{"schema":9}`} {
		if err := os.WriteFile(path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := one.Entries(t.Context()); err == nil || !strings.Contains(err.Error(), "restarts.json") {
			t.Errorf("%.30q: %v", damage, err)
		}
		if err := one.Reserve(t.Context(), handoff.Entry{ID: "x", At: s.Now()}); err == nil || errors.Is(err, handoff.ErrBudget) {
			t.Errorf("%.30q: reserved, %v", damage, err)
		}
	}
}
