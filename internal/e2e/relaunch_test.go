package e2e

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
)

// TestRelaunch is the promise itself: broken by an update before any work, put back once, unchanged, under its name.
// Everything that was decided can be read afterwards.
func TestRelaunch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout := w.broken("scout", "count:scout-starts", "mark:preparing")
	if row := w.update("v2"); row.Status != "updated" {
		t.Fatalf("the update is %s: %s", row.Status, row.Stderr)
	}
	w.tell("update")
	scout.dies()
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })

	if n := w.times("scout-starts"); n != 2 {
		t.Errorf("scout's program was started %d times, want twice", n)
	}
	dead, second := scout.run(), scout.replacement()
	if dead.ID == second.ID || second.Name != dead.Name || second.Lineage != dead.Lineage || second.Replaces != dead.ID {
		t.Errorf("the replacement is %s of lineage %s for %s, the dead run is %s of %s", second.ID, second.Lineage, second.Replaces, dead.ID, dead.Lineage)
	}
	if !reflect.DeepEqual(second.Recipe, dead.Recipe) {
		t.Errorf("the recipe changed:\n%+v\n%+v", dead.Recipe, second.Recipe)
	}
	if h, err := w.home.Runs().Holder(w.ctx, project, "scout"); err != nil || h.ID != second.ID {
		t.Errorf("the name is held by %s (%v), want the replacement", h.ID, err)
	}

	rec := w.record(scout)
	var kinds []string
	for _, x := range rec.Facts.Witnesses {
		kinds = append(kinds, x.Kind)
	}
	if strings.Join(kinds, " ") != "boot_identity update_journal file_proof" {
		t.Errorf("the witnesses on record are %v, want all three", kinds)
	}
	if c := rec.Facts.Culprit; c == nil || c.Commit != w.repo.Head() || c.Path != "acme/wire.py" {
		t.Errorf("the culprit is %+v, want the update's commit and acme/wire.py", c)
	}
	if p := rec.Facts.Probe; p == nil || p.Outcome != "healthy" {
		t.Errorf("the probe on record is %+v", p)
	}
	var events []string
	for _, h := range rec.History {
		events = append(events, string(h.Event))
	}
	if got := strings.Join(events, " "); got != "claim begin_launch bind settle_ok" && !strings.HasPrefix(got, "claim defer claim begin_launch bind settle_ok") {
		t.Errorf("the history is %s", got)
	}
	files, err := w.home.Evidence().Get(w.ctx, rec.Key)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(files["failure.txt"]), "cannot import name 'Frame'") {
		t.Errorf("the evidence holds the text %q", files["failure.txt"])
	}
	var facts struct {
		Verdict string   `json:"verdict"`
		Command []string `json:"command"`
	}
	if err := json.Unmarshal(files["facts.json"], &facts); err != nil || facts.Verdict != "relaunch" || len(facts.Command) == 0 {
		t.Errorf("the facts in the evidence: %+v, %v", facts, err)
	}
	if report, err := w.home.Reports().GetReport(w.ctx, rec.Episode); err != nil || !strings.Contains(string(report["report.txt"]), "scout") {
		t.Errorf("the report: %v\n%s", err, report["report.txt"])
	}
	if w.bells() != 0 || w.rows.Toasts() != 1 || len(w.loud()) != 0 {
		t.Errorf("%d doorbells are left, %d toasts, loud rows %q; want 0, 1, none", w.bells(), w.rows.Toasts(), w.loud())
	}
}

// TestOnceIsEnough: the replacement is broken by a second update. It is reported once and never started again, however
// often the healer looks.
func TestOnceIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	w.repo.Git("checkout", "-q", "v2")
	w.repo.Git("checkout", "-q", "-b", "v3")
	w.repo.Remove("acme/notes.py")
	w.repo.Commit("v3", "acme/jobs.py", strings.ReplaceAll(strings.ReplaceAll(jobs, "Frame", "Packet"), "    from acme import notes\n    notes.write()\n", "    pass\n"))
	w.repo.Git("checkout", "-q", "main")

	warden := w.start("warden", "count:starts", "wait:update", "encode", "wait:second", "notes", "say:done").waits("update")
	w.update("v2")
	w.tell("update")
	warden.dies()
	w.passUntil("the replacement to wait for the second update", func() bool { return w.has("warden-waits-for-second") })
	w.update("v3")
	w.tell("second")
	w.passUntil("the replacement's end to be settled", func() bool { return strings.HasPrefix(w.stands(warden), "settled") })
	w.wantStands(warden, "settled_failed already_restarted")
	w.wantLoud("already_restarted")
	if !strings.Contains(w.rows.Text(), "notes") {
		t.Errorf("the notice does not say what the replacement broke on:\n%s", w.rows.Text())
	}

	toasts := w.rows.Toasts()
	for range 20 {
		w.pass()
	}
	again := w.another(options{})
	for range 3 {
		if _, err := again.healer.Pass(w.ctx, everything); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.times("starts"); n != 2 {
		t.Errorf("warden's program was started %d times, want twice", n)
	}
	if w.rows.Toasts() != toasts || w.runsOf("warden") != 2 || w.has("done") || w.bells() != 0 {
		t.Errorf("after 23 passes: %d toasts (%d before), %d runs, %d doorbells", w.rows.Toasts(), toasts, w.runsOf("warden"), w.bells())
	}
}

// TestReplacementLost: a replacement that is gone without a word is reported, not started again.
func TestReplacementLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout := w.broken("scout", "mark:preparing")
	w.update("v2")
	w.tell("update")
	scout.dies()
	w.passUntil("the replacement to end", func() bool { return w.has("scout-done") })
	// What the replacement's runner says at its end is taken back, and the runner is one that is gone.
	rec := w.record(scout)
	if rec.State == ledger.Launched {
		w.until("its end to be noted", func() bool { return scout.replacement().Ended != nil })
	}
	lost := w.another(options{})
	gone := lost.home.Instances().Self()
	lost.close()
	w.rewritten = true
	_, err := w.home.Ledger().Update(w.ctx, rec.Key, unsettle(&gone))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.home.Runs().Update(w.ctx, rec.Launch.Run, func(r run.Run) (run.Run, error) {
		r.Ended, r.Instance = nil, gone
		return r, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.pass()
	w.wantStands(scout, "settled_failed replacement_lost")
	w.wantLoud("replacement_lost")
}
