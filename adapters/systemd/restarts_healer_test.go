package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/gitcli"
	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
)

// healing is what a healer's service, a runner and the test have open on one state folder.
type healing struct {
	home    *files.Home
	sources map[string]witness.Source
	runs    *managed.Host
}

func openHealing(dir string) (h healing, err error) {
	if h.home, err = files.Open(files.Config{Dir: dir}); err != nil {
		return h, err
	}
	git, err := gitcli.New(gitcli.Config{})
	if err != nil {
		return h, err
	}
	h.sources = map[string]witness.Source{gitcli.Kind: git}
	h.runs, err = managed.New(managed.Config{Stores: h.home.Stores(), Sources: h.sources, Dir: filepath.Join(h.home.Dir(), "runs"),
		Programs: process.Programs{NoSignals: true, NoTerminal: true}})
	return h, err
}

// heal is a healer as a service: it looks at everything once, says so, and goes on looking.
func heal() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	dir := os.Getenv(dirVar)
	h, err := openHealing(dir)
	fatal(err)
	l, ends, leave := reachManager(LauncherConfig{Scope: os.Getenv("SCOPE") == "true", Stop: 2 * time.Second,
		Env: []string{role + "=runner", dirVar + "=" + dir, "PATH=" + os.Getenv("PATH"), "STUBBORN=" + os.Getenv("STUBBORN")}})
	judge, err := classify.New(classify.Config{Runtimes: []classify.Runtime{python.Runtime{}}})
	fatal(err)
	prober, err := process.NewPython(process.PythonConfig{})
	fatal(err)
	healer, err := restart.New(restart.Config{Stores: h.home.Stores(), Classifier: judge, Sources: h.sources, Launcher: l, Ends: ends,
		Runtimes: map[string]restart.Runtime{"python": {Modules: python.Runtime{}, Planner: process.PythonPlanner{Modules: python.Runtime{}}, Prober: prober}},
		Settings: restart.Settings{Quiescence: 50 * time.Millisecond, Tick: 200 * time.Millisecond}})
	fatal(err)
	_, err = healer.Pass(ctx, restart.Scope{})
	fatal(err)
	f, err := os.OpenFile(os.Getenv(outVar)+"/healers", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	fatal(err)
	_, err = fmt.Fprintln(f, os.Getpid(), h.home.Instances().Self().ID)
	fatal(errors.Join(err, f.Close()))
	fatal(healer.Run(ctx))
	fatal(errors.Join(h.home.Close(), leave()))
}

// byPrograms is in the environment of a service that is to reach its manager through the programs.
const byPrograms = "PROGRAMS=1"

// reachManager is how a healer launches and asks how launches ended: over the bus, or through the programs where it is
// hidden.
func reachManager(c LauncherConfig) (l restart.Launcher, ends restart.Ends, leave func() error) {
	self, err := os.Executable()
	fatal(err)
	c.Command = func(o restart.Order) []string { return []string{self, o.Key.Project, o.Key.Lineage, o.Launch} }
	conn, err := Connect(context.Background(), manager())
	if hidden := os.Getenv("PROGRAMS") == "1"; !hidden {
		fatal(err)
		c.Conn = conn
		l, err = NewLauncher(c)
		fatal(err)
		return l, conn, conn.Close
	}
	var bus *BusError
	if !errors.As(err, &bus) {
		fatal(fmt.Errorf("the bus was to be hidden: %v", err))
	}
	p, err := bus.Programs(context.Background())
	fatal(err)
	l, err = p.NewLauncher(c)
	fatal(err)
	return l, p, func() error { return nil }
}

// replace is a runner in the unit of its own.
func replace() {
	if os.Getenv("STUBBORN") != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	h, err := openHealing(os.Getenv(dirVar))
	fatal(err)
	_, err = h.runs.Replace(context.Background(), ledger.Key{Project: os.Args[1], Lineage: os.Args[2]}, os.Args[3])
	fatal(errors.Join(err, h.home.Close()))
}

// agentSource is an agent that imports what it needs when it needs it, like so much in a long-lived process. %s is a name
// that an update changes.
const agentSource = `
import os, sys, time
state = sys.argv[1]
with open(state + "/agents", "a") as f:
    f.write("%%d\n" %% os.getpid())
def wait(what):
    while not os.path.exists(state + "/" + what):
        time.sleep(0.01)
wait("updated")
from acme.wire import %[1]s
wait("finish")
`

// healed is a healer's service, an agent that an update breaks, and the agent that takes its place.
type healed struct {
	scope     bool
	unit      string
	home, out string
	repo      *require.Repo
	root      witness.Root
}

func newHealed(t *testing.T, scope bool, env ...string) *healed {
	t.Helper()
	require.Program(t, "python3", "apt-get install python3")
	h := &healed{scope: scope, unit: fmt.Sprintf("healer-%t.service", scope), home: t.TempDir(), out: t.TempDir(), repo: require.NewRepo(t)}
	h.root = witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{h.repo.Dir}, Modules: []string{"acme"}}, Kind: gitcli.Kind, Runtime: "python"}
	code := func(name string) []string {
		return []string{"acme/__init__.py", "", "acme/wire.py", name + " = 1\n", "acme/agent.py", fmt.Sprintf(agentSource, name)}
	}
	h.repo.Commit("a frame", code("Frame")...)
	h.repo.Git("checkout", "-q", "-b", "next")
	h.repo.Commit("a frame is a packet now", code("Packet")...)
	h.repo.Git("checkout", "-q", "main")
	path, hidden := os.Getenv("PATH"), ""
	if slices.Contains(env, byPrograms) {
		dir, sandbox := noBus(t)
		path, hidden = dir+":"+path, sandbox
	}
	install(t, h.unit, fmt.Sprintf("[Service]\nRestart=on-failure\n%s%s\n", hidden, program(t, "healer", append(env, dirVar+"="+h.home,
		outVar+"="+h.out, fmt.Sprintf("SCOPE=%t", scope), "PATH="+path)...)))
	return h
}

// lines are those of a file that is added to.
func (h *healed) lines(name string) [][]string {
	b, _ := os.ReadFile(h.out + "/" + name)
	var out [][]string
	for line := range strings.Lines(string(b)) {
		if strings.HasSuffix(line, "\n") {
			out = append(out, strings.Fields(line))
		}
	}
	return out
}

func (h *healed) say(t *testing.T, what string) {
	t.Helper()
	if err := os.WriteFile(h.out+"/"+what, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The healer's service is restarted and killed while an agent runs that it has launched. The agent runs on, the next healer
// knows it for what it is, launches nothing, and settles the record when the agent ends.
func (h *healed) run(t *testing.T) {
	s, err := openHealing(h.home)
	if err != nil {
		t.Fatal(err)
	}
	defer s.home.Close()
	systemctl(t, "start", h.unit)
	defer systemctl(t, "stop", h.unit)
	until(t, "the healer", func() bool { return len(h.lines("healers")) == 1 })
	pid := h.putBack(t, s)
	launched := h.launched(t, s, pid)

	for _, end := range []func(pid int){
		func(int) { systemctl(t, "restart", h.unit) },
		func(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) },
	} {
		before := h.lines("healers")
		var healer int
		if _, err := fmt.Sscan(before[len(before)-1][0], &healer); err != nil {
			t.Fatal(err)
		}
		end(healer)
		until(t, "the next healer to have looked at everything", func() bool { return len(h.lines("healers")) == len(before)+1 })
		if !alive(pid) {
			t.Fatal("the agent died with its healer's service")
		}
		if again := h.launched(t, s, pid); again != launched {
			t.Errorf("the next healer launched %s after %s", again, launched)
		}
	}

	h.say(t, "finish")
	last := h.lines("healers")[2][1]
	until(t, "the record to be settled", func() bool {
		rec := h.record(t, s)
		if rec.State == ledger.SettledOK {
			if by := rec.History[len(rec.History)-1].Actor; by != last {
				t.Errorf("settled by %s, not by the healer that lives, %s", by, last)
			}
			return true
		}
		return false
	})
	if n := len(h.lines("agents")); n != 2 {
		t.Errorf("%d agents were started", n)
	}
}

// putBack has an update break an agent, and returns the process of the one that takes its place.
func (h *healed) putBack(t *testing.T, s healing) int {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var first sync.WaitGroup
	defer first.Wait()
	defer stop()
	recipe := run.Recipe{Command: []string{"python3", "-m", "acme.agent", h.out}, Dir: h.out, Marking: run.Phases,
		Env: []string{"PATH=" + os.Getenv("PATH"), "PYTHONPATH=" + h.repo.Dir}}
	runtime, err := process.Runtime(recipe)
	if err != nil {
		t.Fatal(err)
	}
	first.Go(func() {
		_, err := s.runs.Exec(ctx, managed.Spec{Project: "acme", Name: "scout", Recipe: recipe, Runtime: runtime,
			Roots: []witness.Root{h.root}, Workspaces: []string{h.out}}, managed.IO{})
		if err != nil {
			t.Errorf("the first run: %v", err)
		}
	})
	until(t, "the agent", func() bool { return len(h.lines("agents")) == 1 })
	u, err := update.New(update.Config{Journal: s.home.Stores().Journal, Lock: s.home.Stores().Lock, Instances: s.home.Instances(),
		Sources: s.sources, Commands: process.Commands{NoSignals: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Run(ctx, []witness.Root{h.root}, update.Command{Args: []string{"git", "-C", h.repo.Dir, "merge", "-q", "--ff-only", "next"},
		Env: []string{"PATH=" + os.Getenv("PATH")}}, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	h.say(t, "updated")
	until(t, "the replacement", func() bool { return len(h.lines("agents")) == 2 })
	first.Wait()
	var pid int
	if _, err := fmt.Sscan(h.lines("agents")[1][0], &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// launched checks that there is one record and one replacement, in a unit of its own, and returns the launch.
func (h *healed) launched(t *testing.T, s healing, pid int) string {
	t.Helper()
	rec := h.record(t, s)
	if rec.State != ledger.Launched || rec.Launch == nil {
		t.Fatalf("the record is %s: %s", rec.State, rec.Note)
	}
	want := "mulligan-" + rec.Launch.ID + map[bool]string{true: ".scope", false: ".service"}[h.scope]
	if u, err := OfProcess(pid); err != nil || u.Name != want || u.Manager != manager() {
		t.Errorf("the agent is in %v, not in %s: %v", u, want, err)
	}
	runs := 0
	for r, err := range s.home.Stores().Runs.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Lineage == rec.Lineage {
			runs++
		}
	}
	if n := len(h.lines("agents")); runs != 2 || n != 2 {
		t.Errorf("the lineage has %d runs, and %d agents were started", runs, n)
	}
	return rec.Launch.ID
}

// record waits for the lineage's one record to be out of the healer's hands.
func (h *healed) record(t *testing.T, s healing) ledger.Record {
	t.Helper()
	var all []ledger.Record
	until(t, "the record", func() bool {
		all = nil
		for rec, err := range s.home.Ledger().List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, rec)
		}
		return len(all) > 0 && !slices.ContainsFunc(all, func(r ledger.Record) bool { return r.State == ledger.Launching })
	})
	if len(all) != 1 {
		t.Fatalf("there are %d records", len(all))
	}
	return all[0]
}
