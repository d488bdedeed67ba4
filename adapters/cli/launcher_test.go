package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/internal/require"
)

// TestLaunchWithoutABus: a healer in a service from which the bus is hidden launches through systemd's programs, where they
// have a way out, in a unit of its own; where they have none it launches nothing, and says so.
func TestLaunchWithoutABus(t *testing.T) {
	t.Parallel()
	if !require.Systemd(t, require.SystemManager) {
		return
	}
	w := newHungry(t)
	scout := filepath.Join(t.TempDir(), "go")
	first := w.command(scout, "scout")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Process.Kill() }()
	w.said(scout, "began")
	if out, err := mulligan(t, w.env, "swap", "--", "git", "-C", w.live, "pull", "-q"); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	w.tell(scout, "import")
	_ = first.Wait()

	if out := w.healHidden(t, ""); !strings.Contains(out, "no way to the system manager of systemd") {
		t.Errorf("a pass that reaches nobody says %s", out)
	}
	if s := w.show("scout"); s.Replacement != nil || s.Card.Launch != "" {
		t.Fatalf("it launched without a manager: %+v", s)
	}

	out := w.healHidden(t, lead(t))
	if s := w.show("scout"); s.Card.State != "launched" {
		t.Fatalf("%s\nthe record is %+v", out, s)
	}
	pid, err := strconv.Atoi(w.said(scout, "up"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	unit, err := systemd.OfProcess(pid)
	if err != nil || !strings.HasPrefix(unit.Name, "mulligan-") {
		t.Fatalf("what was put back runs in %v, %v", unit, err)
	}

	// The runner leaves no word, its manager has one, and the unit stays until that has been read.
	systemctl(t, "kill", "--signal=KILL", unit.Name)
	w.settled("scout", func(shown) bool {
		return systemctl(t, "show", "--value", "-p", "ActiveState", unit.Name) == "failed"
	})
	out = w.healHidden(t, lead(t))
	if s := w.show("scout"); s.Card.State != "settled_failed" || !strings.Contains(s.Card.Verdict.Text, unit.Name+": signal (SIGKILL).") {
		t.Errorf("%s\nthe record of one that was killed is %+v", out, s)
	}
	if got := systemctl(t, "show", "--value", "-p", "LoadState", unit.Name); got != "not-found" {
		t.Errorf("%s is left: %s", unit.Name, got)
	}
}

// lead is a folder of systemd's programs that lead out of a service's mounts.
func lead(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"systemctl", "systemd-run"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		text := "#!/bin/sh\nexec nsenter --mount=/proc/1/ns/mnt -- " + path + " \"$@\"\n"
		require.Executable(t, filepath.Join(dir, name), text)
	}
	return dir
}

// healHidden runs one pass in a service that sees no socket of the manager, with a folder before the others in PATH.
func (w *hungryWorld) healHidden(t *testing.T, programs string) string {
	t.Helper()
	path := "/usr/bin:/bin:" + os.Getenv("PATH")
	if programs != "" {
		path = programs + ":" + path
	}
	args := []string{"--quiet", "--wait", "--pipe", "-p", "InaccessiblePaths=/run/dbus/system_bus_socket /run/systemd/private",
		"--setenv=PATH=" + path, "--setenv=HOME=" + w.live}
	for _, kv := range w.env {
		args = append(args, "--setenv="+kv)
	}
	args = append(args, filepath.Join(filepath.SplitList(os.Getenv("PATH"))[0], "mulligan"), "run", "-p")
	out, err := exec.CommandContext(t.Context(), "systemd-run", args...).CombinedOutput()
	t.Logf("a pass: %v: %s", err, out)
	return string(out)
}
