package relaunchtest

import (
	"os/exec"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/require"
)

// Python is the interpreter for probes.
func Python(tb testing.TB) string {
	tb.Helper()
	require.Program(tb, "python3", "apt-get install python3")
	path, err := exec.LookPath("python3")
	if err != nil {
		tb.Fatal(err)
	}
	out, err := exec.Command(path, "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return string(out[:len(out)-1])
}

// ProbeCommand is the bare command that imports what the engine's probe does.
func ProbeCommand(interpreter string, repo *require.Repo) []string {
	return []string{interpreter, "-c", "import sys; sys.path.insert(0, '" + repo.Dir + "'); import acme.agent, acme.wire"}
}
