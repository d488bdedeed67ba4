package managed

import (
	"context"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// Run is a run of this process's own: the host does the work itself, marks its phases and says how it ended.
type Run struct {
	h   *Host
	run run.Run
}

// Start registers a run that is this process's own work. Every run needs one call of Done or Fail; a process that dies
// before leaves a run whose instance is dead.
func (h *Host) Start(ctx context.Context, spec Spec) (*Run, error) {
	if spec.Recipe.Marking == run.Unmarked {
		spec.Recipe.Marking = run.Phases
	}
	r, err := h.register(ctx, spec, Person{}, nil)
	if err != nil {
		return nil, err
	}
	return &Run{h: h, run: r}, nil
}

// ID is the run's id.
func (r *Run) ID() string { return r.run.ID }

// Registered is the run as it was registered.
func (r *Run) Registered() run.Run { return r.run }

// Phase marks how far the run is. The mark is durable when Phase returns, so call it before the work that it announces.
// A lower mark than an earlier one changes nothing.
func (r *Run) Phase(ctx context.Context, p run.Phase) error {
	if _, err := run.ParsePhase(string(p)); err != nil {
		return err
	}
	if inside.Inert() {
		return nil
	}
	_, err := r.h.cfg.Stores.Runs.Update(ctx, r.run.ID, func(cur run.Run) (run.Run, error) {
		cur.Phase = run.High(cur.Phase, p)
		return cur, nil
	})
	if err != nil {
		return fmt.Errorf("mark phase %s of %s: %w", p, r.run.Name, err)
	}
	return nil
}

// Done ends the run well.
func (r *Run) Done(ctx context.Context) error {
	if inside.Inert() {
		return nil
	}
	return r.h.end(ctx, r.run.ID, run.End{OK: true})
}

// Failure is a bad end as the host saw it.
type Failure struct {
	// Text is the failure text, any encoding; the last doorbell.TextLimit bytes are kept.
	Text []byte
	Exit classify.Exit
	// Cause is what the host knows for certain, empty for nothing. It beats the text.
	Cause classify.Reason
}

// Fail ends the run badly: it reads the identities, rings the doorbell and records the end.
func (r *Run) Fail(ctx context.Context, f Failure) error {
	if inside.Inert() {
		return nil
	}
	cur, err := r.h.cfg.Stores.Runs.Get(ctx, r.run.ID)
	phase := cur.Phase
	if err != nil {
		phase = run.UnknownPhase
	}
	return r.h.fail(ctx, r.run, phase, f)
}

// fail rings first: a death that was rung is never lost, whatever happens to this process next.
func (h *Host) fail(ctx context.Context, r run.Run, phase run.Phase, f Failure) error {
	at := h.cfg.Now()
	ids := h.identities(ctx, r.Roots)
	text := f.Text
	if len(text) > doorbell.TextLimit {
		text = text[len(text)-doorbell.TextLimit:]
	}
	note := doorbell.Note{
		Schema: doorbell.Schema, Run: r.ID, At: at, Phase: phase, Exit: f.Exit, Cause: f.Cause, Text: text,
		Identities: ids, Silenced: r.Silenced,
	}
	if err := h.cfg.Stores.Doorbells.Ring(ctx, note); err != nil {
		return fmt.Errorf("ring for %s: %w", r.Name, err)
	}
	log, err := h.keepText(r, text)
	return errors.Join(err, h.endAt(ctx, r.ID, phase, log, run.End{At: at, Exit: f.Exit, Cause: f.Cause, Identities: ids}))
}

// keepText leaves the failure text beside the run for later readers; a replacement's log has it already.
func (h *Host) keepText(r run.Run, text []byte) (path string, err error) {
	if r.Log != "" {
		return r.Log, nil
	}
	path = h.logPath(r.ID)
	if err := put(path, text); err != nil {
		return "", fmt.Errorf("keep the failure text of %s: %w", r.Name, err)
	}
	return path, nil
}

func (h *Host) end(ctx context.Context, id string, e run.End) error {
	e.At = h.cfg.Now()
	return h.endAt(ctx, id, "", "", e)
}

func (h *Host) endAt(ctx context.Context, id string, phase run.Phase, log string, e run.End) error {
	_, err := h.cfg.Stores.Runs.Update(ctx, id, func(cur run.Run) (run.Run, error) {
		if cur.Ended == nil {
			cur.Ended = &e
		}
		if phase != "" {
			cur.Phase = run.High(cur.Phase, phase)
		}
		if log != "" {
			cur.Log = log
		}
		return cur, nil
	})
	if err != nil {
		return fmt.Errorf("record the end of run %s: %w", id, err)
	}
	return nil
}
