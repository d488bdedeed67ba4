package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/adapters/inbox"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// troupe is a cast whose deaths end in every way that a person is told of, with the kinds of their rows.
type troupe struct {
	*world
	cast map[string]*agent
	// told is what each member's failure is told as in the end.
	told map[string]string
}

// newTroupe lets those with these names die, all without any; nobody has looked yet.
func newTroupe(t *testing.T, names ...string) *troupe {
	t.Helper()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	tr := &troupe{w, map[string]*agent{}, map[string]string{}}
	for _, x := range []struct {
		name, told string
		steps      []string
	}{
		{"rate", "rate_limit", []string{"rate_limit"}},
		{"tool", "tool_failure", []string{"tool"}},
		{"bug", "no_update_signature", []string{"bug"}},
		{"asker", "handoff", []string{"mark:handoff", "wait:update", "encode"}},
		{"worker", "notify_post_provider", []string{"mark:provider_running", "wait:update", "encode"}},
		{"scout", "", []string{"mark:preparing", "wait:update", "encode"}},
		{"warden", "already_restarted", []string{"mark:preparing", "wait:update", "encode", "bug"}},
		{"porter", "deferred_expired", []string{"mark:preparing", "wait:update", "encode"}},
	} {
		if len(names) > 0 && !slices.Contains(names, x.name) {
			continue
		}
		tr.cast[x.name], tr.told[x.name] = w.start(x.name, append([]string{"count:starts-" + x.name}, x.steps...)...), x.told
	}
	for _, n := range []string{"asker", "worker", "scout", "warden", "porter"} {
		if tr.cast[n] != nil {
			tr.cast[n].waits("update")
		}
	}
	w.update("v2")
	w.tell("update")
	for _, a := range tr.cast {
		a.dies()
	}
	// The porter cannot be started again for want of its folder, and waits until it is too late.
	if err := os.RemoveAll(tr.cast["porter"].ws); err != nil {
		t.Fatal(err)
	}
	rested()
	return tr
}

// rowsOf are the rows of an inbox by what they are about: the last part of a personal key, or the row's kind. Each must
// have sounded at most once.
func rowsOf(t *testing.T, dir string) map[string]int {
	t.Helper()
	box, err := inbox.New(inbox.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	all, err := box.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, e := range all {
		about := e.Row.Key[strings.LastIndex(e.Row.Key, ":")+1:]
		if e.Row.Kind == notify.KindEpisode || e.Row.Kind == notify.KindPause {
			about = e.Row.Kind
		}
		got[about]++
		if e.Toasts > 1 {
			t.Errorf("%s sounded %d times", e.Row.Key, e.Toasts)
		}
	}
	return got
}

// tellers plays healers one after the other, each killed a few durable operations later than the one before; the last
// makes all of its passes.
func (tr *troupe) tellers(box, count string, killed int, tale tale) {
	tr.t.Helper()
	tale.Count = count
	for i := range killed + 1 {
		if tale.Kill = 4 + 4*i; i == killed {
			tale.Kill = 0
		}
		tr.play(role{Play: "teller", More: more{Inbox: box, tale: tale}}).ends()
	}
}

// TestToldOnceThroughKills: more than a hundred passes by healers most of which are killed in the middle, while the
// healer is disabled, paused, cannot read its state, and at last may do what it is for. Every failure has one row for
// each thing that it was told as.
//
// Seen to fail: with an inbox that files each delivery under a new name, with a told mark that is not written, and with
// a row's key that holds the time of its delivery.
func TestToldOnceThroughKills(t *testing.T) {
	t.Parallel()
	tr := newTroupe(t)
	box, count := filepath.Join(tr.dir, "inbox"), filepath.Join(tr.dir, "passes")
	all := len(tr.cast)
	ledgerDir := filepath.Join(tr.home.Dir(), "ledger")
	empty := snapshot(t, ledgerDir)
	want := map[string]int{}
	check := func(phase string, ledgerStays bool) {
		t.Helper()
		if diff := cmp.Diff(want, rowsOf(t, box)); diff != "" {
			t.Errorf("%s (want -, got +):\n%s", phase, diff)
		}
		if diff := cmp.Diff(empty, snapshot(t, ledgerDir)); ledgerStays && diff != "" {
			t.Errorf("%s: the ledger changed:\n%s", phase, diff)
		}
		if n := tr.bells(); ledgerStays && n != all {
			t.Errorf("%s: %d doorbells, want all %d", phase, n, all)
		}
	}

	tr.tellers(box, count, 10, tale{Passes: 15, Disabled: true})
	want["disabled"] = all
	check("disabled", true)

	// The switch is on again, and somebody paused before anything was decided.
	tr.pause()
	tr.tellers(box, count, 10, tale{Passes: 15})
	want["paused"], want[notify.KindPause] = all, 1
	check("paused", true)

	state := filepath.Join(tr.home.Dir(), "state.json")
	whole, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	tr.write(state, "{")
	tr.tellers(box, count, 5, tale{Passes: 15})
	want["state_unreadable"] = all
	check("unreadable", true)
	if err := os.WriteFile(state, whole, 0o600); err != nil {
		t.Fatal(err)
	}

	tr.resume()
	tr.tellers(box, count, 30, tale{Passes: 15})
	tr.until("what was put back to have ended", func() bool {
		tr.tellers(box, count, 0, tale{Passes: 2})
		for rec, err := range tr.home.Ledger().List(tr.ctx) {
			if err != nil || rec.Open() && rec.State != ledger.Deferred {
				return false
			}
		}
		return true
	})
	tr.wantStands(tr.cast["porter"], "deferred program_missing")
	tr.tellers(box, count, 10, tale{Passes: 15, Ahead: 31 * time.Minute})
	for _, told := range tr.told {
		if told != "" {
			want[told] = 1
		}
	}
	want[notify.KindEpisode] = 1
	starts := map[string]int{"scout": 2, "warden": 2}
	for name := range starts {
		// A healer that is killed between the start of a launch and its program has spent the do-over: told, and not tried again.
		if strings.HasSuffix(tr.stands(tr.cast[name]), " "+policy.LaunchAborted) {
			starts[name] = 1
			want[policy.LaunchAborted]++
			delete(want, tr.told[name])
		}
	}
	if starts["scout"]+starts["warden"] == 2 {
		delete(want, notify.KindEpisode) // nobody was put back
	}
	check("decided", false)
	passes, err := os.ReadFile(count)
	if err != nil || len(passes) < 100 {
		t.Errorf("the story is too short: %d passes (%v)", len(passes), err)
	}
	for name, a := range tr.cast {
		tr.wantStarts(a, max(1, starts[name]))
	}
	tr.quietNow(box)
}

// quietNow is that nothing is left to do or to tell.
func (tr *troupe) quietNow(box string) {
	tr.t.Helper()
	if tr.bells() != 0 {
		tr.t.Errorf("%d doorbells are left", tr.bells())
	}
	tr.until("the runners to be gone", func() bool { return !alive(tr.t, tr.home.Dir()) })
	before := snapshot(tr.t, filepath.Join(tr.home.Dir(), "ledger"), filepath.Join(tr.home.Dir(), "evidence"), box)
	tr.tellers(box, "", 0, tale{Passes: 3})
	after := snapshot(tr.t, filepath.Join(tr.home.Dir(), "ledger"), filepath.Join(tr.home.Dir(), "evidence"), box)
	for _, s := range []map[string]string{before, after} {
		maps.DeleteFunc(s, func(path, _ string) bool {
			return strings.Contains(path, "/.newest") || strings.HasSuffix(path, ".lock")
		})
	}
	if diff := cmp.Diff(before, after); diff != "" {
		tr.t.Errorf("three more passes changed something:\n%s", diff)
	}
	leftovers(tr.t, tr.home)
}

// TestTellerKilledAtEachStep kills a healer before each durable operation of the pass that decides all these deaths, and
// lets another one go on. What TestHealerKilledAtEachStep is for the launch this is for answers, refusals, deferrals, a
// replacement's failure and what is told of them.
//
// Seen to fail: with an answer that removes its doorbell first, and with a told mark before the delivery.
func TestTellerKilledAtEachStep(t *testing.T) {
	t.Parallel()
	tr := newTroupe(t, "rate", "asker", "worker", "warden", "porter")
	// The warden was put back already, and has failed a second time.
	warden := tr.cast["warden"]
	if _, err := tr.healer.Pass(tr.ctx, restart.Scope{Project: project, Name: "warden"}); err != nil {
		t.Fatal(err)
	}
	tr.until("the warden's replacement to end", func() bool { return warden.replacement().Ended != nil })
	tr.until("its runner to be done", func() bool { tr.launcher.(*managed.Launcher).Wait(); return tr.bells() == len(tr.cast) })
	tell := func(t *testing.T, kill int) (home, box string, teller *actor) {
		dir := t.TempDir()
		home, box = filepath.Join(dir, "mulligan"), filepath.Join(dir, "inbox")
		if err := os.CopyFS(home, os.DirFS(tr.home.Dir())); err != nil {
			t.Fatal(err)
		}
		teller = play(t, role{Play: "teller", Home: home, Quiescence: rest, More: more{Inbox: box, tale: tale{Passes: 1, Kill: kill}}})
		return home, box, teller.ends()
	}
	total := 0
	if _, _, whole := tell(t, 0); whole.err != nil {
		t.Fatal(whole.err)
	} else if _, err := fmt.Sscan(whole.said(), &total); err != nil || total < 60 {
		t.Fatalf("the pass has %d durable operations (%v): %s", total, err, whole.said())
	}
	t.Run("kills", func(t *testing.T) {
		for n := 1; n <= total; n += stride() {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				home, box, _ := tell(t, n)
				tr.goesOn(t, home, box)
			})
		}
	})
	t.Logf("%d operations", total)
}

// goesOn lets another healer go on where one was killed, and checks what every kill must leave.
func (tr *troupe) goesOn(t *testing.T, home, box string) {
	t.Helper()
	var m more
	o := options{settings: tr.opts.settings}
	c := &clock{}
	o.now, m.Inbox = c.now, box
	if err := m.notifiers(&o); err != nil {
		t.Fatal(err)
	}
	o.launcher = func(*parts) restart.Launcher { return runnerLauncher(home, 0) }
	p, err := wire(t.Context(), home, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	records := func() (open, deferred int) {
		for rec, err := range p.home.Ledger().List(t.Context()) {
			switch {
			case err != nil:
				t.Fatal(err)
			case rec.State == ledger.Deferred:
				deferred++
			case rec.Open():
				open++
			}
		}
		return open, deferred
	}
	pass := func() restart.Result {
		res, err := p.healer.Pass(t.Context(), everything)
		if err != nil || res.Failed() {
			t.Fatalf("a pass after the kill: %+v, %v", res.Outcomes, err)
		}
		return res
	}
	until(t, "all but the porter to be final", func() bool {
		pass()
		open, deferred := records()
		return open == 0 && deferred == 1
	})
	c.forward(31 * time.Minute)
	pass()
	want, runs := map[string]int{notify.KindEpisode: 1}, map[string]int{"warden": -1}
	for _, told := range tr.told {
		want[told]++
	}
	for r, err := range p.home.Runs().List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if runs[r.Name]++; runs[r.Name] > 1 {
			t.Errorf("%s has a run too many", r.Name)
		}
	}
	if diff := cmp.Diff(want, rowsOf(t, box)); diff != "" {
		t.Errorf("what was told (want -, got +):\n%s", diff)
	}
	if res := pass(); len(res.Outcomes) != 0 || !res.Next.IsZero() {
		t.Errorf("the next pass has something to do: %+v", res)
	}
	if items, err := p.home.Doorbell().Pending(t.Context()); err != nil || len(items) != 0 {
		t.Errorf("%d doorbells are left (%v)", len(items), err)
	}
	for _, bad := range ledger.Check(p.home.Ledger().List(t.Context())) {
		t.Errorf("an impossible record: %s", bad)
	}
	leftovers(t, p.home)
}

// TestHeldTimeAgesNothing: a deferral waits through hours of a pause and of a disabled healer, over many passes of healers
// old and new. Not a byte of the ledger changes meanwhile, and afterwards it is as old as before.
//
// Seen to fail: with an age that counts held time, and with a pass that decides while it is held.
func TestHeldTimeAgesNothing(t *testing.T) {
	t.Parallel()
	settings := restart.Settings{Quiescence: 24 * time.Hour, MaxDefer: 30 * time.Minute, Resurface: 10 * time.Minute}
	for _, how := range []string{"paused", "disabled"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{settings: settings})
			scout := w.after("scout", "wait:update", "encode")
			w.pass()
			w.clock.forward(5 * time.Minute)
			w.pass()
			w.wantStands(scout, "deferred not_quiet")
			w.clock.forward(6 * time.Minute)
			held := settings
			if how == "paused" {
				w.pause()
			} else {
				held.Disabled = true
			}
			folder := filepath.Join(w.home.Dir(), "ledger")
			before := snapshot(t, folder)
			h := w.another(options{settings: held})
			for i := range 20 {
				if i%5 == 0 {
					h = w.another(options{settings: held})
				}
				res, err := h.healer.Pass(w.ctx, everything)
				if err != nil || res.Held != how {
					t.Fatalf("the pass is held by %q: %v", res.Held, err)
				}
				w.clock.forward(15 * time.Minute)
			}
			if diff := cmp.Diff(before, snapshot(t, folder)); diff != "" {
				t.Errorf("the ledger changed while the healer was %s:\n%s", how, diff)
			}
			if how == "paused" {
				w.resume()
			}
			on := w.another(options{settings: settings})
			look := func(want string) {
				t.Helper()
				if _, err := on.healer.Pass(w.ctx, everything); err != nil {
					t.Fatal(err)
				}
				w.wantStands(scout, want)
			}
			look("deferred not_quiet")
			w.clock.forward(18 * time.Minute)
			look("deferred not_quiet")
			w.clock.forward(2 * time.Minute)
			look("declined held_too_long") // which is an expiry that had a hold in it
		})
	}
}
