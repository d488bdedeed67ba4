package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// scene is a death that waits for a healer. Each try gets a copy of its state folder, with one agent, one update and one
// doorbell in it; checkout and workspace are shared, for nothing changes them.
//
// The agent is a shell script that counts its starts beside the runs, so in the copy. The first time it becomes a real
// agent in Python, and dies of the update; a replacement ends well at once.
type scene struct {
	w *world
	a *agent
}

const countedAgent = `starts="${MULLIGAN_PHASE_FILE%/*}/../starts"
echo start >>"$starts"
if [ "$(grep -c . "$starts")" = 1 ]; then exec "$@"; fi
`

func newScene(t *testing.T) *scene {
	t.Helper()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	a := w.startAs("scout", func(s *managed.Spec) {
		s.Recipe.Command = append([]string{"/bin/sh", "-c", countedAgent, "sh"}, s.Recipe.Command...)
	}, "mark:preparing", "wait:update", "encode").waits("update")
	w.update("v2")
	w.tell("update")
	a.dies()
	time.Sleep(rest) // the tree has to be quiet, or each try would wait for that itself
	return &scene{w, a}
}

// healUntilKilled is the victim's side: passes until everything is settled, killed on the way.
func (r role) healUntilKilled(ctx context.Context) error {
	count := 0
	var mu sync.Mutex
	kill := faultfs.KillAt(r.Kill)
	p, err := wire(ctx, r.Home, options{
		settings: restart.Settings{Quiescence: r.Quiescence}, notifiers: []notify.Notifier{&notifytest.Recorder{}},
		launcher: func(*parts) restart.Launcher { return runnerLauncher(r.Home, 0) },
		fs: faultfs.Tap(durable.System{}, func(op faultfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if op.Kind != faultfs.Look {
				count++
			}
			return kill(op)
		}),
	})
	if err != nil {
		return err
	}
	for settled := false; !settled; time.Sleep(2 * time.Millisecond) {
		res, err := p.healer.Pass(ctx, everything)
		if err != nil || res.Failed() {
			return fmt.Errorf("%+v: %w", res.Outcomes, err)
		}
		for rec, err := range p.home.Ledger().List(ctx) {
			settled = err == nil && rec.State.Final()
		}
	}
	if err := p.close(); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	fmt.Println(count)
	return nil
}

// copy is a state folder of its own with the same death in it.
func (s *scene) copy(t *testing.T) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "mulligan")
	if err := os.CopyFS(home, os.DirFS(s.w.home.Dir())); err != nil {
		t.Fatal(err)
	}
	return home
}

// alive reports whether a process belongs to a state folder: a healer, a runner, or a program.
func alive(t *testing.T, home string) bool {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(procs) == 0 {
		t.Skip("there is no /proc that tells which processes are left")
	}
	for _, p := range procs {
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), home+"/") || strings.Contains(string(b), home+`"`) {
			return true
		}
	}
	return false
}

// aftermath lets another healer go on in a state folder until its one record is final, and checks what every kill must
// leave: at most one replacement, a told end, whole evidence, and nothing more to do. Its runners are killed before
// a durable operation unless kill is 0.
func (s *scene) aftermath(t *testing.T, home string, kill int) (stands string) {
	t.Helper()
	c := &clock{}
	p, err := wire(t.Context(), home, options{settings: s.w.opts.settings, now: c.now,
		notifiers: []notify.Notifier{&notifytest.Recorder{}},
		launcher:  func(*parts) restart.Launcher { return runnerLauncher(home, kill) }})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	key := s.a.run().Key()
	pass := func() restart.Result {
		res, err := p.healer.Pass(t.Context(), everything)
		if err != nil || res.Failed() {
			t.Fatalf("a pass after the kill: %+v, %v", res.Outcomes, err)
		}
		return res
	}
	var rec ledger.Record
	until(t, "the record to be final", func() bool {
		over := !alive(t, home)
		pass()
		rec, err = p.home.Ledger().Get(t.Context(), key)
		if err == nil && rec.State == ledger.Launching && over {
			c.forward(2 * time.Minute) // nobody will pass the gate any more
		}
		return err == nil && rec.State.Final() && over
	})
	b, err := os.ReadFile(filepath.Join(home, "starts"))
	starts := strings.Count(string(b), "start") - 1 // the first is the victim's own
	switch stands = string(rec.State) + " " + rec.Reason; {
	case err != nil || starts < 0 || starts > 1:
		t.Errorf("%d replacements ran (%v), the record is %s", starts, err, stands)
	case rec.State == ledger.SettledOK && starts == 1, rec.Reason == policy.LaunchAborted && starts == 0,
		rec.Reason == policy.ReplacementLost:
	default:
		t.Errorf("the record is %s, and %d replacements ran", stands, starts)
	}
	kind := notify.KindEpisode
	if rec.State == ledger.SettledFailed {
		kind = rec.Reason
	}
	if _, told := rec.Told[kind]; !told {
		t.Errorf("%s was not told: %v", kind, rec.Told)
	}
	files, err := p.home.Evidence().Get(t.Context(), key)
	if err != nil || len(files["facts.json"]) == 0 || !strings.Contains(string(files["failure.txt"]), "cannot import name 'Frame'") {
		t.Errorf("the evidence: %v, %q", err, files["failure.txt"])
	}
	if _, err := p.home.Reports().GetReport(t.Context(), rec.Episode); err != nil {
		t.Errorf("the report: %v", err)
	}
	for _, bad := range ledger.Check(p.home.Ledger().List(t.Context())) {
		t.Errorf("an impossible record: %s", bad)
	}
	before := snapshot(t, home)
	for range 3 {
		if res := pass(); len(res.Outcomes) != 0 || !res.Next.IsZero() {
			t.Errorf("the next pass has something to do: %+v", res)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, home)); diff != "" {
		t.Errorf("the next pass changes what is on disk:\n%s", diff)
	}
	if items, err := p.home.Doorbell().Pending(t.Context()); err != nil || len(items) != 0 {
		t.Errorf("%d doorbells are left (%v)", len(items), err)
	}
	leftovers(t, p.home)
	return stands
}

// ends counts how the tries of a story ended.
type ends struct {
	mu sync.Mutex
	of map[string]int
}

func (e *ends) add(stands string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil {
		e.of = map[string]int{}
	}
	e.of[stands]++
}

// slowed is set where not every operation can be tried in reasonable time.
var slowed bool

// stride is how far apart the operations are that are tried.
func stride() int {
	switch {
	case testing.Short():
		return 7
	case slowed:
		return 3
	}
	return 1
}

// TestHealerKilledAtEachStep kills a real healer before each durable operation that it makes from its start until the
// replacement's end is settled and told. Another one goes on.
func TestHealerKilledAtEachStep(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	whole := play(t, role{Play: "victim", Home: s.copy(t), Quiescence: rest})
	whole.endsWell()
	total := 0
	if _, err := fmt.Sscan(whole.out.String(), &total); err != nil || total < 40 {
		t.Fatalf("a whole story has %d durable operations (%v): %s", total, err, whole.out.String())
	}
	var all ends
	t.Run("kills", func(t *testing.T) {
		for n := 1; n <= total; n += stride() {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				home := s.copy(t)
				play(t, role{Play: "victim", Home: home, Kill: n, Quiescence: rest}).ends()
				all.add(s.aftermath(t, home, 0))
			})
		}
	})
	t.Logf("%d kills ended as %v", total, all.of)
}

// TestRunnerKilledAtEachStep kills the runner of the replacement before each of its durable operations, from its start
// until the program's end is recorded.
func TestRunnerKilledAtEachStep(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var all ends
	t.Run("kills", func(t *testing.T) {
		for n := 1; n <= 40; n += stride() {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				all.add(s.aftermath(t, s.copy(t), n))
			})
		}
	})
	if !testing.Short() && all.of["settled_ok "+policy.ReplacementOK] == 0 {
		t.Errorf("no runner came to its end: %v; the story is too short", all.of)
	}
	t.Logf("40 kills ended as %v", all.of)
}
