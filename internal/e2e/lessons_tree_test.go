package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// TestLessonHalfAnUpdateIsAWitness: an update that failed after it had changed the tree is one, whatever its exit code.
// What is none is told by TestNoWitness.
//
// Seen to fail: with a W2 that counts rows of status updated alone (together with a W1 that is switched off, which finds
// the change as well).
func TestLessonHalfAnUpdateIsAWitness(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", append([]string{"acme/notes.py", "def write():\n    print('noted')\n"}, renamed...)...)
	scout := w.broken("scout", "mark:preparing")
	row := w.swap("sh", "-c", fmt.Sprintf("cd %q && git checkout -q v2 -- acme/wire.py acme/jobs.py && exit 3", w.repo.Dir))
	if row.Status == journal.Updated || !row.Roots[0].Changed() {
		t.Fatalf("the story is wrong: the update is %s: %s", row.Status, row.Stderr)
	}
	w.tell("update")
	scout.dies()
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
	kinds := map[string]string{}
	for _, x := range w.record(scout).Facts.Witnesses {
		kinds[x.Kind] = x.Update
	}
	if kinds[string(witness.UpdateJournal)] != row.ID {
		t.Errorf("the witnesses are %v, want the failed update %s among them", kinds, row.ID)
	}
}

// TestLessonOldCommitIsAFreshChange: an update brings in a commit that is years old, forward or back. The tree changed
// now, and has to rest from now on; the death has its witness.
//
// Seen to fail: with a quiet rule on the commit's date.
func TestLessonOldCommitIsAFreshChange(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"forward", "back"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{settings: slow})
			w.repo.Clock = time.Now().AddDate(-3, 0, 0)
			w.branch("v2", renamed...)
			w.repo.Clock = time.Time{}
			update := []string{"git", "-C", w.repo.Dir, "merge", "-q", "--ff-only", "v2"}
			if way == "back" {
				// It boots with v2, and asks for what v2 has and the first commit has not.
				w.repo.Git("merge", "-q", "--ff-only", "v2")
				update = []string{"git", "-C", w.repo.Dir, "reset", "-q", "--hard", "HEAD~"}
			}
			scout := w.broken("scout", "count:starts-scout")
			if row := w.swap(update...); row.Status != journal.Updated {
				t.Fatalf("the update is %s: %s", row.Status, row.Stderr)
			}
			if made := w.repo.Git("log", "-1", "--format=%cr", "v2"); !strings.Contains(made, "years ago") {
				t.Fatalf("the story is wrong: the commit was made %s", made)
			}
			w.tell("update")
			scout.dies()
			w.pass()
			w.wantStands(scout, "deferred not_quiet")
			w.clock.forward(hourAndMore)
			w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
			w.wantStarts(scout, 2)
		})
	}
}

// TestLessonDeletedModule: an update deletes a module. Its victims booted at different commits and share one episode,
// with the deletion as culprit; the probe loads what imported the module, and does not fail for ever on what is gone.
//
// Seen to fail: with a probe plan that holds the missing module, and with an episode by the identity at boot.
func TestLessonDeletedModule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: slow})
	without := strings.ReplaceAll(jobs, "    from acme import notes\n    notes.write()\n", "    pass\n")
	w.repo.Git("checkout", "-q", "-b", "v1b")
	// Those that boot with it name the module itself, so that it is missed as a module and not as a name.
	w.repo.Commit("v1b", "acme/jobs.py", strings.ReplaceAll(jobs, "    from acme import notes\n    notes.write()\n", "    import acme.notes\n    acme.notes.write()\n"))
	w.repo.Git("checkout", "-q", "-b", "v2")
	w.repo.Remove("acme/notes.py")
	culprit := w.repo.Commit("notes are gone", "acme/jobs.py", without)
	w.repo.Git("checkout", "-q", "-b", "v3")
	w.repo.Commit("something else", "acme/wire.py", wireSource+"\nEXTRA = 2\n")
	w.repo.Git("checkout", "-q", "main")

	start := func(name string) *agent {
		return w.start(name, "count:starts-"+name, "mark:preparing", "wait:update", "notes").waits("update")
	}
	cast := []*agent{start("scout"), start("herald")}
	w.update("v1b")
	cast = append(cast, start("porter"))
	w.update("v3")
	w.tell("update")
	for _, a := range cast {
		a.dies()
	}
	w.clock.forward(hourAndMore)
	w.passUntil("all to end well", func() bool {
		for _, a := range cast {
			if w.stands(a) != "settled_ok replacement_ok" {
				return false
			}
		}
		return true
	})
	for _, a := range cast {
		rec := w.record(a)
		if c := rec.Facts.Culprit; c == nil || c.Commit != culprit || c.Path != "acme/notes.py" {
			t.Errorf("%s: the culprit is %+v, want %s and acme/notes.py", a.name, c, culprit)
		}
		if rec.Episode != w.record(cast[0]).Episode {
			t.Errorf("%s is of another episode than %s", a.name, cast[0].name)
		}
		for _, m := range rec.Facts.Probe.Modules {
			if m == "acme.notes" {
				t.Errorf("%s: the deleted module was probed", a.name)
			}
		}
		w.wantStarts(a, 2)
	}
	if w.rows.Toasts() != 1 || w.reports() != 1 {
		t.Errorf("%d toasts and %d reports, want one", w.rows.Toasts(), w.reports())
	}
}

// TestLessonTrailingSlash: a workspace, a root and a scope that end with a slash are those without.
//
// Seen to fail: with a comparison of whole texts in classify's ownership, and in the scope of a pass.
func TestLessonTrailingSlash(t *testing.T) {
	t.Parallel()
	t.Run("a workspace", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		w.branch("v2", renamed...)
		scout := w.startAs("scout", func(s *managed.Spec) { s.Workspaces[0] += "/" }, "mark:preparing", "wait:update", "plan").waits("update")
		w.write(filepath.Join(scout.ws, "plan.py"), "from acme.wire import Frame\n")
		w.update("v2")
		w.tell("update")
		scout.dies()
		w.pass()
		w.wantStands(scout, "answer workspace_import")
	})
	t.Run("a root and a scope", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		w.branch("v2", renamed...)
		w.root.Dirs = []string{w.repo.Dir + "/"}
		scout, other := w.broken("scout"), w.broken("other")
		w.update("v2")
		w.tell("update")
		scout.dies()
		other.dies()
		rested()
		res, err := w.healer.Pass(w.ctx, restart.Scope{Dir: scout.ws + "/"})
		if err != nil || len(res.Outcomes) != 1 || res.Outcomes[0].Name != "scout" || res.Outcomes[0].Code != "relaunch" {
			t.Fatalf("the pass over one folder did %+v, %v", res.Outcomes, err)
		}
		w.wantStands(other, "undecided")
	})
}

// TestLessonProvenanceDoesNotLeak: a replacement starts a managed run of its own. That is a first run of its own
// lineage: nothing of the launch reaches it, neither through the dead run's recorded environment nor through the runner's,
// and its failure is not taken for the replacement's second one.
//
// Seen to fail: with a childEnv that passes the recipe's environment as it is, and with a CleanEnv that leaves the phase
// file in.
func TestLessonProvenanceDoesNotLeak(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{launcher: func(p *parts) restart.Launcher { return runnerLauncher(p.home.Dir(), 0) }})
	w.branch("v2", renamed...)
	const record = `env | grep '^MULLIGAN_' | grep -v ` + roleVar + ` >>"$ACME_STATE/env-$0"`
	child := w.spec("child", "bug")
	child.Recipe.Command = append([]string{"/bin/sh", "-c", record + `; exec "$@"`, "child"}, child.Recipe.Command...)
	child.Recipe.Env, child.Recipe.Marking = nil, run.Unmarked
	grand := role{Play: "exec", Home: w.home.Dir(), More: more{Spec: child}}.command(w.ctx)
	script := strings.TrimPrefix(grand.Env[1], roleVar+"=")

	scout := w.startAs("scout", func(s *managed.Spec) {
		s.Recipe.Command = append([]string{"/bin/sh", "-c", record + `
"$@" || exit
` + roleVar + `="$GRAND" "$EXE"
touch "$ACME_STATE/grandchild-ended"`, "scout"}, s.Recipe.Command...)
		s.Recipe.Env = append(s.Recipe.Env, "GRAND="+script, "EXE="+grand.Path,
			"MULLIGAN_RUN=stale", "MULLIGAN_LAUNCH=stale", "MULLIGAN_LINEAGE=stale", managed.PhaseFileVar+"=/stale")
	}, "mark:preparing", "wait:update", "encode").waits("update")
	w.update("v2")
	w.tell("update")
	scout.dies()
	w.passUntil("the grandchild to end", func() bool { return w.has("grandchild-ended") })
	w.passUntil("all to be decided", func() bool { return w.stands(scout) == "settled_ok replacement_ok" && w.bells() == 0 })

	for name, want := range map[string]int{"env-scout": 2, "env-child": 0} {
		b, err := os.ReadFile(filepath.Join(w.state, name))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), managed.PhaseFileVar+"="); n != want || strings.Count(string(b), "MULLIGAN_") != want || strings.Contains(string(b), "stale") {
			t.Errorf("%s was told %q, want its own phase file in %d starts and nothing else", name, b, want)
		}
	}
	h, err := w.home.Runs().Holder(w.ctx, project, "child")
	if err != nil {
		t.Fatal(err)
	}
	if h.Launch != "" || h.Replaces != "" || h.Lineage != h.ID || h.Lineage == scout.run().Lineage {
		t.Errorf("the grandchild is %+v, want a first run", h)
	}
	if a, ok, err := w.home.Answers().Answer(w.ctx, h.ID); err != nil || !ok || a.Reason != "no_update_signature" {
		t.Errorf("its own failure is answered %+v (%v, %v)", a, ok, err)
	}
}

// TestLessonEscapedNames: names and projects that differ only in what a file name cannot hold are different. Each has
// its own run, record, evidence and end.
//
// Seen to fail: with an Escape that writes one letter for every character it cannot keep.
func TestLessonEscapedNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	var cast []*agent
	long := strings.Repeat("n", 250)
	for i, x := range []struct{ project, name string }{
		{project, "a/b"}, {project, "a_b"}, {project, "a__b"}, {project, "a b"}, {project, "a\nb"}, {project, "a%2Fb"}, {"acme__a", "b"}, {"acme", "a__b/"},
		{project, long + "1"}, {project, long + "2"},
	} {
		a := w.startAs(fmt.Sprintf("agent-%d", i), func(s *managed.Spec) { s.Project, s.Name = x.project, x.name },
			fmt.Sprintf("count:starts-%d", i), "mark:preparing", "wait:update", "encode").waits("update")
		cast = append(cast, a)
	}
	w.update("v2")
	w.tell("update")
	for _, a := range cast {
		a.dies()
	}
	w.passUntil("all to end well", func() bool {
		for _, a := range cast {
			if w.stands(a) != "settled_ok replacement_ok" {
				return false
			}
		}
		return true
	})
	for i, a := range cast {
		if n := w.times(fmt.Sprintf("starts-%d", i)); n != 2 {
			t.Errorf("%q of %q was started %d times", a.run().Name, a.run().Project, n)
		}
		h, err := w.home.Runs().Holder(w.ctx, a.run().Project, a.run().Name)
		if err != nil || h.Lineage != a.run().Lineage {
			t.Errorf("%q of %q is held by lineage %s (%v)", a.run().Name, a.run().Project, h.Lineage, err)
		}
	}

	// Keys of a host's own that meet when they are joined or escaped carelessly.
	keys := []ledger.Key{{Project: "a", Lineage: "b__c"}, {Project: "a__b", Lineage: "c"}, {Project: "a_b", Lineage: "c"}, {Project: "a/b", Lineage: "c"},
		{Project: "a.b", Lineage: "c"}, {Project: "", Lineage: "c"}, {Project: "_-", Lineage: "c"}}
	for _, k := range keys {
		rec, err := ledger.New(k, ledger.Change{Event: ledger.Claim, Now: w.clock.now(), Actor: w.home.Instances().Self()})
		if err == nil {
			err = w.home.Ledger().Create(w.ctx, rec)
		}
		if err == nil {
			_, err = w.home.Evidence().Put(w.ctx, k, map[string][]byte{"failure.txt": []byte(k.String())})
		}
		if err != nil {
			t.Fatalf("%+v: %v", k, err)
		}
	}
	for _, k := range keys {
		rec, err := w.home.Ledger().Get(w.ctx, k)
		files, err2 := w.home.Evidence().Get(w.ctx, k)
		if err := errors.Join(err, err2); err != nil || rec.Key != k || string(files["failure.txt"]) != k.String() {
			t.Errorf("%+v reads as %+v and %q: %v", k, rec.Key, files["failure.txt"], err)
		}
	}
}

// TestLessonFailedEvidenceStopsTheLaunch: the disk has no room for the evidence, at any of the writes that it takes.
// Nothing is started; when there is room again the launch has its evidence.
//
// Seen to fail: with a commit() that goes on when filed() fails.
func TestLessonFailedEvidenceStopsTheLaunch(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	full.Store(true)
	w := newWorld(t, options{fs: faultfs.Tap(durable.System{}, func(op faultfs.Op) error {
		if full.Load() && op.Kind != faultfs.Look && strings.Contains(op.Path, "/evidence/") {
			return syscall.ENOSPC
		}
		return nil
	})})
	scout := w.counted("scout")
	rested()
	for range 3 {
		res, err := w.healer.Pass(w.ctx, everything)
		if err != nil {
			t.Fatal(err)
		}
		if !res.Failed() {
			t.Errorf("the pass does not say that the evidence could not be written: %+v", res.Outcomes)
		}
		w.wantStands(scout, "deferred evidence_failed")
	}
	w.wantStarts(scout, 1)
	full.Store(false)
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
	if files, err := w.home.Evidence().Get(w.ctx, w.record(scout).Key); err != nil || len(files["facts.json"]) == 0 {
		t.Errorf("the evidence: %v, %d files", err, len(files))
	}
	w.wantStarts(scout, 2)
}

// timeKeys are the names under which JSON of ours has times.
var timeKeys = map[string]bool{"at": true, "wall": true, "from_time": true, "since": true, "when": true, "begun": true, "bound_at": true,
	"first": true, "until": true, "started": true, "ended": true, "died": true, "booted": true, "changed": true, "found": true, "next": true,
	"grace": true, "pruned": true, "now": true, "last": true}

// wantTimes reports every null, and every time that is none, in one JSON value.
func wantTimes(t *testing.T, where string, v any) {
	t.Helper()
	switch v := v.(type) {
	case nil:
		t.Errorf("%s is null", where)
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok && s == "" && timeKeys[k] {
				t.Errorf("%s.%s is an empty time", where, k)
			}
			wantTimes(t, where+"."+k, x)
		}
	case []any:
		for i, x := range v {
			wantTimes(t, fmt.Sprintf("%s[%d]", where, i), x)
		}
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil && at.Year() < 2000 {
			t.Errorf("%s is %s, which is no time", where, v)
		}
	}
}

// TestLessonTimesAreNeverNull: in all JSON that is written or handed out, about deaths of every kind and stage, a time
// is there or its key is absent.
//
// Seen to fail: with a probe on record that does not say when it was (which it was before this test), and with a grace
// without omitzero.
func TestLessonTimesAreNeverNull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: restart.Settings{Quiescence: rest, StormPerEpisode: 1}})
	w.branch("v2", renamed...)
	cast := []*agent{w.start("rate", "rate_limit"), w.start("asker", "mark:handoff", "wait:update", "encode"), w.broken("scout", "mark:preparing"),
		w.broken("herald", "mark:preparing"), w.broken("warden", "mark:provider_running"), w.broken("porter", "mark:preparing", "wait:update", "encode", "bug")}
	w.until("the asker to wait", func() bool { return w.has("asker-waits-for-update") })
	living := w.start("living", "wait:never").waits("never")
	w.update("v2")
	w.swap("false")
	w.tell("update")
	for _, a := range cast {
		a.dies()
	}
	check := func(name string, v any) {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var x any
		if err := json.Unmarshal(b, &x); err != nil {
			t.Fatal(err)
		}
		wantTimes(t, name, x)
	}
	files := 0
	look := func() {
		t.Helper()
		err := filepath.WalkDir(w.home.Dir(), func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || e.Name() == "lock" || strings.HasPrefix(e.Name(), ".newest") {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil || len(b) == 0 || b[0] != '{' {
				return err
			}
			for dec := json.NewDecoder(strings.NewReader(strings.TrimRight(string(b), " \n\x00"))); dec.More(); {
				var x any
				if err := dec.Decode(&x); err != nil {
					return nil // a spare, which holds what was there before
				}
				files++
				wantTimes(t, strings.TrimPrefix(path, w.home.Dir()), x)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// The first look is at doorbells and a tree that is not at rest, the last at a paused breaker and all ends.
	res, err := w.healer.Pass(w.ctx, everything)
	if err != nil {
		t.Fatal(err)
	}
	check("pass", res)
	look()
	w.passUntil("the breaker to trip", func() bool {
		st, err := w.home.Breaker().State(w.ctx)
		return err == nil && st.Paused != nil
	})
	res = w.pass()
	check("pass", res)
	for _, a := range append(cast, living) {
		x, err := w.healer.Explain(w.ctx, a.name)
		if err != nil {
			t.Fatal(err)
		}
		check("explain "+a.name, x)
	}
	past, err := w.healer.Scan(w.ctx, time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	check("scan", past)
	look()
	if files < 40 {
		t.Errorf("the story is wrong: %d JSON values were looked at", files)
	}
}
