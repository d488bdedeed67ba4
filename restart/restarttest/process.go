package restarttest

import (
	"errors"
	"sync"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
)

// Stores are what one process has open. Close ends the process as far as the stores go: from then on its instance is
// proven dead to all others.
type Stores struct {
	restart.Stores
	Close func() error
}

// Op is a durable step of a healer process.
type Op struct {
	// N counts the steps of the process from 1. Those that only read are none.
	N int
	// Name is what the step does: an event of the ledger's machine ("claim", "begin_launch", "settle_ok"), "told" for a
	// mark in a record, "slot" and "state" for the breaker, "answer", "evidence", "report", "bell" for a doorbell that is
	// removed, "row" for the update journal, "run" for the registry, and "start" for the launcher.
	Name string
	// Done is false before the step and true after it.
	Done bool
}

// errDead is what a process gets from everything once it was killed. Nothing that it still does can be seen.
var errDead = errors.New("this process was killed")

// process is one simulated process: what it does to the stores passes a gate, which its death closes.
type process struct {
	w      *World
	pid    int
	self   ledger.Instance
	stores restart.Stores
	close  func() error

	mu   sync.Mutex
	dead bool
	slow bool // it waits for a launch that hangs
	ops  int
	hook func(Op) error
}

// spawn starts a process. Its stores are opened for it alone.
func (w *World) spawn() *process {
	opened, err := w.cfg.Open(w.Now)
	w.must(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pids++
	p := &process{w: w, pid: w.pids, close: opened.Close}
	p.self = opened.Instances.Self()
	p.self.Boot, p.self.PIDNS, p.self.PID, p.self.Start = bootID(w.clock.boot), "", p.pid, uint64(p.pid)
	p.stores = gated(p, opened.Stores)
	w.procs[p.pid] = p
	return p
}

// kill ends a process without a word.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// bury proves the death of a process whose goroutines have all returned.
func (p *process) bury() {
	p.kill()
	p.w.mu.Lock()
	_, first := p.w.procs[p.pid]
	delete(p.w.procs, p.pid)
	p.w.mu.Unlock()
	if first {
		p.w.must(p.close())
	}
}

// waits says that the process waits for a launch that hangs, or no longer. Nothing moves the clock during a pass but such
// a wait.
func (p *process) waits(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = on
}

// poll is one look of a process that may be waiting.
func (p *process) poll() error {
	p.mu.Lock()
	slow := p.slow
	p.mu.Unlock()
	if slow {
		p.w.clock.advance(p.w.lease() / 4)
	}
	return p.alive()
}

func (p *process) alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errDead
	}
	return nil
}

// before and after are the two sides of a durable step. The hook may kill the process, keep the step waiting, or be the
// error that the step ends in.
func (p *process) before(name string) error {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return errDead
	}
	p.ops++
	op, hook := Op{N: p.ops, Name: name}, p.hook
	p.mu.Unlock()
	return p.ask(hook, op)
}

func (p *process) after(name string) error {
	p.mu.Lock()
	op, hook := Op{N: p.ops, Name: name, Done: true}, p.hook
	p.mu.Unlock()
	return p.ask(hook, op)
}

func (p *process) ask(hook func(Op) error, op Op) error {
	var err error
	if hook != nil {
		err = hook(op)
	}
	if dead := p.alive(); dead != nil {
		return dead
	}
	return err
}

// step is one durable step.
func (p *process) step(name string, f func() error) error {
	if err := p.before(name); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return p.after(name)
}

// instances is a process's view of who lives. Boot and pid are the world's; the stores' own locks decide of instances.
type instances struct {
	p     *process
	under ledger.Instances
}

func (i instances) Self() ledger.Instance { return i.p.self }

func (i instances) Liveness(in ledger.Instance) ledger.Liveness {
	switch boot := i.p.self.Boot; {
	case in.Boot != "" && in.Boot != boot:
		return ledger.Dead
	case in.Unlocked:
		i.p.w.mu.Lock()
		defer i.p.w.mu.Unlock()
		if i.p.w.procs[in.PID] == nil {
			return ledger.Dead
		}
		return ledger.Alive
	}
	in.Boot, in.PIDNS, in.PID, in.Start = "", "", 0, 0
	return i.under.Liveness(in)
}

// inMemory opens stores in memory that all processes of a world share. Their clock is that of whoever opened them last:
// after a power cut it is the next boot's.
func inMemory() func(now func() stamp.Time) (Stores, error) {
	var mu sync.Mutex
	var clock func() stamp.Time
	home := memory.New(memory.Config{Now: func() stamp.Time {
		mu.Lock()
		defer mu.Unlock()
		return clock()
	}})
	return func(now func() stamp.Time) (Stores, error) {
		mu.Lock()
		clock = now
		mu.Unlock()
		self := home.Spawn()
		return Stores{Stores: restart.Stores{Ledger: home.Ledger(), Answers: home.Answers(), Instances: memory.As(home, self),
			Evidence: home.Evidence(), Reports: home.Reports(), Doorbells: home.Doorbell(), Runs: home.Runs(), Storm: home.Breaker(),
			Journal: home.Updates(), Lock: home.Writer()}, Close: func() error { home.Kill(self); return nil }}, nil
	}
}
