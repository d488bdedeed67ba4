package restart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/mulligan-dev/mulligan/episode/report"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// owesRule names what owes says, for the stores that keep its answers. It is another name when the rule changes.
const owesRule = "owes/1"

// owes reports whether a record that is final still needs a pass: somebody has to be told, or its episode is to be found.
func owes(r ledger.Record) bool {
	if r.Open() {
		return true
	}
	if kind := loud(r); kind != "" {
		if _, told := r.Told[kind]; !told {
			return true
		}
	}
	_, shown := r.Told[kindWaiting]
	_, over := r.Told[kindOver]
	return rowDue(r) || shown && !over || unlabelled(r)
}

// unlabelled reports whether label has something to find for a record.
func unlabelled(r ledger.Record) bool {
	switch r.Reason {
	case policy.Handoff, policy.PhaseUnknown, policy.PostProvider:
		return r.State == ledger.Declined && r.Episode == "" && r.Pruned.IsZero()
	}
	return false
}

// readLedger reads what needs work: all records, or where the store can tell them apart only those that are not at rest.
// One that cannot be read is an outcome of its own and keeps its lineage.
func (p *pass) readLedger(ctx context.Context) error {
	seen := map[ledger.Key]ledger.Record{}
	for rec, err := range p.records(ctx) {
		var damage *ledger.DamageError
		switch {
		case errors.As(err, &damage) && damage.Torn && p.canReclaim():
			// A claim that a power cut tore before its claimer was told that it won: its doorbell takes it up again.
		case errors.As(err, &damage):
			p.result.Outcomes = append(p.result.Outcomes, Outcome{Project: damage.Key.Project, Lineage: damage.Key.Lineage, Error: err.Error()})
		case err != nil:
			return fmt.Errorf("read the ledger: %w", err)
		default:
			seen[rec.Key] = rec
		}
	}
	p.h.seen = seen
	if p.h.owed == nil && !p.h.dry {
		owed, err := p.behind(ctx)
		if err != nil {
			return err
		}
		p.h.owed = owed
	}
	return nil
}

func (p *pass) records(ctx context.Context) iter.Seq2[ledger.Record, error] {
	if w, ok := p.h.cfg.Stores.Ledger.(ledger.Working); ok {
		return w.Working(ctx, owesRule, owes)
	}
	return p.h.cfg.Stores.Ledger.List(ctx)
}

// members are the records of an episode: those that this healer has at hand, those that have changed since its last report,
// and, at rest by now, those that the report names.
func (p *pass) members(ctx context.Context, id string, changed []ledger.Key) ([]ledger.Record, error) {
	var out []ledger.Record
	have := map[ledger.Key]bool{}
	for k, r := range p.h.seen {
		if r.Episode == id {
			out, have[k] = append(out, r), true
		}
	}
	files, err := p.h.cfg.Stores.Reports.GetReport(ctx, id)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return nil, fmt.Errorf("read the last report of episode %s: %w", id, err)
	}
	var last report.Report
	if err := json.Unmarshal(files["report.json"], &last); err != nil && len(files) > 0 {
		// It is written anew below, from what is known; a report decides nothing.
		p.h.log.Warn("the last report of an episode cannot be read", "episode", id, "error", err)
	}
	named := slices.Clone(changed)
	for _, a := range last.Agents {
		named = append(named, ledger.Key{Project: a.Project, Lineage: a.Lineage})
	}
	for _, a := range last.LeftAlone {
		named = append(named, ledger.Key{Project: a.Project, Lineage: a.Lineage})
	}
	for _, k := range named {
		if have[k] {
			continue
		}
		have[k] = true
		r, err := p.h.cfg.Stores.Ledger.Get(ctx, k)
		var damage *ledger.DamageError
		switch {
		case errors.As(err, &damage) || errors.Is(err, ledger.ErrNotFound):
			// A full pass reports it.
		case err != nil:
			return nil, fmt.Errorf("read a member of episode %s: %w", id, err)
		case r.Episode == id:
			out = append(out, r)
		}
	}
	return out, nil
}
