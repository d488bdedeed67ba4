package resume_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// torn is a store that judges a clear in one step and writes it in another: what came between is not seen.
type torn struct{ session.Store }

func (s torn) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	var m session.Mark
	if batch[0].Kind != session.KindMark || batch[0].Into(&m) != nil || m.Clear == 0 {
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
	batch[0].If, m.Clear = session.Condition{}, 1<<40 // whatever there is by now
	batch[0] = session.Clear(batch[0].At, batch[0].ID, m.Clear).As(batch[0].Fence, "")
	return s.Store.Append(ctx, name, batch)
}

// markAgainstClear is a drain that marks a turn while auto-resume of another process, which has it for dead, clears what
// the turn left. A mark that was accepted before the clear was decided is seen by it; one that came after the look makes
// it superseded and stands; one after the clear is refused.
func markAgainstClear(t *testing.T, store func(session.Store) session.Store, n int) error {
	w := newWorld(t)
	old, _ := w.process(nil)
	self := w.home.Spawn()
	s, err := sessions.New(sessions.Config{Store: store(plain{w.store}), Instances: believing{self}})
	if err != nil {
		return err
	}
	defer func() { _, _ = s.Close(), old.Close() }()
	for i := range n {
		name := fmt.Sprint("s", i)
		hd, err := old.Open(w.ctx, name)
		if err != nil {
			return err
		}
		turn, err := hd.Begin(w.ctx, sessions.Start{})
		if err == nil {
			_, err = turn.Append(w.ctx, session.Reply(w.now(), "reply", session.ModelTurn{}))
		}
		if err != nil {
			return err
		}
		r := w.runner(s, &host{}, resume.Config{})
		var items []resume.Item
		var passed, marked error
		var all sync.WaitGroup
		start := make(chan struct{})
		all.Go(func() { <-start; items, passed = r.Pass(w.ctx) })
		all.Go(func() { <-start; marked = old.Mark(w.ctx, name, turn.ID(), "drain") })
		close(start)
		all.Wait()
		if marked != nil && !errors.Is(marked, session.ErrNoOpenTurn) || passed != nil || len(items) != 1 {
			return fmt.Errorf("round %d: mark %w, pass %w, %v", i, marked, passed, items)
		}
		if err := w.judgeRace(name, items[0].Outcome, marked); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		// What stands is taken up by a later pass, so that nothing is left for the next round.
		if items, err := r.Pass(w.ctx); err != nil || len(items) > 0 && items[0].Outcome != resume.Cleared {
			return fmt.Errorf("round %d: the next pass: %v %w", i, items, err)
		}
		_ = turn.End(w.ctx, session.TurnEnded{End: session.EndFailed})
	}
	return nil
}

func (w *world) judgeRace(name string, o resume.Outcome, marked error) error {
	events, err := w.store.Read(w.ctx, name, 0, 0)
	if err != nil {
		return err
	}
	var mark, clear uint64
	for _, e := range events {
		var m session.Mark
		switch {
		case e.Kind != session.KindMark || e.Into(&m) != nil:
		case m.Clear == 0:
			mark = e.Seq
		default:
			clear = e.Seq
		}
	}
	st := w.status(name)
	switch {
	case (o == resume.Cleared) != (clear != 0):
		return fmt.Errorf("the outcome is %s, and the clear is event %d", o, clear)
	case o != resume.Cleared && o != resume.SkippedSuperseded:
		return fmt.Errorf("the outcome is %s", o)
	case o == resume.Cleared && st.Headline != session.Idle:
		return fmt.Errorf("a session that was cleared is %s", st)
	case o == resume.SkippedSuperseded && (marked != nil || st.Headline != session.Interrupted || !st.Interruption.Marked):
		return fmt.Errorf("the clear was superseded, the mark said %v, and the session is %s", marked, st)
	case clear != 0 && mark > clear:
		return fmt.Errorf("a mark (event %d) was accepted after the clear (event %d)", mark, clear)
	case clear != 0 && mark == clear-1:
		return fmt.Errorf("the clear (event %d) took away a mark that came after it had looked", clear)
	}
	return nil
}

func TestMarkAgainstClear(t *testing.T) {
	t.Parallel()
	for range 60 { // a new world now and then: a pass looks at all sessions of its own
		if err := markAgainstClear(t, func(s session.Store) session.Store { return s }, 50); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheRaceCatchesAStoreThatIsTorn(t *testing.T) {
	t.Parallel()
	for range 1000 {
		if err := markAgainstClear(t, func(s session.Store) session.Store { return torn{s} }, 50); err != nil {
			t.Log(err)
			return
		}
	}
	t.Error("nobody noticed")
}
