package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	godbus "github.com/godbus/dbus/v5"

	"github.com/mulligan-dev/mulligan/restart/handoff"
)

// Way is a way to a manager by which a unit can be restarted: a [*Conn], or [*Programs] where there is no bus.
type Way interface {
	// Manager is the manager at the other end.
	Manager() Manager
	// MayRestart asks, without doing anything, whether this process may restart the unit.
	MayRestart(ctx context.Context, unit string) error
	// Restart asks for a restart, and returns when the manager has accepted the job.
	Restart(ctx context.Context, unit string) error
	// exits is what the manager does when the unit's main process exits.
	exits(ctx context.Context, unit string) (exits, error)
}

var (
	_ Way = (*Conn)(nil)
	_ Way = (*Programs)(nil)
)

// Restarter restarts the unit of this process through its manager. It is a handoff.Restarter, and with [Restarter.Own] and
// [Restarter.RestartsOnExit] also what that package asks of a unit.
type Restarter struct{ way Way }

var (
	_ handoff.Restarter  = (*Restarter)(nil)
	_ handoff.Unit       = (*Restarter)(nil)
	_ handoff.ExitPolicy = (*Restarter)(nil)
)

// NewRestarter is a restarter over a way to the manager.
func NewRestarter(way Way) (*Restarter, error) {
	if way == nil {
		return nil, errors.New("make a restarter: a way to the manager is missing: see Connect")
	}
	return &Restarter{way}, nil
}

// NeedsUnit implements handoff.Restarter.
func (r *Restarter) NeedsUnit() bool { return true }

// Check implements handoff.Restarter.
func (r *Restarter) Check(ctx context.Context, unit string) error {
	if kind(unit) == "Scope" {
		return fmt.Errorf("restart %s: nobody can restart a scope: run the program as a service", unit)
	}
	return r.way.MayRestart(ctx, unit)
}

// Restart implements handoff.Restarter. The manager's own word is a refusal; an answer that was lost on the way matches
// handoff.ErrUnknown.
func (r *Restarter) Restart(ctx context.Context, unit string) error {
	err := r.way.Restart(ctx, unit)
	if err == nil || definite(err) {
		return err
	}
	return fmt.Errorf("%w: %w", handoff.ErrUnknown, err)
}

// lost are the errors by which the bus says that it has no answer.
var lost = []string{"org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Timeout", "org.freedesktop.DBus.Error.TimedOut",
	"org.freedesktop.DBus.Error.Disconnected"}

// definite reports that the manager has refused. Whatever else went wrong may have happened after it took the job.
func definite(err error) bool {
	var said godbus.Error
	if errors.As(err, &said) {
		return !slices.Contains(lost, said.Name)
	}
	var program *programError
	return errors.Is(err, ErrNotAllowed) || errors.As(err, &program) && program.definite()
}

// Own implements handoff.Unit: the unit that this process runs in, if it is one of the manager at the other end.
func (r *Restarter) Own(context.Context) (string, error) {
	u, err := Self()
	if err != nil {
		return "", err
	}
	if u.Manager != r.way.Manager() || u.Manager == User && u.UID != os.Getuid() {
		return "", fmt.Errorf("%w: this process runs in %s, which is not the %s manager's to restart", ErrNoUnit, u, r.way.Manager())
	}
	return u.Name, nil
}

// exits is what a manager does when a service's main process exits.
type exits struct {
	Restart                 string // the unit's Restart=
	Prevent, Force, Success []int  // exit codes
	Main                    int    // the pid of the main process
}

// comesBack tells in the manager's own order: the codes that prevent a restart, those that force one, then the policy.
func (e exits) comesBack(unit string, code int) error {
	clean := code == 0 || slices.Contains(e.Success, code)
	switch {
	case slices.Contains(e.Prevent, code):
		return fmt.Errorf("%s stays dead after exit code %d: it stands in RestartPreventExitStatus=", unit, code)
	case slices.Contains(e.Force, code), e.Restart == "always", e.Restart == "on-failure" && !clean, e.Restart == "on-success" && clean:
		return nil
	case clean:
		return fmt.Errorf("%s stays dead after exit code %d, which is a clean end: it has Restart=%s", unit, code, e.Restart)
	}
	return fmt.Errorf("%s stays dead after exit code %d: it has Restart=%s", unit, code, e.Restart)
}

// RestartsOnExit implements handoff.ExitPolicy: nil when the manager starts the unit again after this process exits with
// the code, by the unit's Restart=, RestartPreventExitStatus=, RestartForceExitStatus= and SuccessExitStatus=, and this
// process is its main one: the end of another one restarts nothing.
func (r *Restarter) RestartsOnExit(ctx context.Context, unit string, code int) error {
	if kind(unit) == "Scope" {
		return fmt.Errorf("%s is a scope: nothing restarts one", unit)
	}
	e, err := r.way.exits(ctx, unit)
	if err != nil {
		return err
	}
	if e.Main != os.Getpid() {
		return fmt.Errorf("%s has process %d as its main one, and this is %d: its exit restarts nothing", unit, e.Main, os.Getpid())
	}
	return e.comesBack(unit, code)
}

// exits implements Way.
func (c *Conn) exits(ctx context.Context, unit string) (e exits, err error) {
	main, err := property[uint32](ctx, c, unit, "Service", "MainPID")
	if err != nil {
		return e, err
	}
	e.Main = int(main)
	if e.Restart, err = property[string](ctx, c, unit, "Service", "Restart"); err != nil {
		return e, err
	}
	for name, to := range map[string]*[]int{"RestartPreventExitStatus": &e.Prevent, "RestartForceExitStatus": &e.Force,
		"SuccessExitStatus": &e.Success} {
		// A pair of lists: exit codes, and signals.
		pair, err := property[[]any](ctx, c, unit, "Service", name)
		if err != nil {
			return e, err
		}
		if len(pair) != 2 {
			return e, fmt.Errorf("read %s of %s: the manager answers with %d fields", name, unit, len(pair))
		}
		codes, ok := pair[0].([]int32)
		if !ok {
			return e, fmt.Errorf("read %s of %s: the manager answers with %T", name, unit, pair[0])
		}
		for _, code := range codes {
			*to = append(*to, int(code))
		}
	}
	return e, nil
}
