package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
	"github.com/mulligan-dev/mulligan/restart"
)

// TestDeferredThenRelaunched: while the tree has not rested the death waits, quietly and with one entry; then it is
// put back.
func TestDeferredThenRelaunched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: slow})
	scout := w.after("scout", "wait:update", "encode", "say:scout-done")
	res := w.pass()
	w.wantStands(scout, "deferred not_quiet")
	if d := res.Next.Sub(w.clock.now()); d < 50*time.Minute || d > time.Hour {
		t.Errorf("the next look is in %s, want about an hour: when the tree may have rested", d)
	}
	before := w.record(scout).Revision
	for range 3 {
		w.pass()
	}
	if after := w.record(scout).Revision; after != before {
		t.Errorf("three more passes with the same cause wrote the record %d times", after-before)
	}
	if w.prober.starts.Load() != 0 || len(w.rows.Rows()) != 0 {
		t.Errorf("while it waits: %d probes, rows:\n%s", w.prober.starts.Load(), w.rows.Text())
	}
	w.clock.forward(61 * time.Minute)
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
	if !w.has("scout-done") {
		t.Error("scout's work was not done")
	}
}

func TestDeferredExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: restart.Settings{Quiescence: 24 * time.Hour, MaxDefer: 10 * time.Minute}})
	scout := w.after("scout", "wait:update", "encode")
	w.pass()
	w.wantStands(scout, "deferred not_quiet")
	w.clock.forward(9 * time.Minute)
	w.pass()
	w.wantStands(scout, "deferred not_quiet")
	w.clock.forward(2 * time.Minute)
	w.pass()
	w.wantStands(scout, "declined deferred_expired")
	w.wantLoud("deferred_expired")
	if note := w.record(scout).Note; !strings.Contains(note, "root acme changed") {
		t.Errorf("the expiry says %q, want its last cause", note)
	}
}

// TestHealerAbsent: a death that is too old when it is first seen is shown, and the tree is not looked at.
func TestHealerAbsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	scout := w.after("scout", "wait:update", "encode")
	w.clock.forward(31 * time.Minute)
	w.pass()
	w.wantStands(scout, "declined healer_absent")
	w.wantLoud("healer_absent")
	if w.prober.starts.Load() != 0 || w.runsOf("scout") != 1 {
		t.Errorf("%d probes and %d runs", w.prober.starts.Load(), w.runsOf("scout"))
	}
}

// pause stops all launches, as a person does.
func (w *world) pause() {
	w.t.Helper()
	_, err := w.home.Breaker().UpdateState(w.ctx, func(cur storm.State, now stamp.Time) (storm.State, error) {
		return cur.Pause(storm.Pause{Since: now, Reason: storm.ReasonByHand, Note: "a test wants it"}), nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) resume() {
	w.t.Helper()
	if was, err := w.healer.Resume(w.ctx, "a test"); err != nil || !was {
		w.t.Fatalf("resume: was paused %v, %v", was, err)
	}
}

// records is how many records the ledger holds.
func (w *world) records() (n int) {
	w.t.Helper()
	for _, err := range w.home.Ledger().List(w.ctx) {
		if err != nil {
			w.t.Fatal(err)
		}
		n++
	}
	return n
}

// TestHeldTooLong: the time of a pause does not age a death; what is too old without it is answered, and its lineage
// keeps its do-over.
func TestHeldTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	old := w.after("old", "wait:update", "encode")
	w.pause()
	w.pass()
	w.wantLoud("paused", "pause")
	w.clock.forward(3 * time.Hour)
	w.resume()
	w.clock.forward(31 * time.Minute)
	w.pass()
	w.wantStands(old, "answer held_too_long")
	if w.records() != 0 || w.bells() != 0 {
		t.Errorf("%d records and %d doorbells", w.records(), w.bells())
	}
	w.wantLoud("held_too_long") // the rows of the failure while paused and of the pause are over, and dim
}

// TestPaused: nothing is written to the ledger, the failure is shown once, its doorbell stays, and after the resume it
// is decided as if no time had gone by.
func TestPaused(t *testing.T) {
	t.Parallel()
	rows := &notifytest.Recorder{}
	count := &counter{Notifier: rows}
	w := newWorld(t, options{notifiers: []notify.Notifier{count}})
	w.rows = rows
	w.pause()
	scout := w.after("scout", "wait:update", "encode")
	for range 5 {
		if res := w.pass(); res.Held != "paused" {
			t.Fatalf("the pass is held by %q", res.Held)
		}
	}
	if w.records() != 0 || w.bells() != 1 {
		t.Errorf("%d records and %d doorbells, want none and one", w.records(), w.bells())
	}
	w.wantStands(scout, "undecided")
	w.wantLoud("paused", "pause")
	if n := count.n.Load(); n != 2 {
		t.Errorf("%d deliveries in five passes, want each row once", n)
	}
	w.clock.forward(5 * time.Hour)
	w.pass()
	w.resume()
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
	if w.rows.Toasts() != 3 {
		t.Errorf("%d toasts, want one for the failure, one for the pause and one for the episode:\n%s", w.rows.Toasts(), w.rows.Text())
	}
}

// TestDisabled is TestPaused for the switch in the config: it takes two healers, as a restart of the healer does.
func TestDisabled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: restart.Settings{Disabled: true, Quiescence: rest}})
	scout := w.after("scout", "wait:update", "encode")
	for range 5 {
		if res := w.pass(); res.Held != "disabled" {
			t.Fatalf("the pass is held by %q", res.Held)
		}
	}
	if w.records() != 0 || w.bells() != 1 {
		t.Errorf("%d records and %d doorbells, want none and one", w.records(), w.bells())
	}
	w.wantLoud("disabled")
	w.clock.forward(5 * time.Hour)
	on := w.another(options{settings: restart.Settings{Quiescence: rest}})
	w.until("scout to end well", func() bool {
		if _, err := on.healer.Pass(w.ctx, everything); err != nil {
			t.Fatal(err)
		}
		return w.stands(scout) == "settled_ok replacement_ok"
	})
}

// TestSettledWhilePaused: the end of a replacement that was launched before is settled during a pause.
func TestSettledWhilePaused(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]string{"say:fine": "settled_ok replacement_ok", "bug": "settled_failed already_restarted"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			w.branch("v2", renamed...)
			scout := w.start("scout", "wait:update", "encode", "wait:the-end", end).waits("update")
			w.update("v2")
			w.tell("update")
			scout.dies()
			w.passUntil("the replacement to wait", func() bool { return w.has("scout-waits-for-the-end") })
			w.pause()
			w.tell("the-end")
			w.passUntil("its end to be settled", func() bool { return w.record(scout).State.Final() })
			w.wantStands(scout, want)
			if w.bells() != 0 {
				t.Errorf("%d doorbells are left", w.bells())
			}
		})
	}
}

// TestKilledWhilePaused: what a person ended is no failure to show.
func TestKilledWhilePaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.pause()
	scout := w.after("scout", "wait:update", "encode")
	scout.wants("killed")
	w.pass()
	w.wantLoud("pause")
	w.resume()
	w.pass()
	w.wantStands(scout, "answer killed")
	w.wantLoud() // the pause is over
}

// TestProbeFailedThenHealthy: the new tree does not load, so the death waits; an update that mends the tree lets it go
// on, and the failed probe is not held against the new tree.
func TestProbeFailedThenHealthy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", "acme/wire.py", renamed[1], "acme/jobs.py", "raise RuntimeError('half done')\n")
	w.repo.Git("checkout", "-q", "v2")
	w.repo.Git("checkout", "-q", "-b", "v3")
	w.repo.Commit("v3", renamed...)
	w.repo.Git("checkout", "-q", "main")
	scout := w.start("scout", "wait:update", "encode").waits("update")
	w.update("v2")
	w.tell("update")
	scout.dies()
	w.passUntil("the probe to have its say", func() bool { return w.prober.starts.Load() > 0 })
	w.wantStands(scout, "deferred probe_failed")
	if note := w.record(scout).Note; !strings.Contains(note, "acme.") {
		t.Errorf("the note is %q, want the module that does not load", note)
	}
	w.wantLoud()
	n := w.prober.starts.Load()
	for range 3 {
		w.pass()
	}
	if got := w.prober.starts.Load(); got != n {
		t.Errorf("the same tree was probed %d more times", got-n)
	}
	w.update("v3")
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
}

// TestStorm: the limit for one update is reached. Nothing more is launched, it is told once, nobody's do-over is spent,
// and a person's resume lets the rest go on.
func TestStorm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: restart.Settings{Quiescence: rest, StormPerEpisode: 1}})
	w.branch("v2", renamed...)
	one, two := w.broken("one"), w.broken("two")
	w.update("v2")
	w.tell("update")
	one.dies()
	two.dies()
	stand := func(want string) (n int) {
		for _, a := range []*agent{one, two} {
			if strings.HasPrefix(w.stands(a), want) {
				n++
			}
		}
		return n
	}
	w.passUntil("the breaker to trip", func() bool { return stand("deferred storm_paused") == 1 && stand("settled_ok") == 1 })
	for range 5 {
		w.pass()
	}
	pauses := 0
	for _, r := range w.rows.Rows() {
		if r.Kind == notify.KindPause {
			pauses++
		}
	}
	if pauses != 1 || w.rows.Toasts() != 3 {
		t.Errorf("%d rows about the pause and %d toasts, want one, and one each for the pause, the episode and the failure that is held up", pauses, w.rows.Toasts())
	}
	w.resume()
	w.passUntil("the other to end well", func() bool { return stand("settled_ok") == 2 })
	if w.runsOf("one") != 2 || w.runsOf("two") != 2 {
		t.Errorf("%d and %d runs", w.runsOf("one"), w.runsOf("two"))
	}
}

// TestEvidenceCannotBeWritten: then nothing is started.
func TestEvidenceCannotBeWritten(t *testing.T) {
	t.Parallel()
	full := true
	w := newWorld(t, options{stores: func(s restart.Stores) restart.Stores {
		s.Evidence = brokenEvidence{s.Evidence, &full}
		return s
	}})
	scout := w.after("scout", "wait:update", "encode")
	w.until("the disk to be found full", func() bool {
		if _, err := w.healer.Pass(w.ctx, everything); err != nil {
			t.Fatal(err)
		}
		return w.record(scout) != nil && w.record(scout).Reason != "not_quiet"
	})
	w.wantStands(scout, "deferred evidence_failed")
	if w.runsOf("scout") != 1 {
		t.Errorf("%d runs, want none without evidence", w.runsOf("scout"))
	}
	full = false
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
}
