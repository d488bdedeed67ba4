package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/probe/canary"
	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/drain"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// release is what a version brings along beside its program.
type release struct {
	Version string `json:"version"`
}

func readRelease() (r release, err error) {
	exe, err := os.Executable()
	if err != nil {
		return r, err
	}
	b, err := os.ReadFile(filepath.Join(filepath.Dir(exe), "release.json"))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

// serve is the service, from its boot to its exit code. A canary of it runs the same code, with a state folder of its own:
// everything of Mulligan in it does nothing, so nothing here has to ask.
func serve(ctx context.Context) (code int, err error) {
	r, err := readRelease()
	if err != nil {
		return 1, fmt.Errorf("cannot start: the release is damaged: %w", err)
	}
	state := os.Getenv("SELFRESTART_STATE")
	home, err := files.Open(files.Config{Dir: filepath.Join(state, "home")})
	if err != nil {
		return 1, err
	}
	store, err := sessionlog.Open(sessionlog.Config{Path: filepath.Join(state, "log", "sessions")})
	if err != nil {
		return 1, err
	}

	// The restart: who asks systemd, which budget there is, what the session is told, how a new release is tried.
	unit, err := systemd.Self()
	if err != nil {
		return 1, err
	}
	conn, err := systemd.Connect(ctx, unit.Manager)
	if err != nil {
		return 1, err
	}
	restarter, err := systemd.NewRestarter(conn)
	if err != nil {
		return 1, err
	}
	budget, err := handoff.OpenHistory(filepath.Join(state, "restarts"))
	if err != nil {
		return 1, err
	}
	notices, err := boot.OpenOutbox(filepath.Join(state, "boot"))
	if err != nil {
		return 1, err
	}
	drainer, err := drain.New(drain.Config{})
	if err != nil {
		return 1, err
	}
	restart, err := handoff.New(handoff.Config{Restarter: restarter, Own: restarter, History: budget, Notices: notices,
		Canary: func(ctx context.Context) (handoff.Outcome, string) { return try(ctx, conn, unit.Name, state) },
		Admit:  drainer.Admit,
		Failed: func(f handoff.Failure) { say("%s: the restart does not come: %v", r.Version, f.Err) }})
	if err != nil {
		return 1, err
	}

	// The sessions: each turn is admitted by the restart and by the drain.
	service, err := sessions.New(sessions.Config{Store: store, Instances: home.Instances(), Admit: restart.Admit,
		Draining: drainer.Begun()})
	if err != nil {
		return 1, err
	}
	restart.Attach(service)
	// `mulligan self-restart` asks us here, and is then as good as the agent's own tool.
	if err := restart.Listen(filepath.Join(state, "boot")); err != nil {
		return 1, err
	}
	host := &agent{version: r.Version, restart: restart, sessions: service}

	// The boot: auto-resume first, then the notices. It has to exist before any session runs.
	coordinator, err := boot.NewCoordinator(ctx, boot.CoordinatorConfig{Dir: filepath.Join(state, "boot"), Sessions: service,
		Host: host, Startup: []string{"ops"}, Woken: restart.Woken})
	if err != nil {
		return 1, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		return 1, err
	}
	web := &http.Server{Handler: host.routes()}
	go func() { _ = web.Serve(listener) }() // it ends with Close
	say("%s: up, pid %d, boot: %s", r.Version, os.Getpid(), coordinator.Boot().Kind)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	coordinated := make(chan error, 1)
	go func() { coordinated <- coordinator.Run(ctx) }()
	watched := make(chan error, 1)
	go func() {
		watched <- systemd.Watchdog(ctx, func() bool { _, err := store.Head(ctx, "ops"); return err == nil })
	}()

	// The stop: what is under way is marked, waited for, and taken up by the next boot if it does not end in time.
	hurry, cut := context.WithCancel(context.Background())
	defer cut()
	drained := make(chan drain.Result, 1)
	signals, err := drain.Listen(drain.Signals{Again: func(os.Signal) { cut() }, First: func(s os.Signal) {
		_, _ = systemd.Stopping() // the manager knows: it sent the signal
		result, err := drainer.Drain(hurry, drain.Order{Sessions: service, Why: s.String(),
			Teardown: func(context.Context) error {
				stop()
				return errors.Join(web.Close(), <-watched, <-coordinated, coordinator.Close(), restart.Close(), service.Close(),
					notices.Close(), budget.Close(), conn.Close(), store.Close(), home.Close())
			}})
		if err != nil {
			say("%s: drain: %v", r.Version, err)
		}
		drained <- result
	}})
	if err != nil {
		return 1, err
	}
	if _, err := systemd.Ready(); err != nil {
		return 1, err
	}
	result := <-drained
	say("%s: stopped in order", r.Version)
	return result.ExitCode(), signals.Close()
}

// try boots what the unit would start now, beside us: with a port and a state folder of its own, and ours out of its reach.
func try(ctx context.Context, conn *systemd.Conn, unit, state string) (handoff.Outcome, string) {
	recipe, err := conn.Recipe(ctx, unit, os.Environ(), true) // we are its process: our environment is the unit's
	if err != nil {
		return handoff.Skipped, err.Error()
	}
	c, err := canary.New(canary.Config{Command: recipe.Command, Dir: recipe.Dir, Env: recipe.Env,
		Overrides: []canary.Override{{Var: "SELFRESTART_STATE"}}, Live: []string{state}, Confine: conn.Confiner()})
	if err != nil {
		return handoff.Failed, err.Error()
	}
	r := c.Run(ctx)
	detail := fmt.Sprintf("%s: %s", r.Code, r.Text)
	if said := strings.TrimSpace(r.Tail); !r.Proceed() && said != "" {
		detail += "; its last words: " + said[strings.LastIndex(said, "\n")+1:]
	}
	return handoff.Outcome(r.Outcome), detail
}
