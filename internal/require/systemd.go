package require

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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
	args := []string{"-test.v", "-test.run", "^" + t.Name() + "$"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	if out, ok := runInside(t, kind, options, args); ok {
		t.Logf("inside systemd:\n%s", out)
	}
	return false
}

// SystemdBench is Systemd for a benchmark: what was measured inside becomes this one's metrics, but for ns/op.
func SystemdBench(b *testing.B, kind SystemdKind, options ...string) (inside bool) {
	b.Helper()
	if in := os.Getenv("MULLIGAN_SYSTEMD"); in != "" {
		if in != string(kind) {
			b.Skipf("this runs inside the %s manager, the benchmark wants the %s manager", in, kind)
		}
		return true
	}
	var out string
	ran := false
	for b.Loop() {
		if ran {
			continue // inside it runs as often as is asked for
		}
		ran = true
		benchtime := flag.Lookup("test.benchtime").Value.String()
		out, _ = runInside(b, kind, options, []string{"-test.run", "^$", "-test.bench", "^" + b.Name() + "$", "-test.benchtime", benchtime})
	}
	metrics := benchmarked(out)
	if len(metrics) == 0 {
		b.Errorf("inside systemd nothing was measured:\n%s", out)
	}
	for unit, value := range metrics {
		b.ReportMetric(value, unit)
	}
	b.ReportMetric(0, "ns/op")
	return false
}

// benchmarked are the metrics in what a test binary prints about one benchmark: its name, how often it ran, and values,
// each with its unit.
func benchmarked(out string) map[string]float64 {
	metrics := map[string]float64{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "Benchmark") || len(fields) < 4 {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				metrics[fields[i+1]] = value
			}
		}
	}
	return metrics
}

// runInside runs this test binary inside a systemd, and tells what it printed and whether it ended well. It fails or skips
// the test where it did not.
func runInside(t testing.TB, kind SystemdKind, options, args []string) (string, bool) {
	t.Helper()
	with := withSystemd(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if kind == UserManager {
		options = append(options, "--user-manager")
	}
	args = append(append(options, "--prepared", "--timeout", "240", "--bind", filepath.Dir(self), "--", self), args...)
	out, err := exec.CommandContext(t.Context(), with, args...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(string(out), "--- SKIP"):
		missing(t, systemdHint, "inside systemd: "+string(out))
	case err == nil:
		return string(out), true
	case errors.As(err, &exit) && exit.ExitCode() == noSystemd:
		missing(t, systemdHint, "no systemd could be started: "+strings.TrimSpace(string(out)))
	default:
		t.Errorf("inside systemd: %v\n%s", err, out)
	}
	return string(out), false
}

// noSystemd is the exit code of with-systemd itself, when it did not come to the command.
const noSystemd = 125

// systemdHint is all that a systemd of one's own needs: the last two are what the options --suite and --uml do.
const systemdHint = "run the tests as root on Linux with cgroup v2, apt-get install systemd dbus dbus-user-session, and " +
	".ci/with-systemd --uml --suite trixie --prepare (.ci/run packages does both)"

// withSystemd finds the script from the test's folder upwards, for a test that may use it.
func withSystemd(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		missing(t, systemdHint, "a systemd of one's own needs root on Linux")
	}
	return above(t, ".ci", "with-systemd")
}

// above finds a file of the repository from the test's folder upwards.
func above(t testing.TB, parts ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(parts...)
	for {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("no %s above the test's folder: run the tests in a clone", name)
		}
		dir = filepath.Dir(dir)
	}
}
