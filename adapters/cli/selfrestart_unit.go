package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/probe/canary"
	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/handoff"
)

// ownManager restarts a unit. The manager is reached when it is first asked: what is wrong before, as that there is no
// unit, is told without one.
type ownManager struct {
	unit    string          // empty until it is found
	manager systemd.Manager // empty until it is found
	host    bool            // the host itself has answered

	mu   sync.Mutex
	own  bool // this process runs in the unit
	conn *systemd.Conn
	*systemd.Restarter
}

// NeedsUnit implements handoff.Restarter.
func (m *ownManager) NeedsUnit() bool { return true }

// Own implements handoff.Unit.
func (m *ownManager) Own(context.Context) (string, error) {
	u, err := systemd.Self()
	switch {
	case err != nil:
		return "", err
	case u.Scope():
		return "", fmt.Errorf("this is called in %s, which nobody can restart: a scope is a group of processes that somebody else started", u)
	case u.Manager == systemd.User && u.UID != os.Getuid():
		return "", fmt.Errorf("this is called in %s, whose manager is another user's", u)
	case m.manager != "" && m.manager != u.Manager:
		return "", fmt.Errorf("this is called in %s, which is a unit of the %s manager", u, u.Manager)
	}
	return u.Name, nil
}

// Check implements handoff.Restarter.
func (m *ownManager) Check(ctx context.Context, unit string) error {
	if err := m.reach(ctx, unit); err != nil {
		return err
	}
	return m.Restarter.Check(ctx, unit)
}

// reach finds a way to the manager, once: the bus, and where that is out of reach the programs.
func (m *ownManager) reach(ctx context.Context, unit string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Restarter != nil {
		return nil
	}
	in, err := systemd.Self()
	if m.manager == "" {
		switch {
		case err == nil && !in.Scope():
			m.manager = in.Manager
		case os.Geteuid() == 0:
			m.manager = systemd.System
		default:
			m.manager = systemd.User
		}
	}
	m.unit, m.own = unit, err == nil && in.Name == unit && in.Manager == m.manager
	var way systemd.Way
	conn, err := systemd.Connect(context.WithoutCancel(ctx), m.manager) // it has to outlive the signal that gives up the rest
	var bus *systemd.BusError
	switch {
	case err == nil:
		m.conn, way = conn, conn
	case errors.As(err, &bus):
		if way, err = bus.Programs(ctx); err != nil {
			return err
		}
	default:
		return err
	}
	m.Restarter, err = systemd.NewRestarter(way)
	return err
}

func (m *ownManager) close() {
	if m.conn != nil {
		_ = m.conn.Close() // nothing is asked of it any more
	}
}

func (m *ownManager) name() string {
	if m.manager == systemd.User {
		return m.unit + " of the user's manager"
	}
	return m.unit
}

// spares tells whose turns the restart leaves alone: those of another machine, and of a process in another unit of this
// one. Where that cannot be told nobody is spared.
func (m *ownManager) spares(self ledger.Instance) func(ledger.Instance) bool {
	return func(owner ledger.Instance) bool {
		if owner.Boot == "" || self.Boot == "" {
			return false
		}
		if owner.Boot != self.Boot {
			return true
		}
		if owner.PIDNS != self.PIDNS || owner.PID <= 0 {
			return false
		}
		in, err := systemd.OfProcess(owner.PID)
		return err == nil && (in.Name != m.unit || in.Manager != m.manager)
	}
}

// try boots the candidate beside the living service.
func (m *ownManager) try(ctx context.Context, c config.Canary, environ []string, log *slog.Logger) (handoff.Outcome, string) {
	cc := canary.Config{Command: c.Command, Env: environ, Preflight: c.Preflight, Path: c.Path, Port: c.Port, PortVar: c.PortVar,
		Live: c.Live, Log: log}
	for _, s := range c.State {
		cc.Overrides = append(cc.Overrides, canary.Override{Var: s.Var, Path: s.Path})
	}
	recipe, err := m.recipe(ctx, environ)
	switch {
	case err == nil:
		cc.Dir, cc.Env = recipe.Dir, recipe.Env
		if len(cc.Command) == 0 {
			cc.Command = recipe.Command
		}
	case len(cc.Command) == 0:
		return handoff.Skipped, "The new code was not tried: " + err.Error() + "; command in the config block " + config.SelfRestartBlock + ".canary says how to boot it."
	}
	cc.Env = slices.DeleteFunc(slices.Clone(cc.Env), func(kv string) bool {
		// They name the living service's stores, to which a canary may not write.
		return strings.HasPrefix(kv, EnvSessions+"=") || strings.HasPrefix(kv, EnvNotices+"=")
	})
	candidate, err := canary.New(cc)
	if err != nil {
		return handoff.Failed, err.Error()
	}
	res := candidate.Run(ctx)
	detail := res.Text
	if res.Isolation == canary.Unproven && len(c.Live) > 0 {
		detail += "; isolation unproven: " + res.IsolationText
	}
	if res.Outcome == canary.Failed && res.Tail != "" {
		detail += "; it said: " + notify.Line(notify.Redact(res.Tail), 500)
	}
	return handoff.Outcome(res.Outcome), detail
}

// recipe is how the unit is started.
func (m *ownManager) recipe(ctx context.Context, environ []string) (systemd.Recipe, error) {
	if m.conn == nil {
		return systemd.Recipe{}, fmt.Errorf("read how %s is started: %w", m.unit, systemd.ErrNeedsBus)
	}
	if m.own {
		return m.conn.Recipe(ctx, m.unit, environ, true)
	}
	// What a shell has in its environment is not the service's.
	plain := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "XDG_RUNTIME_DIR", "TMPDIR"}, name)
	})
	return m.conn.Recipe(ctx, m.unit, plain, false)
}

// withSuffix is a unit's name as the bus wants it: what has none of the endings is a service, as for systemctl.
func withSuffix(unit string) string {
	for _, kind := range []string{".service", ".scope", ".socket", ".target", ".timer", ".path", ".slice", ".mount", ".automount", ".swap", ".device"} {
		if unit == "" || strings.HasSuffix(unit, kind) {
			return unit
		}
	}
	return unit + ".service"
}

// withSessions opens the sessions' store. One that nobody named and that is not there means that this host keeps none: f
// gets nil.
func (r *selfRestartCommand) withSessions(ctx context.Context, cfg config.Config, f func(ctx context.Context, u *sessionsUse) error) error {
	g := &sessionsCommand{shared: r.shared, store: r.store}
	for _, c := range r.root.Commands() {
		if c.Name() == "sessions" {
			g.group = c
		}
	}
	if r.store == "" && r.env.get(EnvSessions) == "" && cfg.Sessions.DSN == "" {
		dir, err := r.env.stateDir(r.home)
		if err != nil {
			return &ExitError{Code: CodeUsage, Err: err}
		}
		at, err := g.place(cfg.Sessions, dir)
		if err != nil {
			return err
		}
		if _, err := os.Stat(at.dsn); errors.Is(err, fs.ErrNotExist) {
			return f(ctx, nil)
		}
	}
	return g.use(ctx, reading, f)
}

// visit looks at the session that asks: it has to exist, and woken is set when a notice started it and it has completed no
// turn since.
func (r *selfRestartCommand) visit(ctx context.Context, u *sessionsUse, notices *boot.Outbox) (woken bool, err error) {
	if r.session == "" {
		return false, nil
	}
	if _, err := u.existing(ctx, r.session); err != nil {
		return false, err
	}
	list, err := notices.List(ctx)
	if err != nil {
		return false, err
	}
	var told stamp.Time
	for _, n := range list {
		for _, a := range n.Attempts {
			if n.Session == r.session && (told.IsZero() || a.At.After(told)) {
				told = a.At
			}
		}
	}
	if told.IsZero() {
		return false, nil
	}
	for after := uint64(0); ; {
		page, err := u.Store.Read(ctx, r.session, after, 0)
		if err != nil || len(page) == 0 {
			return true, err
		}
		for _, e := range page {
			var p session.TurnEnded
			if e.Kind == session.KindTurnEnded && e.At.After(told) && e.Into(&p) == nil && (p.End == session.EndDone || p.End == session.EndParked) {
				return false, nil
			}
		}
		after = page[len(page)-1].Seq
	}
}
