package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/require"
)

// TestScopeIsSwept: a runner whose scope was made for it ends what is left there when its run is over, but for a daemon that
// a user's sessions share; the end of one in a scope of somebody else's leaves everything there alone.
func TestScopeIsSwept(t *testing.T) {
	t.Parallel()
	if !require.Systemd(t, require.SystemManager) {
		return
	}
	for scope, lives := range map[string]map[string]bool{
		"mulligan-l1.scope": {"leftover": false, "ssh-agent": true},
		"somebodys.scope":   {"leftover": true, "ssh-agent": true},
	} {
		dir := t.TempDir()
		script := "cd " + dir
		for name := range lives {
			script += fmt.Sprintf("; cp /bin/sleep %[1]s; setsid ./%[1]s 300 >/dev/null 2>&1 & echo $! >%[1]s.pid; until [ \"$(cat /proc/$!/comm)\" = %[1]s ]; do sleep 0.1; done", name)
		}
		script += "; exec mulligan exec --launch l1 --lineage acme/none"
		cmd := exec.CommandContext(t.Context(), "systemd-run", "--quiet", "--scope", "--unit="+scope, "/bin/sh", "-c", script)
		cmd.Env = append(os.Environ(), "MULLIGAN_HOME="+filepath.Join(dir, "home"))
		out, err := cmd.CombinedOutput() // there is no such launch: its run is over before it began
		if err == nil || !strings.Contains(string(out), "acme/none") {
			t.Fatalf("%v: %s", err, out)
		}
		for name, want := range lives {
			b, err := os.ReadFile(filepath.Join(dir, name+".pid"))
			var pid int
			if _, scan := fmt.Sscan(string(b), &pid); err != nil || scan != nil {
				t.Fatal(err, scan)
			}
			alive := func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				return err == nil && !strings.Contains(string(stat), ") Z ")
			}
			for deadline := time.Now().Add(time.Minute); !want && alive() && time.Now().Before(deadline); {
				time.Sleep(10 * time.Millisecond)
			}
			if alive() != want {
				t.Errorf("in %s, %s lives: %t", scope, name, !want)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
