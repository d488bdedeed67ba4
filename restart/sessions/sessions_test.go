package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// house is a store that several processes of one machine share.
type house struct {
	t     *testing.T
	home  *memory.Home
	store *flaky
}

// flaky is a store that can be made to fail.
type flaky struct {
	*memory.Sessions
	mute    atomic.Bool  // Renew fails
	unknown atomic.Int64 // so many appends are written and not confirmed
	// written is called when an append stands in the log, or was refused, and its caller does not know yet.
	written func(session.Draft)
}

func (f *flaky) Renew(ctx context.Context, i ledger.Instance, ttl time.Duration) error {
	if f.mute.Load() {
		return errors.New("no route to the store")
	}
	return f.Sessions.Renew(ctx, i, ttl)
}

func (f *flaky) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	r, err := f.Sessions.Append(ctx, name, batch)
	if f.written != nil {
		f.written(batch[0])
	}
	if f.unknown.Add(-1) >= 0 {
		return session.Receipt{}, fmt.Errorf("append: %w", session.ErrOutcomeUnknown)
	}
	return r, err
}

func newHouse(t *testing.T) *house {
	return &house{t: t, home: memory.New(memory.Config{}), store: &flaky{Sessions: memory.NewSessions(memory.SessionsConfig{})}}
}

// process is a service of a process of its own.
func (h *house) process(c sessions.Config) *sessions.Service {
	h.t.Helper()
	if c.Instances == nil {
		c.Instances = memory.As(h.home, h.home.Spawn())
	}
	if c.Store == nil {
		c.Store = h.store
	}
	s, err := sessions.New(c)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = s.Close() })
	return s
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wants(t *testing.T, err error, code session.Code) {
	t.Helper()
	if session.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestADeadOwnersSessionIsTakenAndALivingOnesIsNot(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one, two := h.process(sessions.Config{}), h.process(sessions.Config{})
	handle := must[*sessions.Handle](t)(one.Open(t.Context(), "s"))
	turn := must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{}))
	_, err := one.Open(t.Context(), "s")
	wants(t, err, session.ErrOwned)
	_, err = two.Open(t.Context(), "s")
	wants(t, err, session.ErrOwned)

	h.home.Kill(one.Instances.Self())
	if st := must[session.Status](t)(two.Status(t.Context(), "s")); st.Headline != session.Interrupted {
		t.Error(st)
	}
	taken := must[*sessions.Handle](t)(two.Open(t.Context(), "s"))
	// The one that was thought dead is told so at its next word, and its turn is over.
	_, err = turn.Append(t.Context(), session.Reply(one.Now(), "reply", session.ModelTurn{}))
	wants(t, err, session.ErrFenced)
	<-turn.Context().Done()
	next := must[*sessions.Turn](t)(taken.Begin(t.Context(), sessions.Start{Resumes: turn.ID(), Invocation: turn.Invocation()}))
	if err := next.End(t.Context(), session.TurnEnded{End: session.EndDone}); err != nil {
		t.Error(err)
	}
	if err := taken.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if st := must[session.Status](t)(two.Status(t.Context(), "s")); st.Headline != session.Idle || st.Head.Owner.ID != "" {
		t.Error(st)
	}
}

// elsewhere is a machine that sees no lock of any other, and would take everybody for dead if it were asked.
type elsewhere struct{ self ledger.Instance }

func (e elsewhere) Self() ledger.Instance                    { return e.self }
func (e elsewhere) Liveness(ledger.Instance) ledger.Liveness { return ledger.Dead }

func TestAnOwnerThatCannotRenewStopsBeforeAnotherMachineTakesOver(t *testing.T) {
	t.Parallel()
	for how, self := range map[string]func(name string) ledger.Instance{
		"named hosts":         func(name string) ledger.Instance { return ledger.Instance{ID: name, Host: name} },
		"kernels of one name": func(name string) ledger.Instance { return ledger.Instance{ID: name, Boot: "boot of " + name} },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			takesOver(t, self)
		})
	}
}

func takesOver(t *testing.T, self func(name string) ledger.Instance) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		host := func(name string) sessions.Config {
			return sessions.Config{Instances: elsewhere{self(name)}}
		}
		one, two := h.process(host("a")), h.process(host("b"))
		handle := must[*sessions.Handle](t)(one.Open(t.Context(), "s"))
		turn := must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{}))
		for range 10 { // renewals keep it for longer than a TTL
			time.Sleep(10 * time.Second)
			_, err := two.Open(t.Context(), "s")
			wants(t, err, session.ErrOwned)
		}
		began := time.Now()
		h.store.mute.Store(true)
		var stopped time.Time
		var all sync.WaitGroup
		all.Go(func() { <-turn.Context().Done(); stopped = time.Now() })
		var taken time.Time
		for taken.IsZero() {
			time.Sleep(time.Second)
			if live, err := two.Liveness(t.Context(), must[session.Head](t)(h.store.Head(t.Context(), "s"))); err == nil && live == ledger.Dead {
				taken = time.Now()
			}
			if time.Since(began) > 5*session.LeaseTTL {
				t.Fatal("nobody takes over")
			}
		}
		all.Wait()
		if !stopped.Before(taken) {
			t.Errorf("it stopped after %v, and the session was free after %v", stopped.Sub(began), taken.Sub(began))
		}
		wants(t, context.Cause(turn.Context()), session.ErrFenced)
		// A renewal that comes through at last does not bring the session back.
		h.store.mute.Store(false)
		time.Sleep(2 * session.LeaseRenew)
		_, err := handle.Begin(t.Context(), sessions.Start{})
		wants(t, err, session.ErrFenced)
		_ = one.Close()
		_ = two.Close()
	})
}

func TestAnAcknowledgementDoesNotDisturbALivingOwner(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one, operator := h.process(sessions.Config{}), h.process(sessions.Config{})
	handle := must[*sessions.Handle](t)(one.Open(t.Context(), "s"))
	turn := must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{Invocation: "i"}))
	guard := must[*effect.Guard](t)(effect.New(effect.Config{Turn: turn, Now: one.Now}))
	_, err := guard.Do(t.Context(), effect.Call{ID: "1", Tool: "scale"}, func(context.Context) (effect.Result, error) {
		return effect.Result{}, errors.New("reset by peer")
	})
	if err == nil {
		t.Fatal("no error")
	}
	st := must[session.Status](t)(operator.Status(t.Context(), "s"))
	wants(t, operator.Ack(t.Context(), "s", st.Head.Last, "ada"), session.ErrTurnOpen)
	wants(t, operator.Resolve(t.Context(), "s", st.Head.Calls[0].Seq, session.Resolve{Outcome: session.Happened}), session.ErrInProgress)
	wants(t, operator.Resolve(t.Context(), "s", 1, session.Resolve{Outcome: session.Happened}), session.ErrNoSuchCall)
	if err := turn.End(t.Context(), session.TurnEnded{End: session.EndFailed}); err != nil {
		t.Fatal(err)
	}
	if err := operator.Ack(t.Context(), "s", st.Head.Last, "ada"); err != nil {
		t.Fatal(err)
	}
	before := handle.Fence()
	turn = must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{}))
	if turn.Ambiguous() || handle.Fence() != before+1 {
		t.Error("ambiguous:", turn.Ambiguous(), "fence", before, "to", handle.Fence())
	}
}

func TestABeginningThatNobodyConfirmedIsFoundOut(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.process(sessions.Config{})
	handle := must[*sessions.Handle](t)(s.Open(t.Context(), "s"))
	h.store.unknown.Store(1) // asked for again, and found in the log
	turn := must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{}))
	if err := turn.End(t.Context(), session.TurnEnded{End: session.EndDone}); err != nil {
		t.Fatal(err)
	}
	h.store.unknown.Store(2)
	_, err := handle.Begin(t.Context(), sessions.Start{ID: "lost"})
	wants(t, err, session.ErrOutcomeUnknown)
	turn = must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{}))
	e, ok, err := turn.Find(t.Context(), "end/lost")
	if !ok || err != nil {
		t.Error("the turn that nobody ran is still open:", e, err)
	}
}

// once lets something happen when the first event of a kind stands in the log, and its writer does not know yet.
func (f *flaky) once(kind session.Kind, do func()) {
	done := false
	f.written = func(d session.Draft) {
		if d.Kind == kind && !done {
			done = true
			do()
		}
	}
}

// Two who begin a turn on one handle: the second comes when the first one's turn is in the log, and nobody here has it yet.
// It is open and no turn that was abandoned.
func TestATurnThatIsJustBeginningIsNotAbandoned(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.process(sessions.Config{})
	handle := must[*sessions.Handle](t)(s.Open(t.Context(), "s"))
	h.store.once(session.KindTurnBegun, func() {
		_, err := handle.Begin(t.Context(), sessions.Start{})
		wants(t, err, session.ErrTurnOpen)
		_, err = handle.Begin(t.Context(), sessions.Start{ID: "first"})
		wants(t, err, session.ErrTurnOpen)
	})
	turn := must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{ID: "first"}))
	if head := must[session.Head](t)(h.store.Head(t.Context(), "s")); head.Turn == nil || head.Turn.ID != turn.ID() {
		t.Errorf("the first turn was ended by the second: %+v", head.Turn)
	}
	if turns := s.Turns(); len(turns) != 1 || turns[0] != turn {
		t.Errorf("the turns are %v", turns)
	}
	if err := turn.End(t.Context(), session.TurnEnded{End: session.EndDone}); err != nil {
		t.Error(err)
	}
}

// A turn that begins when the end of the one before is in the log, and that one does not know yet, stays the handle's turn.
func TestATurnThatFollowsAtOnceIsNotForgotten(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.process(sessions.Config{})
	handle := must[*sessions.Handle](t)(s.Open(t.Context(), "s"))
	first := must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{}))
	var next *sessions.Turn
	h.store.once(session.KindTurnEnded, func() {
		next = must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{}))
	})
	if err := first.End(t.Context(), session.TurnEnded{End: session.EndDone}); err != nil {
		t.Fatal(err)
	}
	if turns := s.Turns(); len(turns) != 1 || turns[0] != next {
		t.Errorf("the turns are %v, want the one that goes on", turns)
	}
	_, err := handle.Begin(t.Context(), sessions.Start{})
	wants(t, err, session.ErrTurnOpen)
	if next.Context().Err() != nil {
		t.Error("it was cancelled")
	}
}

// A turn that was in the way and has ended since was no turn that nobody runs: the next one begins.
func TestATurnThatEndedMeanwhileIsNotAbandoned(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.process(sessions.Config{})
	handle := must[*sessions.Handle](t)(s.Open(t.Context(), "s"))
	first := must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{}))
	h.store.once(session.KindTurnBegun, func() {
		if err := first.End(t.Context(), session.TurnEnded{End: session.EndDone}); err != nil {
			t.Error(err)
		}
	})
	next, err := handle.Begin(t.Context(), sessions.Start{})
	if err != nil {
		t.Fatal(err)
	}
	e, ok, err := next.Find(t.Context(), "end/"+first.ID())
	var end session.TurnEnded
	if err != nil || !ok || e.Into(&end) != nil || end.End != session.EndDone {
		t.Errorf("the first one's end is %+v, %v, %v", end, ok, err)
	}
}

// A session that is being taken while the service is closed is not open afterwards: nothing would ever end it.
func TestASessionTakenDuringTheCloseIsGivenUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.process(sessions.Config{})
	h.store.once(session.KindLease, func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if handle, err := s.Open(t.Context(), "s"); err == nil {
		t.Errorf("a closed service has session %s open", handle.Session())
	}
	if head := must[session.Head](t)(h.store.Head(t.Context(), "s")); head.Last != 2 || head.Owner.ID != "" {
		t.Errorf("the session is still owned: %+v", head.Owner)
	}
}

// A lease that is over takes no session: another machine could take it at once. It is renewed first.
func TestALeaseThatIsOverTakesNoSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		s := h.process(sessions.Config{Instances: elsewhere{ledger.Instance{ID: "a", Host: "a"}}})
		lost := must[*sessions.Handle](t)(s.Open(t.Context(), "one"))
		h.store.mute.Store(true)
		time.Sleep(session.LeaseTTL + session.LeaseRenew/2)
		if _, err := s.Open(t.Context(), "two"); err == nil || !strings.Contains(err.Error(), "no route to the store") {
			t.Errorf("a session was opened without a lease: %v", err)
		}
		if head := must[session.Head](t)(h.store.Head(t.Context(), "two")); head.Last != 0 {
			t.Errorf("it was taken: %+v", head)
		}
		h.store.mute.Store(false)
		handle := must[*sessions.Handle](t)(s.Open(t.Context(), "two"))
		// While it is taken the lease goes by: whoever opens it is not told that it is theirs.
		h.store.once(session.KindLease, func() { h.store.mute.Store(true); time.Sleep(session.LeaseTTL) })
		_, err := s.Open(t.Context(), "three")
		wants(t, err, session.ErrFenced)
		_, err = lost.Begin(t.Context(), sessions.Start{})
		wants(t, err, session.ErrFenced)
		synctest.Wait() // the timer of the open ones fires at the same moment
		_, err = handle.Begin(t.Context(), sessions.Start{})
		wants(t, err, session.ErrFenced)
		_ = s.Close()
	})
}

func TestWhoDoesNotAdmitBeginsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	draining := errors.New("draining")
	var refuse atomic.Bool
	var in atomic.Int64
	s := h.process(sessions.Config{Admit: func(string) (func(), error) {
		if refuse.Load() {
			return nil, draining
		}
		in.Add(1)
		return func() { in.Add(-1) }, nil
	}})
	handle := must[*sessions.Handle](t)(s.Open(t.Context(), "s"))
	turn := must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{}))
	if _, err := handle.Begin(t.Context(), sessions.Start{}); session.CodeOf(err) != session.ErrTurnOpen || in.Load() != 1 {
		t.Error(err, in.Load())
	}
	refuse.Store(true)
	if turns := s.Turns(); len(turns) != 1 || turns[0] != turn {
		t.Error(turns)
	}
	if err := turn.End(t.Context(), session.TurnEnded{End: session.EndDone}); err != nil || in.Load() != 0 || len(s.Turns()) != 0 {
		t.Error(err, in.Load())
	}
	if _, err := handle.Begin(t.Context(), sessions.Start{}); !errors.Is(err, draining) {
		t.Error(err)
	}
}

func TestAnAttemptIsWrittenBeforeItsTurnAndOnWhatWasSeen(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.process(sessions.Config{})
	if err := s.Say(t.Context(), "s", json.RawMessage(`"hello"`)); err != nil {
		t.Fatal(err)
	}
	seen := must[session.Status](t)(s.Status(t.Context(), "s")).Head.Last
	handle := must[*sessions.Handle](t)(s.Open(t.Context(), "s"))
	start := sessions.Start{Attempt: &session.Attempt{}, Seen: seen}
	turn := must[*sessions.Turn](t)(handle.Begin(t.Context(), start))
	if err := turn.End(t.Context(), session.TurnEnded{End: session.EndFailed}); err != nil {
		t.Fatal(err)
	}
	_, err := handle.Begin(t.Context(), start)
	wants(t, err, session.ErrSuperseded)
	for range 2 {
		start.Seen = 0
		turn := must[*sessions.Turn](t)(handle.Begin(t.Context(), start))
		if err := turn.End(t.Context(), session.TurnEnded{End: session.EndFailed}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = handle.Begin(t.Context(), start)
	wants(t, err, session.ErrQuarantined)
	if err := s.Release(t.Context(), "s", "ada"); err != nil {
		t.Fatal(err)
	}
	_ = must[*sessions.Turn](t)(handle.Begin(t.Context(), start))
}

func TestTokensAreShownOnceAndExtendedByANewOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.process(sessions.Config{})
	id, token, err := s.Pause(t.Context(), "s", "", json.RawMessage(`"go on?"`))
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range tailed(t, s, "s", 1) {
		if err != nil || strings.Contains(string(e.Payload), token) {
			t.Error("the log has the token:", string(e.Payload), err)
		}
	}
	fresh := must[string](t)(s.Extend(t.Context(), "s", id))
	wants(t, s.AnswerToken(t.Context(), token, nil, "ada"), session.ErrWrongToken)
	wants(t, s.AnswerToken(t.Context(), "nonsense", nil, "ada"), session.ErrWrongToken)
	for range 2 {
		if err := s.AnswerToken(t.Context(), fresh, json.RawMessage(`true`), "ada"); err != nil {
			t.Error(err)
		}
	}
	wants(t, s.Answer(t.Context(), "s", session.Answer{Interrupt: id, Value: json.RawMessage(`false`)}), session.ErrAnswerConflict)
	_, err = s.Extend(t.Context(), "s", id)
	wants(t, err, session.ErrNoSuchInterrupt)
}

// tailed is the first n events of a tail.
func tailed(t *testing.T, s *sessions.Service, name string, n int) func(func(session.Event, error) bool) {
	return func(yield func(session.Event, error) bool) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for e, err := range s.Tail(ctx, name, 0) {
			if n--; !yield(e, err) || n == 0 {
				return
			}
		}
	}
}

func TestATailSeesWhatComesLater(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.process(sessions.Config{Poll: time.Hour}) // the store's hints are enough
	var all sync.WaitGroup
	all.Go(func() {
		var last uint64
		for e, err := range tailed(t, s, "s", 200) {
			if err != nil || e.Seq != last+1 {
				t.Error(e.Seq, "after", last, err)
			}
			last = e.Seq
		}
		if last != 200 {
			t.Errorf("the tail ended at %d", last)
		}
	})
	for range 200 {
		if err := s.Say(t.Context(), "s", nil); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}

func TestNewReportsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := sessions.New(sessions.Config{TTL: time.Second, Poll: -1})
	for _, want := range []string{"Store", "Instances", "Poll", "renewals"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

func TestAClosedServiceHoldsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.process(sessions.Config{})
	handle := must[*sessions.Handle](t)(s.Open(t.Context(), "s"))
	turn := must[*sessions.Turn](t)(handle.Begin(t.Context(), sessions.Start{}))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	<-turn.Context().Done()
	if _, err := s.Open(t.Context(), "t"); err == nil {
		t.Error("it opens sessions")
	}
	if _, err := turn.Append(t.Context(), session.Say(s.Now(), "x", nil)); err == nil {
		t.Error("it writes")
	}
}

func TestAHeldSessionIsFoundByItsHandle(t *testing.T) {
	t.Parallel()
	s := newHouse(t).process(sessions.Config{})
	if h, held := s.Held("s1"); held || h != nil {
		t.Errorf("held before it was opened: %v", h)
	}
	h := must[*sessions.Handle](t)(s.Open(t.Context(), "s1"))
	if got, held := s.Held("s1"); !held || got != h {
		t.Errorf("held is %v, %v", got, held)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, held := s.Held("s1"); held {
		t.Error("held after it was given up")
	}
}
