package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/require"
)

// TestRunnersKilled kills the runner of an agent that a healer's service put back, and that of one which is a service by
// itself: what the manager saw is shown of both, and of the unit that told it nothing stays.
func TestRunnersKilled(t *testing.T) {
	t.Parallel()
	if !require.Systemd(t, require.SystemManager) {
		return
	}
	w := newHungry(t)
	_, _, unit := w.updated()

	// The service looks around every half a minute. A look by hand is as good.
	looked := func(over bool) bool {
		if !over {
			if out, err := mulligan(t, w.env, "run", "-p"); err != nil {
				t.Fatalf("%v, %s", err, out)
			}
		}
		return over
	}
	systemctl(t, "kill", "--signal=KILL", "--kill-who=main", unit.Name)
	s := w.settled("scout", func(s shown) bool { return looked(s.Card.State == "settled_failed") })
	if s.Card.Verdict.Reason != "replacement_lost" || !strings.Contains(s.Card.Verdict.Text, unit.Name+": signal (SIGKILL).") ||
		s.Replacement.State != "lost" || s.Replacement.Cause != "killed" {
		t.Errorf("what was put back and lost its runner is %+v, %+v", s, s.Replacement)
	}
	systemctl(t, "kill", "--signal=KILL", "--kill-who=main", "worker.service")
	s = w.settled("worker", func(s shown) bool { return looked(s.Kind != "run") })
	if s.Kind != "answer" || s.Card.Verdict.Reason != "killed" || !strings.Contains(s.Card.Verdict.Text, "worker.service: signal (SIGKILL).") {
		t.Errorf("a service that lost its runner is %+v", s)
	}
	for deadline := time.Now().Add(time.Minute); !looked(systemctl(t, "show", "--value", "-p", "LoadState", unit.Name) == "not-found"); {
		if time.Now().After(deadline) {
			t.Fatalf("%s is left", unit.Name)
		}
	}
}
