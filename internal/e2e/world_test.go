package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/folder"
	"github.com/mulligan-dev/mulligan/adapters/gitcli"
	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

const (
	project = "acme"
	// rest is the quiescence of most stories: long enough to be seen, short enough to wait for.
	rest = 50 * time.Millisecond
	// patience is how long a story waits for what must come. Only a broken promise takes that long, also where many stories
	// are told at once on few processors.
	patience = 2 * time.Minute
)

// options are what a story has otherwise than the usual host.
type options struct {
	settings  restart.Settings
	notifiers []notify.Notifier
	// launcher makes the launcher; nil is the runner inside this process.
	launcher func(p *parts) restart.Launcher
	// stores changes what the healer is given; the host's and the updater's stay whole.
	stores func(s restart.Stores) restart.Stores
	// noProber leaves Python without one.
	noProber bool
	// prober stands in for the real one, where the decision is not what the story is about.
	prober probe.Prober
	// programs runs replacements; nil is real processes.
	programs managed.Programs
	// fs is the file seam, nil the machine's files.
	fs  durable.FS
	now func() stamp.Time
}

// parts are everything that a host has open on one state folder.
type parts struct {
	home     *files.Home
	sources  map[string]witness.Source
	runs     *managed.Host
	launcher restart.Launcher
	healer   *restart.Healer
	updater  *update.Updater
	prober   *countingProber
	closed   sync.Once
}

// close ends the instance: from then on it is proven dead.
func (p *parts) close() (err error) {
	p.closed.Do(func() {
		if l, ok := p.launcher.(*managed.Launcher); ok {
			l.Wait()
		}
		err = p.home.Close()
	})
	return err
}

// countingProber is the real prober with a count of the interpreters that it starts.
type countingProber struct {
	probe.Prober
	starts atomic.Int32
}

func (p *countingProber) Probe(ctx context.Context, plan probe.Plan) (probe.Result, error) {
	p.starts.Add(1)
	return p.Prober.Probe(ctx, plan)
}

// wire opens a state folder as one more process would, and puts a host together on it.
func wire(ctx context.Context, dir string, o options) (*parts, error) {
	if o.now == nil {
		o.now = host.Now
	}
	home, err := files.Open(files.Config{Dir: dir, Now: o.now, FS: o.fs})
	if err != nil {
		return nil, err
	}
	git, err1 := gitcli.New(gitcli.Config{Now: o.now})
	judge, err2 := classify.New(classify.Config{Runtimes: []classify.Runtime{python.Runtime{}}})
	var prober probe.Prober = o.prober
	var err3 error
	if prober == nil {
		prober, err3 = process.NewPython(process.PythonConfig{})
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	plain, err := folder.New(folder.Config{Now: o.now})
	if err != nil {
		return nil, err
	}
	p := &parts{home: home, sources: map[string]witness.Source{gitcli.Kind: git, folder.Kind: plain}, prober: &countingProber{Prober: prober}}
	stores := home.Stores()
	programs := o.programs
	if programs == nil {
		programs = process.Programs{NoSignals: true, NoTerminal: true, Grace: time.Second}
	}
	p.runs, err = managed.New(managed.Config{Stores: stores, Sources: p.sources, Now: o.now, Dir: filepath.Join(home.Dir(), "runs"),
		Programs: programs})
	if err != nil {
		return nil, err
	}
	p.launcher = p.runs.Launcher(ctx)
	if o.launcher != nil {
		p.launcher = o.launcher(p)
	}
	runtime := restart.Runtime{Modules: python.Runtime{}}
	if !o.noProber {
		runtime.Planner, runtime.Prober = process.PythonPlanner{Modules: python.Runtime{}}, p.prober
	}
	if o.stores != nil {
		stores = o.stores(stores)
	}
	p.healer, err = restart.New(restart.Config{Stores: stores, Classifier: judge, Sources: p.sources, Launcher: p.launcher,
		Runtimes: map[string]restart.Runtime{"python": runtime}, Notifiers: o.notifiers, Settings: o.settings, Now: o.now})
	if err != nil {
		return nil, err
	}
	s := home.Stores()
	p.updater, err = update.New(update.Config{Journal: s.Journal, Lock: s.Lock, Instances: s.Instances, Sources: p.sources,
		Commands: process.Commands{NoSignals: true}, Now: o.now})
	return p, err
}

// world is the stage of one story.
type world struct {
	*parts
	t      *testing.T
	ctx    context.Context
	stop   context.CancelFunc
	dir    string // everything but the checkout
	state  string // how agents and story tell each other how far they are
	sdk    string // other people's code
	repo   *require.Repo
	root   witness.Root
	env    []string
	python string
	clock  *clock
	rows   *notifytest.Recorder
	opts   options
	agents sync.WaitGroup
	// rewritten is set by a story that altered a record behind the machine's back.
	rewritten bool
}

// clock is the machine's, moved by a story.
type clock struct{ by atomic.Int64 }

func (c *clock) now() stamp.Time { return host.Now().Add(time.Duration(c.by.Load())) }

func (c *clock) forward(d time.Duration) { c.by.Add(int64(d)) }

// interpreter is the real python3, not a version manager's script in front of it: each start of such a script costs
// more than the agent.
var interpreter = sync.OnceValue(func() string {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
})

// newWorld makes a checkout with the agents' code and a host beside it. The usual settings are a short quiescence.
func newWorld(t *testing.T, o options) *world {
	t.Helper()
	require.Program(t, "python3", "apt-get install python3")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, state: filepath.Join(dir, "state"), sdk: filepath.Join(dir, "sdk"), python: interpreter(),
		clock: &clock{}, rows: &notifytest.Recorder{}}
	if w.python == "" {
		t.Fatal("python3 is there and does not say where")
	}
	for _, d := range []string{w.state, w.sdk} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.write(filepath.Join(w.sdk, "provider.py"), provider)
	w.repo = require.InitRepo(t, filepath.Join(dir, "live"))
	w.root = witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{w.repo.Dir}, Modules: []string{"acme"}}, Kind: gitcli.Kind, Runtime: "python"}
	w.repo.Commit("a small agent framework", tree...)
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "PYTHONPATH=" + w.repo.Dir + ":" + w.sdk, "ACME_STATE=" + w.state,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}

	if o.settings.Quiescence == 0 {
		o.settings.Quiescence = rest
	}
	if o.notifiers == nil {
		o.notifiers = []notify.Notifier{w.rows}
	}
	if o.now == nil {
		o.now = w.clock.now
	}
	w.opts = o
	w.ctx, w.stop = context.WithCancel(context.Background())
	if w.parts, err = wire(w.ctx, filepath.Join(dir, "mulligan"), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.stop()
		w.agents.Wait()
		// Whatever the story was, the machine must have made every record that it leaves.
		for _, bad := range ledger.Check(w.home.Ledger().List(context.Background())) {
			if !w.rewritten {
				t.Errorf("an impossible record: %s", bad)
			}
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// another is one more host on the same state folder, as another process has it.
func (w *world) another(o options) *parts {
	w.t.Helper()
	if o.settings.Quiescence == 0 {
		o.settings = w.opts.settings
	}
	if o.notifiers == nil {
		o.notifiers = w.opts.notifiers
	}
	if o.now == nil {
		o.now = w.opts.now
	}
	p, err := wire(w.ctx, w.home.Dir(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		w.stop()
		if err := p.close(); err != nil {
			w.t.Error(err)
		}
	})
	return p
}

func (w *world) write(path, content string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// tell lets the agents that wait for it go on.
func (w *world) tell(what string) { w.write(filepath.Join(w.state, what), "") }

// has reports whether something was told, by an agent or by the story.
func (w *world) has(what string) bool {
	_, err := os.Stat(filepath.Join(w.state, what))
	return err == nil
}

// until waits for what must come.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	until(w.t, what, ok)
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// branch commits changes to the code on a branch of its own, to be brought in by an update.
func (w *world) branch(name string, pathsAndContents ...string) {
	w.t.Helper()
	w.repo.Git("checkout", "-q", "-b", name)
	w.repo.Commit(name, pathsAndContents...)
	w.repo.Git("checkout", "-q", "main")
}

// update brings in a branch, with a witness.
func (w *world) update(branch string) journal.Row {
	w.t.Helper()
	return w.swap("git", "-C", w.repo.Dir, "merge", "-q", "--ff-only", branch)
}

// swap runs any command as an update of the root.
func (w *world) swap(args ...string) journal.Row {
	w.t.Helper()
	row, err := w.updater.Run(w.ctx, []witness.Root{w.root}, update.Command{Args: args, Dir: w.dir, Env: w.env}, patience)
	if err != nil {
		w.t.Fatal(err)
	}
	return row
}

// pass is one round of the healer that must deal with everything.
func (w *world) pass() restart.Result {
	w.t.Helper()
	res, err := w.healer.Pass(w.ctx, restart.Scope{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range res.Outcomes {
		if o.Error != "" {
			w.t.Fatalf("%s could not be dealt with: %s", o.Name, o.Error)
		}
	}
	return res
}

// passUntil lets the healer look again and again, until the story is where it should be.
func (w *world) passUntil(what string, ok func() bool) {
	w.t.Helper()
	w.until(what, func() bool {
		w.pass()
		return ok()
	})
}

// record is the lineage's record, nil when there is none.
func (w *world) record(a *agent) *ledger.Record {
	w.t.Helper()
	rec, err := w.home.Ledger().Get(w.ctx, a.run().Key())
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return &rec
}

// stands is where an agent's death stands: "STATE REASON" of its record, "answer REASON", or "undecided".
func (w *world) stands(a *agent) string {
	w.t.Helper()
	if rec := w.record(a); rec != nil {
		return string(rec.State) + " " + rec.Reason
	}
	ans, ok, err := w.home.Answers().Answer(w.ctx, a.run().ID)
	if err != nil {
		w.t.Fatal(err)
	}
	if ok {
		return "answer " + ans.Reason
	}
	return "undecided"
}

func (w *world) wantStands(a *agent, want string) {
	w.t.Helper()
	if got := w.stands(a); got != want {
		w.t.Fatalf("%s stands at %q, want %q; its text was:\n%s", a.name, got, want, a.text())
	}
}

// bells is how many doorbells lie there.
func (w *world) bells() int {
	w.t.Helper()
	items, err := w.home.Doorbell().Pending(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(items)
}

// loud are the rows that ask a person to look, as "KIND: title".
func (w *world) loud() (out []string) {
	for _, r := range w.rows.Rows() {
		if r.Loud {
			out = append(out, r.Kind+": "+r.Title)
		}
	}
	return out
}

func (w *world) wantLoud(kinds ...string) {
	w.t.Helper()
	got := w.loud()
	ok := len(got) == len(kinds)
	for i := range kinds {
		ok = ok && strings.HasPrefix(got[i], kinds[i]+": ")
	}
	if !ok {
		w.t.Fatalf("the loud rows are %q, want %q\n%s", got, kinds, w.rows.Text())
	}
}

// everything is the scope of a pass over all that is pending.
var everything restart.Scope

// unsettle puts a record back to where its replacement runs, bound to another process.
func unsettle(by *ledger.Instance) func(ledger.Record, stamp.Time) (ledger.Record, error) {
	return func(r ledger.Record, _ stamp.Time) (ledger.Record, error) {
		l := *r.Launch
		l.Bound = by
		r.Launch, r.State, r.Revision = &l, ledger.Launched, r.Revision+1
		return r, nil
	}
}

// wallHost is a host of runs whose machine has nothing but a wall clock, and a way to set that back by ten minutes.
func (w *world) wallHost() (h *managed.Host, jump func()) {
	w.t.Helper()
	var back atomic.Int64
	now := func() stamp.Time { return stamp.Wall(time.Now().Add(-time.Duration(back.Load())), 0) }
	h, err := managed.New(managed.Config{Stores: w.home.Stores(), Sources: w.sources, Dir: filepath.Join(w.home.Dir(), "runs"), Now: now})
	if err != nil {
		w.t.Fatal(err)
	}
	return h, func() { back.Store(int64(10 * time.Minute)) }
}

// slow is for stories in which the tree is not quiet until the story moves the clock.
var slow = restart.Settings{Quiescence: time.Hour, MaxDefer: 24 * time.Hour}

type preflight = policy.Preflight

// asError is errors.As, for the places where a test reads better without a variable in between.
func asError[T error](err error, target *T) bool { return errors.As(err, target) }

// terminate ends one process that this story started.
func terminate(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// command is a command of an update, with the agents' environment.
func (w *world) command(args ...string) update.Command {
	return update.Command{Args: args, Dir: w.dir, Env: w.env}
}

// first is the journal's first row.
func (w *world) first() journal.Row {
	w.t.Helper()
	for r, err := range w.home.Updates().Rows(w.ctx) {
		if err != nil {
			w.t.Fatal(err)
		}
		return r
	}
	w.t.Fatal("the journal is empty")
	return journal.Row{}
}

func nothing(context.Context) error { return nil }

// reports is how many episodes have a report.
func (w *world) reports() int {
	w.t.Helper()
	names, err := os.ReadDir(filepath.Join(w.home.Dir(), "episodes"))
	if err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for _, e := range names {
		if !strings.HasPrefix(e.Name(), ".") {
			n++
		}
	}
	return n
}

// hourAndMore is longer than the quiescence of slow.
const hourAndMore = 61 * time.Minute
