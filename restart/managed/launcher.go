package managed

import (
	"context"
	"errors"
	"sync"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// Launcher starts replacements inside this process: each gets a goroutine that runs [Host.Replace]. It is the launcher
// for a host that lives as long as its runs.
type Launcher struct {
	h   *Host
	ctx context.Context
	wg  sync.WaitGroup
}

// Launcher makes one. The programs that it starts end with ctx.
func (h *Host) Launcher(ctx context.Context) *Launcher { return &Launcher{h: h, ctx: ctx} }

// Mode says that what is launched passes the gate itself.
func (l *Launcher) Mode() restart.Mode { return restart.Runner }

// Preflight refuses a run that something else restarts.
func (l *Launcher) Preflight(_ context.Context, o restart.Order) policy.Preflight {
	return restart.SupervisedPreflight(o.Dead)
}

// Launch starts the runner.
func (l *Launcher) Launch(_ context.Context, o restart.Order) (restart.Started, error) {
	if err := l.ctx.Err(); err != nil {
		return restart.Started{}, err
	}
	exited := make(chan struct{})
	l.wg.Go(func() {
		defer close(exited)
		_, err := l.h.Replace(l.ctx, o.Key, o.Launch)
		switch {
		case errors.Is(err, ledger.ErrBound):
			l.h.log.Info("the replacement did not pass the gate", "lineage", o.Key.String(), "error", err)
		case err != nil:
			l.h.log.Error("the replacement's runner failed", "lineage", o.Key.String(), "error", err)
		}
	})
	return restart.Started{Exited: exited}, nil
}

// Wait returns when every replacement that was launched has ended.
func (l *Launcher) Wait() { l.wg.Wait() }
