package restarttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

// broken is a world with one death in it that will be put back.
func broken(t *testing.T, c Config) (*World, *Agent) {
	w := New(t, c)
	scout := w.Boot(Run{Name: "scout"})
	w.Update("acme", "c2", Change{Removes: []string{"acme.wire:Frame"}})
	scout.Die(TornImport("acme.wire:Frame"))
	w.Advance(time.Minute)
	return w, scout
}

func mustPass(t *testing.T, w *World) restart.Result {
	t.Helper()
	res, err := w.Pass()
	if err != nil || res.Failed() {
		t.Fatalf("a pass: %+v, %v", res, err)
	}
	return res
}

// watched is a ledger that notices what is written to it after somebody was killed.
type watched struct {
	ledger.Store
	killed *atomic.Bool
	after  *atomic.Int32
}

func (l watched) Create(ctx context.Context, r ledger.Record) error {
	err := l.Store.Create(ctx, r)
	if err == nil && l.killed.Load() {
		l.after.Add(1)
	}
	return err
}

func (l watched) Update(ctx context.Context, k ledger.Key, f func(ledger.Record, stamp.Time) (ledger.Record, error)) (ledger.Record, error) {
	wrote := false
	r, err := l.Store.Update(ctx, k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		next, err := f(cur, now)
		wrote = err == nil && next.Revision != cur.Revision
		return next, err
	})
	if wrote && l.killed.Load() {
		l.after.Add(1)
	}
	return r, err
}

// TestKilledHealerReachesNothing kills the healer before each of its steps: nothing of what it does afterwards is seen by
// stores, launcher or notifiers.
func TestKilledHealerReachesNothing(t *testing.T) {
	t.Parallel()
	steps := 0
	w, _ := broken(t, Config{})
	w.Healer().Hook(func(op Op) error { steps = max(steps, op.N); return nil })
	mustPass(t, w)
	if steps < 6 {
		t.Fatalf("a whole story has %d steps", steps)
	}
	for n := 1; n <= steps; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			own, open := &notifytest.Recorder{}, inMemory()
			var killed atomic.Bool
			var after atomic.Int32
			w, scout := broken(t, Config{Notifiers: []notify.Notifier{own}, Open: func(now func() stamp.Time) (Stores, error) {
				s, err := open(now)
				s.Ledger = watched{s.Ledger, &killed, &after}
				return s, err
			}})
			h := w.Healer()
			starts, rows := 0, 0
			h.Hook(func(op Op) error {
				if op.N == n && !op.Done {
					starts, rows = len(w.Starts()), len(own.Rows())+len(w.Rows())
					h.Kill()
					killed.Store(true)
				}
				return nil
			})
			if _, err := w.Pass(); !errors.Is(err, errDead) {
				t.Fatalf("the pass of a killed healer ends with %v", err)
			}
			if _, err := h.p.stores.Runs.Get(w.ctx, scout.ID()); !errors.Is(err, errDead) {
				t.Errorf("a killed process reads on: %v", err)
			}
			if after.Load() != 0 || len(w.Starts()) != starts || len(own.Rows())+len(w.Rows()) != rows {
				t.Errorf("after the kill: %d writes, %d starts, %d rows; before it %d and %d", after.Load(), len(w.Starts()),
					len(own.Rows())+len(w.Rows()), starts, rows)
			}
		})
	}
}

// TestSameStoryTwice: a story shows the same times, states and notices every time.
func TestSameStoryTwice(t *testing.T) {
	t.Parallel()
	tell := func() string {
		w, scout := broken(t, Config{})
		res := mustPass(t, w)
		w.Latest("scout").Done()
		mustPass(t, w)
		rec, err := scout.Record()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		fmt.Fprintln(&b, res.Outcomes[0].Text, scout.Stands(), w.Now(), w.Toasts(), w.Probes())
		for _, e := range rec.History {
			fmt.Fprintln(&b, e.Event, e.At, e.Reason)
		}
		for _, r := range w.Rows() {
			fmt.Fprintln(&b, r.Title, r.At)
		}
		return b.String()
	}
	if a, b := tell(), tell(); a != b {
		t.Errorf("first\n%s\nand then\n%s", a, b)
	}
}

// TestConfig: settings, preflight and notifiers of one's own reach the healer.
func TestConfig(t *testing.T) {
	t.Parallel()
	own := &notifytest.Recorder{}
	w, scout := broken(t, Config{Settings: restart.Settings{MaxDefer: 10 * time.Minute}, Notifiers: []notify.Notifier{own},
		Preflight: func(_ context.Context, o restart.Order) policy.Preflight {
			return policy.Preflight{Code: "no_capacity", Text: "no room for " + o.Dead.Name}
		}})
	mustPass(t, w)
	if got := scout.Stands(); got != "deferred no_capacity" {
		t.Errorf("it stands at %s", got)
	}
	w.Advance(10 * time.Minute)
	mustPass(t, w)
	if got := scout.Stands(); got != "declined deferred_expired" || len(own.Rows()) == 0 {
		t.Errorf("it stands at %s, and one's own notifier has %d rows", got, len(own.Rows()))
	}
}

// TestPowerCutForks: the world from before goes on, and neither sees what happens in the other but through its stores.
func TestPowerCutForks(t *testing.T) {
	t.Parallel()
	w, _ := broken(t, Config{})
	mustPass(t, w)
	next := w.PowerCut(inMemory())
	w.Update("acme", "c3", Change{Removes: []string{"acme.wire:Link"}})
	if got := next.Tree("acme", ""); got != "c2" {
		t.Errorf("after the cut the tree is at %s, want c2", got)
	}
	if len(next.Starts()) != 1 || len(next.Rows()) != 1 || next.Agents("scout")[1].Alive() || !w.Latest("scout").Alive() {
		t.Errorf("after the cut there are %d starts, %d rows", len(next.Starts()), len(next.Rows()))
	}
	if next.Now().SameBoot(w.Now()) {
		t.Error("the machine did not boot again")
	}
}

// TestMisuseEndsTheTest: what the world cannot do is never passed over.
func TestMisuseEndsTheTest(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(w *World, scout *Agent){
		"dies twice":               func(_ *World, a *Agent) { a.Die(TornImport("acme.wire:Frame")); a.Done() },
		"a name that lives":        func(w *World, _ *Agent) { w.Boot(Run{Name: "scout"}) },
		"nobody's name":            func(w *World, _ *Agent) { w.Latest("nobody") },
		"ends no update":           func(w *World, _ *Agent) { w.EndUpdate() },
		"a phase that is no phase": func(_ *World, a *Agent) { a.Phase("dreaming") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := New(nil, Config{})
			defer w.Close()
			scout := w.Boot(Run{Name: "scout"})
			defer func() {
				if recover() == nil {
					t.Error("the story went on")
				}
			}()
			f(w, scout)
		})
	}
}

// TestPhases: a run of the world marks like a run of a host, and a program like a program.
func TestPhases(t *testing.T) {
	t.Parallel()
	w, _ := broken(t, Config{})
	mustPass(t, w)
	again := w.Latest("scout")
	again.Phase(run.ProviderRunning)
	again.Die(TornImport("acme.wire:Link"))
	if got := again.Registered().Phase; got != run.ProviderRunning {
		t.Errorf("the replacement died in phase %s", got)
	}
}

// TestTreeIsASource holds the world's trees to what every source promises.
func TestTreeIsASource(t *testing.T) {
	t.Parallel()
	witnesstest.Run(t, func(t testing.TB) witnesstest.World {
		w := New(t, Config{})
		n := 1
		step := func() {
			w.Advance(3 * time.Second)
			n++
			w.Update("acme", fmt.Sprintf("c%d", n), Change{Adds: []string{fmt.Sprintf("acme.wire:Name%d", n)}, Unrecorded: true})
		}
		w.Tree("acme", "c1")
		step()
		w.Advance(3 * time.Second)
		w.Update("acme", "less", Change{Removes: []string{"acme.notes"}, Unrecorded: true})
		step()
		var past []witnesstest.Step
		for _, m := range w.trees["acme"].moves {
			s := witnesstest.Step{Revision: m.rev, From: m.at, Files: map[string]string{}}
			for p := range w.trees["acme"].revs[m.rev].files {
				b, _ := w.trees["acme"].revs[m.rev].read(p)
				s.Files[p] = string(b)
			}
			past = append(past, s)
		}
		return witnesstest.World{Source: source{w}, Root: Root("acme"), Change: step, Folders: []string{t.TempDir()}, Past: past,
			Break: func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				delete(w.trees, "acme")
			}}
	})
}
