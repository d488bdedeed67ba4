package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// torn is a store that judges in one step and writes in another, as one does that looks before its transaction: what
// came between is not seen. It is what each race below has to catch.
type torn struct {
	mu   sync.Mutex
	logs map[string][]session.Event
}

func (s *torn) Append(_ context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	s.mu.Lock()
	before := session.Fold(name, s.logs[name])
	s.mu.Unlock()
	plan, err := session.Step(before, batch, func(string) (session.Event, bool, error) { return session.Event{}, false, nil })
	if err != nil {
		return session.Receipt{}, err
	}
	runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range plan.Events {
		e.Seq = uint64(len(s.logs[name])) + 1
		s.logs[name] = append(s.logs[name], e)
	}
	plan.Receipt.Head = session.Fold(name, s.logs[name])
	if h := &plan.Receipt.Head; h.Turn == nil && slices.ContainsFunc(batch, func(d session.Draft) bool { return d.Kind == session.KindTurnBegun }) {
		h.Turn = &session.Turn{} // whoever began a turn is told of one
	}
	return plan.Receipt, nil
}

func (s *torn) Read(_ context.Context, name string, after uint64, _ int) ([]session.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.logs[name][min(after, uint64(len(s.logs[name]))):]), nil
}

func (s *torn) Find(context.Context, string, string) (session.Event, bool, error) {
	return session.Event{}, false, nil
}

func (s *torn) Head(_ context.Context, name string) (session.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return session.Fold(name, s.logs[name]), nil
}

func (s *torn) List(context.Context, string, int) ([]session.Head, error) { return nil, nil }

// both runs two functions at once.
func both(f, g func()) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for _, h := range []func(){f, g} {
		all.Go(func() { <-start; h() })
	}
	close(start)
	all.Wait()
}

// fatal are errors that no race explains.
func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil && session.CodeOf(err) == "" {
		t.Fatal(err)
	}
}

// arena is one session with an open turn, and its log when the race is over.
type arena struct {
	t       *testing.T
	ctx     context.Context
	service *sessions.Service
	name    string
	handle  *sessions.Handle
}

func (a *arena) begin() *sessions.Turn {
	a.t.Helper()
	turn, err := a.handle.Begin(a.ctx, sessions.Start{})
	if err != nil {
		a.t.Fatal(err)
	}
	return turn
}

func (a *arena) end(turn *sessions.Turn, end session.End) {
	a.t.Helper()
	if err := turn.End(a.ctx, session.TurnEnded{End: end}); err != nil {
		a.t.Fatal(err)
	}
}

func (a *arena) events() []session.Event {
	a.t.Helper()
	events, err := a.service.Store.Read(a.ctx, a.name, 0, 0)
	if err != nil {
		a.t.Fatal(err)
	}
	return events
}

func place(events []session.Event, kind session.Kind, last bool) int {
	found := -1
	for i, e := range events {
		if e.Kind == kind && (last || found < 0) {
			found = i
		}
	}
	return found
}

// races are the four, each as one round that says what was wrong.
var races = map[string]func(a *arena, round int) error{
	// Whatever comes first: a turn that completed has no mark, and one that failed keeps the mark that it got.
	"a turn that finishes against the mark of a drain": func(a *arena, round int) error {
		turn := a.begin()
		end := session.EndDone
		if round%2 == 0 {
			end = session.EndFailed
		}
		var marked error
		both(func() { fatal(a.t, turn.End(a.ctx, session.TurnEnded{End: end})) },
			func() { marked = a.service.Mark(a.ctx, a.name, turn.ID(), "drain"); fatal(a.t, marked) })
		st := session.Derive(a.name, a.events(), ledger.Alive)
		switch {
		case end == session.EndDone && st.Headline != session.Idle:
			return fmt.Errorf("a turn that completed left the session %s", st)
		case end == session.EndFailed && (marked == nil) != (st.Headline == session.Interrupted):
			return fmt.Errorf("a turn that failed left the session %s, and the mark was answered by %v", st, marked)
		}
		return nil
	},
	// A clear takes away what its writer had seen, and never the mark of a turn that it did not know of.
	"a mark against a clear": func(a *arena, _ int) error {
		turn := a.begin()
		fatal(a.t, a.service.Mark(a.ctx, a.name, turn.ID(), "drain"))
		a.end(turn, session.EndFailed)
		shown := uint64(len(a.events()))
		var marked error
		both(func() { fatal(a.t, a.service.Clear(a.ctx, a.name, shown)) },
			func() {
				next := a.begin()
				marked = a.service.Mark(a.ctx, a.name, next.ID(), "drain")
				fatal(a.t, marked)
				fatal(a.t, next.End(a.ctx, session.TurnEnded{End: session.EndFailed}))
			})
		events := a.events()
		if st := session.Derive(a.name, events, ledger.Alive); marked == nil && st.Headline != session.Interrupted {
			return fmt.Errorf("a clear that had seen event %d took away the mark %d", shown, place(events, session.KindMark, true)+1)
		}
		return nil
	},
	"a pause against the start of a turn": func(a *arena, _ int) error {
		var begun error
		both(func() { _, _, err := a.service.Pause(a.ctx, a.name, "g", nil); fatal(a.t, err) },
			func() { _, begun = a.handle.Begin(a.ctx, sessions.Start{}); fatal(a.t, begun) })
		return startedAfter(a.events(), session.KindGate, begun, session.ErrPaused)
	},
	"an abort against the start of a turn": func(a *arena, _ int) error {
		var begun error
		var turn *sessions.Turn
		both(func() { fatal(a.t, a.service.Abort(a.ctx, a.name, "enough")) },
			func() { turn, begun = a.handle.Begin(a.ctx, sessions.Start{}); fatal(a.t, begun) })
		if err := startedAfter(a.events(), session.KindAbort, begun, session.ErrAborted); err != nil || begun != nil {
			return err
		}
		// The owner's turn was first: it sees the abort, and its next call is refused.
		select {
		case <-turn.Context().Done():
		case <-time.After(time.Minute):
			return errors.New("the owner did not see the abort")
		}
		if err := context.Cause(turn.Context()); !errors.Is(err, session.ErrAborted) {
			return fmt.Errorf("the turn was cancelled by %w", err)
		}
		_, err := turn.Append(a.ctx, session.NewCall(a.service.Now(), session.Call{Invocation: "i", Call: "1", Tool: "x", Class: session.Mutating}))
		if !errors.Is(err, session.ErrAborted) {
			return fmt.Errorf("a call after the abort was answered by %w", err)
		}
		return nil
	},
}

// startedAfter says when a turn began after what should have stopped it, or was refused before that.
func startedAfter(events []session.Event, kind session.Kind, begun error, code session.Code) error {
	stop, start := place(events, kind, false), place(events, session.KindTurnBegun, false)
	switch {
	case stop < 0:
		return fmt.Errorf("the %s is not in the log", kind)
	case start > stop:
		return fmt.Errorf("turn %d began after %s %d", start+1, kind, stop+1)
	case (start < 0) != errors.Is(begun, code):
		return fmt.Errorf("the turn is at %d, and its beginning was answered by %w", start+1, begun)
	}
	return nil
}

// rounds plays a race on sessions of one store, up to a number of rounds, and returns the first that went wrong.
func rounds(t *testing.T, store session.Store, n int, race func(*arena, int) error) error {
	t.Helper()
	// Where there are hints they are enough: an abort that gives none is not waited for by looking often.
	poll := 50 * time.Millisecond
	if _, ok := store.(session.Watcher); ok {
		poll = time.Hour
	}
	service, err := sessions.New(sessions.Config{Store: store, Instances: memory.New(memory.Config{}).Instances(), Poll: poll})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = service.Close() }()
	for round := range n {
		a := &arena{t: t, ctx: t.Context(), service: service, name: fmt.Sprint("s", round)}
		if a.handle, err = service.Open(a.ctx, a.name); err != nil {
			t.Fatal(err)
		}
		if err := race(a, round); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if turns := service.Turns(); len(turns) > 0 {
			turns[0].Cancel(nil)
			_ = turns[0].End(a.ctx, session.TurnEnded{End: session.EndFailed})
		}
		if err := a.handle.Close(a.ctx); err != nil {
			t.Fatal(err)
		}
	}
	return nil
}

func TestRaces(t *testing.T) {
	t.Parallel()
	for name, race := range races {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := rounds(t, memory.NewSessions(memory.SessionsConfig{}), 2000, race); err != nil {
				t.Error(err)
			}
		})
	}
}

// Each race is lost by a store whose step is two steps.
func TestRacesCatchAStoreThatIsTorn(t *testing.T) {
	t.Parallel()
	for name, race := range races {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := rounds(t, &torn{logs: map[string][]session.Event{}}, 20000, race)
			if err == nil {
				t.Error("20000 rounds, and nothing went wrong")
			}
			t.Log(err)
		})
	}
}
