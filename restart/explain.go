package restart

import (
	"context"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
)

// Explanation is everything that is known of one lineage or of one death that got an answer.
type Explanation struct {
	// Record is the lineage's record, nil when the death was answered.
	Record *ledger.Record `json:"record,omitempty"`
	// Answer is set when there is no record.
	Answer *ledger.Answer `json:"answer,omitempty"`
	// Run is the run that died, and Replacement the one that was started for it, where they are known.
	Run         *run.Run `json:"run,omitempty"`
	Replacement *run.Run `json:"replacement,omitempty"`
}

// ErrNoTarget means that nothing goes by a name.
var ErrNoTarget = errors.New("nothing goes by that name")

// Explain finds what a person means by target: a run id, a lineage, a launch id, or the name of the newest run that has
// it ("name" or "project/name"). It is ErrNoTarget when nothing matches.
func (h *Healer) Explain(ctx context.Context, target string) (Explanation, error) {
	if target == "" { // a run that replaces none has no launch id, and is not meant by this
		return Explanation{}, fmt.Errorf("the target is empty: %w: give a run's name, its id or its lineage", ErrNoTarget)
	}
	var found *run.Run
	for r, err := range h.cfg.Stores.Runs.List(ctx) {
		if err != nil {
			h.log.Warn("a run cannot be read", "error", err)
			continue
		}
		if r.ID == target {
			return h.explain(ctx, r)
		}
		switch target {
		case r.Name, r.Project + "/" + r.Name, r.Lineage, r.Project + "/" + r.Lineage, r.Launch:
			if found == nil || r.Started.After(found.Started) {
				found = &r
			}
		}
	}
	if found == nil {
		// The runs of a lineage that was pruned are gone; its tombstone is not.
		if x, ok := h.explainRecord(ctx, target); ok {
			return x, nil
		}
		return Explanation{}, fmt.Errorf("%q: %w: give a run's name, its id or its lineage; `list -a` shows them", target, ErrNoTarget)
	}
	return h.explain(ctx, *found)
}

// explainRecord finds the newest record that goes by a target.
func (h *Healer) explainRecord(ctx context.Context, target string) (x Explanation, ok bool) {
	for r, err := range h.cfg.Stores.Ledger.List(ctx) {
		if err != nil {
			continue // doctor reports it
		}
		d, launch, replaced := r.Facts.Death, "", ""
		if r.Launch != nil {
			launch, replaced = r.Launch.ID, r.Launch.Run
		}
		switch target {
		case r.Lineage, r.Key.String(), d.Run, d.Name, r.Project + "/" + d.Name, launch, replaced:
			if x.Record == nil || r.First.After(x.Record.First) {
				x.Record = &r
			}
		}
	}
	return x, x.Record != nil
}

func (h *Healer) explain(ctx context.Context, r run.Run) (Explanation, error) {
	var x Explanation
	rec, err := h.cfg.Stores.Ledger.Get(ctx, r.Key())
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		x.Run = &r
		a, ok, err := h.cfg.Stores.Answers.Answer(ctx, r.ID)
		if err != nil {
			return x, fmt.Errorf("look for an answer: %w", err)
		}
		if ok {
			x.Answer = &a
		}
		return x, nil
	case err != nil:
		return x, err
	}
	x.Record = &rec
	if d, err := h.cfg.Stores.Runs.Get(ctx, rec.Facts.Death.Run); err == nil {
		x.Run = &d
	}
	if rec.Launch != nil && rec.Launch.Run != "" {
		if d, err := h.cfg.Stores.Runs.Get(ctx, rec.Launch.Run); err == nil {
			x.Replacement = &d
		}
	}
	return x, nil
}

// Records are all records of the ledger, and beside them what could not be read.
func (h *Healer) Records(ctx context.Context) (recs []ledger.Record, damaged []*ledger.DamageError, err error) {
	for rec, err := range h.cfg.Stores.Ledger.List(ctx) {
		var damage *ledger.DamageError
		switch {
		case errors.As(err, &damage):
			damaged = append(damaged, damage)
		case err != nil:
			return recs, damaged, fmt.Errorf("read the ledger: %w", err)
		default:
			recs = append(recs, rec)
		}
	}
	return recs, damaged, nil
}

// Answers are the answers of all deaths that got no record, oldest first.
func (h *Healer) Answers(ctx context.Context) ([]ledger.Answer, error) {
	var out []ledger.Answer
	for a, err := range h.cfg.Stores.Answers.Answers(ctx) {
		if err != nil {
			return out, fmt.Errorf("read the answers: %w", err)
		}
		out = append(out, a)
	}
	return out, nil
}
