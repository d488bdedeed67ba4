package restarttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
)

// Config is how a world is made. The zero Config is a healer with its defaults and stores in memory.
type Config struct {
	// Settings are the first healer's.
	Settings restart.Settings
	// Open opens the stores as one more process would; nil keeps everything in memory.
	Open func(now func() stamp.Time) (Stores, error)
	// Notifiers are told beside the world's own recorder.
	Notifiers []notify.Notifier
	// Preflight is asked before each launch that nothing else refuses; nil refuses none.
	Preflight func(ctx context.Context, o restart.Order) policy.Preflight
	// Ends is asked about a run that left no word; nil knows nothing.
	Ends restart.Ends
}

// World is a host and its machine. Its methods are for one goroutine, that of the story.
type World struct {
	t      testing.TB
	cfg    Config
	ctx    context.Context
	stop   context.CancelFunc
	dir    string // for the text and the marks of runs, which are not state
	clock  *clock
	people *process // who looks and acts by hand
	rows   *notifytest.Recorder
	healer *Healer
	all    []*Healer
	under  *updating
	roster roster

	mu     sync.Mutex // guards what a pass reads and writes
	trees  map[string]*tree
	procs  map[int]*process
	pids   int
	fate   Fate
	late   []restart.Order
	starts []Start
	probes int
}

// New makes a world. What the world cannot do ends t; a nil t, for examples, panics instead, and there Close has to be
// called.
func New(t testing.TB, cfg Config) *World {
	if cfg.Open == nil {
		cfg.Open = inMemory()
	}
	return begin(&World{t: t, cfg: cfg, clock: newClock(), trees: map[string]*tree{}, rows: &notifytest.Recorder{}, pids: 100})
}

// begin starts the processes that every world has.
func begin(w *World) *World {
	w.procs = map[int]*process{}
	w.ctx, w.stop = context.WithCancel(context.Background())
	if w.t != nil {
		if w.dir == "" {
			w.dir = w.t.TempDir()
		}
		w.t.Cleanup(w.Close)
	} else {
		dir, err := os.MkdirTemp("", "restarttest-")
		w.must(err)
		w.dir = dir
	}
	w.people = w.spawn()
	w.healer = w.NewHealer(w.cfg.Settings)
	return w
}

// Close ends everything in the world. A test's cleanup does it.
func (w *World) Close() {
	if w.ctx.Err() != nil {
		return
	}
	w.down()
	w.stop()
	if w.t == nil {
		w.must(os.RemoveAll(w.dir))
	}
}

// down ends every process without a word.
func (w *World) down() {
	if u := w.under; u != nil {
		w.under = nil
		u.p.kill()
		close(u.end)
		<-u.done
		u.p.bury()
	}
	for _, a := range w.Agents("") {
		a.drop()
	}
	for _, h := range w.all {
		h.Kill()
	}
	w.people.bury()
}

// must ends the test for what the world cannot do.
func (w *World) must(err error) {
	if err == nil {
		return
	}
	if w.t == nil {
		panic(err)
	}
	w.t.Helper()
	w.t.Fatal(err)
}

// Now is the world's time.
func (w *World) Now() stamp.Time { return w.clock.now() }

// Advance lets time go by.
func (w *World) Advance(d time.Duration) { w.clock.advance(d) }

// Jump sets the wall clock forwards or back; the boot-time clock goes on as if nothing had been.
func (w *World) Jump(d time.Duration) { w.clock.jump(d) }

// tick is the second that each thing takes.
func (w *World) tick() { w.clock.advance(time.Second) }

func (w *World) lease() time.Duration {
	if l := w.cfg.Settings.Lease; l > 0 {
		return l
	}
	return ledger.DefaultLease
}

// Stores are the stores as a person's process sees them.
func (w *World) Stores() restart.Stores { return w.people.stores }

// Rows are what a person sees, across all that happened.
func (w *World) Rows() []notify.Row { return w.rows.Rows() }

// Toasts is how often a person was disturbed.
func (w *World) Toasts() int { return w.rows.Toasts() }

// Probes is how many probes were run.
func (w *World) Probes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.probes
}

// Bells is how many doorbells lie there.
func (w *World) Bells() int {
	items, err := w.people.stores.Doorbells.Pending(w.ctx)
	w.must(err)
	return len(items)
}

// Tree makes a tree at a revision, unless it is there already, and returns the revision that it holds.
func (w *World) Tree(name, rev string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trees[name] == nil {
		w.trees[name] = newTree(name, rev, w.Now())
	}
	return w.trees[name].current().name
}

// updating is an update whose command has not ended.
type updating struct {
	p    *process
	end  chan struct{}
	done chan struct{}
}

// Update brings a tree to a revision, with a row in the journal and under the writer lock. A revision that the tree had
// before is gone back to.
func (w *World) Update(root, rev string, c Change) {
	w.BeginUpdate(root, rev, c)
	w.EndUpdate()
}

// BeginUpdate is the first half of Update: the tree is changed and the command lives on.
func (w *World) BeginUpdate(root, rev string, c Change) {
	if w.under != nil {
		w.must(errors.New("an update is under way"))
	}
	w.Tree(root, "c1")
	w.tick()
	move := func() {
		if !c.Skipped {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.trees[root].move(rev, c, w.Now())
		}
	}
	u := &updating{p: w.spawn(), end: make(chan struct{}), done: make(chan struct{})}
	w.under = u
	if c.Unrecorded {
		move()
		close(u.done)
		return
	}
	up, err := update.New(update.Config{Journal: u.p.stores.Journal, Lock: u.p.stores.Lock, Instances: u.p.stores.Instances,
		Sources: w.sources(), Now: w.Now})
	w.must(err)
	moved := make(chan struct{})
	failed := errors.New("the update's command failed")
	go func() {
		defer close(u.done)
		_, err := up.Do(w.ctx, []witness.Root{Root(root)}, "update "+root, 0, func(context.Context) error {
			w.tick()
			move()
			close(moved)
			<-u.end
			if c.Fails {
				return failed
			}
			return nil
		})
		if err != nil && !errors.Is(err, failed) && !errors.Is(err, errDead) && w.t != nil {
			w.t.Errorf("update %s: %v", root, err)
		}
	}()
	select {
	case <-moved:
	case <-u.done:
		w.must(fmt.Errorf("update %s ended before it began", root))
	}
}

// EndUpdate lets the update's command end.
func (w *World) EndUpdate() {
	u := w.under
	if u == nil {
		w.must(errors.New("no update is under way"))
		return
	}
	w.under = nil
	w.tick()
	close(u.end)
	<-u.done
	u.p.bury()
}

// Pass lets the healer look once. A healer that was killed is followed by another process of it first. The error is that
// of a pass which could not be made, as by a healer that was killed in it.
func (w *World) Pass() (restart.Result, error) {
	w.tick()
	return w.Healer().Pass()
}

// Healer is the healer of the world: the one that was made last, or the one that follows it when that was killed.
func (w *World) Healer() *Healer {
	if w.healer.p.alive() != nil {
		w.healer = w.NewHealer(w.healer.set)
	}
	return w.healer
}

// Configure ends the healer and starts it again with other settings.
func (w *World) Configure(s restart.Settings) {
	w.healer.Kill()
	w.healer = w.NewHealer(s)
}

// Healer is one healer process.
type Healer struct {
	*restart.Healer
	w    *World
	p    *process
	set  restart.Settings
	busy sync.Mutex // held by its pass
}

// NewHealer starts one more healer process beside those that there are.
func (w *World) NewHealer(s restart.Settings) *Healer {
	p := w.spawn()
	h := &Healer{w: w, p: p, set: s}
	judge, err := classify.New(classify.Config{Runtimes: []classify.Runtime{python.New()}})
	w.must(err)
	ns := []notify.Notifier{alive{p, w.rows}}
	for _, n := range w.cfg.Notifiers {
		ns = append(ns, alive{p, n})
	}
	h.Healer, err = restart.New(restart.Config{Stores: p.stores, Classifier: judge, Sources: w.sources(), Launcher: launcher{w, p},
		Runtimes: map[string]restart.Runtime{runtimeName: {Modules: python.New(), Planner: loads{w}, Prober: loads{w}}},
		Ends:     w.cfg.Ends, Notifiers: ns, Settings: s, Now: w.Now})
	w.must(err)
	w.all = append(w.all, h)
	return h
}

// Pass lets this healer look once.
func (h *Healer) Pass() (restart.Result, error) {
	h.busy.Lock()
	defer h.busy.Unlock()
	res, err := h.Healer.Pass(h.w.ctx, restart.Scope{})
	if h.p.alive() != nil {
		err = errors.Join(err, errDead)
		h.p.bury()
	}
	return res, err
}

// Settings are what the healer was started with.
func (h *Healer) Settings() restart.Settings { return h.set }

// Hook is called before and after each durable step of the process; nil takes it away. It may call Kill. Its error is what
// the step ends in: before the step, as from a disk that is full, nothing is done; after it, as when an acknowledgement
// is lost, all is. A hook that does not return stops the process there; before a step that changes a record or the breaker
// it must return, since that step holds their lock.
func (h *Healer) Hook(f func(Op) error) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	h.p.hook = f
}

// Kill ends the process at once, also in the middle of a pass, which its hook may do.
func (h *Healer) Kill() {
	h.p.kill()
	if h.busy.TryLock() {
		defer h.busy.Unlock()
		h.p.bury()
	}
}

// alive is a notifier that a dead process cannot reach.
type alive struct {
	p     *process
	under notify.Notifier
}

func (n alive) Notify(ctx context.Context, r notify.Row) error {
	if err := n.p.alive(); err != nil {
		return err
	}
	return n.under.Notify(ctx, r)
}

// PowerCut is the world after its power went now and came back a minute later: the trees are what they were, a person has
// seen what they had seen, and every process is gone. open opens what survived; nil stands for stores that lost nothing.
// The world from before goes on beside it, unless it is closed.
func (w *World) PowerCut(open func(now func() stamp.Time) (Stores, error)) *World {
	cfg := w.cfg
	cfg.Settings = w.healer.set
	next := &World{t: w.t, cfg: cfg, clock: w.clock.reboot(), trees: map[string]*tree{}, rows: &notifytest.Recorder{}}
	if open != nil {
		next.cfg.Open = open
	}
	if w.t != nil {
		next.dir = w.dir // it lives as long as the test
	}
	w.mu.Lock()
	for name, t := range w.trees {
		next.trees[name] = t.clone()
	}
	next.starts = append(next.starts, w.starts...)
	next.pids = w.pids + 1000
	w.mu.Unlock()
	for _, r := range w.rows.Rows() {
		w.must(next.rows.Notify(context.Background(), r))
	}
	begin(next)
	for _, a := range w.Agents("") {
		next.join(&Agent{w: next, Name: a.Name, p: a.p, id: a.id, ended: true})
	}
	return next
}
