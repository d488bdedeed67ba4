package managed

import (
	"context"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
)

// Successor tells whoever waits for a run whom to follow: the run that was put back in its place, or that a person
// started again under its name, and so on to the last one. ok is false while nobody took its place, and then the run
// itself is returned. A replacement counts from the moment it passed the gate. What Successor says is durable, and a
// successor is never taken back; the last one may get one of its own, so look at its end and ask again.
// [Host.WaitSuccessor] waits for one.
//
// A new start of a name whose run ended well is no successor: who waited has what they waited for. A run that is not
// registered is run.ErrNotFound.
func (h *Host) Successor(ctx context.Context, id string) (last run.Run, ok bool, err error) {
	if last, err = h.cfg.Stores.Runs.Get(ctx, id); err != nil {
		return run.Run{}, false, fmt.Errorf("find the successor of run %s: %w", id, err)
	}
	// A circle cannot come about, and would hang a waiter if it did.
	for met := map[string]bool{}; !met[last.ID]; {
		met[last.ID] = true
		next, found, err := h.next(ctx, last)
		if err != nil {
			return last, ok, fmt.Errorf("find the successor of run %s: %w", last.ID, err)
		}
		if !found {
			break
		}
		last, ok = next, true
	}
	return last, ok, nil
}

// next is the run that took r's place: its replacement, as the ledger says; else the one by hand, as r says; else the
// holder of its name that says so itself, whose process was killed before it could tell r.
func (h *Host) next(ctx context.Context, r run.Run) (next run.Run, ok bool, err error) {
	id := r.Next
	rec, err := h.cfg.Stores.Ledger.Get(ctx, r.Key())
	var damage *ledger.DamageError
	switch {
	case err == nil && rec.Launch != nil && rec.Launch.Bound != nil && rec.Launch.Run != r.ID && r.Launch == "":
		id = rec.Launch.Run
	case err != nil && !errors.Is(err, ledger.ErrNotFound) && !errors.As(err, &damage):
		return next, false, err
	}
	if id != "" {
		next, err = h.cfg.Stores.Runs.Get(ctx, id)
		if errors.Is(err, run.ErrNotFound) {
			return next, false, fmt.Errorf("run %s has its place and is not registered any more: %w", id, err)
		}
		return next, err == nil, err
	}
	next, err = h.cfg.Stores.Runs.Holder(ctx, r.Project, r.Name)
	if errors.Is(err, run.ErrNotFound) {
		return next, false, nil
	}
	return next, err == nil && next.After == r.ID, err
}
