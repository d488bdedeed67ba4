package drain_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/drain"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// torn is a store that judges a mark in one step and writes it in another, as one does that looks before its
// transaction: what came between is not seen.
type torn struct{ session.Store }

func (s torn) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	if batch[0].Kind != session.KindMark {
		return s.Store.Append(ctx, name, batch)
	}
	h, err := s.Head(ctx, name)
	if err != nil {
		return session.Receipt{}, err
	}
	if r := session.Judge(h, batch[0]); r != nil {
		return session.Receipt{Outcomes: []session.Outcome{{Refused: r}}, Head: h}, nil
	}
	runtime.Gosched()
	return session.Receipt{Outcomes: []session.Outcome{{Seq: h.Last + 1}}, Head: h}, s.force(ctx, name, batch[0])
}

// force writes an event behind the log's back, as a kind that nobody judges.
func (s torn) force(ctx context.Context, name string, d session.Draft) error {
	d.Kind = "forced_mark"
	_, err := s.Store.Append(ctx, name, []session.Draft{d})
	return err
}

// hall is where one race after the other is run.
type hall struct {
	t       *testing.T
	store   session.Store
	service *sessions.Service
	drain   *drain.Drain
	round   int
}

func newHall(t *testing.T, store session.Store, admit func(h *hall, name string) (func(), error)) *hall {
	t.Helper()
	h := &hall{t: t, store: store}
	var err error
	h.service, err = sessions.New(sessions.Config{Store: store, Instances: memory.New(memory.Config{}).Instances(),
		Admit: func(name string) (func(), error) { return admit(h, name) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.service.Close() })
	return h
}

func proper(h *hall, name string) (func(), error) { return h.drain.Admit(name) }

// hasty looks whether it may admit, and does not say that it did.
func hasty(h *hall, _ string) (func(), error) {
	if h.drain.Phase() != drain.Open {
		return nil, &session.Refusal{Code: drain.ErrDraining}
	}
	runtime.Gosched()
	return func() {}, nil
}

// rounds runs one race n times, and stops at what is wrong.
func (h *hall) rounds(n int, race func(*sessions.Handle) error) error {
	for h.round = range n {
		var err error
		if h.drain, err = drain.New(drain.Config{}); err != nil {
			return err
		}
		handle, err := h.service.Open(h.t.Context(), fmt.Sprint("s", h.round))
		if err != nil {
			return err
		}
		if err := race(handle); err != nil {
			return fmt.Errorf("round %d: %w", h.round, err)
		}
		if err := handle.Close(h.t.Context()); err != nil {
			return err
		}
	}
	return nil
}

func (h *hall) events(name string) []session.Event {
	h.t.Helper()
	events, err := h.store.Read(h.t.Context(), name, 0, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range events {
		if events[i].Kind == "forced_mark" {
			events[i].Kind = session.KindMark
		}
	}
	return events
}

func both(f, g func()) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for _, h := range []func(){f, g} {
		all.Go(func() { <-start; h() })
	}
	close(start)
	all.Wait()
}

// finishing is a turn that ends while the process begins to drain. Whatever comes first: the drain returns after the
// turn's end was written, a turn that completed has no mark, and one that failed keeps the mark that it got.
func (h *hall) finishing(handle *sessions.Handle) error {
	ctx := h.t.Context()
	turn, err := handle.Begin(ctx, sessions.Start{})
	if err != nil {
		return err
	}
	end := session.EndDone
	if h.round%2 == 0 {
		end = session.EndFailed
	}
	var ended, drained error
	var result drain.Result
	var early bool
	both(func() { ended = turn.End(ctx, session.TurnEnded{End: end}) }, func() {
		result, drained = h.drain.Drain(ctx, drain.Order{Sessions: h.service})
		head, err := h.store.Head(ctx, handle.Session())
		early, drained = head.Turn != nil, errors.Join(drained, err)
	})
	if err := errors.Join(ended, drained); err != nil {
		return err
	}
	events := h.events(handle.Session())
	st := session.Derive(handle.Session(), events, ledger.Alive)
	marked := false
	for _, e := range events {
		marked = marked || e.Kind == session.KindMark
	}
	switch {
	case early:
		return errors.New("the drain was over before the turn was")
	case result.ExitCode() != drain.ExitClean || len(result.Unmarked) > 0:
		return fmt.Errorf("the drain of a turn that ends says %+v", result)
	case end == session.EndDone && st.Headline != session.Idle:
		return fmt.Errorf("a turn that completed left the session %s", st)
	case end == session.EndFailed && marked != (st.Headline == session.Interrupted):
		return fmt.Errorf("a turn that failed left the session %s, marked %v", st, marked)
	}
	return nil
}

// beginning is a turn that begins while the process begins to drain: it is refused, or the drain waits for it.
func (h *hall) beginning(handle *sessions.Handle) error {
	ctx := h.t.Context()
	var begun, drained error
	var early bool
	both(func() {
		turn, err := handle.Begin(ctx, sessions.Start{})
		if err == nil {
			runtime.Gosched()
			err = turn.End(ctx, session.TurnEnded{End: session.EndDone})
		}
		begun = err
	}, func() {
		_, drained = h.drain.Drain(ctx, drain.Order{Sessions: h.service})
		head, err := h.store.Head(ctx, handle.Session())
		early, drained = head.Turn != nil, errors.Join(drained, err)
	})
	last := session.Fold(handle.Session(), h.events(handle.Session()))
	switch {
	case drained != nil:
		return drained
	case begun != nil && session.CodeOf(begun) != drain.ErrDraining:
		return begun
	case begun != nil && last.Last != 1:
		return errors.New("a turn that was refused is in the log")
	case early:
		return errors.New("the drain was over while a turn was open")
	}
	return nil
}

// races are those that are run, each with what must lose it.
var races = []struct {
	name   string
	race   func(*hall, *sessions.Handle) error
	broken string
	store  func(session.Store) session.Store
	admit  func(*hall, string) (func(), error)
}{
	{"a turn that finishes against a drain", (*hall).finishing, "a store that is torn",
		func(s session.Store) session.Store { return torn{s} }, proper},
	{"a turn that begins against a drain", (*hall).beginning, "an admission in two steps",
		func(s session.Store) session.Store { return s }, hasty},
}

func TestRaces(t *testing.T) {
	t.Parallel()
	for _, r := range races {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			h := newHall(t, memory.NewSessions(memory.SessionsConfig{}), proper)
			if err := h.rounds(3000, func(s *sessions.Handle) error { return r.race(h, s) }); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRacesCatchWhatIsBroken(t *testing.T) {
	t.Parallel()
	for _, r := range races {
		t.Run(r.broken, func(t *testing.T) {
			t.Parallel()
			h := newHall(t, r.store(memory.NewSessions(memory.SessionsConfig{})), r.admit)
			err := h.rounds(100_000, func(s *sessions.Handle) error { return r.race(h, s) })
			if err == nil {
				t.Error("nobody noticed")
			}
			t.Log(err)
		})
	}
}
