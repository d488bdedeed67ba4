package restart_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/witness"
)

// tree is managed code whose revision is set by hand.
type tree struct {
	mu      sync.Mutex
	rev     string
	changed stamp.Time
}

func (s *tree) set(rev string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rev, s.changed = rev, host.Now()
}

func (s *tree) Identify(context.Context, witness.Root) (witness.Identity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return witness.Identity{Revision: s.rev}, nil
}

func (s *tree) LastChange(context.Context, witness.Root) (stamp.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed, nil
}

// lab stands for a runtime: it plans every probe, and the probe says what it is told.
type lab struct {
	probes atomic.Int32
	err    error
}

func (l *lab) Plan(run.Run, classify.Verdict) (probe.Plan, bool) {
	return probe.Plan{Interpreter: "/usr/bin/python3", Modules: []string{"acme.wire"}}, true
}

func (l *lab) Probe(context.Context, probe.Plan) (probe.Result, error) {
	l.probes.Add(1)
	if l.err != nil {
		return probe.Result{}, l.err
	}
	return probe.Result{Outcome: probe.Healthy}, nil
}

// programs stands for what is run; it ends well at once.
type programs struct{ started atomic.Int32 }

func (p *programs) Run(_ context.Context, prog managed.Program) (managed.End, error) {
	p.started.Add(1)
	prog.Started(4711)
	return managed.End{}, nil
}

// countingBox counts the passes: each looks at the doorbells once.
type countingBox struct {
	doorbell.Box
	looks atomic.Int32
}

func (b *countingBox) Pending(ctx context.Context) ([]doorbell.Item, error) {
	b.looks.Add(1)
	return b.Box.Pending(ctx)
}

// sim is a host in memory.
type sim struct {
	home     *memory.Home
	stores   restart.Stores
	box      *countingBox
	tree     *tree
	lab      *lab
	programs *programs
	host     *managed.Host
	launcher *managed.Launcher
	healer   *restart.Healer
	cfg      restart.Config
}

// config is the healer's config with something changed.
func (s *sim) config(change func(c *restart.Config)) restart.Config {
	c := s.cfg
	change(&c)
	return c
}

func stores(h *memory.Home) restart.Stores {
	return restart.Stores{Ledger: h.Ledger(), Answers: h.Answers(), Instances: h.Instances(), Evidence: h.Evidence(), Reports: h.Reports(),
		Doorbells: h.Doorbell(), Runs: h.Runs(), Storm: h.Breaker(), Journal: h.Updates(), Lock: h.Writer()}
}

func newSim(dir string, set restart.Settings) (*sim, error) {
	s := &sim{home: memory.New(memory.Config{}), tree: &tree{}, lab: &lab{}, programs: &programs{}}
	s.tree.set("v1")
	s.stores = stores(s.home)
	s.box = &countingBox{Box: s.stores.Doorbells}
	s.stores.Doorbells = s.box
	sources := map[string]witness.Source{"git": s.tree}
	var err error
	if s.host, err = managed.New(managed.Config{Stores: s.stores, Sources: sources, Programs: s.programs, Dir: dir}); err != nil {
		return nil, err
	}
	judge, err := classify.New(classify.Config{Runtimes: []classify.Runtime{python.Runtime{}}})
	if err != nil {
		return nil, err
	}
	s.launcher = s.host.Launcher(context.Background())
	s.cfg = restart.Config{Stores: s.stores, Classifier: judge, Sources: sources, Launcher: s.launcher, Settings: set,
		Runtimes: map[string]restart.Runtime{"python": {Planner: s.lab, Prober: s.lab}}}
	s.healer, err = restart.New(s.cfg)
	return s, err
}

// torn is what an agent prints that an update broke.
const torn = `Traceback (most recent call last):
  File "/srv/acme/agent.py", line 3, in main
    from acme.wire import Frame
ImportError: cannot import name 'Frame' from 'acme.wire' (/srv/acme/wire.py)
`

// boot registers a run that this process does itself.
func (s *sim) boot(ctx context.Context, name string) (*managed.Run, error) {
	return s.host.Start(ctx, managed.Spec{
		Project: "acme", Name: name, Silenced: true, Workspaces: []string{"/ws/" + name},
		Roots:  []witness.Root{{Root: classify.Root{Name: "acme", Dirs: []string{"/srv/acme"}, Modules: []string{"acme"}}, Kind: "git", Runtime: "python"}},
		Recipe: run.Recipe{Command: []string{"agent", name}, Dir: "/ws/" + name, Marking: run.Idempotent},
	})
}

// breaks boots a run, changes the tree under it and lets it die of that.
func (s *sim) breaks(ctx context.Context, name, rev string) (*managed.Run, error) {
	r, err := s.boot(ctx, name)
	if err != nil {
		return nil, err
	}
	// A moment between boot and update, and between update and death.
	time.Sleep(time.Millisecond)
	s.tree.set(rev)
	time.Sleep(time.Millisecond)
	return r, r.Fail(ctx, broken)
}

// broken is how an agent ends that an update broke.
var broken = managed.Failure{Text: []byte(torn), Exit: classify.Exit{Code: 1}}
