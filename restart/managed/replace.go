package managed

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart"
)

// Replace is the runner of a replacement: it knows the identities from the healer or reads them, takes the dead run's name, passes the launch gate,
// and only then starts the program, with no terminal and its output in the run's log. A launch that belongs to another
// process, or is over, is ledger.ErrBound; then not a line of the program ran.
func (h *Host) Replace(ctx context.Context, key ledger.Key, launch string) (Result, error) {
	if h.cfg.Programs == nil {
		return Result{}, errors.New("replace: the host has no Programs")
	}
	if inside.Inert() {
		return Result{}, fmt.Errorf("replace a run of %s: %w", key, inside.ErrInert)
	}
	rec, err := h.cfg.Stores.Ledger.Get(ctx, key)
	if err != nil {
		return Result{}, fmt.Errorf("replace a run of %s: %w", key, err)
	}
	if rec.Launch == nil || rec.Launch.ID != launch || rec.State != ledger.Launching {
		return Result{}, fmt.Errorf("replace a run of %s: launch %s is over or not its launch: %w", key, launch, ledger.ErrBound)
	}
	dead, err := h.cfg.Stores.Runs.Get(ctx, rec.Facts.Death.Run)
	if err != nil {
		return Result{}, fmt.Errorf("replace run %s: %w", rec.Facts.Death.Run, err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Result{}, fmt.Errorf("make a run id: %w", err)
	}
	self := h.cfg.Stores.Instances.Self()
	r := dead.Replacement(id.String(), launch, self, h.cfg.Now())
	r.Log, r.PhaseFile = h.logPath(r.ID), h.phasePath(r)
	r.Boot = h.found(ctx, r.Roots, rec.Facts.Roots)
	err = h.cfg.Stores.Runs.Start(ctx, r, func(holder *run.Run) error {
		return restart.MayReplace(dead, holder)
	})
	if err != nil {
		return Result{}, fmt.Errorf("replace %s: %w", dead.Name, err)
	}
	// A person may have dismissed the dead run while the name was taken: their word is heard until the gate.
	if dead, err = h.cfg.Stores.Runs.Get(ctx, dead.ID); err == nil {
		err = restart.MayReplace(dead, nil)
	}
	if err != nil {
		end := h.end(context.WithoutCancel(ctx), r.ID, run.End{Exit: classify.Exit{Code: 125}})
		return Result{Run: r}, errors.Join(fmt.Errorf("replace %s: %w", r.Name, err), end)
	}
	if err := restart.PassGate(ctx, h.cfg.Stores.Ledger, key, launch, r.ID, self); err != nil {
		end := h.end(context.WithoutCancel(ctx), r.ID, run.End{Exit: classify.Exit{Code: 125}})
		return Result{Run: r}, errors.Join(fmt.Errorf("replace %s: %w", r.Name, err), end)
	}
	return h.conduct(ctx, r, Program{Log: r.Log})
}
