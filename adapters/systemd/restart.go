package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	godbus "github.com/godbus/dbus/v5"
)

// ErrNotAllowed means that this user may not restart the unit.
var ErrNotAllowed = errors.New("not allowed to restart the unit")

// manual are the settings of a unit by which nobody may restart it: each refuses one half of a restart.
var manual = [...]string{"RefuseManualStart", "RefuseManualStop"}

// MayRestart asks, without doing anything, whether this process may restart the unit. Errors match [ErrNotAllowed], and
// say what would help; a unit that is not loaded is an error too.
func (c *Conn) MayRestart(ctx context.Context, unit string) error {
	state, err := property[string](ctx, c, unit, "Unit", "LoadState")
	if err != nil {
		return err
	}
	if state != "loaded" {
		return fmt.Errorf("restart %s: the manager knows no such unit (%s)", unit, state)
	}
	for _, refuses := range manual {
		switch yes, err := property[bool](ctx, c, unit, "Unit", refuses); {
		case err != nil:
			return err
		case yes:
			return fmt.Errorf("restart %s: %w: it has %s=yes", unit, ErrNotAllowed, refuses)
		}
	}
	if c.manager == User || os.Geteuid() == 0 {
		return nil
	}
	ok, err := authorised(ctx)
	if err != nil || !ok {
		return errors.Join(fmt.Errorf("restart %s: %w: user %d needs the right to manage units (a polkit rule for "+
			"org.freedesktop.systemd1.manage-units), or the service runs under the user's own manager", unit, ErrNotAllowed,
			os.Geteuid()), err)
	}
	return nil
}

// authorised asks polkit whether this process may manage units, without asking a person.
func authorised(ctx context.Context) (bool, error) {
	bus, err := godbus.ConnectSystemBus(godbus.WithContext(ctx))
	if err != nil {
		return false, err
	}
	defer bus.Close()
	subject := struct {
		Kind    string
		Details map[string]godbus.Variant
	}{"system-bus-name", map[string]godbus.Variant{"name": godbus.MakeVariant(bus.Names()[0])}}
	var answer struct {
		Authorized, Challenge bool
		Details               map[string]string
	}
	err = bus.Object("org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority").CallWithContext(ctx,
		"org.freedesktop.PolicyKit1.Authority.CheckAuthorization", 0, subject, "org.freedesktop.systemd1.manage-units",
		map[string]string{}, uint32(0), "").Store(&answer)
	return answer.Authorized, err
}

// acceptWithin bounds the wait for the manager to take a job.
const acceptWithin = 10 * time.Second

// Restart asks for a restart of the unit and returns when the manager has accepted the job, which it does before it stops
// anything. When the unit is one's own, SIGTERM comes next.
//
// A definite refusal is an error of the manager's or matches [ErrNotAllowed]; a context's error means that the answer is
// not known, and the job may be under way.
func (c *Conn) Restart(ctx context.Context, unit string) error {
	ctx, cancel := context.WithTimeout(ctx, acceptWithin)
	defer cancel()
	_, err := c.bus.RestartUnitContext(ctx, unit, "replace", nil)
	var refused godbus.Error
	if errors.As(err, &refused) && refused.Name == "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired" ||
		errors.As(err, &refused) && refused.Name == "org.freedesktop.DBus.Error.AccessDenied" {
		return fmt.Errorf("restart %s: %w: %w", unit, ErrNotAllowed, err)
	}
	if err != nil {
		return fmt.Errorf("restart %s: %w", unit, err)
	}
	return nil
}

// Result is how a unit ended, in the manager's words.
type Result struct {
	// Result is "success", "exit-code", "signal", "core-dump", "timeout", "watchdog", "oom-kill", "resources",
	// "start-limit-hit", ...
	Result string
	// Code and Status are those of a service's main process: 1 exited, 2 killed, 3 dumped; the exit code or the signal.
	Code, Status int
	// Restarts is how often the manager restarted it by itself. A restart by hand sets it back to 0.
	Restarts int
}

// Result reads how the unit's last run ended.
func (c *Conn) Result(ctx context.Context, unit string) (out Result, err error) {
	if out.Result, err = property[string](ctx, c, unit, kind(unit), "Result"); err != nil || kind(unit) == "Scope" {
		return out, err
	}
	code, err1 := property[int32](ctx, c, unit, "Service", "ExecMainCode")
	status, err2 := property[int32](ctx, c, unit, "Service", "ExecMainStatus")
	restarts, err3 := property[uint32](ctx, c, unit, "Service", "NRestarts")
	out.Code, out.Status, out.Restarts = int(code), int(status), int(restarts)
	return out, errors.Join(err1, err2, err3)
}
