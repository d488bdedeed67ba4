package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// wants records what a person did to the agent's run.
func (a *agent) wants(k run.IntentKind) {
	a.w.t.Helper()
	if err := a.w.runs.Intend(a.w.ctx, a.run().ID, k, ana); err != nil {
		a.w.t.Fatal(err)
	}
}

// byHand starts the agent's name again, as a person does; the new run waits until it is told.
func (a *agent) byHand() *agent {
	a.w.t.Helper()
	return a.w.start(a.name, "wait:by-hand").waits("by-hand")
}

// TestWhatAPersonDidWins: each intent, found before there is a record, is an answer that is not told.
func TestWhatAPersonDidWins(t *testing.T) {
	t.Parallel()
	for intent, code := range map[run.IntentKind]string{run.Killed: "killed", run.Dismissed: "dismissed", run.Relaunched: "manual_relaunch", run.Asked: "asked"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			scout := w.after("scout", "wait:update", "encode")
			scout.wants(intent)
			w.pass()
			w.wantStands(scout, "answer "+code)
			w.wantLoud()
			if w.bells() != 0 || w.runsOf("scout") != 1 {
				t.Errorf("%d doorbells and %d runs", w.bells(), w.runsOf("scout"))
			}
		})
	}
}

// TestKilledReplacement: a person ended the replacement. Its record is settled, quietly.
func TestKilledReplacement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout := w.start("scout", "wait:update", "encode", "wait:never").waits("update")
	w.update("v2")
	w.tell("update")
	scout.dies()
	w.passUntil("the replacement to work", func() bool { return w.has("scout-waits-for-never") })
	if err := w.runs.Intend(w.ctx, scout.replacement().ID, run.Killed, ana); err != nil {
		t.Fatal(err)
	}
	w.until("its process to be known", func() bool { return scout.replacement().PID != 0 })
	terminate(t, scout.replacement().PID)
	w.passUntil("its end to be settled", func() bool { return strings.HasPrefix(w.stands(scout), "settled") })
	w.wantStands(scout, "settled_failed killed")
	w.wantLoud()
}

// TestDismissedWhileDeferred: a record that waits is declined quietly.
func TestDismissedWhileDeferred(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: slow})
	scout := w.after("scout", "wait:update", "encode")
	w.pass()
	w.wantStands(scout, "deferred not_quiet")
	scout.wants(run.Dismissed)
	w.wantStands(scout, "declined dismissed") // at once: nobody works on it
	w.pass()
	w.wantStands(scout, "declined dismissed")
	w.wantToldOf(scout, "dismissed")
	w.wantLoud()
}

// TestStartByHandOnADeadName: while the death waits, a person starts the name again. It is a new lineage, and the old
// record is closed.
func TestStartByHandOnADeadName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: slow})
	scout := w.after("scout", "wait:update", "encode")
	w.pass()
	w.wantStands(scout, "deferred not_quiet")
	second := scout.byHand()
	w.wantStands(scout, "declined manual_relaunch")
	if second.run().Lineage == scout.run().Lineage {
		t.Error("a start by hand went on with the old lineage")
	}
	w.pass()
	w.wantStands(scout, "declined manual_relaunch")
	w.wantLoud()
	if n := w.runsOf("scout"); n != 2 || w.bells() != 0 {
		t.Errorf("%d runs and %d doorbells, want the dead one and the one by hand, and none", n, w.bells())
	}
}

// TestStartByHandBeforeTheHealerLooks: the healer comes after the person.
func TestStartByHandBeforeTheHealerLooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	scout := w.after("scout", "wait:update", "encode")
	scout.byHand()
	w.pass()
	w.wantStands(scout, "answer manual_relaunch")
	w.wantLoud()
}

// TestSuperseded: a newer run has the name, and nobody said that a person wanted it.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	scout := w.after("scout", "wait:update", "encode")
	scout.byHand()
	_, err := w.home.Runs().Update(w.ctx, scout.run().ID, func(r run.Run) (run.Run, error) {
		r.Intent = nil
		return r, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.pass()
	w.wantStands(scout, "answer superseded")
	w.wantLoud()
}

// TestStartByHandDuringAPass: a person starts the dead name while the healer is on its way, at each of its steps. The
// name runs once, and it is the person's.
func TestStartByHandDuringAPass(t *testing.T) {
	t.Parallel()
	for moment, want := range map[string]string{
		"after the claim":        "declined manual_relaunch",
		"while it is deferred":   "declined manual_relaunch",
		"with the slot reserved": "declined manual_relaunch",
		"with the launch begun":  "settled_failed manual_relaunch",
	} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			var w *world
			var scout *agent
			hand := func() { scout.byHand() }
			o := options{settings: slow}
			switch moment {
			case "after the claim", "while it is deferred":
				o.launcher = func(p *parts) restart.Launcher { return meddlePreflight{p.runs.Launcher(context.Background()), hand} }
			case "with the slot reserved":
				o.stores = func(s restart.Stores) restart.Stores {
					s.Evidence = meddleEvidence{s.Evidence, hand}
					return s
				}
			case "with the launch begun":
				o.launcher = func(p *parts) restart.Launcher { return meddleRunner{p.runs.Launcher(context.Background()), hand} }
			}
			w = newWorld(t, o)
			scout = w.after("scout", "count:starts", "wait:update", "encode", "count:worked")
			if moment == "while it is deferred" {
				w.pass()
				w.wantStands(scout, "deferred not_quiet")
			}
			w.clock.forward(hourAndMore) // the tree has rested: the next pass goes all the way
			w.passUntil("a decision", func() bool { return w.record(scout) != nil && w.record(scout).State.Final() })
			w.wantStands(scout, want)
			w.wantLoud()
			if w.times("starts") != 1 || w.times("worked") != 0 {
				t.Errorf("the dead run's program was started %d times, want once", w.times("starts"))
			}
			h, err := w.home.Runs().Holder(w.ctx, project, "scout")
			if err != nil || h.Launch != "" || h.Ended != nil {
				t.Errorf("the name is held by %+v (%v), want the run that was started by hand", h, err)
			}
		})
	}
}

// TestLivingNameIsRefused: nobody takes the name of a run that lives.
func TestLivingNameIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.start("scout", "wait:never").waits("never")
	_, err := w.runs.Exec(w.ctx, w.spec("scout"), managed.IO{})
	var held *run.NameHeldError
	if !asError(err, &held) {
		t.Fatalf("a second scout: %v, want that the name is held", err)
	}
}
