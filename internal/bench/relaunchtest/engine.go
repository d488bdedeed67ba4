package relaunchtest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
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
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/witness"
)

// wired is one process's view of the state folder.
type wired struct {
	home    *files.Home
	runs    *managed.Host
	sources map[string]witness.Source
	root    witness.Root
}

func wire(state, root string) (*wired, error) {
	home, err := files.Open(files.Config{Dir: state})
	if err != nil {
		return nil, err
	}
	git, err := gitcli.New(gitcli.Config{})
	if err != nil {
		return nil, err
	}
	w := &wired{home: home, sources: map[string]witness.Source{"git": git},
		root: witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{root}, Modules: []string{"acme"}}, Kind: "git", Runtime: "python"}}
	w.runs, err = managed.New(managed.Config{Stores: home.Stores(), Sources: w.sources, Dir: filepath.Join(state, "runs"),
		Programs: process.Programs{NoSignals: true, NoTerminal: true}})
	return w, err
}

// order is what a runner is told.
type order struct {
	Key    ledger.Key
	Launch string
}

// planner probes two modules, or stands for a probe that costs nothing.
type planner struct{ interpreter, root string }

func (p planner) Plan(run.Run, classify.Verdict) (probe.Plan, bool) {
	return probe.Plan{Interpreter: p.interpreter, Path: []string{p.root}, Modules: []string{"acme.agent", "acme.wire"}}, true
}

// Free is a probe that costs nothing.
type Free struct{}

// Probe implements probe.Prober.
func (Free) Probe(context.Context, probe.Plan) (probe.Result, error) {
	return probe.Result{Outcome: probe.Healthy}, nil
}

// exec is a run from its start to its end.
func (w *wired) exec(name string, agent []string, dir string) error {
	_, err := w.runs.Exec(context.Background(), managed.Spec{
		Project: "bench", Name: name, Roots: []witness.Root{w.root},
		Recipe: run.Recipe{Command: agent, Dir: dir, Marking: run.Idempotent, Env: os.Environ()},
	}, managed.IO{})
	return err
}

// Engine is a healer in its loop.
type Engine struct {
	*wired
	EngineConfig
	tb     testing.TB
	dir    string
	n      int
	healer *restart.Healer
}

// EngineConfig says what an Engine works with.
type EngineConfig struct {
	Repo   *require.Repo
	Prober probe.Prober
	// Interpreter is what the probe is planned for; empty with Free.
	Interpreter string
	// InHost is a host that runs what is put back itself, as an orchestrator does. Otherwise each replacement gets a runner
	// process, as the command line does it.
	InHost bool
	// Launcher starts the runners: it is given what makes a runner's command line, and its environment. Nil starts plain
	// children.
	Launcher func(command func(restart.Order) []string, env []string) (restart.Launcher, error)
	// First starts the process of a first life, by its name, command line and environment. Nil runs it in this process.
	First func(name string, command, env []string) error
}

// NewEngine wires one.
func NewEngine(tb testing.TB, c EngineConfig) *Engine {
	tb.Helper()
	dir := tb.TempDir()
	w, err := wire(filepath.Join(dir, "state"), c.Repo.Dir)
	if err != nil {
		tb.Fatal(err)
	}
	judge, err := classify.New(classify.Config{Runtimes: []classify.Runtime{python.New()}})
	if err != nil {
		tb.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	if c.Launcher == nil {
		c.Launcher = func(command func(restart.Order) []string, env []string) (restart.Launcher, error) {
			return &process.RunnerLauncher{Log: filepath.Join(dir, "runner.log"), Env: env, Command: command}, nil
		}
	}
	e := &Engine{wired: w, EngineConfig: c, tb: tb, dir: dir}
	ctx, stop := context.WithCancel(context.Background())
	var launcher restart.Launcher = w.runs.Launcher(ctx)
	if !c.InHost {
		launcher, err = c.Launcher(func(o restart.Order) []string {
			b, err := json.Marshal(order{o.Key, o.Launch})
			if err != nil {
				panic(err)
			}
			return []string{self, string(b)}
		}, e.env("runner"))
		if err != nil {
			stop()
			tb.Fatal(err)
		}
	}
	healer, err := restart.New(restart.Config{
		Stores: w.home.Stores(), Classifier: judge, Sources: w.sources,
		Runtimes: map[string]restart.Runtime{"python": {Modules: python.New(), Planner: planner{c.Interpreter, c.Repo.Dir}, Prober: c.Prober}},
		Launcher: launcher,
		Settings: restart.Settings{Quiescence: -1, StormPerEpisode: 1 << 20, StormPer30m: 1 << 20},
	})
	if err != nil {
		tb.Fatal(err)
	}
	e.healer = healer
	ended := make(chan error, 1)
	go func() { ended <- healer.Run(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		w.home.Close()
	})
	return e
}

// env is the environment of a process that plays a part.
func (e *Engine) env(role string, more ...string) []string {
	return append(append(os.Environ(), RoleVar+"="+role, stateVar+"="+e.home.Dir(), rootVar+"="+e.Repo.Dir), more...)
}

// Start begins n first lives and returns where they write and what they wait for, once all of them are alive. What an
// earlier turn left to settle is settled before, so that no turn pays for another.
func (e *Engine) Start(n int) (beats []string, goFile string) {
	e.tb.Helper()
	if _, err := e.healer.Pass(context.Background(), restart.Scope{}); err != nil {
		e.tb.Fatal(err)
	}
	e.n++
	goFile = filepath.Join(e.dir, "go-"+strconv.Itoa(e.n))
	for i := range n {
		name := "agent-" + strconv.Itoa(e.n) + "-" + strconv.Itoa(i)
		beat := filepath.Join(e.dir, "beat-"+name)
		beats = append(beats, beat)
		agent := Agent(beat, goFile, e.Repo.Dir)
		if e.First != nil {
			if err := e.firstApart(name, agent); err != nil {
				e.tb.Fatal(err)
			}
			continue
		}
		go func() {
			if err := e.exec(name, agent, e.dir); err != nil {
				e.tb.Error(err)
			}
		}()
	}
	for _, b := range beats {
		Await(e.tb, b)
	}
	return beats, goFile
}

func (e *Engine) firstApart(name string, agent []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b, err := json.Marshal(agent)
	if err != nil {
		return err
	}
	return e.First(name, []string{self}, e.env("first", agentVar+"="+string(b), nameVar+"="+name))
}

// Await waits for a file that has something in it.
func Await(tb testing.TB, path string) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if st, err := os.Stat(path); err == nil && st.Size() > 0 {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%s did not come", path)
		}
	}
}

// Gaps lets the first lives die and is how long each was gone.
func Gaps(tb testing.TB, beats []string, goFile string) []time.Duration {
	tb.Helper()
	if err := touch(goFile); err != nil {
		tb.Fatal(err)
	}
	var out []time.Duration
	for _, b := range beats {
		g, err := Gap(b)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}
