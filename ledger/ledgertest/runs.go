package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/run"
)

// RunRuns checks a registry of runs. open makes an empty one.
func RunRuns(t *testing.T, open func(t *testing.T) run.Store) {
	t.Helper()
	tryAll(t, open, runChecks)
}

var runChecks = []check[run.Store]{
	{"a run that was started is found by its id and by its name", runFound},
	{"of many that take one name at once, when only a free one is allowed, exactly one gets it", oneHolder},
	{"a name that is refused stays with its holder, and nothing is started", nameRefused},
	{"no two names share a holder", namesApart},
	{"a run id is used once", idOnce},
	{"an update of a run is one step against all others, and counts the revision", runOneStep},
	{"a list yields every run once", runList},
	{"a list without some runs yields every other one", runListBut},
}

func someRun(project, name, id string) run.Run {
	return run.Run{
		Schema: run.Schema, ID: id, Project: project, Name: name, Lineage: id, Instance: someone(1), Started: day(0), Phase: run.Booting,
		Recipe: run.Recipe{Command: []string{"python", "-m", "agent\n"}, Dir: "/tmp", Env: []string{"A=\u2028", "B="}, Marking: run.Phases},
	}
}

func anyone(*run.Run) error { return nil }

func runFound(ctx context.Context, s run.Store) error {
	if _, err := s.Holder(ctx, "p", "agent"); !errors.Is(err, run.ErrNotFound) {
		return fmt.Errorf("holder of a fresh name: got %s, want ErrNotFound", text(err))
	}
	if _, err := s.Get(ctx, "none"); !errors.Is(err, run.ErrNotFound) {
		return fmt.Errorf("a run that never was: got %s, want ErrNotFound", text(err))
	}
	for _, id := range []string{"r1", "r2", "../r3", "r/4\n", "R1"} {
		want := someRun("p", "agent", id)
		if err := s.Start(ctx, want, anyone); err != nil {
			return err
		}
		want.Revision = 1
		got, err := s.Get(ctx, id)
		if err == nil {
			err = same(got, want)
		}
		if err != nil {
			return fmt.Errorf("get %q: %w", id, err)
		}
		got, err = s.Holder(ctx, "p", "agent")
		if err == nil {
			err = same(got, want)
		}
		if err != nil {
			return fmt.Errorf("holder after %q took the name: %w", id, err)
		}
	}
	return nil
}

var errTaken = errors.New("taken")

func ifFree(holder *run.Run) error {
	if holder != nil {
		return errTaken
	}
	return nil
}

func oneHolder(ctx context.Context, s run.Store) error {
	for i := range 8 {
		name := fmt.Sprint("agent-", i)
		one, err := exactlyOne(8, func(n int) error { return s.Start(ctx, someRun("p", name, fmt.Sprint(name, "-", n)), ifFree) })
		if err != nil {
			return fmt.Errorf("take the name %s: %w", name, err)
		}
		h, err := s.Holder(ctx, "p", name)
		if err != nil {
			return err
		}
		if want := fmt.Sprint(name, "-", one); h.ID != want {
			return fmt.Errorf("%s got the name, and %s holds it", want, h.ID)
		}
	}
	return nil
}

func nameRefused(ctx context.Context, s run.Store) error {
	if err := s.Start(ctx, someRun("p", "agent", "r1"), ifFree); err != nil {
		return err
	}
	if err := s.Start(ctx, someRun("p", "agent", "r2"), ifFree); !errors.Is(err, errTaken) {
		return fmt.Errorf("got %s, want the refusal", text(err))
	}
	if _, err := s.Get(ctx, "r2"); !errors.Is(err, run.ErrNotFound) {
		return fmt.Errorf("the refused run: got %s, want ErrNotFound", text(err))
	}
	h, err := s.Holder(ctx, "p", "agent")
	if err == nil && h.ID != "r1" {
		err = fmt.Errorf("the name went to %s", h.ID)
	}
	return err
}

func namesApart(ctx context.Context, s run.Store) error {
	for i, k := range awkward() {
		if err := s.Start(ctx, someRun(k.Project, k.Lineage, fmt.Sprint("r", i)), ifFree); err != nil {
			return fmt.Errorf("take %q, which nobody has: %w", k, err)
		}
	}
	for i, k := range awkward() {
		h, err := s.Holder(ctx, k.Project, k.Lineage)
		if err != nil {
			return fmt.Errorf("holder of %q: %w", k, err)
		}
		if h.ID != fmt.Sprint("r", i) {
			return fmt.Errorf("%q is held by %s, want r%d", k, h.ID, i)
		}
	}
	return nil
}

func idOnce(ctx context.Context, s run.Store) error {
	if err := s.Start(ctx, someRun("p", "agent", "r1"), anyone); err != nil {
		return err
	}
	for _, name := range []string{"agent", "other"} {
		if err := s.Start(ctx, someRun("p", name, "r1"), anyone); !errors.Is(err, run.ErrExists) {
			return fmt.Errorf("again as %s: got %s, want ErrExists", name, text(err))
		}
	}
	if _, err := s.Holder(ctx, "p", "other"); !errors.Is(err, run.ErrNotFound) {
		return fmt.Errorf("the name of the refused start: got %s, want ErrNotFound", text(err))
	}
	return nil
}

func runOneStep(ctx context.Context, s run.Store) error {
	const writers, each = 6, 8
	if err := s.Start(ctx, someRun("p", "agent", "r"), anyone); err != nil {
		return err
	}
	var errs [writers]error
	race(writers, func(w int) {
		for range each {
			if _, err := s.Update(ctx, "r", func(cur run.Run) (run.Run, error) { cur.PID++; return cur, nil }); err != nil {
				errs[w] = err
			}
		}
	})
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	no := errors.New("no")
	if _, err := s.Update(ctx, "r", func(cur run.Run) (run.Run, error) { cur.PID = -1; return cur, no }); !errors.Is(err, no) {
		return fmt.Errorf("got %s, want the error of the change", text(err))
	}
	if _, err := s.Update(ctx, "none", func(cur run.Run) (run.Run, error) { return cur, nil }); !errors.Is(err, run.ErrNotFound) {
		return fmt.Errorf("update of a run that never was: got %s, want ErrNotFound", text(err))
	}
	r, err := s.Get(ctx, "r")
	if err == nil && (r.PID != writers*each || r.Revision != 1+writers*each) {
		err = fmt.Errorf("%d changes left %d of them and revision %d", writers*each, r.PID, r.Revision)
	}
	return err
}

func runList(ctx context.Context, s run.Store) error {
	want := map[string]bool{}
	for i := range 9 {
		id := fmt.Sprint("r", i)
		want[id] = true
		if err := s.Start(ctx, someRun("p", fmt.Sprint("agent-", i%3), id), anyone); err != nil {
			return err
		}
	}
	for r, err := range s.List(ctx) {
		if err != nil {
			return err
		}
		if !want[r.ID] {
			return fmt.Errorf("%s is listed twice, or was never started", r.ID)
		}
		delete(want, r.ID)
	}
	if len(want) > 0 {
		return fmt.Errorf("not listed: %v", want)
	}
	return nil
}

// soon bounds the waits of the checks: a promise that is kept needs far less, also on a busy machine.
const soon = time.Minute

// runListBut: a store that has the power leaves out what it is told, and nothing else.
func runListBut(ctx context.Context, s run.Store) error {
	part, ok := s.(run.Skipping)
	if !ok {
		return nil
	}
	for _, id := range []string{"a", "b", "c", "B"} {
		if err := s.Start(ctx, someRun("p", "name "+id, id), anyone); err != nil {
			return err
		}
	}
	got := map[string]int{}
	for r, err := range part.ListBut(ctx, func(id string) bool { return id == "b" || id == "none" }) {
		if err != nil {
			return err
		}
		got[r.ID]++
	}
	for id, want := range map[string]int{"a": 1, "b": 0, "c": 1} {
		if got[id] != want {
			return fmt.Errorf("run %s was yielded %d times, want %d (all: %v)", id, got[id], want, got)
		}
	}
	if got["B"] != 1 {
		return fmt.Errorf("run B, of which nobody said that it is known, was yielded %d times", got["B"])
	}
	return nil
}
