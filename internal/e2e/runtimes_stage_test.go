package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/gitcli"
	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/golang"
	"github.com/mulligan-dev/mulligan/classify/jvm"
	"github.com/mulligan-dev/mulligan/classify/loader"
	"github.com/mulligan-dev/mulligan/classify/lua"
	"github.com/mulligan-dev/mulligan/classify/node"
	"github.com/mulligan-dev/mulligan/classify/perl"
	"github.com/mulligan-dev/mulligan/classify/php"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/classify/ruby"
	"github.com/mulligan-dev/mulligan/classify/rust"
	"github.com/mulligan-dev/mulligan/classify/shell"
	"github.com/mulligan-dev/mulligan/classify/tcl"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
)

// cast is what an agent in one language is and does. An agent is started as COMMAND NAME MODE; it makes the file
// NAME-waits in $ACME_STATE, waits for the file "update" there, and does what MODE says.
type cast struct {
	needs []string // programs and how to get them, by turns
	// before and after are the trees, as path and content by turns; what after leaves out is removed. %LIVE% stands for the
	// tree's folder.
	before, after []string
	// build compiles a tree that was written; nil where there is nothing to compile.
	build   func(t *testing.T, dir string)
	command []string
	runtime string
	// check is the declared probe of runtime "command".
	check    []string
	modules  []string
	bindings []string
	// plugin is the workspace's own code, as path and content.
	plugin []string
	// lookalikes are the modes that are left alone, and where their deaths then stand.
	lookalikes map[string]string
	// lasting keeps the tree out of the folder for temporary files: a shell does not say whether the file that it misses is
	// code, and what lies there is taken for data.
	lasting bool
	// module is what the verdict must name, and witnesses which must hold.
	module    string
	witnesses string
}

// allWitnesses are what proves an update whose files git keeps.
const allWitnesses = "boot_identity update_journal file_proof"

// play is the story of one language: the tree is swapped under a living agent, it dies, the healer puts it back once; and
// those that only look like it are left alone.
func (c cast) play(t *testing.T) {
	t.Parallel()
	for i := 0; i+1 < len(c.needs); i += 2 {
		require.Program(t, c.needs[i], "apt-get install "+c.needs[i+1])
	}
	w := c.stage(t)
	victim := c.start(w, "scout", "lazy")
	var others []*agent
	for _, mode := range sortedKeys(c.lookalikes) {
		others = append(others, c.start(w, mode, mode))
	}
	for _, a := range append(others, victim) {
		w.until(a.name+" to wait", func() bool { return w.has(a.name + "-waits") })
	}
	if row := w.update("v2"); row.Status != "updated" {
		t.Fatalf("the update is %s: %s", row.Status, row.Stderr)
	}
	w.tell("update")
	for _, a := range append(others, victim) {
		a.dies()
	}
	for deadline := time.Now().Add(patience); !strings.HasPrefix(w.stands(victim), "settled"); w.pass() {
		if time.Now().After(deadline) {
			t.Fatalf("scout stands at %q; %s\nits text was:\n%s", w.stands(victim), why(w.record(victim)), victim.text())
		}
	}
	for range 5 {
		w.pass()
	}

	if got := w.stands(victim); got != "settled_ok replacement_ok" {
		t.Fatalf("scout stands at %q, want it put back; its replacement said:\n%s", got, logOf(victim))
	}
	if n := w.times("scout-starts"); n != 2 {
		t.Errorf("scout's program was started %d times, want twice", n)
	}
	rec := w.record(victim)
	var kinds []string
	for _, x := range rec.Facts.Witnesses {
		kinds = append(kinds, x.Kind)
	}
	if got := strings.Join(kinds, " "); got != c.witnesses {
		t.Errorf("the witnesses are %q, want %q", got, c.witnesses)
	}
	if got := rec.Facts.Signature.Module; got != c.in(w, c.module) {
		t.Errorf("the missing module is %q, want %q", got, c.in(w, c.module))
	}
	if p := rec.Facts.Probe; p == nil || p.Outcome != "healthy" || len(p.Modules) == 0 {
		t.Errorf("the probe on record is %+v", p)
	}
	for _, a := range others {
		w.wantStands(a, c.lookalikes[a.name])
		if n := w.runsOf(a.name); n != 1 || w.has(a.name+"-done") {
			t.Errorf("%s was left alone %d times, want once", a.name, n)
		}
	}
}

func (c cast) in(w *world, s string) string { return strings.ReplaceAll(s, "%LIVE%", w.repo.Dir) }

// start starts an agent in its own workspace, where its plugin lies.
func (c cast) start(w *world, name, mode string) *agent {
	w.t.Helper()
	a := &agent{w: w, name: name, ws: filepath.Join(w.dir, "ws-"+name), done: make(chan struct{})}
	if err := os.MkdirAll(a.ws, 0o755); err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(c.plugin); i += 2 {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(a.ws, c.plugin[i])), 0o755); err != nil {
			w.t.Fatal(err)
		}
		w.write(filepath.Join(a.ws, c.plugin[i]), c.plugin[i+1])
	}
	command := make([]string, 0, len(c.command)+2)
	for _, part := range append(slices.Clone(c.command), name, mode) {
		command = append(command, c.in(w, part))
	}
	spec := managed.Spec{
		Project: project, Name: name, Roots: []witness.Root{w.root}, Workspaces: []string{a.ws}, Silenced: true,
		Recipe: run.Recipe{Command: command, Dir: a.ws, Env: append(slices.Clone(w.env), "ACME_WS="+a.ws), Marking: run.Idempotent},
	}
	var err error
	if spec.Runtime, err = process.Runtime(spec.Recipe); err != nil {
		w.t.Fatal(err)
	}
	w.agents.Go(func() {
		defer close(a.done)
		a.res, a.err = w.runs.Exec(w.ctx, spec, managed.IO{})
	})
	return a
}

// stage makes the checkout with both trees and a host beside it.
func (c cast) stage(t *testing.T) *world {
	t.Helper()
	place := t.TempDir()
	if c.lasting {
		place = lastingDir(t)
	}
	dir, err := filepath.EvalSymlinks(place)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, state: filepath.Join(dir, "state"), clock: &clock{}, rows: &notifytest.Recorder{}}
	if err := os.Mkdir(w.state, 0o755); err != nil {
		t.Fatal(err)
	}
	w.repo = require.InitRepo(t, filepath.Join(dir, "live"))
	w.root = witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{w.repo.Dir}, Modules: c.modules, Bindings: c.bindings},
		Kind: gitcli.Kind, Runtime: c.runtime}
	c.commit(w, "a small agent", c.before)
	w.repo.Git("checkout", "-q", "-b", "v2")
	c.commit(w, "v2", c.after)
	w.repo.Git("checkout", "-q", "main")
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "ACME_STATE=" + w.state, "ACME_LIVE=" + w.repo.Dir,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
	w.opts = options{settings: restart.Settings{Quiescence: rest}, notifiers: []notify.Notifier{w.rows}, now: w.clock.now}
	w.ctx, w.stop = context.WithCancel(context.Background())
	if w.parts, err = c.wire(w); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.stop()
		w.agents.Wait()
		for _, bad := range ledger.Check(w.home.Ledger().List(context.Background())) {
			t.Errorf("an impossible record: %s", bad)
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// lastingDir is a folder that is gone after the test and is no temporary one by its name.
func lastingDir(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(cache, "mulligan-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// commit replaces the whole tree.
func (c cast) commit(w *world, subject string, tree []string) {
	w.t.Helper()
	names, err := os.ReadDir(w.repo.Dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range names {
		if n.Name() != ".git" {
			w.repo.Remove(n.Name())
		}
	}
	for i := 0; i+1 < len(tree); i += 2 {
		w.repo.Write(tree[i], c.in(w, tree[i+1]))
	}
	if c.build != nil {
		c.build(w.t, w.repo.Dir)
	}
	w.repo.Commit(subject)
}

// wire puts the host together, with the real classifier, probers and planners of every runtime.
func (c cast) wire(w *world) (*parts, error) {
	home, err := files.Open(files.Config{Dir: filepath.Join(w.dir, "mulligan"), Now: w.opts.now})
	if err != nil {
		return nil, err
	}
	git, err1 := gitcli.New(gitcli.Config{Now: w.opts.now})
	judge, err2 := classify.New(classify.Config{Runtimes: []classify.Runtime{python.New(), node.New(), jvm.New(), ruby.New(), perl.New(), php.New(),
		lua.New(), tcl.New(), golang.New(), rust.New(), loader.New(), shell.New()}})
	command, err3 := process.NewCommand(process.CommandConfig{PathVariable: "PERL5LIB"})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	runtimes := map[string]restart.Runtime{
		"command": {Modules: freshimport.Names{}, Prober: command, Planner: process.CommandPlanner{Command: c.check}},
		"elf":     {Modules: freshimport.Names{}, Prober: process.NewELF(), Planner: process.ELFPlanner{}},
	}
	for _, d := range freshimport.Dialects() {
		p, err := process.NewInterpreter(process.InterpreterConfig{Dialect: d})
		if err != nil {
			return nil, err
		}
		runtimes[d.Name] = restart.Runtime{Modules: freshimport.Names{}, Prober: p, Planner: process.InterpreterPlanner{Dialect: d}}
	}
	p := &parts{home: home, sources: map[string]witness.Source{gitcli.Kind: git}}
	stores := home.Stores()
	p.runs, err = managed.New(managed.Config{Stores: stores, Sources: p.sources, Now: w.opts.now, Dir: filepath.Join(home.Dir(), "runs"),
		Programs: process.Programs{NoSignals: true, NoTerminal: true, Grace: time.Second}})
	if err != nil {
		return nil, err
	}
	p.launcher = p.runs.Launcher(w.ctx)
	p.healer, err = restart.New(restart.Config{Stores: stores, Classifier: judge, Sources: p.sources, Launcher: p.launcher, Runtimes: runtimes,
		Notifiers: w.opts.notifiers, Settings: w.opts.settings, Now: w.opts.now})
	if err != nil {
		return nil, err
	}
	p.updater, err = update.New(update.Config{Journal: stores.Journal, Lock: stores.Lock, Instances: stores.Instances, Sources: p.sources,
		Commands: process.Commands{NoSignals: true}, Now: w.opts.now})
	return p, err
}

// why is what a record says of a run that was not put back.
func why(rec *ledger.Record) string {
	if rec == nil {
		return "there is no record"
	}
	return fmt.Sprintf("%s; probe %+v", rec.Note, rec.Facts.Probe)
}

// logOf is what an agent's replacement said.
func logOf(a *agent) string {
	b, err := os.ReadFile(a.replacement().Log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func sortedKeys(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
