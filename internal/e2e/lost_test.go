package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
)

// owned starts a run whose runner is another process, and kills that without a chance to ring or to record anything. The
// program lives on.
func (w *world) owned(steps ...string) (program run.Run) {
	w.t.Helper()
	owner := w.play(role{Play: "owner", Command: append([]string{w.python, "-m", "acme.agent", "scout"}, steps...), Env: w.env})
	w.until("the program to wait", func() bool { return w.has("scout-waits-for-end") })
	w.until("its process to be known", func() bool {
		r, err := w.home.Runs().Holder(w.ctx, project, "scout")
		program = r
		return err == nil && r.PIDStart != 0
	})
	owner.kill()
	return program
}

// ends lets the program of an owned run end, and waits until it is gone.
func (w *world) ends(r run.Run) {
	w.t.Helper()
	w.tell("end")
	w.until("the program to be gone", func() bool { return restart.Lost(w.home.Instances(), r) })
}

// TestRunnerKilled: the runner of a first run is killed, so that nobody rings. While its program lives nothing is lost;
// once that is gone too, the run is shown, once, with how far it had come. Nothing is ever started on so little.
func TestRunnerKilled(t *testing.T) {
	t.Parallel()
	for mark, says := range map[string]string{
		"preparing":        "had not begun its work (preparing)",
		"provider_running": "model turn had begun",
		"handoff":          "A person's answer was involved",
	} {
		t.Run(mark, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			r := w.owned("mark:"+mark, "count:starts", "wait:end")
			if res := w.pass(); len(res.Outcomes) != 0 {
				t.Errorf("while the program lives: %+v", res.Outcomes)
			}
			w.ends(r)
			if res := w.pass(); len(res.Outcomes) != 1 || res.Outcomes[0].Code != "runner_lost" || res.Outcomes[0].Run != r.ID {
				t.Fatalf("the outcomes are %+v, want that the runner is lost", res.Outcomes)
			}
			for range 3 {
				if res := w.pass(); len(res.Outcomes) != 0 {
					t.Errorf("shown again: %+v", res.Outcomes)
				}
			}
			if res, err := w.another(options{}).healer.Pass(w.ctx, everything); err != nil || len(res.Outcomes) != 0 {
				t.Errorf("another healer shows it again: %+v, %v", res.Outcomes, err)
			}
			a, ok, err := w.home.Answers().Answer(w.ctx, r.ID)
			if err != nil || !ok || a.Reason != "runner_lost" || !a.Told || !strings.Contains(a.Text, says) {
				t.Errorf("the answer is %+v (%v), want one that says %q", a, err, says)
			}
			w.wantLoud("runner_lost")
			if w.times("starts") != 1 || w.runsOf("scout") != 1 {
				t.Errorf("%d starts and %d runs, want one", w.times("starts"), w.runsOf("scout"))
			}
		})
	}
}

// TestRunnerKilledOfAWantedEnd: what a person ended is no loss, and neither is what they started again since.
func TestRunnerKilledOfAWantedEnd(t *testing.T) {
	t.Parallel()
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		r := w.owned("wait:end")
		if err := w.runs.Stop(w.ctx, r.ID, patience, ana); err != nil {
			t.Fatal(err)
		}
		w.ends(r)
		if res := w.pass(); len(res.Outcomes) != 1 || res.Outcomes[0].Code != "killed" {
			t.Errorf("the outcomes are %+v", res.Outcomes)
		}
		w.wantLoud()
	})
	t.Run("started again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		r := w.owned("wait:end")
		w.ends(r)
		w.start("scout", "wait:by-hand").waits("by-hand")
		if res := w.pass(); len(res.Outcomes) != 1 || res.Outcomes[0].Code != "manual_relaunch" {
			t.Errorf("the outcomes are %+v", res.Outcomes)
		}
		w.wantLoud()
	})
}

// TestRunnerKilledWhileDisabled: it is shown once as every failure is while nothing is decided, and answered afterwards.
func TestRunnerKilledWhileDisabled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: restart.Settings{Disabled: true, Quiescence: rest}})
	r := w.owned("wait:end")
	w.ends(r)
	for range 3 {
		w.pass()
	}
	w.wantLoud("disabled")
	if _, ok, err := w.home.Answers().Answer(w.ctx, r.ID); err != nil || ok {
		t.Errorf("a healer that is switched off answered it (%v)", err)
	}
}

// TestHealersWithDifferentSwitches: two healers on one state folder, one switched off by its config. The state is written
// when each begins and never by turns, and the one that is on decides and restarts.
func TestHealersWithDifferentSwitches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	off := w.another(options{settings: restart.Settings{Disabled: true, Quiescence: rest}})
	both := func() {
		t.Helper()
		w.pass()
		if res, err := off.healer.Pass(w.ctx, everything); err != nil || res.Held != "disabled" {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	both()
	first, err := w.home.Breaker().State(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		both()
	}
	if now, err := w.home.Breaker().State(w.ctx); err != nil || now.Revision != first.Revision {
		t.Errorf("the state has revision %d after some passes (%v), want %d", now.Revision, err, first.Revision)
	}
	w.branch("v2", renamed...)
	scout := w.broken("scout", "mark:preparing")
	w.update("v2")
	w.tell("update")
	scout.dies()
	w.passUntil("the replacement to work", func() bool { return w.has("scout-done") })
}

// TestRungWhileItRuns: a program that rings by itself and then goes on, in another thread or because its end takes long, is
// not put back beside itself. Its doorbell waits for its end, and then it is put back once.
//
// Seen to fail: with a load that does not ask whether the program lives.
func TestRungWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout := w.broken("scout", "count:starts-scout", "mark:preparing")
	w.update("v2")
	rested()
	note := doorbell.Note{Schema: doorbell.Schema, Run: scout.run().ID, At: host.Now(), Phase: run.Preparing, Text: w.traceback(), Silenced: true}
	note.Exit.Code = 1
	if err := w.home.Doorbell().Ring(w.ctx, note); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		res := w.pass()
		if len(res.Outcomes) != 0 || w.bells() != 1 {
			t.Fatalf("while the program lives: %+v, %d doorbells", res.Outcomes, w.bells())
		}
		if in := res.Next.Sub(host.Now()); res.Next.IsZero() || in > time.Minute {
			t.Fatalf("the next look is in %s (%+v)", in, res.Next)
		}
	}
	w.wantStarts(scout, 1)
	w.tell("update")
	scout.dies()
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
	w.wantStarts(scout, 2)
	if n := w.bells(); n != 0 {
		t.Errorf("%d doorbells are left", n)
	}
}
