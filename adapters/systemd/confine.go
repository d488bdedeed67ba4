package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/probe/canary"
)

// Confiner boots a canary in a transient service from which the live paths are inaccessible. It is a canary.Confiner for
// where Landlock is not to be had, or where limits and namespaces of the manager are wanted.
//
// A manager that cannot make mount namespaces (in a container, or a user's manager on some systems) refuses the unit or
// starts it without: after the start the mounts of its process are looked at, and what is missing there is unproven.
func (c *Conn) Confiner() canary.Confiner { return confiner{c} }

type confiner struct{ c *Conn }

// Confine implements canary.Confiner.
func (f confiner) Confine(ctx context.Context, l canary.Launch) (canary.Confined, error) {
	unit := "mulligan-canary-" + l.ID + ".service"
	props := []dbus.Property{
		prop("Description", "Mulligan: a candidate that is tried"),
		prop("CollectMode", "inactive-or-failed"),
		execStart(l.Command),
		prop("Type", "exec"),
		prop("Restart", "no"),
		prop("KillMode", "control-group"),
		prop("Environment", l.Env),
		prop("StandardOutputFileToAppend", l.Output),
		prop("StandardErrorFileToAppend", l.Output),
		prop("InaccessiblePaths", l.Inaccessible),
	}
	if l.Dir != "" {
		props = append(props, prop("WorkingDirectory", l.Dir))
	}
	if err := f.c.start(ctx, unit, props); err != nil {
		return canary.Confined{}, fmt.Errorf("start %s: %w", unit, err)
	}
	out := canary.Confined{By: "systemd unit " + unit, Stop: func(ctx context.Context, grace time.Duration) error { return f.stop(ctx, unit, grace) }}
	pid, err := property[uint32](ctx, f.c, unit, "Service", "MainPID")
	if err != nil || pid == 0 {
		// It is gone already.
		gone := make(chan struct{})
		close(gone)
		out.Exited = gone
		return out, nil //nolint:nilerr // the launch itself went well
	}
	out.PID, out.Exited = int(pid), exited(int(pid))
	out.Unproven = unmounted(int(pid), l.Inaccessible)
	return out, nil
}

// stop ends the unit: SIGTERM to all of it, SIGKILL after the grace.
func (f confiner) stop(ctx context.Context, unit string, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace+30*time.Second)
	defer cancel()
	done := make(chan string, 1)
	if _, err := f.c.bus.StopUnitContext(ctx, unit, "replace", done); err != nil {
		return nil //nolint:nilerr // a unit that has ended is collected, and no longer known
	}
	select {
	case <-done:
		return nil
	case <-time.After(grace):
	}
	if err := f.c.bus.KillUnitWithTarget(ctx, unit, dbus.All, int32(unix.SIGKILL)); err != nil {
		return nil //nolint:nilerr // it ended in this moment
	}
	return await(ctx, unit, done)
}

// unmounted says which paths are not covered by a mount of their own in a process's namespace, empty when all are.
func unmounted(pid int, paths []string) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/mountinfo")
	if errors.Is(err, os.ErrNotExist) {
		return "it ended before its mounts could be looked at"
	}
	if err != nil {
		return "its mounts cannot be looked at: " + err.Error()
	}
	covered := mountPoints(b)
	for _, p := range paths {
		if !slices.Contains(covered, p) {
			return "the manager left " + p + " within its reach"
		}
	}
	return ""
}

// mountPoints reads the fifth field of each line, in which blanks are octal escapes.
func mountPoints(b []byte) (out []string) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 {
			out = append(out, unescape.Replace(f[4]))
		}
	}
	return out
}
