package drain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/drain"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// process is a process with sessions and a drain.
type process struct {
	t       *testing.T
	ctx     context.Context
	store   *memory.Sessions
	service *sessions.Service
	drain   *drain.Drain
	failed  atomic.Int64
}

func (p *process) MarkFailed() { p.failed.Add(1) }

func newProcess(t *testing.T, c drain.Config) *process {
	t.Helper()
	p := &process{t: t, ctx: t.Context(), store: memory.NewSessions(memory.SessionsConfig{})}
	c.Metrics = p
	var err error
	if p.drain, err = drain.New(c); err != nil {
		t.Fatal(err)
	}
	home := memory.New(memory.Config{})
	p.service, err = sessions.New(sessions.Config{Store: p.store, Instances: home.Instances(), Admit: p.drain.Admit})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) begin(name string) *sessions.Turn {
	p.t.Helper()
	h, err := p.service.Open(p.ctx, name)
	if err != nil {
		p.t.Fatal(err)
	}
	turn, err := h.Begin(p.ctx, sessions.Start{ID: "turn of " + name})
	if err != nil {
		p.t.Fatal(err)
	}
	return turn
}

// works runs a turn for a time, or until it is cancelled, and ends it accordingly.
func (p *process) works(name string, d time.Duration) {
	turn := p.begin(name)
	go func() {
		end := session.TurnEnded{End: session.EndDone}
		select {
		case <-time.After(d):
		case <-turn.Context().Done():
			end = session.TurnEnded{End: session.EndFailed, Why: context.Cause(turn.Context()).Error()}
		}
		if err := turn.End(p.ctx, end); err != nil {
			p.t.Error(err)
		}
	}()
}

func (p *process) status(name string) session.Status {
	p.t.Helper()
	st, err := p.service.Status(p.ctx, name)
	if err != nil {
		p.t.Fatal(err)
	}
	return st
}

// run drains, and wants it to keep to its bound.
func (p *process) run(ctx context.Context, o drain.Order) drain.Result {
	p.t.Helper()
	if o.Sessions == nil {
		o.Sessions = p.service
	}
	began := time.Now()
	r, err := p.drain.Drain(ctx, o)
	if err != nil {
		p.t.Error(err)
	}
	if took := time.Since(began); took > p.drain.Bound() || r.Took != took {
		p.t.Errorf("took %v and says %v, with a bound of %v", took, r.Took, p.drain.Bound())
	}
	return r
}

// bubble is a test in a bubble; what runs in it is closed at its end.
func bubble(t *testing.T, c drain.Config, f func(t *testing.T, p *process)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, c)
		f(t, p)
		if err := p.service.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestATurnThatEndsWellLiftsItsMarkAndNothingNewIsAdmitted(t *testing.T) {
	bubble(t, drain.Config{}, func(t *testing.T, p *process) {
		p.works("s1", 10*time.Second)
		idle, err := p.service.Open(p.ctx, "idle")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			st := p.status("s1")
			if st.Headline != session.Running || st.Head.Mark == nil || st.Head.Mark.Why != "deploy" {
				t.Errorf("while it is waited for, the session is %s with mark %+v", st, st.Head.Mark)
			}
			_, err := idle.Begin(p.ctx, sessions.Start{})
			if session.CodeOf(err) != drain.ErrDraining || !strings.Contains(err.Error(), "deploy") {
				t.Errorf("a turn that begins while draining: %v", err)
			}
			if p.drain.Phase() != drain.Waiting {
				t.Errorf("phase %s", p.drain.Phase())
			}
		}()
		r := p.run(p.ctx, drain.Order{Why: "deploy"})
		if r.ExitCode() != drain.ExitClean || r.Found != 1 || r.Cancelled != 0 || r.Took != 10*time.Second {
			t.Errorf("%+v", r)
		}
		if st := p.status("s1"); st.Headline != session.Idle || st.Head.Mark != nil {
			t.Errorf("the turn ended well, and the session is %s with mark %+v", st, st.Head.Mark)
		}
		if p.drain.Phase() != drain.Drained {
			t.Errorf("phase %s", p.drain.Phase())
		}
	})
}

func TestEachTurnHasItsOwnBudget(t *testing.T) {
	budget := func(turn *sessions.Turn) time.Duration {
		switch turn.Session() {
		case "long":
			return 2 * time.Minute
		case "forever":
			return time.Hour
		}
		return 0
	}
	for _, c := range []struct {
		name, session string
		works, took   time.Duration
		max           time.Duration
		cancelled     int
	}{
		{"without one it is the default", "s", time.Hour, drain.DefaultWait, 0, 1},
		{"a long one is waited for", "long", time.Hour, 2 * time.Minute, 0, 1},
		{"to its end if it ends before", "long", time.Minute, time.Minute, 0, 0},
		{"and none beyond the bound", "forever", 2 * time.Hour, drain.DefaultMaxWait, 0, 1},
		{"nor beyond one of the host's", "long", time.Hour, 40 * time.Second, 40 * time.Second, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, drain.Config{Budget: budget, MaxWait: c.max}, func(t *testing.T, p *process) {
				p.works(c.session, c.works)
				r := p.run(p.ctx, drain.Order{})
				if r.Took != c.took || r.Cancelled != c.cancelled || len(r.Survivors) != 0 {
					t.Errorf("%+v, want it to take %v and to cancel %d", r, c.took, c.cancelled)
				}
			})
		})
	}
}

func TestABudgetThatIsUsedUpDoesNotWaitForALongOneThatIsOver(t *testing.T) {
	budget := func(turn *sessions.Turn) time.Duration {
		if turn.Session() == "long" {
			return 4 * time.Minute
		}
		return 0
	}
	bubble(t, drain.Config{Budget: budget}, func(t *testing.T, p *process) {
		p.works("long", time.Minute)
		p.works("short", time.Hour)
		if r := p.run(p.ctx, drain.Order{}); r.Took != time.Minute || r.Cancelled != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestATurnThatFailsAfterTheDrainBeganKeepsItsMark(t *testing.T) {
	bubble(t, drain.Config{}, func(t *testing.T, p *process) {
		p.works("s1", time.Hour)
		r := p.run(p.ctx, drain.Order{})
		if r.ExitCode() != drain.ExitClean || r.Cancelled != 1 || r.Took != drain.DefaultWait {
			t.Errorf("%+v", r)
		}
		st := p.status("s1")
		if st.Headline != session.Interrupted || !st.Interruption.Marked || st.Interruption.Turn != "turn of s1" {
			t.Errorf("the session is %s, %+v", st, st.Interruption)
		}
	})
}

func TestSurvivorsAreReportedAndCostTheGraceAlone(t *testing.T) {
	bubble(t, drain.Config{}, func(t *testing.T, p *process) {
		stubborn := p.begin("s2")
		leave, err := p.drain.Admit("a request")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		p.works("s1", time.Second)
		r := p.run(p.ctx, drain.Order{})
		if r.ExitCode() != drain.ExitSurvivors || r.Took != drain.DefaultWait+drain.DefaultGrace || r.Found != 3 || r.Cancelled != 1 {
			t.Errorf("%+v", r)
		}
		want := []drain.Survivor{{Session: "a request", Age: time.Minute + r.Took}, {Session: "s2", Turn: "turn of s2", Age: time.Minute + r.Took}}
		if len(r.Survivors) != 2 || r.Survivors[0] != want[0] || r.Survivors[1] != want[1] {
			t.Errorf("survivors %+v", r.Survivors)
		}
		if cause := context.Cause(stubborn.Context()); session.CodeOf(cause) != drain.ErrDraining {
			t.Errorf("a survivor was cancelled for %v", cause)
		}
		if st := p.status("s2"); st.Head.Mark == nil {
			t.Error("a survivor has no mark")
		}
		leave()
		leave() // twice is once
	})
}

func TestATeardownThatOverrunsIsDumped(t *testing.T) {
	var dump bytes.Buffer
	bubble(t, drain.Config{Dump: &dump}, func(t *testing.T, p *process) {
		release := make(chan struct{})
		r := p.run(p.ctx, drain.Order{Teardown: func(context.Context) error { <-release; return nil }})
		if r.ExitCode() != drain.ExitOverran || r.Took != drain.DefaultTeardown || !strings.Contains(dump.String(), "TestATeardownThatOverrunsIsDumped") {
			t.Errorf("%+v, and the stacks:\n%.400s", r, dump.String())
		}
		close(release)
	})
}

func TestATeardownThatMindsItsContextIsNoOverrun(t *testing.T) {
	bubble(t, drain.Config{}, func(t *testing.T, p *process) {
		_, err := p.drain.Drain(p.ctx, drain.Order{Teardown: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the teardown's error is %v", err)
		}
		r, again := p.drain.Drain(p.ctx, drain.Order{})
		if r.Overran || r.ExitCode() != drain.ExitClean || !errors.Is(again, context.DeadlineExceeded) {
			t.Errorf("%+v %v", r, again)
		}
	})
}

// stuck is a writer that nobody reads for an hour.
type stuck struct{}

func (stuck) Write([]byte) (int, error) { time.Sleep(time.Hour); return 0, errors.New("closed") }

// marking answers marks in its own way.
type marking struct {
	*sessions.Service
	mark func(ctx context.Context, name, turn, why string) error
}

func (m marking) Mark(ctx context.Context, name, turn, why string) error {
	return m.mark(ctx, name, turn, why)
}

func TestNothingThatHangsHoldsTheDrainUp(t *testing.T) {
	bubble(t, drain.Config{Dump: stuck{}}, func(t *testing.T, p *process) {
		p.begin("s1") // and nobody ends it
		hang := func(context.Context, string, string, string) error { time.Sleep(time.Hour); return errors.New("lost") }
		r := p.run(p.ctx, drain.Order{Sessions: marking{p.service, hang},
			Teardown: func(context.Context) error { time.Sleep(time.Hour); return nil }})
		if r.Took != p.drain.Bound() {
			t.Errorf("took %v: everything hung, so the bound of %v is what it takes", r.Took, p.drain.Bound())
		}
		if r.ExitCode() != drain.ExitOverran || len(r.Survivors) != 1 || len(r.Unmarked) != 1 {
			t.Errorf("%+v", r)
		}
		time.Sleep(2 * time.Hour) // the bubble wants everybody to have left
	})
}

func TestAMarkThatFailedIsTriedOnceMoreBeforeTheCancel(t *testing.T) {
	for _, back := range []bool{true, false} {
		bubbleOf := func(t *testing.T, p *process) {
			p.works("s1", time.Hour)
			tries := 0
			full := func(ctx context.Context, name, turn, why string) error {
				if tries++; tries == 1 || !back {
					return errors.New("disk full")
				}
				return p.service.Mark(ctx, name, turn, why)
			}
			r := p.run(p.ctx, drain.Order{Sessions: marking{p.service, full}})
			if back != (len(r.Unmarked) == 0) || back != (p.status("s1").Headline == session.Interrupted) {
				t.Errorf("%+v, the session is %s", r, p.status("s1"))
			}
			if n := p.failed.Load(); n != 1 && back || n != 2 && !back {
				t.Errorf("%d failures were counted", n)
			}
		}
		t.Run(map[bool]string{true: "the store is back", false: "it is not"}[back], func(t *testing.T) {
			bubble(t, drain.Config{}, bubbleOf)
		})
	}
}

func TestAFrozenTurnBeginsNoCall(t *testing.T) {
	bubble(t, drain.Config{}, func(t *testing.T, p *process) {
		turn := p.begin("s1")
		guard, err := effect.New(effect.Config{Turn: p.drain.Calls(turn), Now: p.service.Now})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background() // it does not look at the turn's context
		ran := 0
		call := func(id string) error {
			_, err := guard.Do(ctx, effect.Call{ID: id, Tool: "scale"}, func(context.Context) (effect.Result, error) {
				ran++
				return effect.Result{Value: json.RawMessage(`1`)}, nil
			})
			return err
		}
		under, err := guard.Begin(ctx, effect.Call{ID: "under way", Tool: "scale"})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			if err := call("while it waits"); err != nil || ran != 1 {
				t.Errorf("a call while the drain waits: %v", err)
			}
			<-turn.Context().Done()
			if err := call("frozen"); session.CodeOf(err) != drain.ErrDraining || ran != 1 {
				t.Errorf("a call after the freeze: %v, %d ran", err, ran)
			}
			if err := guard.Complete(ctx, under, effect.Result{}); err != nil {
				t.Errorf("a call that was under way: %v", err)
			}
			if err := turn.End(ctx, session.TurnEnded{End: session.EndFailed}); err != nil {
				t.Error(err)
			}
		}()
		if r := p.run(p.ctx, drain.Order{}); r.Cancelled != 1 || len(r.Survivors) != 0 {
			t.Errorf("%+v", r)
		}
		if st := p.status("s1"); st.Ambiguous || st.Headline != session.Interrupted {
			t.Errorf("the session is %s, ambiguous %v", st, st.Ambiguous)
		}
	})
}

// slow is a store whose appends begin late.
type slow struct {
	*memory.Sessions
	by time.Duration
}

func (s slow) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	time.Sleep(s.by)
	return s.Sessions.Append(ctx, name, batch)
}

func TestATurnThatWasAdmittedAndBeginsLaterIsMarkedAndWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, drain.Config{})
		lazy, err := sessions.New(sessions.Config{Store: slow{p.store, 2 * time.Second}, Instances: memory.New(memory.Config{}).Instances(),
			Admit: p.drain.Admit})
		if err != nil {
			t.Fatal(err)
		}
		p.service = lazy
		h, err := lazy.Open(p.ctx, "s1")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			turn, err := h.Begin(p.ctx, sessions.Start{})
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(4 * time.Second)
			if p.status("s1").Head.Mark == nil {
				t.Error("while it is waited for, a turn that began late has no mark")
			}
			<-turn.Context().Done()
			if err := turn.End(p.ctx, session.TurnEnded{End: session.EndFailed}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait() // it is admitted, and being written
		r := p.run(p.ctx, drain.Order{})
		if st := p.status("s1"); r.Found != 1 || r.Cancelled != 1 || st.Headline != session.Interrupted || !st.Interruption.Marked {
			t.Errorf("%+v, the session is %s", r, st)
		}
		if err := lazy.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheSecondCallWaitsForTheFirst(t *testing.T) {
	bubble(t, drain.Config{}, func(t *testing.T, p *process) {
		p.works("s1", 10*time.Second)
		go func() {
			time.Sleep(time.Second)
			short, cancel := context.WithTimeout(p.ctx, time.Second)
			defer cancel()
			if _, err := p.drain.Drain(short, drain.Order{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a second call whose context ended: %v", err)
			}
			if r, err := p.drain.Drain(p.ctx, drain.Order{}); err != nil || r.Took != 10*time.Second {
				t.Errorf("a second call: %+v %v", r, err)
			}
		}()
		p.run(p.ctx, drain.Order{})
		synctest.Wait()
	})
}

func TestAContextThatEndsCutsTheWaitShort(t *testing.T) {
	bubble(t, drain.Config{}, func(t *testing.T, p *process) {
		p.works("s1", time.Hour)
		hurry, cancel := context.WithTimeout(p.ctx, 3*time.Second)
		defer cancel()
		r := p.run(hurry, drain.Order{})
		if !r.Hurried || r.Took != 3*time.Second || r.Cancelled != 1 || !p.status("s1").Interruption.Marked {
			t.Errorf("%+v, the session is %s", r, p.status("s1"))
		}
	})
}

func TestReadingAndTailingStayUpToTheEnd(t *testing.T) {
	bubble(t, drain.Config{}, func(t *testing.T, p *process) {
		p.works("s1", time.Hour)
		tailing, stop := context.WithCancel(p.ctx)
		var seen []session.Kind
		over := make(chan struct{})
		go func() {
			defer close(over)
			for e, err := range p.service.Tail(tailing, "s1", 0) {
				if err != nil {
					t.Error(err)
				}
				seen = append(seen, e.Kind)
			}
		}()
		p.run(p.ctx, drain.Order{Teardown: func(context.Context) error {
			synctest.Wait()
			stop()
			<-over
			_, err := p.service.List(context.Background(), "", 0)
			return err
		}})
		if len(seen) != 4 || seen[2] != session.KindMark || seen[3] != session.KindTurnEnded {
			t.Errorf("the tail saw %v", seen)
		}
	})
}

func TestNewReportsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := drain.New(drain.Config{Wait: time.Hour, MaxWait: time.Minute, Mark: -1, Grace: -1, Teardown: -1})
	for _, part := range []string{"MaxWait", "Mark", "Grace", "Teardown"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not speak of %s", err, part)
		}
	}
}
