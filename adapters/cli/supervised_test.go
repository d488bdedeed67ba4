package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/require"
)

// TestExecKnowsItsSupervisor: a run that is the main process of a unit is supervised by it when the manager would restart it,
// and not when it would not, or when something else in the unit started the run.
func TestExecKnowsItsSupervisor(t *testing.T) {
	t.Parallel()
	if !require.Systemd(t, require.SystemManager) {
		return
	}
	self, err := exec.LookPath("mulligan")
	if err != nil {
		t.Fatal(err)
	}
	for unit, c := range map[string]struct {
		restart string
		shell   string
		want    string
	}{
		"restarted": {"on-failure", "exec ", "restarted.service (Restart=on-failure)"},
		"plain":     {"no", "exec ", ""},
		"beside":    {"on-failure", "", ""},
	} {
		home := filepath.Join(t.TempDir(), "home")
		script := c.shell + self + " exec --name agent -- /bin/sleep 300; true"
		out, err := exec.CommandContext(t.Context(), "systemd-run", "--quiet", "--collect", "--unit="+unit, "-p", "Restart="+c.restart,
			"--setenv=MULLIGAN_HOME="+home, "--setenv=PATH="+os.Getenv("PATH"), "/bin/sh", "-c", script).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var list struct {
			Runs []struct{ Supervised string }
		}
		for deadline := time.Now().Add(time.Minute); len(list.Runs) == 0; time.Sleep(20 * time.Millisecond) {
			said, err := mulligan(t, []string{"MULLIGAN_HOME=" + home}, "list", "--all", "-j")
			if time.Now().After(deadline) {
				t.Fatalf("%s: no run within a minute: %v, %s", unit, err, said)
			}
			_ = json.Unmarshal([]byte(said), &list) // the folder may not be there yet
		}
		if got := list.Runs[0].Supervised; got != c.want {
			t.Errorf("%s: supervised by %q, want %q", unit, got, c.want)
		}
		systemctl(t, "stop", unit)
	}
}
