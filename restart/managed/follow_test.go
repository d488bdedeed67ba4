package managed_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// countedRuns counts the looks at runs.
type countedRuns struct {
	run.Store
	looks atomic.Int32
}

func (c *countedRuns) Get(ctx context.Context, id string) (run.Run, error) {
	c.looks.Add(1)
	return c.Store.Get(ctx, id)
}

// TestWaitSuccessor: who waits is told of the one that took the place, soon after a doorbell rang; of a good end; and of
// the end of their own patience. Meanwhile there is a look a second.
func TestWaitSuccessor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		home := memory.New(memory.Config{})
		runs := &countedRuns{Store: home.Runs()}
		h, err := managed.New(managed.Config{Dir: dir,
			Stores: restart.Stores{Ledger: home.Ledger(), Instances: home.Instances(), Doorbells: home.Doorbell(), Runs: runs}})
		if err != nil {
			t.Fatal(err)
		}
		begin := func(name string) *managed.Run {
			t.Helper()
			r, err := h.Start(t.Context(), managed.Spec{Project: "acme", Name: name})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		type answer struct {
			last run.Run
			ok   bool
			err  error
		}
		wait := func(ctx context.Context, id string) chan answer {
			c := make(chan answer, 1)
			go func() {
				last, ok, err := h.WaitSuccessor(ctx, id)
				c <- answer{last, ok, err}
			}()
			return c
		}

		first := begin("scout")
		waiting := wait(t.Context(), first.ID())
		time.Sleep(time.Hour)
		before := runs.looks.Load()
		time.Sleep(time.Minute)
		if n := runs.looks.Load() - before; n < 58 || n > 62 {
			t.Errorf("%d looks in a minute in which nothing happens, want one a second", n)
		}
		if err := first.Fail(t.Context(), managed.Failure{Exit: classify.Exit{Code: 1}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := h.Dismiss(t.Context(), first.ID(), managed.Person{By: "ana"}); err != nil {
			t.Fatal(err)
		}
		second := begin("scout")
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		select {
		case a := <-waiting:
			if !a.ok || a.err != nil || a.last.ID != second.ID() {
				t.Errorf("told to follow %+v", a)
			}
		default:
			t.Fatal("20 ms after a doorbell rang nobody had looked")
		}

		waiting = wait(t.Context(), second.ID())
		if err := second.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a := <-waiting; a.ok || a.err != nil || a.last.ID != second.ID() {
			t.Errorf("after a good end: %+v", a)
		}

		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		waiting = wait(ctx, begin("herald").ID())
		time.Sleep(time.Minute)
		cancel(enough)
		if a := <-waiting; a.ok || !errors.Is(a.err, enough) {
			t.Errorf("after the end of its context: %+v", a)
		}
		if a := <-wait(t.Context(), "nobody"); !errors.Is(a.err, run.ErrNotFound) {
			t.Errorf("of a run that nobody registered: %+v", a)
		}
	})
}
