package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// more are the roles of the races: a healer that halts at one moment, one that loops, a person's single pass, a managed
// run, and (see teller_test.go) a healer that is killed while it tells.
type more struct {
	// Halt names the moment at which a healer halts, once: "claimed", "reserved" (it has a slot), "begun" (nothing is
	// started yet) or "started". How says by what: "stop" is SIGSTOP, "hang" waits for a signal that never comes, "kill" is SIGKILL.
	Halt, How string
	// Deaf makes the launcher start nothing.
	Deaf bool
	// Scope is that of a single pass.
	Scope restart.Scope
	// Spec is a managed run's.
	Spec managed.Spec
	// Inbox is where the healer tells.
	Inbox string
	tale
}

func (m more) run(ctx context.Context, r role) error {
	switch r.Play {
	case "halting":
		return m.halting(ctx, r)
	case "loop":
		return m.loop(ctx, r)
	case "once":
		return m.once(ctx, r)
	case "exec":
		return m.exec(ctx, r)
	case "teller":
		return m.tell(ctx, r)
	}
	return fmt.Errorf("there is no role %q", r.Play)
}

// wire is the host of a role, with its launcher and inbox.
func (m more) wire(ctx context.Context, r role) (*parts, error) {
	var once sync.Once
	var filing sync.RWMutex
	halt := func(moment string) {
		if moment == m.Halt {
			// Not while evidence is on its way: a process that is stopped with a kernel lock keeps everybody from it, and
			// no lease ends that.
			filing.Lock()
			once.Do(m.halt)
			filing.Unlock()
		}
	}
	o := options{settings: restart.Settings{Quiescence: r.Quiescence}}
	o.launcher = func(*parts) restart.Launcher {
		return haltingLauncher{runnerLauncher(r.Home, 0), halt, m.Deaf}
	}
	o.stores = func(s restart.Stores) restart.Stores {
		s.Evidence = filedEvidence{s.Evidence, &filing}
		if m.Halt == "reserved" {
			s.Storm = haltingStorm{s.Storm, halt}
		}
		return s
	}
	if err := m.notifiers(&o); err != nil {
		return nil, err
	}
	return wire(ctx, r.Home, o)
}

func (m more) halt() {
	switch m.How {
	case "stop":
		// The signal may take a moment to stop all threads, so this one waits until it is continued.
		goOn := make(chan os.Signal, 1)
		signal.Notify(goOn, syscall.SIGCONT)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		<-goOn
	case "kill":
		die()
	default:
		select {}
	}
}

// haltingLauncher halts its healer at a moment of the launch.
type haltingLauncher struct {
	restart.Launcher
	halt func(moment string)
	deaf bool
}

func (l haltingLauncher) Preflight(ctx context.Context, o restart.Order) preflight {
	l.halt("claimed")
	return l.Launcher.Preflight(ctx, o)
}

func (l haltingLauncher) Launch(ctx context.Context, o restart.Order) (s restart.Started, err error) {
	l.halt("begun")
	if !l.deaf {
		s, err = l.Launcher.Launch(ctx, o)
	}
	l.halt("started")
	return s, err
}

// haltingStorm halts its healer when it has slots.
type haltingStorm struct {
	storm.Store
	halt func(moment string)
}

func (s haltingStorm) UpdateState(ctx context.Context, f func(storm.State, stamp.Time) (storm.State, error)) (storm.State, error) {
	st, err := s.Store.UpdateState(ctx, f)
	s.halt("reserved")
	return st, err
}

// filedEvidence lets a healer halt only between two writes of evidence.
type filedEvidence struct {
	ledger.Evidence
	filing *sync.RWMutex
}

func (e filedEvidence) Put(ctx context.Context, k ledger.Key, files map[string][]byte) (string, error) {
	e.filing.RLock()
	defer e.filing.RUnlock()
	return e.Evidence.Put(ctx, k, files)
}

// halting is a healer that looks again and again, until a file is there.
func (m more) halting(ctx context.Context, r role) error {
	p, err := m.wire(ctx, r)
	if err != nil {
		return err
	}
	defer p.close()
	for !there(r.Stop) {
		if res, err := p.healer.Pass(ctx, everything); err != nil || res.Failed() {
			return fmt.Errorf("%+v: %w", res.Outcomes, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// loop is a healer that sleeps until a doorbell rings.
func (m more) loop(ctx context.Context, r role) error {
	p, err := m.wire(ctx, r)
	if err != nil {
		return err
	}
	defer p.close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for !there(r.Stop) {
			time.Sleep(5 * time.Millisecond)
		}
		stop()
	}()
	return p.healer.Run(ctx)
}

// once is what `mulligan run NAME` does.
func (m more) once(ctx context.Context, r role) error {
	p, err := m.wire(ctx, r)
	if err != nil {
		return err
	}
	defer p.close()
	res, err := p.healer.Pass(ctx, m.Scope)
	if err != nil || res.Failed() {
		return fmt.Errorf("%+v: %w", res.Outcomes, err)
	}
	for _, o := range res.Outcomes {
		fmt.Println(o.Name, o.Code)
	}
	return nil
}

// nameHeld is what an exec says whose name lives.
const nameHeld = "the name is held"

// exec is what `mulligan exec` does: a run with whatever environment it has, unless its spec says another.
func (m more) exec(ctx context.Context, r role) error {
	p, err := wire(ctx, r.Home, options{})
	if err != nil {
		return err
	}
	defer p.close()
	if m.Spec.Recipe.Env == nil {
		m.Spec.Recipe.Env = managed.CleanEnv(os.Environ())
	}
	res, err := p.runs.Exec(ctx, m.Spec, managed.IO{})
	var held *run.NameHeldError
	if errors.As(err, &held) {
		fmt.Println(nameHeld)
		return nil
	}
	if err != nil || res.End.Exit.Code != 0 {
		return errors.Join(err, fmt.Errorf("exit %+v", res.End.Exit))
	}
	return nil
}

// command is the test binary in a role.
func (r role) command(ctx context.Context) *exec.Cmd {
	script, err := json.Marshal(r)
	if err != nil {
		panic(err) // it is plain data
	}
	exe, err := os.Executable()
	if err != nil {
		panic(err) // the tests run, so they have an executable
	}
	c := exec.CommandContext(ctx, exe)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), roleVar + "=" + string(script)}
	return c
}

// runner is the process of a replacement, started by the story instead of a healer.
func (w *world) runner(k ledger.Key, launch string) *actor {
	w.t.Helper()
	l := runnerLauncher(w.home.Dir(), 0)
	args := l.Command(restart.Order{Key: k, Launch: launch})
	a := &actor{t: w.t, cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	a.cmd.Env = l.Env
	a.begin()
	return a
}

// apart plays a role in a pid namespace of its own, where its process is the first.
func (w *world) apart(r role) *actor {
	w.t.Helper()
	r.Home = w.home.Dir()
	r.Quiescence = rest
	c := r.command(context.Background())
	a := &actor{t: w.t, cmd: exec.Command("unshare", append(strings.Fields(unshared), c.Path)...), done: make(chan struct{})}
	a.cmd.Env = c.Env
	a.begin()
	return a
}

// unshared are the arguments that put a program into a pid namespace of its own, which ends with its starter.
const unshared = "--pid --fork --mount-proc --kill-child"

// begin starts an actor's process; it is ended with the test.
func (a *actor) begin() {
	a.t.Helper()
	a.cmd.Stdout, a.cmd.Stderr = &a.out, &a.out
	a.cmd.WaitDelay = 5 * time.Second
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	go func() {
		a.err = a.cmd.Wait()
		close(a.done)
	}()
	a.t.Cleanup(func() { a.kill() })
}

// said is what an actor that has ended wrote.
func (a *actor) said() string {
	a.t.Helper()
	a.ends()
	return a.out.String()
}

// stopped reports whether an actor's process was stopped by a signal.
func (a *actor) stopped() bool {
	b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(a.cmd.Process.Pid), "stat"))
	_, after, ok := strings.Cut(string(b), ") ")
	return err == nil && ok && strings.HasPrefix(after, "T")
}

// waitStopped waits until the actor has stopped itself.
func (a *actor) waitStopped(t *testing.T) {
	t.Helper()
	until(t, "the healer to stop", func() bool {
		select {
		case <-a.done:
			t.Fatalf("the story is wrong: the healer ended: %v\n%s", a.err, a.out.String())
		default:
		}
		return a.stopped()
	})
}

// goesOn continues a stopped actor.
func (a *actor) goesOn() {
	a.t.Helper()
	if err := syscall.Kill(a.cmd.Process.Pid, syscall.SIGCONT); err != nil {
		a.t.Fatal(err)
	}
}
