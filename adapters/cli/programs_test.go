package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/require"
)

// TestRunnerOutlivesItsProgram has a runner told to end while it looks why its program ended, as a service manager does that
// has seen the kernel kill in its unit: the look is taken by a git that passes the signal on first.
func TestRunnerOutlivesItsProgram(t *testing.T) {
	t.Parallel()
	git := require.Program(t, "git", "apt-get install git")
	tree := require.NewRepo(t)
	tree.Commit("one", "acme/__init__.py", "")
	dir := t.TempDir()
	over, told := filepath.Join(dir, "over"), filepath.Join(dir, "told")
	wrapper := fmt.Sprintf("#!/bin/sh\n[ ! -e %s ] || { echo >>%s; kill -TERM $PPID; }\nexec %s \"$@\"\n", over, told, git)
	require.Executable(t, filepath.Join(dir, "git"), wrapper)
	env := []string{"MULLIGAN_HOME=" + filepath.Join(dir, "home")}
	c := exec.CommandContext(t.Context(), filepath.Join(filepath.SplitList(os.Getenv("PATH"))[0], "mulligan"),
		"exec", "--idempotent", "--name", "scout", "--root", "acme=.,modules=acme", "--", "/bin/sh", "-c", "echo >"+over+"; kill -KILL $$")
	c.Dir, c.Env = tree.Dir, append(append(os.Environ(), env...), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 137 {
		t.Errorf("the runner ended with %v, not as its program did: %s", err, out)
	}
	if _, err := os.Stat(told); err != nil {
		t.Errorf("nobody told the runner: %v", err)
	}
	text, err := mulligan(t, env, "show", "scout", "-j")
	if err != nil {
		t.Fatalf("%v, %s", err, text)
	}
	var shown struct {
		Run struct{ State, Signal string }
	}
	if err := json.Unmarshal([]byte(text), &shown); err != nil || shown.Run.State != "failed" || shown.Run.Signal != "SIGKILL" {
		t.Errorf("its run is %+v, %v", shown.Run, err)
	}
}
