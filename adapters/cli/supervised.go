package cli

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/systemd"
)

// askWithin bounds what is asked of the manager before a run begins.
const askWithin = 5 * time.Second

// supervisor is what restarts this process by itself, empty for nothing: the unit whose main process it is. A run that
// declares nobody must not end up with two that restart it.
func (e *execCommand) supervisor(ctx context.Context) string {
	unit, err := systemd.Self()
	if err != nil || unit.Scope() || !startedByManager() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	by, err := restarts(ctx, unit)
	if err != nil {
		e.warn("it cannot be told whether systemd restarts this run by itself, which --supervised-by says: %v", err)
	}
	return by
}

// startedByManager reports whether the parent is a manager of systemd's. Only then is there something to ask it.
func startedByManager() bool {
	parent := os.Getppid()
	name, err := os.ReadFile("/proc/" + strconv.Itoa(parent) + "/comm")
	return parent == 1 || err == nil && strings.TrimSpace(string(name)) == "systemd"
}

// restarts asks the manager: what else runs in the unit than its main process is not restarted.
func restarts(ctx context.Context, unit systemd.Unit) (string, error) {
	conn, err := systemd.Connect(ctx, unit.Manager)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	state, err := conn.State(ctx, unit.Name)
	if err != nil || state.PID != os.Getpid() {
		return "", err
	}
	return conn.Supervised(ctx, unit.Name)
}
