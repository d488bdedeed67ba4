package require

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
// Further options are those of .ci/with-systemd ("--uml", "--suite", "trixie").
func Systemd(t *testing.T, kind SystemdKind, options ...string) (inside bool) {
	t.Helper()
	if in := os.Getenv("MULLIGAN_SYSTEMD"); in != "" {
		if in != string(kind) {
			t.Skipf("this runs inside the %s manager, the test wants the %s manager", in, kind)
		}
		return true
	}
	const hint = "run the tests as root on Linux with cgroup v2, and apt-get install systemd dbus"
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		missing(t, hint, "a systemd of one's own needs root on Linux")
	}
	with, err := withSystemd()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if kind == UserManager {
		options = append(options, "--user-manager")
	}
	args := append(options, "--timeout", "240", "--bind", filepath.Dir(self), "--", self, "-test.v", "-test.run", "^"+t.Name()+"$")
	if testing.Short() {
		args = append(args, "-test.short")
	}
	out, err := exec.CommandContext(t.Context(), with, args...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(string(out), "--- SKIP"):
		missing(t, hint, "inside systemd: "+string(out))
	case err == nil:
		t.Logf("inside systemd:\n%s", out)
	case errors.As(err, &exit) && exit.ExitCode() == 125:
		missing(t, hint, "no systemd could be started: "+string(out))
	default:
		t.Errorf("inside systemd: %v\n%s", err, out)
	}
	return false
}

// withSystemd finds the script from the test's folder upwards.
func withSystemd() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, ".ci", "with-systemd")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no .ci/with-systemd above the test's folder: run the tests in a clone")
		}
		dir = filepath.Dir(dir)
	}
}
