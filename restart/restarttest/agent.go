package restarttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/witness"
)

// Project is the project of every run of a world.
const Project = "acme"

// Run describes a run to boot. Name is required.
type Run struct {
	Name string
	// Roots are the names of the trees that its code comes from; empty means "acme".
	Roots []string
	// Marking is how its phases are known. Empty means that it marks them; Unmarked makes it a run of unknown phase.
	Marking  run.Marking
	Unmarked bool
	// WaitsFor are names of runs that it waits for.
	WaitsFor []string
	// Supervised names what restarts it by itself.
	Supervised string
	// Unprobed leaves its roots without a prober.
	Unprobed bool
	// Shown says that the host shows the run's failures itself; otherwise it leaves that to the healer.
	Shown bool
}

// Failure is a bad end. An exit code of 0 with no signal means 1.
type Failure struct {
	Text  string
	Exit  classify.Exit
	Cause classify.Reason
}

// TornImport is what a Python process prints that misses a name which an update took away: "acme.wire" for a module,
// "acme.wire:Frame" for a name in one.
func TornImport(name string) Failure {
	module, symbol, root := cut(name)
	file := "/srv/" + root + "/" + root + "/agent.py"
	if symbol == "" {
		return Failure{Text: fmt.Sprintf("Traceback (most recent call last):\n  File %q, line 3, in main\n    import %s\n"+
			"ModuleNotFoundError: No module named '%s'\n", file, module, module)}
	}
	t := newTree(root, "", dawnStamp)
	return Failure{Text: fmt.Sprintf("Traceback (most recent call last):\n  File %q, line 3, in main\n    from %s import %s\n"+
		"ImportError: cannot import name '%s' from '%s' (/srv/%s/%s)\n", file, module, symbol, symbol, module, root, t.file(module))}
}

// Agent is one run of the world, alive or dead.
type Agent struct {
	w    *World
	Name string
	p    *process
	// own is set for a run that was booted, launch for one that the healer started.
	own    *managed.Run
	launch *launched
	id     string
	ended  bool
}

// launched is the program of a replacement, and what became of its runner.
type launched struct {
	began chan managed.Program
	end   chan managed.End
	gone  chan struct{}
	res   managed.Result
	err   error
	env   []string
}

// Run implements managed.Programs: the program lives until the story ends it.
func (l *launched) Run(_ context.Context, p managed.Program) (managed.End, error) {
	l.began <- p
	return <-l.end, nil
}

// Boot starts a run in a process of its own. A name that is free again is a restart by hand; one that a living run
// holds ends the test.
func (w *World) Boot(r Run) *Agent {
	w.tick()
	if len(r.Roots) == 0 {
		r.Roots = []string{"acme"}
	}
	if r.Marking == run.Unmarked && !r.Unmarked {
		r.Marking = run.Phases
	}
	ws := "/ws/" + r.Name
	spec := managed.Spec{Project: Project, Name: r.Name, Workspaces: []string{ws}, WaitsFor: r.WaitsFor, Supervised: r.Supervised,
		Silenced: !r.Shown, Runtime: &run.Runtime{Name: runtimeName, Interpreter: "/usr/bin/python3"},
		Recipe: run.Recipe{Command: []string{"/usr/bin/python3", "-m", r.Roots[0] + ".agent", r.Name}, Dir: ws, Marking: r.Marking}}
	for _, root := range r.Roots {
		w.Tree(root, "c1")
		declared := Root(root)
		if r.Unprobed {
			declared.Runtime = ""
		}
		spec.Roots = append(spec.Roots, declared)
		spec.Runtime.Path = append(spec.Runtime.Path, "/srv/"+root)
	}
	a := &Agent{w: w, Name: r.Name, p: w.spawn()}
	var err error
	if r.Unmarked {
		// A run of this process marks its phases; one that nobody marks for is a program.
		a.launch = &launched{began: make(chan managed.Program, 1), end: make(chan managed.End), gone: make(chan struct{})}
		host := a.host(a.launch)
		go func() {
			defer close(a.launch.gone)
			a.launch.res, a.launch.err = host.Exec(w.ctx, spec, managed.IO{})
		}()
		err = a.launch.begins()
		if err == nil {
			holder, e := a.p.stores.Runs.Holder(w.ctx, Project, r.Name)
			a.id, err = holder.ID, e
		}
	} else if a.own, err = a.host(nil).Start(w.ctx, spec); err == nil {
		a.id = a.own.ID()
	}
	if err != nil {
		a.p.bury()
		w.must(fmt.Errorf("boot %s: %w", r.Name, err))
	}
	w.join(a)
	return a
}

// begins waits until the program runs, or its runner is gone without it.
func (l *launched) begins() error {
	select {
	case p := <-l.began:
		l.env = p.Env
		return nil
	case <-l.gone:
		if l.err != nil {
			return l.err
		}
		return errors.New("the program ended before it began")
	}
}

func (a *Agent) host(programs managed.Programs) *managed.Host {
	h, err := managed.New(managed.Config{Stores: a.p.stores, Sources: a.w.sources(), Programs: programs, Dir: a.w.dir, Now: a.w.Now})
	a.w.must(err)
	return h
}

// ID is the run's id.
func (a *Agent) ID() string { return a.id }

// Alive reports whether the run goes on.
func (a *Agent) Alive() bool { return !a.ended }

// Registered is the run as the registry has it now.
func (a *Agent) Registered() run.Run {
	r, err := a.w.people.stores.Runs.Get(a.w.ctx, a.id)
	a.w.must(err)
	return r
}

// Phase marks how far the run is.
func (a *Agent) Phase(p run.Phase) {
	a.living("mark a phase of")
	if a.own != nil {
		a.w.must(a.own.Phase(a.w.ctx, p))
		return
	}
	i := slices.IndexFunc(a.launch.env, func(kv string) bool {
		return len(kv) > len(managed.PhaseFileVar) && kv[:len(managed.PhaseFileVar)] == managed.PhaseFileVar
	})
	if i < 0 {
		a.w.must(fmt.Errorf("%s marks no phases", a.Name))
		return
	}
	a.w.must(managed.Mark(a.launch.env[i][len(managed.PhaseFileVar)+1:], p))
}

// Done ends the run well.
func (a *Agent) Done() { a.over(nil) }

// Die ends the run badly: its side reads the identities and rings.
func (a *Agent) Die(f Failure) {
	if f.Exit == (classify.Exit{}) {
		f.Exit.Code = 1
	}
	a.over(&f)
}

func (a *Agent) over(f *Failure) {
	a.living("end")
	a.w.tick()
	a.ended = true
	var err error
	switch {
	case a.own == nil:
		end := managed.End{}
		if f != nil {
			end = managed.End{Exit: f.Exit, Tail: []byte(f.Text)}
		}
		a.launch.end <- end
		<-a.launch.gone
		err = a.launch.err
	case f == nil:
		err = a.own.Done(a.w.ctx)
	default:
		err = a.own.Fail(a.w.ctx, managed.Failure{Text: []byte(f.Text), Exit: f.Exit, Cause: f.Cause})
	}
	a.w.must(err)
	a.p.bury()
}

// Vanish ends the run and what runs it, without a word: nobody rings.
func (a *Agent) Vanish() {
	a.living("take away")
	a.w.tick()
	a.drop()
}

// drop is what a kill leaves.
func (a *Agent) drop() {
	if a.ended {
		return
	}
	a.ended = true
	a.p.kill()
	if a.launch != nil {
		a.launch.end <- managed.End{Exit: classify.Exit{Signal: "SIGKILL"}}
		<-a.launch.gone
	}
	a.p.bury()
}

func (a *Agent) living(what string) {
	if a.ended {
		a.w.must(fmt.Errorf("%s %s: it has ended", what, a.Name))
	}
}

// Intend records what a person did to the run or wants of it.
func (a *Agent) Intend(kind run.IntentKind) {
	a.w.tick()
	_, err := a.w.people.stores.Runs.Update(a.w.ctx, a.id, func(cur run.Run) (run.Run, error) {
		cur.Intent = &run.Intent{Kind: kind, At: a.w.Now(), By: "A person"}
		return cur, nil
	})
	a.w.must(err)
}

// Record is the record of the run's lineage, nil when it has none. A damaged one is an error.
func (a *Agent) Record() (*ledger.Record, error) {
	rec, err := a.w.people.stores.Ledger.Get(a.w.ctx, a.Registered().Key())
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &rec, nil
}

// Stands is what became of the run: "STATE REASON" of its lineage's record, "answer REASON", "damaged", or "undecided".
func (a *Agent) Stands() string {
	rec, err := a.Record()
	var damage *ledger.DamageError
	switch {
	case errors.As(err, &damage):
		return "damaged"
	case err != nil:
		a.w.must(err)
	case rec != nil && rec.Reason == "":
		return string(rec.State)
	case rec != nil:
		return string(rec.State) + " " + rec.Reason
	}
	ans, ok, err := a.w.people.stores.Answers.Answer(a.w.ctx, a.id)
	a.w.must(err)
	if ok {
		return "answer " + ans.Reason
	}
	return "undecided"
}

// sources read the world's trees.
func (w *World) sources() map[string]witness.Source {
	return map[string]witness.Source{Kind: source{w}}
}

// roster are the runs of a world, in the order in which they came.
type roster struct {
	mu     sync.Mutex
	agents []*Agent
}

func (w *World) join(a *Agent) {
	w.roster.mu.Lock()
	defer w.roster.mu.Unlock()
	w.roster.agents = append(w.roster.agents, a)
}

// Agents are all runs of a name, the first one first; an empty name means every run.
func (w *World) Agents(name string) (out []*Agent) {
	w.roster.mu.Lock()
	defer w.roster.mu.Unlock()
	for _, a := range w.roster.agents {
		if name == "" || a.Name == name {
			out = append(out, a)
		}
	}
	return out
}

// Latest is the run that took a name last; a name that nobody ever had ends the test.
func (w *World) Latest(name string) *Agent {
	all := w.Agents(name)
	if len(all) == 0 {
		w.must(fmt.Errorf("nobody was ever called %s", name))
		return nil
	}
	return all[len(all)-1]
}
