package systemd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/probe/canary"
)

// TestCanaryInAUnit boots candidates in transient units of a real manager.
func TestCanaryInAUnit(t *testing.T) {
	t.Parallel()
	if !require.Systemd(t, require.SystemManager) {
		return
	}
	c := connect(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	live := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(live, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(live, "db"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Other tests have canaries as well: those of this one are told by their names.
	var units []string
	try := func(as, notes string) canary.Result {
		k, err := canary.New(canary.Config{
			Command: []string{self}, Env: append(os.Environ(), role+"="+as), Dir: filepath.Dir(live), Live: []string{live},
			Overrides: []canary.Override{{Var: "OUT", Path: notes}}, Confine: c.Confiner(), Grace: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		r := k.Run(t.Context())
		units = append(units, regexp.MustCompile(`mulligan-canary-\S+\.service`).FindString(r.IsolationText))
		return r
	}
	notes := filepath.Join(t.TempDir(), "peeked")
	r := try("peek", notes)
	if r.Outcome != canary.Passed || r.Isolation != canary.Enforced || !strings.Contains(r.IsolationText, ".service") {
		t.Errorf("%+v", r)
	}
	if b, err := os.ReadFile(notes); err != nil || strings.Contains(string(b), "secret") || !strings.Contains(string(b), "state/db") {
		t.Errorf("it saw %q, %v", b, err)
	}
	if r := try("leave", notes); r.Code != canary.CodeExited || !strings.Contains(r.Tail, "no module named acme.wire") {
		t.Errorf("one that ends: %+v", r)
	}
	if r := try("stubborn", notes); r.Outcome != canary.Passed {
		t.Errorf("one that ignores SIGTERM: %+v", r)
	}
	for _, unit := range units {
		if unit == "" {
			t.Error("a canary does not say in which unit it was")
			continue
		}
		until(t, unit+" is gone", func() bool { return systemctl(t, "list-units", "--all", "--plain", "--no-legend", unit) == "" })
	}
}

func TestMountPoints(t *testing.T) {
	t.Parallel()
	const text = "36 35 98:0 /mnt1 /a\\040b\\134c rw,noatime master:1 - ext3 /dev/root rw\n37 35 0:1 / /plain rw - tmpfs tmpfs rw\nshort\n"
	if got := strings.Join(mountPoints([]byte(text)), "|"); got != `/a b\c|/plain` {
		t.Errorf("mount points %q", got)
	}
}
