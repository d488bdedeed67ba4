package restart_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/restarttest"
)

// witnessed is whatever runners run under: it says what it is told, and keeps what it is not allowed to forget.
type witnessed struct {
	end   restart.End
	err   error
	asked []string // runs
	kept  map[string]bool
}

func (w *witnessed) End(_ context.Context, r run.Run) (restart.End, error) {
	w.asked = append(w.asked, r.ID)
	return w.end, w.err
}

func (w *witnessed) Release(_ context.Context, over func(string) bool) error {
	for launch := range w.kept {
		if over(launch) {
			delete(w.kept, launch)
		}
	}
	return w.err
}

const saw = "The manager says: killed for memory."

// TestEndOfLostRun: what a manager saw of the end of a run that left no word is its typed cause, and whatever it says,
// nothing is started on it. Where it knows nothing, or cannot be asked, the run is lost as before.
func TestEndOfLostRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends  witnessed
		want  string
		reads string
	}{
		"a typed cause":          {witnessed{end: restart.End{Cause: classify.OOM, Text: saw}}, "answer oom", "out of memory. Whoever ran it is gone without a word, but its end was seen. " + saw},
		"a sentence":             {witnessed{end: restart.End{Text: saw}}, "answer runner_lost", "but its end was seen. " + saw},
		"nothing":                {witnessed{}, "answer runner_lost", "nothing is known of its end."},
		"no answer":              {witnessed{err: errors.New("no bus")}, "answer runner_lost", "nothing is known of its end."},
		"a cause of an update's": {witnessed{end: restart.End{Cause: classify.Reason(classify.TornImport), Text: saw}}, "answer runner_lost", saw},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := restarttest.New(t, restarttest.Config{Ends: &c.ends})
			scout := w.Boot(restarttest.Run{Name: "scout"})
			w.Update("acme", "c2", restarttest.Change{Removes: []string{"acme.wire:Frame"}})
			scout.Phase(run.Preparing)
			scout.Vanish()
			w.Advance(time.Minute)
			res, err := w.Pass()
			if err != nil || len(res.Outcomes) != 1 {
				t.Fatalf("%+v, %v", res, err)
			}
			if text := res.Outcomes[0].Text; scout.Stands() != c.want || !strings.Contains(text, c.reads) || !strings.Contains(text, "not begun its work") {
				t.Errorf("it is %s: %s", scout.Stands(), text)
			}
			if len(w.Starts()) != 0 || len(c.ends.asked) != 1 || c.ends.asked[0] != scout.ID() {
				t.Errorf("%d starts, asked about %q", len(w.Starts()), c.ends.asked)
			}
			if _, err := w.Pass(); err != nil || len(c.ends.asked) != 1 {
				t.Errorf("asked again: %q, %v", c.ends.asked, err)
			}
		})
	}
}

// TestEndOfLostReplacement: its record has the cause, and what was kept to tell it is let go of after that and not before.
// What is not this ledger's stays.
func TestEndOfLostReplacement(t *testing.T) {
	t.Parallel()
	ends := &witnessed{end: restart.End{Cause: classify.Killed, Text: saw}, kept: map[string]bool{"a stranger's": true}}
	w := restarttest.New(t, restarttest.Config{Ends: ends})
	scout := w.Boot(restarttest.Run{Name: "scout"})
	w.Update("acme", "c2", restarttest.Change{Removes: []string{"acme.wire:Frame"}})
	scout.Die(restarttest.TornImport("acme.wire:Frame"))
	w.Advance(30 * time.Second)
	pass := func() {
		t.Helper()
		if _, err := w.Pass(); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	launch := w.Starts()[0].Launch
	ends.kept[launch] = true
	pass()
	if len(ends.kept) != 2 || len(ends.asked) != 0 {
		t.Errorf("while it runs %v is kept, and it was asked about %q", ends.kept, ends.asked)
	}
	w.Latest("scout").Vanish()
	if _, err := w.Healer().DryRun().Pass(t.Context(), restart.Scope{}); err != nil || !ends.kept[launch] {
		t.Errorf("a dry run let go of it, %v", err)
	}
	pass()
	rec, err := scout.Record()
	if err != nil {
		t.Fatal(err)
	}
	last := rec.History[len(rec.History)-1]
	if last.Event != ledger.SettleBad || last.Cause != string(classify.Killed) || scout.Stands() != "settled_failed replacement_lost" ||
		!strings.HasSuffix(rec.Note, "not started again. "+saw) {
		t.Errorf("the record is %s: %s, and ends with %+v", scout.Stands(), rec.Note, last)
	}
	if fmt.Sprint(ends.kept) != "map[a stranger's:true]" {
		t.Errorf("%v is kept of a launch whose record is settled", ends.kept)
	}
	if len(w.Starts()) != 1 {
		t.Errorf("%d starts", len(w.Starts()))
	}
}

// What a container engine may know of a run that left no word.
type engine struct{ exits map[string]int }

func (e engine) End(_ context.Context, r run.Run) (restart.End, error) {
	code, ok := e.exits[r.Launch]
	switch {
	case !ok:
		return restart.End{}, nil
	case code == 137:
		return restart.End{Cause: classify.Killed, Text: "The engine killed its container."}, nil
	}
	return restart.End{Text: fmt.Sprintf("Its container exited with %d.", code)}, nil
}

func (e engine) Release(_ context.Context, over func(launch string) bool) error {
	for launch := range e.exits {
		if over(launch) {
			delete(e.exits, launch)
		}
	}
	return nil
}

func ExampleEnds() {
	var ends restart.Ends = engine{map[string]int{"l-1": 137, "l-2": 3}}
	for _, launch := range []string{"l-1", "l-2", "l-3"} {
		end, err := ends.End(context.Background(), run.Run{Launch: launch})
		fmt.Printf("%q %q %v\n", end.Cause, end.Text, err)
	}
	// Output:
	// "killed" "The engine killed its container." <nil>
	// "" "Its container exited with 3." <nil>
	// "" "" <nil>
}

// resting is a ledger that knows which records are at rest, as those on a disk do.
type resting struct {
	ledger.Store
	lists int
}

func (r *resting) List(ctx context.Context) iter.Seq2[ledger.Record, error] {
	r.lists++
	return r.Store.List(ctx)
}

func (r *resting) Working(ctx context.Context, _ string, wants func(ledger.Record) bool) iter.Seq2[ledger.Record, error] {
	return func(yield func(ledger.Record, error) bool) {
		for rec, err := range r.Store.List(ctx) {
			if (err != nil || wants(rec)) && !yield(rec, err) {
				return
			}
		}
	}
}

// TestEndOfLaunchAtRest: a runner that was slow to end is let go of although its record is at rest by then. The ledger is
// read for it, and not again for what is a stranger's.
func TestEndOfLaunchAtRest(t *testing.T) {
	t.Parallel()
	s := mustSim(t, restart.Settings{Quiescence: -1})
	ends, book := &witnessed{kept: map[string]bool{"a stranger's": true}}, &resting{Store: s.stores.Ledger}
	healer, err := restart.New(s.config(func(c *restart.Config) { c.Ends, c.Stores.Ledger = ends, book }))
	if err != nil {
		t.Fatal(err)
	}
	pass := func() {
		t.Helper()
		if _, err := healer.Pass(t.Context(), restart.Scope{}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.breaks(t.Context(), "scout", "v2")
	if err != nil {
		t.Fatal(err)
	}
	pass()
	s.launcher.Wait()
	for range 3 {
		pass()
	}
	rec, err := s.stores.Ledger.Get(t.Context(), r.Registered().Key())
	if err != nil || rec.State != ledger.SettledOK {
		t.Fatalf("the record is %s, %v", rec.State, err)
	}
	before := book.lists
	pass()
	if book.lists != before {
		t.Error("the whole ledger is read again for a stranger's launch")
	}
	ends.kept[rec.Launch.ID] = true
	pass()
	if fmt.Sprint(ends.kept) != "map[a stranger's:true]" {
		t.Errorf("%v is kept of a launch whose record is at rest", ends.kept)
	}
}
