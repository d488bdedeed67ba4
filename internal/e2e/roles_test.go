package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
)

// roleVar carries the script of a test binary that is executed as another process of Mulligan.
const roleVar = "MULLIGAN_E2E_ROLE"

// role is that script.
type role struct {
	// Play is "healer", "victim", "pruner", "runner", "updater", "looker", "owner", who runs a first run, or one of those of
	// more.
	Play string
	Home string
	// Quiescence is the healer's.
	Quiescence time.Duration
	// Go and Stop are files: a healer waits for the one, and looks again and again until the other is there.
	Go, Stop string
	// Held makes the healer start programs held, with their logs here, instead of under a runner.
	Held string
	// Die names the moment at which the healer kills itself: "started", when the launcher has started something, or
	// "bound", when the replacement has passed the gate and is not yet let go.
	Die string
	// Kill is the durable operation before which a victim, a pruner or a runner is killed; 0 is never.
	Kill int
	// Root is the updater's, Command and Env are the updater's or the owner's.
	Root    witness.Root
	Command []string
	Env     []string
	// More is what the roles of races and repeated kills have beside that.
	More more
}

func TestMain(m *testing.M) {
	script := os.Getenv(roleVar)
	if script == "" {
		os.Exit(m.Run())
	}
	var r role
	err := json.Unmarshal([]byte(script), &r)
	if err == nil {
		err = r.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, r.Play+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (r role) run(ctx context.Context) error {
	switch r.Play {
	case "runner":
		p, err := wire(ctx, r.Home, options{fs: faultfs.Tap(durable.System{}, faultfs.KillAt(r.Kill))})
		if err != nil {
			return err
		}
		defer p.close()
		_, err = p.runs.Replace(ctx, ledger.Key{Project: os.Args[1], Lineage: os.Args[2]}, os.Args[3])
		return err
	case "updater":
		p, err := wire(ctx, r.Home, options{})
		if err != nil {
			return err
		}
		defer p.close()
		_, err = p.updater.Run(ctx, []witness.Root{r.Root}, update.Command{Args: r.Command, Env: r.Env, Dir: filepath.Dir(r.Home)}, patience)
		return err
	case "owner":
		p, err := wire(ctx, r.Home, options{})
		if err != nil {
			return err
		}
		defer p.close()
		_, err = p.runs.Exec(ctx, managed.Spec{Project: project, Name: "scout", Workspaces: []string{filepath.Dir(r.Home)},
			Recipe: run.Recipe{Command: r.Command, Env: r.Env, Dir: filepath.Dir(r.Home), Marking: run.Phases}}, managed.IO{})
		return err
	case "healer":
		return r.heal(ctx)
	case "victim":
		return r.healUntilKilled(ctx)
	case "looker":
		return r.lookAround(ctx)
	case "pruner":
		return r.pruneUntilKilled(ctx)
	}
	return r.More.run(ctx, r)
}

func (r role) heal(ctx context.Context) error {
	p, err := wire(ctx, r.Home, options{settings: restart.Settings{Quiescence: r.Quiescence}, launcher: func(*parts) restart.Launcher {
		var l restart.Launcher = runnerLauncher(r.Home, 0)
		if r.Held != "" {
			l = &process.HeldLauncher{Log: func(run string) string { return filepath.Join(r.Held, run+".log") }}
		}
		if r.Die != "" {
			return dyingLauncher{l, r.Die}
		}
		return l
	}})
	if err != nil {
		return err
	}
	defer p.close()
	for !there(r.Go) {
		time.Sleep(time.Millisecond)
	}
	for !there(r.Stop) {
		res, err := p.healer.Pass(ctx, everything)
		if err != nil {
			return err
		}
		if res.Failed() {
			return fmt.Errorf("not everything could be dealt with: %+v", res.Outcomes)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

func there(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// runnerLauncher starts the test binary as the runner of each replacement, where a command line would start itself. Each
// is killed before a durable operation unless kill is 0.
func runnerLauncher(home string, kill int) *process.RunnerLauncher {
	exe, err := os.Executable()
	if err != nil {
		panic(err) // the tests run, so they have an executable
	}
	script, err := json.Marshal(role{Play: "runner", Home: home, Kill: kill})
	if err != nil {
		panic(err) // it is plain data
	}
	return &process.RunnerLauncher{
		Command: func(o restart.Order) []string { return []string{exe, o.Key.Project, o.Key.Lineage, o.Launch} },
		Env:     []string{"PATH=" + os.Getenv("PATH"), roleVar + "=" + string(script)},
		Log:     filepath.Join(filepath.Dir(home), "runners.log"),
	}
}

// dyingLauncher kills its healer at a moment of the launch, as a power cut would.
type dyingLauncher struct {
	restart.Launcher
	moment string
}

func (l dyingLauncher) Launch(ctx context.Context, o restart.Order) (restart.Started, error) {
	s, err := l.Launcher.Launch(ctx, o)
	if l.moment == "started" {
		die()
	}
	if s.Held != nil {
		s.Held = dyingHeld{s.Held}
	}
	return s, err
}

type dyingHeld struct{ restart.HeldProcess }

func (dyingHeld) Release() error {
	die()
	return nil
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// actor is a second process of the story.
type actor struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  bytes.Buffer
	done chan struct{}
	err  error
}

// play executes the test binary in a role on the world's state folder. It is ended with the story.
func (w *world) play(r role) *actor {
	w.t.Helper()
	r.Home = w.home.Dir()
	if r.Quiescence == 0 {
		r.Quiescence = rest
	}
	return play(w.t, r)
}

// play executes the test binary in a role. It is ended with the test.
func play(t *testing.T, r role) *actor {
	t.Helper()
	script, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := &actor{t: t, cmd: exec.Command(exe), done: make(chan struct{})}
	a.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), roleVar + "=" + string(script)}
	a.cmd.Stdout, a.cmd.Stderr = &a.out, &a.out
	a.cmd.WaitDelay = 5 * time.Second // a killed actor's children may hold its output
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		a.err = a.cmd.Wait()
		close(a.done)
	}()
	t.Cleanup(func() { a.kill() })
	return a
}

// kill ends the actor at once, without a word.
func (a *actor) kill() {
	_ = a.cmd.Process.Kill()
	<-a.done
}

// ends waits for the actor's end.
func (a *actor) ends() *actor {
	a.t.Helper()
	until(a.t, "the "+a.cmd.Path+" to end", func() bool {
		select {
		case <-a.done:
			return true
		default:
			return false
		}
	})
	return a
}

func (a *actor) endsWell() {
	a.t.Helper()
	if a.ends(); a.err != nil {
		a.t.Fatalf("%v:\n%s", a.err, a.out.String())
	}
}
