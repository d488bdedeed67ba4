package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/cli"
	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/witness"
)

// bundle is a host's own source: it counts how often it is asked.
type bundle struct{ asked atomic.Int32 }

func (i *bundle) Identify(context.Context, witness.Root) (witness.Identity, error) {
	i.asked.Add(1)
	return witness.Identity{Revision: "sha256:1"}, nil
}

func (i *bundle) LastChange(context.Context, witness.Root) (stamp.Time, error) {
	return stamp.Time{}, nil
}

// TestExtend holds a tree to its word that a host's own sources serve exec as well, without a door of their own.
func TestExtend(t *testing.T) {
	t.Parallel()
	src := &bundle{}
	dir := t.TempDir()
	env := newEnv(t, dir)
	env.Config = config.Options{Kinds: []string{"bundle"}}
	env.Extend = func(c *restart.Config) error {
		c.Sources["bundle"] = src
		return nil
	}
	if code := execute(env, "exec", "--name", "a", "--root", "lib="+dir+",kind=bundle,modules=acme", "--", "true"); code != 0 {
		t.Fatalf("exit code %d: %s", code, read(t, env.Stderr))
	}
	if src.asked.Load() == 0 {
		t.Error("the host's source was not asked for the identity at boot")
	}
}

func TestExtendRefuses(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	env.Extend = func(*restart.Config) error { return errors.New("no license") }
	if code := execute(env, "list"); code != cli.CodeFailed {
		t.Errorf("exit code %d, want %d", code, cli.CodeFailed)
	}
	if got := read(t, env.Stderr); !strings.Contains(got, "extend the wiring: no license") {
		t.Errorf("standard error is %q", got)
	}
}

// TestTreesLiveSideBySide runs two trees with two state folders in one process.
func TestTreesLiveSideBySide(t *testing.T) {
	t.Parallel()
	a, b := newEnv(t, t.TempDir()), newEnv(t, t.TempDir())
	for _, env := range []cli.Env{a, b} {
		if code := execute(env, "exec", "--name", "same", "--", "true"); code != 0 {
			t.Fatalf("exit code %d: %s", code, read(t, env.Stderr))
		}
		if code := execute(env, "show", "same"); code != 0 {
			t.Errorf("exit code %d: %s", code, read(t, env.Stderr))
		}
	}
}

func newEnv(t *testing.T, dir string) cli.Env {
	t.Helper()
	file := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	return cli.Env{Stdin: file("in"), Stdout: file("out"), Stderr: file("err"), Dir: dir,
		Environ: []string{"MULLIGAN_HOME=" + filepath.Join(dir, "state"), "PATH=" + os.Getenv("PATH")}}
}

func execute(env cli.Env, args ...string) int {
	c := cli.New(env)
	c.SetArgs(args)
	return cli.ExitCode(c.ExecuteContext(context.Background()))
}

func read(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
