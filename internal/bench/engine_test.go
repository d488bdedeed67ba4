package bench

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

type freeProber struct{}

func (freeProber) Probe(context.Context, probe.Plan) (probe.Result, error) {
	return probe.Result{Outcome: probe.Healthy}, nil
}

// engine is a healer in its loop, with runs in this process and runners of their own for what it relaunches.
type engine struct {
	*wired
	tb   testing.TB
	dir  string
	repo *require.Repo
	n    int
}

// newEngine wires one. With inHost the host runs what is put back itself, as an orchestrator does; otherwise each
// replacement gets a runner process, as the command line does it.
func newEngine(tb testing.TB, repo *require.Repo, prober probe.Prober, interpreter string, inHost bool) *engine {
	tb.Helper()
	dir := tb.TempDir()
	w, err := wire(filepath.Join(dir, "state"), repo.Dir)
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
	ctx, stop := context.WithCancel(context.Background())
	var launcher restart.Launcher = w.runs.Launcher(ctx)
	if !inHost {
		launcher = &process.RunnerLauncher{Log: filepath.Join(dir, "runner.log"),
			Env: append(os.Environ(), roleVar+"=runner", stateVar+"="+w.home.Dir(), rootVar+"="+repo.Dir),
			Command: func(o restart.Order) []string {
				b, err := json.Marshal(order{o.Key, o.Launch})
				if err != nil {
					panic(err)
				}
				return []string{self, string(b)}
			}}
	}
	healer, err := restart.New(restart.Config{
		Stores: w.home.Stores(), Classifier: judge, Sources: w.sources,
		Runtimes: map[string]restart.Runtime{"python": {Modules: python.New(), Planner: planner{interpreter, repo.Dir}, Prober: prober}},
		Launcher: launcher,
		Settings: restart.Settings{Quiescence: -1, StormPerEpisode: 1 << 20, StormPer30m: 1 << 20},
	})
	if err != nil {
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- healer.Run(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		w.home.Close()
	})
	return &engine{wired: w, tb: tb, dir: dir, repo: repo}
}

// start begins n first lives and returns where they write, once all of them are alive.
func (e *engine) start(n int) (beats []string, goFile string) {
	e.tb.Helper()
	e.n++
	goFile = filepath.Join(e.dir, "go-"+strconv.Itoa(e.n))
	for i := range n {
		beat := filepath.Join(e.dir, "beat-"+strconv.Itoa(e.n)+"-"+strconv.Itoa(i))
		beats = append(beats, beat)
		spec := managed.Spec{
			Project: "bench", Name: "agent-" + strconv.Itoa(e.n) + "-" + strconv.Itoa(i), Roots: []witness.Root{e.root},
			Recipe: run.Recipe{Command: program(beat, goFile, e.repo.Dir), Dir: e.dir, Marking: run.Idempotent, Env: os.Environ()},
		}
		go func() {
			if _, err := e.runs.Exec(context.Background(), spec, managed.IO{}); err != nil {
				e.tb.Error(err)
			}
		}()
	}
	for _, b := range beats {
		awaitFile(e.tb, b)
	}
	return beats, goFile
}

func awaitFile(tb testing.TB, path string) {
	tb.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if st, err := os.Stat(path); err == nil && st.Size() > 0 {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%s did not come", path)
		}
	}
}

// gaps lets the first lives die and is how long each was gone.
func gaps(tb testing.TB, beats []string, goFile string) []time.Duration {
	tb.Helper()
	if err := touch(goFile); err != nil {
		tb.Fatal(err)
	}
	var out []time.Duration
	for _, b := range beats {
		g, err := gap(b)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}
