package managed_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

var ana = managed.Person{By: "ana", Note: "it is known"}

// broke is a run of the host's own that ended badly.
func broke(t testing.TB, h *managed.Host, name string) run.Run {
	t.Helper()
	r, err := h.Start(t.Context(), spec(name, run.Idempotent))
	if err == nil {
		err = r.Fail(t.Context(), managed.Failure{Exit: classify.Exit{Code: 1}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.Registered()
}

// putBack takes a dead run's lineage through the ledger, up to a begun launch, and its replacement through the gate.
func putBack(t testing.TB, home *memory.Home, h *managed.Host, dead run.Run) run.Run {
	t.Helper()
	begin(t, home, dead)
	res, err := h.Replace(t.Context(), dead.Key(), "launch-"+dead.ID)
	if err != nil {
		t.Fatal(err)
	}
	return res.Run
}

func begin(t testing.TB, home *memory.Home, dead run.Run) {
	t.Helper()
	self := home.Instances().Self()
	rec, err := ledger.New(dead.Key(), ledger.Change{Event: ledger.Claim, Now: dead.Started, Actor: self,
		Facts: &ledger.Facts{Death: ledger.Death{Run: dead.ID, Name: dead.Name}}})
	if err == nil {
		err = home.Ledger().Create(t.Context(), rec)
	}
	if err == nil {
		_, err = home.Ledger().Update(t.Context(), dead.Key(), func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
			return ledger.Apply(cur, ledger.Change{Event: ledger.BeginLaunch, Now: now, Actor: self, Launch: "launch-" + dead.ID,
				Episode: "e", Evidence: "evidence/e"})
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestIntendWhereThereIsNoRecord: the run's own file has it, once, with who and why; saying it again keeps the time.
func TestIntendWhereThereIsNoRecord(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	h := newHost(t, home, nil)
	r := broke(t, h, "scout")
	for range 2 {
		if err := h.Intend(t.Context(), r.ID, run.Killed, ana); err != nil {
			t.Fatal(err)
		}
	}
	got, err := home.Runs().Get(t.Context(), r.ID)
	if err != nil || got.Intent == nil || got.Intent.Kind != run.Killed || got.Intent.By != "ana" || got.Intent.Note != ana.Note || got.Intent.At.IsZero() {
		t.Errorf("the intent is %+v (%v)", got.Intent, err)
	}
	if _, err := home.Ledger().Get(t.Context(), r.Key()); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a word made a record: %v", err)
	}
	if err := h.Intend(t.Context(), r.ID, "annoyed", ana); err == nil {
		t.Error("an intent that is none was taken")
	}
	if err := h.Intend(t.Context(), "nobody", run.Killed, ana); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("about nobody: %v", err)
	}
}

// TestRefusals: each refusal can be told apart, and leaves nothing behind.
func TestRefusals(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	h := newHost(t, home, func(managed.Program) (managed.End, error) { return managed.End{}, nil })
	alive, err := h.Start(t.Context(), spec("alive", run.Idempotent))
	if err != nil {
		t.Fatal(err)
	}
	dead := broke(t, h, "dead")
	back := broke(t, h, "back")
	second := putBack(t, home, h, back)
	if err := h.Dismiss(t.Context(), alive.ID(), ana); !errors.Is(err, managed.ErrAlive) {
		t.Errorf("dismiss a living run: %v", err)
	}
	var gone *managed.SucceededError
	if err := h.Dismiss(t.Context(), back.ID, ana); !errors.As(err, &gone) || gone.By != second.ID {
		t.Errorf("dismiss a run that was put back: %v", err)
	}
	if err := h.Dismiss(t.Context(), "nobody", ana); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("dismiss nobody: %v", err)
	}
	if err := h.Stop(t.Context(), alive.ID(), 0, ana); err == nil {
		t.Error("a host that can end no program stopped one")
	}
	s := newStopper(t, home)
	if err := s.Stop(t.Context(), alive.ID(), 0, ana); !errors.Is(err, managed.ErrInHost) {
		t.Errorf("stop a run that is its host's own work: %v", err)
	}
	if err := s.Stop(t.Context(), dead.ID, 0, ana); !errors.Is(err, managed.ErrEnded) {
		t.Errorf("stop an ended run: %v", err)
	}
	for _, id := range []string{alive.ID(), dead.ID, back.ID} {
		if r, err := home.Runs().Get(t.Context(), id); err != nil || r.Intent != nil {
			t.Errorf("a refused act left the intent %+v (%v)", r.Intent, err)
		}
	}
}

// stopper is Programs that can end a program.
type stopper struct{ program }

func (stopper) Terminate(context.Context, int, uint64, time.Duration) error { return nil }

func newStopper(t testing.TB, home *memory.Home) *managed.Host {
	t.Helper()
	s := restart.Stores{Ledger: home.Ledger(), Instances: home.Instances(), Doorbells: home.Doorbell(), Runs: home.Runs()}
	h, err := managed.New(managed.Config{Stores: s, Programs: stopper{}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestSuccessor: whom a waiter follows, along a chain of a replacement and two starts by hand.
func TestSuccessor(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	bad := classify.Exit{Code: 1}
	h := newHost(t, home, func(managed.Program) (managed.End, error) { return managed.End{Exit: bad}, nil })
	follow := func(id, want string) {
		t.Helper()
		if got, ok, err := h.Successor(t.Context(), id); err != nil || ok != (id != want) || got.ID != want {
			t.Errorf("after %s: %s, %v (%v), want %s", id, got.ID, ok, err, want)
		}
	}
	a := broke(t, h, "scout")
	follow(a.ID, a.ID)
	b := putBack(t, home, h, a)
	follow(a.ID, b.ID)
	c, err := h.Retry(t.Context(), b, ana, managed.IO{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := h.Retry(t.Context(), c.Run, ana, managed.IO{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{a.ID, b.ID, c.Run.ID, d.Run.ID} {
		follow(id, d.Run.ID)
	}
	if r, err := home.Runs().Get(t.Context(), c.Run.ID); err != nil || r.Intent == nil || r.Intent.By != "ana" || r.Next != d.Run.ID || r.After != b.ID {
		t.Errorf("the run that was retried: %+v (%v)", r, err)
	}
	if rec, err := home.Ledger().Get(t.Context(), a.Key()); err != nil || rec.Intent == nil || rec.Intent.Run != b.ID || rec.Intent.Reason != "manual_relaunch" {
		t.Errorf("the record of the first lineage says %+v (%v)", rec.Intent, err)
	}
	if _, _, err := h.Successor(t.Context(), "nobody"); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
}

// TestSuccessorOfAnEndedRun: a name that is used again after its run ended well has no successor to follow.
func TestSuccessorOfAnEndedRun(t *testing.T) {
	t.Parallel()
	h := newHost(t, memory.New(memory.Config{}), func(managed.Program) (managed.End, error) { return managed.End{}, nil })
	first, err1 := h.Exec(t.Context(), spec("scout", run.Idempotent), managed.IO{})
	_, err2 := h.Exec(t.Context(), spec("scout", run.Idempotent), managed.IO{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := h.Successor(t.Context(), first.Run.ID); err != nil || ok {
		t.Errorf("it has one (%v)", err)
	}
}

// mute is a registry in which the runs that a start by hand displaced are not told, as if its process were killed right
// after it had the name.
type mute struct {
	run.Store
	of map[string]bool
}

func (m mute) Update(ctx context.Context, id string, f func(run.Run) (run.Run, error)) (run.Run, error) {
	if m.of[id] {
		return run.Run{}, errors.New("killed")
	}
	return m.Store.Update(ctx, id, f)
}

// TestSuccessorSurvivesAKill: who started the name again was killed before it could tell the old run. Its successor is
// known all the same, at once and also after a further start.
func TestSuccessorSurvivesAKill(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	h := newHost(t, home, nil)
	a := broke(t, h, "scout")
	s := restart.Stores{Ledger: home.Ledger(), Instances: home.Instances(), Doorbells: home.Doorbell(), Runs: mute{home.Runs(), map[string]bool{a.ID: true}}}
	cut, err := managed.New(managed.Config{Stores: s, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	b := broke(t, cut, "scout")
	if r, err := home.Runs().Get(t.Context(), a.ID); err != nil || r.Next != "" {
		t.Fatalf("the story is wrong: %+v, %v", r, err)
	}
	follow := func(want string) {
		t.Helper()
		if got, _, err := h.Successor(t.Context(), a.ID); err != nil || got.ID != want {
			t.Errorf("after the kill: %s (%v), want %s", got.ID, err, want)
		}
	}
	follow(b.ID)
	follow(broke(t, h, "scout").ID)
}

// TestSuccessorOfALaunchThatFailed: what took the name for a replacement and did not pass the gate is nobody's successor,
// and what a person starts afterwards is.
func TestSuccessorOfALaunchThatFailed(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	h := newHost(t, home, nil)
	a := broke(t, h, "scout")
	begin(t, home, a)
	self := home.Instances().Self()
	failed := a.Replacement("failed", "launch-"+a.ID, self, a.Started)
	if err := home.Runs().Start(t.Context(), failed, func(*run.Run) error { return nil }); err != nil {
		t.Fatal(err)
	}
	_, err := home.Runs().Update(t.Context(), failed.ID, func(r run.Run) (run.Run, error) {
		r.Ended = &run.End{At: a.Started, Exit: classify.Exit{Code: 125}}
		return r, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok, err := h.Successor(t.Context(), a.ID); err != nil || ok {
		t.Errorf("before: %s, %v (%v), want none", got.ID, ok, err)
	}
	byHand := broke(t, h, "scout")
	if got, ok, err := h.Successor(t.Context(), a.ID); err != nil || !ok || got.ID != byHand.ID {
		t.Errorf("after: %s, %v (%v), want %s", got.ID, ok, err, byHand.ID)
	}
}
