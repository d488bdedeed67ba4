package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/internal/bench/relaunchtest"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart"
)

// serial makes the names of units that were not there before.
var serial atomic.Int64

func unitName() string { return fmt.Sprintf("bench-%d-%d.service", os.Getpid(), serial.Add(1)) }

// systemdRun starts a command through systemd-run.
func systemdRun(command, env []string, options ...string) error {
	args := append([]string{"--quiet", "--collect"}, options...)
	if manager() == User {
		args = append(args, "--user")
	}
	for _, kv := range env {
		args = append(args, "--setenv="+kv)
	}
	args = append(args, "--")
	for _, word := range command {
		args = append(args, strings.ReplaceAll(word, "$", "$$"))
	}
	if out, err := exec.Command("systemd-run", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("systemd-run: %w: %s", err, out)
	}
	return nil
}

// revived measures from the death of an agent in a unit of systemd-run, which nothing restarts, to the first instruction of
// the replacement that the engine launches into a unit of its own. The agent dies of its changed tree: what ends by kill -9
// is not healed. It is measured against bare code that does the same writes, reads and starts, over the same kind of
// connection ("bare"), and against the same agent in a unit that systemd restarts at once ("systemd"), which looks at
// nothing.
func revived(b *testing.B, prober probe.Prober, interpreter string) {
	c := connect(b)
	repo := relaunchtest.Tree(b)
	e := relaunchtest.NewEngine(b, relaunchtest.EngineConfig{Repo: repo, Prober: prober, Interpreter: interpreter,
		Launcher: func(command func(restart.Order) []string, env []string) (restart.Launcher, error) {
			return NewLauncher(LauncherConfig{Conn: c, Command: command, Env: env})
		},
		First: func(name string, command, env []string) error {
			return systemdRun(command, env, "-p", "Restart=no", "--unit", unitName())
		}})
	bare := relaunchtest.BareConfig{Repo: repo, Start: func(_ string, command, env []string) error {
		return c.start(b.Context(), unitName(), []dbus.Property{execStart(command), prop("Type", "exec"), prop("Environment", env)})
	}}
	if interpreter != "" {
		bare.Probe = relaunchtest.ProbeCommand(interpreter, repo)
	}
	base := relaunchtest.NewBare(b, bare)
	dir := b.TempDir()
	restarted := func() (beats []string, goFile string) {
		unit := unitName()
		beat, goFile := filepath.Join(dir, "beat-"+unit), filepath.Join(dir, "go-"+unit)
		if err := systemdRun(relaunchtest.Agent(beat, goFile, repo.Dir), nil, "-p", "Restart=on-failure", "-p", "RestartSec=0", "--unit", unit); err != nil {
			b.Fatal(err)
		}
		relaunchtest.Await(b, beat)
		return []string{beat}, goFile
	}
	relaunchtest.Compare(b, func() time.Duration {
		return relaunchtest.Back(b, repo, func() ([]string, string) { return e.Start(1) })
	},
		relaunchtest.Contender{Name: "bare", Once: func() time.Duration {
			return relaunchtest.Back(b, repo, func() ([]string, string) { return base.First(1) })
		}},
		relaunchtest.Contender{Name: "systemd", Once: func() time.Duration { return relaunchtest.Back(b, repo, restarted) }})
}

// BenchmarkHealed is without a probe.
func BenchmarkHealed(b *testing.B) {
	if require.SystemdBench(b, require.SystemManager) {
		revived(b, relaunchtest.Free{}, "")
	}
}

// BenchmarkHealedProbed is with a real probe.
func BenchmarkHealedProbed(b *testing.B) {
	interpreter := relaunchtest.Python(b)
	if require.SystemdBench(b, require.SystemManager) {
		prober, err := process.NewPython(process.PythonConfig{})
		if err != nil {
			b.Fatal(err)
		}
		revived(b, prober, interpreter)
	}
}

// BenchmarkScope measures from the order to the first instruction of a program in a transient scope that the launcher makes
// over its open connection, against a plain start of the same program, and against systemd-run --scope.
//
// A scope is made by moving a process into a new control group, and the kernel moves one at once only when it has moved
// another a moment before; else it waits for its grace period first (some 12 ms). So the two cases are measured apart: the
// first of the scopes, and one that follows another.
func BenchmarkScope(b *testing.B) {
	for _, in := range []struct {
		name   string
		behind bool
	}{{"first", false}, {"next", true}} {
		b.Run(in.name, func(b *testing.B) {
			if require.SystemdBench(b, require.SystemManager) {
				scopes(b, in.behind)
			}
		})
	}
}

func scopes(b *testing.B, behind bool) {
	dir := b.TempDir()
	// born starts a life of the agent that ends at once and is the time to its first instruction.
	born := func(start func(command []string) error) time.Duration {
		beat := filepath.Join(dir, fmt.Sprint("beat-", serial.Add(1)))
		if err := os.WriteFile(beat, []byte("died 0\nborn 0\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		command := relaunchtest.Agent(beat, "/", "/")
		from := monotonic(b)
		if err := start(command); err != nil {
			b.Fatal(err)
		}
		var at int64
		until(b, beat, func() bool {
			text, err := os.ReadFile(beat)
			lines := strings.Fields(string(text))
			if err != nil || len(lines) < 6 || !strings.HasSuffix(string(text), "\n") {
				return false
			}
			at, err = strconv.ParseInt(lines[5], 10, 64)
			return err == nil
		})
		return time.Duration(at - from)
	}
	var program []string
	l, err := NewLauncher(LauncherConfig{Conn: connect(b), Scope: true, Env: os.Environ(), Command: func(restart.Order) []string { return program }})
	if err != nil {
		b.Fatal(err)
	}
	launch := func(command []string) error {
		program = command
		s, err := l.Launch(b.Context(), order())
		if err == nil {
			<-s.Exited
		}
		return err
	}
	// before is a scope before the measured one, or the time in which the kernel forgets the last one.
	before := func() {
		if !behind {
			time.Sleep(50 * time.Millisecond)
		} else if err := launch([]string{"/bin/true"}); err != nil {
			b.Fatal(err)
		}
	}
	relaunchtest.Compare(b, func() time.Duration { before(); return born(launch) },
		relaunchtest.Contender{Name: "plain", Once: func() time.Duration {
			return born(func(command []string) error { return exec.Command(command[0], command[1:]...).Run() })
		}},
		relaunchtest.Contender{Name: "systemd-run", Once: func() time.Duration {
			before()
			return born(func(command []string) error { return systemdRun(command, nil, "--scope") })
		}})
}

func monotonic(b *testing.B) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		b.Fatal(err)
	}
	return ts.Nano()
}
