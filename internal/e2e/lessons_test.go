package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// The lessons are mistakes that a healer before this one made in earnest. Each test tells one; "seen to fail" is the
// breakage that it was seen to catch. What tells a decision is in this file, what tells paths, names and witnesses in
// lessons_tree_test.go.

// TestLessonProbeResultIsActedOnInTheSamePass: what the probe found decides in the pass that asked, either way.
//
// Seen to fail: with a late() that defers as probe_pending and leaves the result to the next pass.
func TestLessonProbeResultIsActedOnInTheSamePass(t *testing.T) {
	t.Parallel()
	t.Run("healthy", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		scout := w.counted("scout")
		rested()
		res := w.pass()
		if rec := w.record(scout); rec == nil || rec.Launch == nil || rec.Launch.Bound == nil {
			t.Fatalf("after one pass it stands at %s: %+v", w.stands(scout), res.Outcomes)
		}
		if n := w.prober.starts.Load(); n != 1 {
			t.Errorf("%d probes", n)
		}
	})
	t.Run("broken", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		w.branch("v2", "acme/wire.py", renamed[1], "acme/jobs.py", "raise RuntimeError('half done')\n")
		scout := w.broken("scout")
		w.update("v2")
		w.tell("update")
		scout.dies()
		rested()
		w.pass()
		w.wantStands(scout, "deferred probe_failed")
	})
}

// TestLessonFailedRunsOfLastWeekAreNoTargets: a week later a healer comes for the first time, or one whose doorbell was
// answered long ago is asked for by name and by folder. Neither death is a target any more.
//
// Seen to fail: with Decide without the rule of the absent healer, and with a collect that takes every run that ended
// badly.
func TestLessonFailedRunsOfLastWeekAreNoTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	rung, silent := w.broken("rung"), w.broken("silent")
	w.update("v2")
	w.tell("update")
	rung.dies()
	silent.dies()
	items, err := w.home.Doorbell().Pending(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		if it.Note.Run == silent.run().ID {
			if err := w.home.Doorbell().Remove(w.ctx, it.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.clock.forward(7 * 24 * time.Hour)
	for _, s := range []restart.Scope{{Project: project, Name: "silent"}, {Dir: silent.ws}, everything, everything} {
		if _, err := w.healer.Pass(w.ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	w.wantStands(rung, "declined healer_absent")
	w.wantStands(silent, "undecided")
	w.wantLoud("healer_absent")
	if w.runsOf("rung") != 1 || w.runsOf("silent") != 1 || w.prober.starts.Load() != 0 {
		t.Errorf("%d and %d runs, %d probes", w.runsOf("rung"), w.runsOf("silent"), w.prober.starts.Load())
	}
}

// fickle refuses every launch for now, each time for another reason.
type fickle struct {
	restart.Launcher
	n *int
}

func (f fickle) Preflight(context.Context, restart.Order) preflight {
	*f.n++
	return preflight{Code: [...]string{"program_missing", "no_capacity"}[*f.n%2], Text: "not now"}
}

// TestLessonDeferralExpiresAlthoughClaimsAreRetaken: a healer is killed with its claim, others take the record up again
// and again, each with a new cause. The age is that of the first claim.
//
// Seen to fail: with an age since the record's last change instead of its first claim.
func TestLessonDeferralExpiresAlthoughClaimsAreRetaken(t *testing.T) {
	t.Parallel()
	n := 0
	w := newWorld(t, options{
		settings: restart.Settings{Quiescence: rest, MaxDefer: 10 * time.Minute, Resurface: time.Hour},
		launcher: func(p *parts) restart.Launcher { return fickle{runnerLauncher(p.home.Dir(), 0), &n} },
	})
	scout := w.counted("scout")
	rested()
	w.play(role{Play: "halting", Stop: filepath.Join(w.state, "stop"), More: more{Halt: "claimed", How: "kill"}}).ends()
	if s := w.stands(scout); !strings.HasPrefix(s, "claimed") {
		t.Fatalf("the story is wrong: it stands at %s", s)
	}
	for range 5 {
		w.pass()
		if s := w.stands(scout); !strings.HasPrefix(s, "deferred") {
			t.Fatalf("it stands at %s", s)
		}
		w.clock.forward(110 * time.Second)
	}
	claims := 0
	for _, h := range w.record(scout).History {
		if h.Event == ledger.Claim || h.Event == ledger.Takeover {
			claims++
		}
	}
	if claims < 6 {
		t.Fatalf("the story is wrong: %d claims", claims)
	}
	w.clock.forward(time.Minute)
	w.pass()
	w.wantStands(scout, "declined deferred_expired")
	w.wantLoud("deferred_expired")
	w.wantStarts(scout, 1)
}

// TestLessonFailedRunIsNotItsOwnReplacement: while the replacement works, everything that the dead run has left says
// once more that it failed. That is no word of the replacement, and the dead run does not pass the gate.
//
// Seen to fail: with a gate that asks for the launch id alone, and with a settlement that takes any bad end of the
// lineage for the replacement's.
func TestLessonFailedRunIsNotItsOwnReplacement(t *testing.T) {
	t.Parallel()
	t.Run("at the gate", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		scout := w.counted("scout")
		rested()
		w.play(role{Play: "halting", Stop: filepath.Join(w.state, "stop"), More: more{Halt: "started", How: "kill", Deaf: true}}).ends()
		rec := w.record(scout)
		dead := scout.run()
		_, err := ledger.Apply(*rec, ledger.Change{Event: ledger.Bind, Now: w.clock.now(), Actor: dead.Instance, Launch: rec.Launch.ID, Run: dead.ID})
		if err == nil {
			t.Error("the dead run was bound as its own replacement")
		}
		w.runner(rec.Key, rec.Launch.ID).endsWell()
		w.passUntil("its end to be settled", func() bool { return w.record(scout).State.Final() })
		w.wantStands(scout, "settled_ok replacement_ok")
	})
	t.Run("while the replacement works", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		scout := w.counted("scout", "wait:second")
		rested()
		w.passUntil("the replacement to work", func() bool { return w.has("scout-waits-for-second") })
		dead := scout.run()
		note := doorbell.Note{Schema: doorbell.Schema, Run: dead.ID, At: w.clock.now(), Phase: run.Preparing, Text: scout.res.End.Tail, Silenced: true}
		note.Exit.Code = 1
		for range 3 {
			if err := w.home.Doorbell().Ring(w.ctx, note); err != nil {
				t.Fatal(err)
			}
			w.pass()
		}
		rec := w.record(scout)
		if rec.State != ledger.Launched || rec.Launch.Run == dead.ID || w.bells() != 0 {
			t.Fatalf("it stands at %s with replacement %s, %d doorbells are left", w.stands(scout), rec.Launch.Run, w.bells())
		}
		w.tell("second")
		w.passUntil("its end to be settled", func() bool { return w.record(scout).State.Final() })
		w.wantStands(scout, "settled_ok replacement_ok")
		w.wantLoud()
		w.wantStarts(scout, 2)
	})
}

// keyed counts deliveries by kind.
type keyed struct {
	*notifytest.Recorder
	kinds map[string]int
}

func (k keyed) Notify(ctx context.Context, r notify.Row) error {
	k.kinds[r.Kind]++
	return k.Recorder.Notify(ctx, r)
}

// TestLessonSecondFailureIsToldOnce: the replacement fails as well. It is delivered once, though many passes of three
// healers see it, and its doorbell comes a second time.
//
// Seen to fail: with a tell() that does not look what is told, and with one that does not mark it.
func TestLessonSecondFailureIsToldOnce(t *testing.T) {
	t.Parallel()
	rows := keyed{&notifytest.Recorder{}, map[string]int{}}
	w := newWorld(t, options{notifiers: []notify.Notifier{rows}})
	scout := w.counted("scout", "bug")
	w.passUntil("the replacement to fail", func() bool { return w.record(scout) != nil && w.record(scout).State.Final() })
	w.wantStands(scout, "settled_failed already_restarted")
	second := scout.replacement()
	w.until("its end to be noted", func() bool { return scout.replacement().Ended != nil })
	healers := []*parts{w.parts, w.another(options{}), w.another(options{})}
	for i := range 20 {
		if i == 5 {
			note := doorbell.Note{Schema: doorbell.Schema, Run: second.ID, At: second.Started, Phase: run.UnknownPhase, Text: []byte("again"), Silenced: true}
			note.Exit.Code = 1
			if err := w.home.Doorbell().Ring(w.ctx, note); err != nil {
				t.Fatal(err)
			}
		}
		for _, h := range healers {
			if _, err := h.healer.Pass(w.ctx, everything); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rows.kinds["already_restarted"] != 1 {
		t.Errorf("the second failure was delivered %d times: %v", rows.kinds["already_restarted"], rows.kinds)
	}
	w.wantStarts(scout, 2)
	if w.bells() != 0 {
		t.Errorf("%d doorbells are left", w.bells())
	}
}

// TestLessonTimeoutInTheLogDoesNotVeto: lines about other things stand in the log before the exception that ended the
// process. They say nothing about it.
//
// Seen to fail: with a classifier that looks for the never list's words in the whole text.
func TestLessonTimeoutInTheLogDoesNotVeto(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout := w.start("scout", "mark:preparing", "wait:update", "noise", "encode").waits("update")
	w.update("v2")
	w.tell("update")
	scout.dies()
	if !strings.Contains(scout.text(), "timed out") {
		t.Fatalf("the story is wrong: its text is %q", scout.text())
	}
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
}

// TestLessonPauseSpendsNoLineage: a pause by hand, a switch in the config and a breaker that trips cost nobody the
// do-over: no record, no slot, and afterwards everybody is put back once.
//
// Seen to fail: with a pass that claims before it looks at the pause, and with a rule 13 that declines.
func TestLessonPauseSpendsNoLineage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: restart.Settings{Quiescence: rest, StormPerEpisode: 1}})
	w.branch("v2", renamed...)
	one, two := w.broken("one", "count:starts-one"), w.broken("two", "count:starts-two")
	w.update("v2")
	w.tell("update")
	one.dies()
	two.dies()
	rested()
	w.pause()
	off := w.another(options{settings: restart.Settings{Quiescence: rest, Disabled: true}})
	for range 3 {
		w.pass()
		if _, err := off.healer.Pass(w.ctx, everything); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := w.home.Breaker().State(w.ctx); err != nil || len(st.Slots) != 0 || w.records() != 0 || w.bells() != 2 {
		t.Fatalf("while paused: %d slots, %d records, %d doorbells (%v)", len(st.Slots), w.records(), w.bells(), err)
	}
	for range 3 {
		w.resume()
		w.passUntil("the breaker to trip, or all to be done", func() bool {
			st, err := w.home.Breaker().State(w.ctx)
			return err == nil && st.Paused != nil || w.stands(one) == "settled_ok replacement_ok" && w.stands(two) == "settled_ok replacement_ok"
		})
		if st, err := w.home.Breaker().State(w.ctx); err == nil && st.Paused == nil {
			break
		}
	}
	w.passUntil("both to end well", func() bool {
		return w.stands(one) == "settled_ok replacement_ok" && w.stands(two) == "settled_ok replacement_ok"
	})
	w.wantStarts(one, 2)
	w.wantStarts(two, 2)
}

// firm refuses every launch for good.
type firm struct{ restart.Launcher }

func (firm) Preflight(context.Context, restart.Order) preflight {
	return preflight{Code: "no_such_host", Text: "There is no machine for it any more.", ForGood: true}
}

// TestLessonRefusalForGoodIsDeclinedAtOnce: the first pass that comes so far closes the record, and says so.
//
// Seen to fail: with a rule 12 that defers whatever the launcher says.
func TestLessonRefusalForGoodIsDeclinedAtOnce(t *testing.T) {
	t.Parallel()
	for code, o := range map[string]options{
		"no_such_host": {launcher: func(p *parts) restart.Launcher { return firm{p.runs.Launcher(context.Background())} }},
		"supervised":   {},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, o)
			w.branch("v2", renamed...)
			scout := w.startAs("scout", func(s *managed.Spec) {
				if code == "supervised" {
					s.Supervised = "scout.service"
				}
			}, "count:starts-scout", "wait:update", "encode").waits("update")
			w.update("v2")
			w.tell("update")
			scout.dies()
			rested()
			w.pass()
			w.wantStands(scout, "declined "+code)
			w.wantLoud(code)
			w.wantStarts(scout, 1)
			if st, err := w.home.Breaker().State(w.ctx); err != nil || len(st.Slots) != 0 || w.bells() != 0 {
				t.Errorf("%d slots, %d doorbells (%v)", len(st.Slots), w.bells(), err)
			}
		})
	}
}
