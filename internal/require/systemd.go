package require

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// SystemdKind is what a test runs in: the value of MULLIGAN_SYSTEMD inside.
type SystemdKind string

// The kinds.
const (
	// SystemManager runs the test as a unit of the system manager, UserManager as one of root's own manager.
	SystemManager SystemdKind = "system"
	UserManager   SystemdKind = "user"
)

// Systemd tells a test whether it runs inside a systemd that exists for it alone. Where it does not, the test is run there,
// by itself, and its outcome becomes this one's; the caller has nothing more to do:
//
//	if !require.Systemd(t, require.SystemManager) {
//		return
//	}
//
// Further options are those of .ci/with-systemd ("--uml", "--suite", "trixie"). What they need is not downloaded here: a test
// that came first would pay for it. "--uml" brings a kernel with a memory controller, and is for the plain run of the tests
// alone: see [Boot].
func Systemd(t *testing.T, kind SystemdKind, options ...string) (inside bool) {
	t.Helper()
	if in := os.Getenv("MULLIGAN_SYSTEMD"); in != "" {
		if in != string(kind) {
			t.Skipf("this runs inside the %s manager, the test wants the %s manager", in, kind)
		}
		return true
	}
	if slices.Contains(options, "--uml") {
		ownKernel(t)
	}
	with := withSystemd(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if kind == UserManager {
		options = append(options, "--user-manager")
	}
	args := append(options, "--prepared", "--timeout", "240", "--bind", filepath.Dir(self), "--", self, "-test.v", "-test.run", "^"+t.Name()+"$")
	if testing.Short() {
		args = append(args, "-test.short")
	}
	out, err := exec.CommandContext(t.Context(), with, args...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(string(out), "--- SKIP"):
		missing(t, systemdHint, "inside systemd: "+string(out))
	case err == nil:
		t.Logf("inside systemd:\n%s", out)
	case errors.As(err, &exit) && exit.ExitCode() == noSystemd:
		missing(t, systemdHint, "no systemd could be started: "+strings.TrimSpace(string(out)))
	default:
		t.Errorf("inside systemd: %v\n%s", err, out)
	}
	return false
}

// noSystemd is the exit code of with-systemd itself, when it did not come to the command.
const noSystemd = 125

// systemdHint is all that a systemd of one's own needs: the last two are what the options --suite and --uml do.
const systemdHint = "run the tests as root on Linux with cgroup v2, apt-get install systemd dbus dbus-user-session, and " +
	".ci/with-systemd --uml --suite trixie --prepare (.ci/run packages does both)"

// withSystemd finds the script from the test's folder upwards, for a test that may use it.
func withSystemd(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		missing(t, systemdHint, "a systemd of one's own needs root on Linux")
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		path := filepath.Join(dir, ".ci", "with-systemd")
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no .ci/with-systemd above the test's folder: run the tests in a clone")
		}
		dir = filepath.Dir(dir)
	}
}
