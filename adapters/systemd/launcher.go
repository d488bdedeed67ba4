package systemd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// Unreachable is the preflight code of a manager that does not answer now.
const Unreachable = "manager_unreachable"

// LauncherConfig says how replacements are started.
type LauncherConfig struct {
	// Conn is the manager that the units belong to.
	Conn *Conn
	// Command is the runner's command line for an order: `mulligan exec --launch ID`, or a host's own.
	Command func(restart.Order) []string
	// Env is the runner's environment, KEY=value. The program's own comes from its recipe.
	Env []string
	// Scope starts the runner from this process and gives it a scope of its own, so that it keeps this process's limits
	// and namespaces. The default is a service, which gets the manager's. A scope is made by moving the runner into a new
	// control group, for which the kernel takes some 12 ms when it has moved no process lately.
	Scope bool
	// Slice is where the units go, "" for the manager's default.
	Slice string
	// Stop is how long what is left gets between SIGTERM and SIGKILL; 0 is 90 s.
	Stop time.Duration
}

// Launcher starts each replacement under a runner in a transient unit of its own. The unit outlives the service that this
// process is part of. It is a restart.Launcher of mode Runner.
type Launcher struct{ c LauncherConfig }

var _ restart.Launcher = (*Launcher)(nil)

// NewLauncher checks the config.
func NewLauncher(c LauncherConfig) (*Launcher, error) {
	var errs []error
	if c.Conn == nil {
		errs = append(errs, errors.New("Conn is missing: see Connect"))
	}
	if c.Command == nil {
		errs = append(errs, errors.New("Command is missing: the runner's command line"))
	}
	for _, kv := range c.Env {
		if key, _, ok := strings.Cut(kv, "="); !ok || key == "" {
			errs = append(errs, fmt.Errorf("Env: %q is not KEY=value", kv))
		}
	}
	if c.Slice != "" && !strings.HasSuffix(c.Slice, ".slice") {
		errs = append(errs, fmt.Errorf("Slice: %q does not end in .slice", c.Slice))
	}
	if c.Stop < 0 {
		errs = append(errs, fmt.Errorf("Stop: %v is negative", c.Stop))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("systemd launcher: %w", errors.Join(errs...))
	}
	if c.Stop == 0 {
		c.Stop = 90 * time.Second
	}
	return &Launcher{c}, nil
}

// Mode implements restart.Launcher.
func (l *Launcher) Mode() restart.Mode { return restart.Runner }

// Preflight implements restart.Launcher. A run that its own unit restarts is refused for good.
func (l *Launcher) Preflight(_ context.Context, o restart.Order) policy.Preflight {
	if p := restart.SupervisedPreflight(o.Dead); p.Code != "" {
		return p
	}
	if !l.c.Conn.bus.Connected() {
		return policy.Preflight{Code: Unreachable, Text: fmt.Sprintf("The %s manager of systemd does not answer.", l.c.Conn.manager)}
	}
	return policy.Preflight{}
}

// UnitName is the name of the unit for a launch.
func (l *Launcher) UnitName(launch string) string {
	if l.c.Scope {
		return unitPrefix + launch + ".scope"
	}
	return unitPrefix + launch + ".service"
}

// Launch implements restart.Launcher. It returns when the manager has started the runner.
func (l *Launcher) Launch(ctx context.Context, o restart.Order) (restart.Started, error) {
	command := l.c.Command(o)
	if len(command) == 0 || command[0] == "" {
		return restart.Started{}, errors.New("the runner has no command")
	}
	if l.c.Scope {
		return l.scope(ctx, o, command)
	}
	return l.service(ctx, o, command)
}

func (l *Launcher) service(ctx context.Context, o restart.Order, command []string) (restart.Started, error) {
	unit := l.UnitName(o.Launch)
	props := append(l.common(o.Dead),
		execStart(command),
		prop("Type", "exec"), // a runner that cannot be executed fails the job
		prop("Restart", "no"),
		prop("OOMPolicy", "continue"),
		prop("KillMode", "mixed"),
		prop("TimeoutStopUSec", uint64(l.c.Stop.Microseconds())),
		prop("Environment", l.c.Env),
	)
	if err := l.c.Conn.start(ctx, unit, props); err != nil {
		return restart.Started{}, fmt.Errorf("start %s: %w", unit, err)
	}
	pid, err := property[uint32](ctx, l.c.Conn, unit, "Service", "MainPID")
	if err != nil || pid == 0 {
		// It is gone already, or cannot be asked for: then nobody knows when it ends, which the lease bounds.
		return restart.Started{}, nil //nolint:nilerr // the launch itself went well
	}
	return restart.Started{Exited: exited(int(pid))}, nil
}

// common are the properties of both kinds of unit.
func (l *Launcher) common(dead run.Run) []dbus.Property {
	props := []dbus.Property{
		prop("Description", "Mulligan: "+dead.Project+"/"+dead.Name+" once more"),
		// One that failed stays until its result has been read: see Conn.End and Conn.Release.
		prop("CollectMode", "inactive"),
	}
	if l.c.Slice != "" {
		props = append(props, prop("Slice", l.c.Slice))
	}
	return props
}

func prop(name string, value any) dbus.Property {
	return dbus.Property{Name: name, Value: godbus.MakeVariant(value)}
}

// execStart is the command as a property: path, argument list, and whether a failure is ignored. The manager is told not
// to expand variables by doubling each dollar sign.
func execStart(command []string) dbus.Property {
	args := slices.Clone(command)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$", "$$")
	}
	return prop("ExecStart", []struct {
		Path   string
		Args   []string
		Ignore bool
	}{{command[0], args, false}})
}

// JobError is a job that the manager took and did not bring to its end.
type JobError struct {
	Unit string
	// Result is the manager's word: "failed", "canceled", "timeout", "dependency", "skipped".
	Result string
}

func (e *JobError) Error() string { return fmt.Sprintf("the job for %s ended as %q", e.Unit, e.Result) }

// start makes a transient unit and waits for its job. Properties that an older manager does not know are left out, one
// after the other, where they only make things better.
func (c *Conn) start(ctx context.Context, unit string, props []dbus.Property) error {
	optional := map[string]bool{"OOMPolicy": true, "CollectMode": true}
	for {
		done := make(chan string, 1)
		_, err := c.bus.StartTransientUnitContext(ctx, unit, "fail", props, done)
		if err != nil {
			unknown := slices.IndexFunc(props, func(p dbus.Property) bool {
				return optional[p.Name] && strings.Contains(err.Error(), p.Name)
			})
			if unknown < 0 {
				return err
			}
			props = slices.Delete(slices.Clone(props), unknown, unknown+1)
			continue
		}
		return await(ctx, unit, done)
	}
}

// await waits for a job that was accepted.
func await(ctx context.Context, unit string, done <-chan string) error {
	select {
	case result := <-done:
		if result != "done" {
			return &JobError{Unit: unit, Result: result}
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
