package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed all:tree
var tree embed.FS

// world is the folder in which everything happens.
type world struct {
	dir string
	// origin is where the agents' code is developed, live the checkout that they run from, sdk other people's code.
	origin, live, sdk string
	// state is where the agents and the example tell each other how far they are, home Mulligan's own state folder.
	state, home string
	env         []string
}

// newWorld makes a git repository with the agents' code, and a clone of it to run them from.
func newWorld(ctx context.Context, dir string) (*world, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	// A root is declared by its real path, since that is what a traceback shows.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("%s is not empty: give a new folder, or none for a temporary one", dir)
	}
	w := &world{dir: dir, origin: filepath.Join(dir, "origin"), live: filepath.Join(dir, "live"), sdk: filepath.Join(dir, "sdk"),
		state: filepath.Join(dir, "state"), home: filepath.Join(dir, "mulligan")}
	for _, d := range []string{w.origin, w.sdk, w.state} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	for _, f := range []string{"__init__.py", "agent.py", "wire.py", "notes.py"} {
		if err := w.put(filepath.Join(w.origin, "acme", f), "tree/acme/"+f); err != nil {
			return nil, err
		}
	}
	if err := w.put(filepath.Join(w.sdk, "provider.py"), "tree/provider.py"); err != nil {
		return nil, err
	}
	w.env = append(os.Environ(), "PYTHONPATH="+w.live+":"+w.sdk, "ACME_STATE="+w.state, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=acme", "GIT_AUTHOR_EMAIL=acme@localhost", "GIT_COMMITTER_NAME=acme", "GIT_COMMITTER_EMAIL=acme@localhost")
	if err := w.git(ctx, w.origin, "init", "--quiet", "--initial-branch=main"); err != nil {
		return nil, err
	}
	if err := w.commit(ctx, "a small agent framework"); err != nil {
		return nil, err
	}
	return w, w.git(ctx, w.dir, "clone", "--quiet", w.origin, w.live)
}

// renameFrame is the first update: a class gets another name, in its module and in all that use it.
func (w *world) renameFrame(ctx context.Context) error {
	for _, f := range []string{"agent.py", "wire.py"} {
		path := filepath.Join(w.origin, "acme", f)
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte("Frame"), []byte("Packet")), 0o644); err != nil {
			return err
		}
	}
	return w.commit(ctx, "wire: a frame is a packet now")
}

// dropNotes is the second update: a module goes away.
func (w *world) dropNotes(ctx context.Context) error {
	path := filepath.Join(w.origin, "acme", "agent.py")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	next := strings.Replace(string(b), "    from acme import notes\n    notes.write(\"warden\")\n", "    work(\"warden\")\n", 1)
	if err := os.WriteFile(path, []byte(next), 0o644); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(w.origin, "acme", "notes.py")); err != nil {
		return err
	}
	return w.commit(ctx, "notes: nobody reads them")
}

func (w *world) commit(ctx context.Context, message string) error {
	if err := w.git(ctx, w.origin, "add", "--all"); err != nil {
		return err
	}
	return w.git(ctx, w.origin, "commit", "--quiet", "--message", message)
}

func (w *world) git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, w.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// workspace makes an agent's own folder.
func (w *world) workspace(name string) (string, error) {
	dir := filepath.Join(w.dir, "workspaces", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if name == "porter" {
		return dir, w.put(filepath.Join(dir, "plan.py"), "tree/plan.py")
	}
	return dir, nil
}

func (w *world) put(path, from string) error {
	b, err := tree.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

// signal lets the agents that wait for it go on.
func (w *world) signal(what string) error {
	return os.WriteFile(filepath.Join(w.state, what), nil, 0o644)
}

// has reports whether something was signalled, by the agents or by the example.
func (w *world) has(what string) bool {
	_, err := os.Stat(filepath.Join(w.state, what))
	return err == nil
}
