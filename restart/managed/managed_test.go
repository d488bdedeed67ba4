package managed_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/witness"
)

// fixed is a tree of one revision.
type fixed string

func (f fixed) Identify(context.Context, witness.Root) (witness.Identity, error) {
	return witness.Identity{Revision: string(f)}, nil
}

func (f fixed) LastChange(context.Context, witness.Root) (stamp.Time, error) {
	return stamp.Time{}, nil
}

// program is what a test runs in the place of a process.
type program func(p managed.Program) (managed.End, error)

func (f program) Run(_ context.Context, p managed.Program) (managed.End, error) {
	if p.Started != nil {
		p.Started(4711)
	}
	return f(p)
}

func newHost(t testing.TB, home *memory.Home, f program) *managed.Host {
	t.Helper()
	s := restart.Stores{Ledger: home.Ledger(), Instances: home.Instances(), Doorbells: home.Doorbell(), Runs: home.Runs()}
	h, err := managed.New(managed.Config{Stores: s, Sources: map[string]witness.Source{"git": fixed("v1")}, Programs: f, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func spec(name string, m run.Marking) managed.Spec {
	return managed.Spec{Project: "acme", Name: name, Recipe: run.Recipe{Command: []string{"agent"}, Marking: m},
		Roots: []witness.Root{{Root: classify.Root{Name: "acme"}, Kind: "git"}, {Root: classify.Root{Name: "odd"}, Kind: "svn"}}}
}

func notes(t *testing.T, home *memory.Home) (out []doorbell.Note) {
	t.Helper()
	items, err := home.Doorbell().Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		out = append(out, it.Note)
	}
	return out
}

// TestExecRings: every bad end is rung with its phase, and a good one is not.
func TestExecRings(t *testing.T) {
	t.Parallel()
	one := classify.Exit{Code: 1}
	mark := func(phases ...string) program {
		return func(p managed.Program) (managed.End, error) {
			file := ""
			for _, kv := range p.Env {
				if v, ok := strings.CutPrefix(kv, managed.PhaseFileVar+"="); ok {
					file = v
				}
			}
			for _, ph := range phases {
				if err := managed.Mark(file, run.Phase(ph)); err != nil {
					return managed.End{}, err
				}
			}
			return managed.End{Exit: one, Tail: []byte("boom")}, nil
		}
	}
	end := func(e managed.End) program { return func(managed.Program) (managed.End, error) { return e, nil } }
	for _, c := range []struct {
		name    string
		marking run.Marking
		program program
		rung    bool
		phase   run.Phase
	}{
		{"ended well", run.Phases, end(managed.End{}), false, ""},
		{"marked nothing", run.Phases, mark(), true, run.Booting},
		{"was preparing", run.Phases, mark("waiting", "preparing"), true, run.Preparing},
		{"the highest mark counts", run.Phases, mark("provider_running", "booting"), true, run.ProviderRunning},
		{"idempotent", run.Idempotent, end(managed.End{Exit: one}), true, run.Preparing},
		{"unmarked", run.Unmarked, end(managed.End{Exit: one}), true, run.UnknownPhase},
		{"could not be started", run.Unmarked, end(managed.End{Exit: classify.Exit{Code: 127}, NotStarted: true}), true, run.Booting},
		{"killed by a signal", run.Idempotent, end(managed.End{Exit: classify.Exit{Code: -1, Signal: "SIGKILL"}}), true, run.Preparing},
		{"killed for memory", run.Idempotent, end(managed.End{Exit: classify.Exit{Code: -1, Signal: "SIGKILL"}, Cause: classify.OOM}), true, run.Preparing},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home := memory.New(memory.Config{})
			res, err := newHost(t, home, c.program).Exec(t.Context(), spec("scout", c.marking), managed.IO{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := home.Runs().Get(t.Context(), res.Run.ID)
			if err != nil || r.Ended == nil || r.Ended.OK == c.rung {
				t.Fatalf("the end on record is %+v (%v)", r.Ended, err)
			}
			got := notes(t, home)
			if !c.rung {
				if len(got) != 0 {
					t.Errorf("a good end was rung: %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Run != r.ID || got[0].Phase != c.phase || got[0].Exit != res.End.Exit || string(got[0].Text) != string(res.End.Tail) {
				t.Errorf("the notes are %+v, want one with phase %s", got, c.phase)
			}
			if got[0].Cause != res.End.Cause || r.Ended.Cause != res.End.Cause {
				t.Errorf("the cause in the note is %q and on record %q, want %q", got[0].Cause, r.Ended.Cause, res.End.Cause)
			}
			ids := got[0].Identities
			if len(ids) != 2 || ids[0].Revision != "v1" || ids[1].Known() || !strings.Contains(ids[1].Unknown, "svn") {
				t.Errorf("the identities at the death are %+v, want v1 and an unknown one that says why", ids)
			}
		})
	}
}

// TestEndThatNobodySaw: when the program's end is not known, the run is rung with an unknown phase.
func TestEndThatNobodySaw(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	lost := errors.New("somebody else reaped it")
	_, err := newHost(t, home, func(managed.Program) (managed.End, error) { return managed.End{}, lost }).
		Exec(t.Context(), spec("scout", run.Idempotent), managed.IO{})
	if !errors.Is(err, lost) {
		t.Errorf("the error is %v", err)
	}
	if n := notes(t, home); len(n) != 1 || n[0].Phase != run.UnknownPhase {
		t.Errorf("the notes are %+v, want one with an unknown phase", n)
	}
}

// TestTextIsBounded: the end of a long failure text is kept.
func TestTextIsBounded(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	r, err := newHost(t, home, nil).Start(t.Context(), spec("scout", ""))
	if err != nil {
		t.Fatal(err)
	}
	text := append(make([]byte, 2*doorbell.TextLimit), "the end"...)
	if err := r.Fail(t.Context(), managed.Failure{Text: text, Exit: classify.Exit{Code: 1}}); err != nil {
		t.Fatal(err)
	}
	if n := notes(t, home); len(n) != 1 || len(n[0].Text) != doorbell.TextLimit || !strings.HasSuffix(string(n[0].Text), "the end") {
		t.Errorf("%d bytes were kept, want the last %d", len(n[0].Text), doorbell.TextLimit)
	}
}

// TestPhasesOfAHostsOwnRun: marks rise and never fall, and what is no phase is refused.
func TestPhasesOfAHostsOwnRun(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	r, err := newHost(t, home, nil).Start(t.Context(), spec("scout", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct{ mark, want run.Phase }{
		{run.Preparing, run.Preparing}, {run.Waiting, run.Preparing}, {run.ProviderRunning, run.ProviderRunning}, {run.Handoff, run.ProviderRunning},
	} {
		if err := r.Phase(t.Context(), s.mark); err != nil {
			t.Fatal(err)
		}
		if got, err := home.Runs().Get(t.Context(), r.ID()); err != nil || got.Phase != s.want {
			t.Errorf("after the mark %s the run is at %s (%v), want %s", s.mark, got.Phase, err, s.want)
		}
	}
	if err := r.Phase(t.Context(), "dreaming"); err == nil || !strings.Contains(err.Error(), "booting") {
		t.Errorf("a phase that is none: %v, want an error with the allowed ones", err)
	}
}

// TestReplaceRefuses: whoever comes with a launch that is not the record's, or is over, runs nothing.
func TestReplaceRefuses(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	ran := 0
	h := newHost(t, home, func(managed.Program) (managed.End, error) { ran++; return managed.End{}, nil })
	dead, err := h.Start(t.Context(), spec("scout", run.Idempotent))
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.Fail(t.Context(), managed.Failure{Exit: classify.Exit{Code: 1}}); err != nil {
		t.Fatal(err)
	}
	key, self := dead.Registered().Key(), home.Instances().Self()
	if _, err := h.Replace(t.Context(), key, "launch-1"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("without a record: %v", err)
	}
	now := dead.Registered().Started
	rec, err := ledger.New(key, ledger.Change{Event: ledger.Claim, Now: now, Actor: self, Facts: &ledger.Facts{Death: ledger.Death{Run: dead.ID()}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Ledger().Create(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Replace(t.Context(), key, "launch-1"); !errors.Is(err, ledger.ErrBound) {
		t.Errorf("before the launch began: %v", err)
	}
	_, err = home.Ledger().Update(t.Context(), key, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		return ledger.Apply(cur, ledger.Change{Event: ledger.BeginLaunch, Now: now, Actor: self, Launch: "launch-1", Episode: "e", Evidence: "evidence/e"})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, launch := range []string{"launch-2", ""} {
		if _, err := h.Replace(t.Context(), key, launch); !errors.Is(err, ledger.ErrBound) {
			t.Errorf("with launch %q: %v", launch, err)
		}
	}
	if ran != 0 {
		t.Fatalf("%d programs were run", ran)
	}
	res, err := h.Replace(t.Context(), key, "launch-1")
	if err != nil || ran != 1 || res.Run.Replaces != dead.ID() {
		t.Errorf("the right one: %+v, %v, %d runs", res.Run, err, ran)
	}
	if _, err := h.Replace(t.Context(), key, "launch-1"); !errors.Is(err, ledger.ErrBound) || ran != 1 {
		t.Errorf("once more: %v, %d runs", err, ran)
	}
}

// TestNames: a living holder keeps its name; a dead one's is taken, and the old run is marked as restarted by hand.
func TestNames(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	h := newHost(t, home, nil)
	first, err := h.Start(t.Context(), spec("scout", ""))
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Start(t.Context(), spec("scout", ""))
	var held *run.NameHeldError
	if !errors.As(err, &held) || held.Run != first.ID() {
		t.Fatalf("while it lives: %v", err)
	}
	if err := first.Fail(t.Context(), managed.Failure{Exit: classify.Exit{Code: 1}}); err != nil {
		t.Fatal(err)
	}
	second, err := h.Start(t.Context(), spec("scout", ""))
	if err != nil {
		t.Fatal(err)
	}
	old, err := home.Runs().Get(t.Context(), first.ID())
	if err != nil || old.Intent == nil || old.Intent.Kind != run.Relaunched {
		t.Errorf("the old run's intent is %+v (%v)", old.Intent, err)
	}
	if err := second.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Start(t.Context(), spec("scout", "")); err != nil {
		t.Fatal(err)
	}
	if done, err := home.Runs().Get(t.Context(), second.ID()); err != nil || done.Intent != nil {
		t.Errorf("a run that ended well has the intent %+v (%v)", done.Intent, err)
	}
}

func TestSpecsAreChecked(t *testing.T) {
	t.Parallel()
	h := newHost(t, memory.New(memory.Config{}), nil)
	root := witness.Root{Root: classify.Root{Name: "acme"}}
	_, err := h.Start(t.Context(), managed.Spec{Roots: []witness.Root{root, root, {}}})
	for _, want := range []string{"project", "name", "declared twice", "root 3"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not speak of %q: %v", want, err)
		}
	}
	if _, err := managed.New(managed.Config{}); err == nil || !strings.Contains(err.Error(), "Stores.Runs") || !strings.Contains(err.Error(), "Dir") {
		t.Errorf("an empty config: %v", err)
	}
}

func TestCleanEnv(t *testing.T) {
	t.Parallel()
	in := []string{"A=1", "MULLIGAN_RUN=r", "MULLIGAN_LAUNCH=l", "MULLIGAN_LINEAGE=x", "MULLIGAN_PHASE_FILE=f", "MULLIGAN_HOME=/h", "MULLIGAN_RUNNER=x", "odd"}
	want := []string{"A=1", "MULLIGAN_HOME=/h", "MULLIGAN_RUNNER=x", "odd"}
	kept := slices.Clone(in)
	if got := managed.CleanEnv(in); !slices.Equal(got, want) {
		t.Errorf("it is %q, want %q", got, want)
	}
	if !slices.Equal(in, kept) {
		t.Error("the given environment was altered")
	}
}

// TestPhaseFile: the highest mark counts, and whatever makes the file doubtful makes the phase unknown.
func TestPhaseFile(t *testing.T) {
	t.Parallel()
	head := "# append one phase a line; the highest counts\n"
	for _, c := range []struct {
		name, content string
		want          run.Phase
	}{
		{"as it is made", head + "booting\n", run.Booting},
		{"one mark", head + "booting\npreparing\n", run.Preparing},
		{"a lower mark after a higher", head + "booting\nprovider_done\nwaiting\n", run.ProviderDone},
		{"handoff", head + "booting\nhandoff\n", run.Handoff},
		{"blanks and carriage returns", head + "booting\n\n  preparing \r\n", run.Preparing},
		{"a last line without its end", head + "booting\nprovider_running", run.ProviderRunning},
		{"half a word, as in a write that was cut", head + "booting\nprovider_r", run.UnknownPhase},
		{"overwritten by a mark", "preparing\n", run.UnknownPhase},
		{"overwritten with two", "booting\npreparing\n", run.UnknownPhase},
		{"no phase", head + "booting\ndreaming\n", run.UnknownPhase},
		{"unknown is no mark", head + "booting\nunknown\n", run.UnknownPhase},
		{"emptied", "", run.UnknownPhase},
		{"the head alone", head, run.UnknownPhase},
		{"too long", head + strings.Repeat("booting\n", 1<<18), run.UnknownPhase},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "phase")
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := managed.ReadPhase(file); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
	if got := managed.ReadPhase(filepath.Join(t.TempDir(), "gone")); got != run.UnknownPhase {
		t.Errorf("a file that is gone: %s", got)
	}
}

func TestMark(t *testing.T) {
	t.Parallel()
	if err := managed.Mark("", run.Preparing); err == nil || !strings.Contains(err.Error(), "--phases") {
		t.Errorf("without a file: %v, want how to get one", err)
	}
	if err := managed.Mark(os.DevNull, run.Preparing); err != nil {
		t.Errorf("a replacement that was started held: %v", err)
	}
	file := filepath.Join(t.TempDir(), "phase")
	if err := managed.Mark(file, "dreaming"); err == nil {
		t.Error("a phase that is none was marked")
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("and left a file: %v", err)
	}
	if err := managed.Mark(filepath.Join(filepath.Dir(file), "gone", "phase"), run.Preparing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a mark where nobody looks: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 0 {
		t.Errorf("and left %v, %v", left, err)
	}
}
