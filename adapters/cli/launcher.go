package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// launcher starts each replacement under a runner of its own, this command tree in a new process, so that the replacement
// does not end with the healer. A healer that is a service, and may make units, has its replacements in units of their own:
// whatever runs in its own is ended with it.
func (h *host) launcher() (restart.Launcher, error) {
	runner, err := h.shared.runner()
	if err != nil {
		return nil, err
	}
	command := func(o restart.Order) []string {
		return append(slices.Clone(runner), "exec", "--launch", o.Launch, "--lineage", o.Key.String(), "--home", h.home.Dir())
	}
	if unit, err := systemd.Self(); err == nil && !unit.Scope() && (unit.Manager == systemd.User || os.Geteuid() == 0) {
		h.units = &unitLauncher{manager: unit.Manager, command: command, env: h.shared.env.Environ}
		return h.units, nil
	}
	return &process.RunnerLauncher{Command: command, Env: h.shared.env.Environ, Log: filepath.Join(h.runsDir(), "runner.log")}, nil
}

// unitLauncher is a systemd launcher that reaches the manager when there is something to launch: most commands launch
// nothing, and a manager that was started anew is reached again. Where the bus is out of reach, as in a sandbox, systemd's
// programs are taken if they have a way.
type unitLauncher struct {
	manager systemd.Manager
	command func(restart.Order) []string
	env     []string

	mu   sync.Mutex
	conn *systemd.Conn
	in   restart.Launcher
}

// Mode implements restart.Launcher.
func (l *unitLauncher) Mode() restart.Mode { return restart.Runner }

// Preflight implements restart.Launcher. A manager that cannot be reached is a refusal for now: a plain child would end
// with the service.
func (l *unitLauncher) Preflight(ctx context.Context, o restart.Order) policy.Preflight {
	if p := restart.SupervisedPreflight(o.Dead); p.Code != "" {
		return p
	}
	in, err := l.reach(ctx)
	if err != nil {
		return policy.Preflight{Code: systemd.Unreachable, Text: err.Error()}
	}
	return in.Preflight(ctx, o)
}

// Launch implements restart.Launcher.
func (l *unitLauncher) Launch(ctx context.Context, o restart.Order) (restart.Started, error) {
	in, err := l.reach(ctx)
	if err != nil {
		return restart.Started{}, err
	}
	return in.Launch(ctx, o)
}

// managers are asked how runs ended that left no word. They are reached when there is one, since that is rare, and not kept:
// by the next time they may have been started anew.
type managers struct{ log *slog.Logger }

// End implements restart.Ends.
func (m managers) End(ctx context.Context, r run.Run) (end restart.End, err error) {
	err = m.each(ctx, func(e restart.Ends) error {
		if end.Text != "" {
			return nil
		}
		var err error
		end, err = e.End(ctx, r)
		return err
	})
	if end.Text != "" {
		return end, nil
	}
	return end, err
}

// Release implements restart.Ends.
func (m managers) Release(ctx context.Context, over func(launch string) bool) error {
	return m.each(ctx, func(e restart.Ends) error { return e.Release(ctx, over) })
}

// each asks every manager that can be reached: a machine may have none.
func (m managers) each(ctx context.Context, ask func(restart.Ends) error) error {
	var errs []error
	for _, manager := range [...]systemd.Manager{systemd.System, systemd.User} {
		c, err := systemd.Connect(ctx, manager)
		if err == nil {
			errs = append(errs, ask(c), c.Close())
			continue
		}
		var bus *systemd.BusError
		if unit, none := systemd.Self(); none == nil && unit.Manager == manager && errors.As(err, &bus) {
			// It is the one through whose programs a healer in this unit launches.
			var p *systemd.Programs
			if p, err = bus.Programs(ctx); err == nil {
				errs = append(errs, ask(p))
				continue
			}
		}
		m.log.Debug("a manager of systemd that cannot be reached is not asked how runs ended", "manager", string(manager), "error", err)
	}
	return errors.Join(errs...)
}

// reach finds a way to the manager. That through the programs is not kept: the bus may be back by the next time.
func (l *unitLauncher) reach(ctx context.Context) (restart.Launcher, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in != nil && l.conn.Connected() {
		return l.in, nil
	}
	l.drop()
	c := systemd.LauncherConfig{Command: l.command, Env: l.env}
	conn, err := systemd.Connect(context.WithoutCancel(ctx), l.manager) // the connection lives as long as its context
	var bus *systemd.BusError
	switch {
	case err == nil:
		c.Conn = conn
		in, err := systemd.NewLauncher(c)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		l.conn, l.in = conn, in
		return in, nil
	case errors.As(err, &bus):
		programs, err := bus.Programs(ctx)
		if err != nil {
			return nil, fmt.Errorf("launch in a unit: %w", err)
		}
		return programs.NewLauncher(c)
	}
	return nil, fmt.Errorf("launch in a unit: %w", err)
}

// drop closes the connection.
func (l *unitLauncher) drop() {
	if l.conn != nil {
		_ = l.conn.Close() // it is gone already, or no longer needed
		l.conn, l.in = nil, nil
	}
}

func (l *unitLauncher) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}
