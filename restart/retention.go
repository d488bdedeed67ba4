package restart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

const (
	// pruneEvery is how often the loop prunes, and pruneFirst how long after its start for the first time.
	pruneEvery = 24 * time.Hour
	pruneFirst = time.Minute
	// pruneMost bounds how many records and how many runs one call of Prune takes, so that a ledger of years is not
	// pruned in one go.
	pruneMost = 500
)

// Pruned is what a call of Prune took away.
type Pruned struct {
	// Records shrank to tombstones, which keep their lineages closed for good.
	Records int `json:"records"`
	// Evidence, Reports, Answers and Runs are gone, the runs with their logs.
	Evidence int `json:"evidence"`
	Reports  int `json:"reports"`
	Answers  int `json:"answers"`
	Runs     int `json:"runs"`
	// More is set when there was more than one call takes.
	More bool `json:"more,omitempty"`
	// Held is "disabled", "paused" or "canary" when nothing was taken away for that reason.
	Held string `json:"held,omitempty"`
}

func (n Pruned) any() bool { return n != Pruned{} }

// Prune takes away what is older than Settings.Retention and of no use any more: evidence, reports and answers, the runs
// that ended long ago, with their logs. Records are never removed: a settled one that everybody was told of shrinks to a
// tombstone, so that its lineage cannot be claimed again. Whatever is open, untold, alive or rung is left alone, and so
// is everything that a store has no power to remove.
//
// Nothing is pruned while the healer is paused or disabled; Pruned.Held says so.
//
// The loop prunes once a day, beside its passes. One call takes a bounded number; it may be called at any time, by
// several processes at once, and a process that is killed on the way loses nothing: the next call goes on.
func (h *Healer) Prune(ctx context.Context) (Pruned, error) {
	var n Pruned
	if inside.Inert() {
		return Pruned{Held: "canary"}, nil
	}
	// While the healer is held the ledger does not change.
	switch st, err := h.cfg.Stores.Storm.State(ctx); {
	case err != nil:
		return n, fmt.Errorf("prune: read the pause and breaker state: %w", err)
	case h.set.Disabled || st.Disabled != nil:
		return Pruned{Held: policy.Disabled}, nil
	case st.Paused != nil:
		return Pruned{Held: policy.Paused}, nil
	}
	if h.set.Retention < 0 || h.dry {
		return n, nil
	}
	p := &pruning{h: h, now: h.cfg.Now(), n: &n, kept: map[ledger.Key]bool{}, episodes: map[string]bool{}}
	err := errors.Join(p.records(ctx), p.reports(ctx), p.answers(ctx), p.runs(ctx))
	if err != nil {
		return n, fmt.Errorf("prune: %w", err)
	}
	if n.any() {
		h.log.Info("pruned", "records", n.Records, "evidence", n.Evidence, "reports", n.Reports, "answers", n.Answers, "runs", n.Runs, "more", n.More)
	}
	return n, nil
}

// pruning is one call of Prune.
type pruning struct {
	h   *Healer
	now stamp.Time
	n   *Pruned
	// kept are the lineages whose records are more than tombstones, readable or not.
	kept map[ledger.Key]bool
	// blind is set when a record cannot even be told whose it is: then no run and no report is given up.
	blind bool
	// episodes are those that any record names; true while one of those records is kept.
	episodes map[string]bool
}

func (p *pruning) old(t stamp.Time) bool { return !t.IsZero() && p.now.Sub(t) > p.h.set.Retention }

// prunable reports whether nothing but the tombstone of a record is of use any more.
func (p *pruning) prunable(r ledger.Record) bool {
	return r.State.Final() && r.Pruned.IsZero() && !owes(r) && p.old(r.Changed())
}

func (p *pruning) records(ctx context.Context) error {
	for rec, err := range p.h.cfg.Stores.Ledger.List(ctx) {
		var damage *ledger.DamageError
		switch {
		case errors.As(err, &damage):
			p.kept[damage.Key] = true
			p.blind = p.blind || damage.Key == ledger.Key{}
			continue
		case err != nil:
			return err
		}
		if p.prunable(rec) && p.n.Records < pruneMost {
			if rec, err = p.tombstone(ctx, rec); err != nil {
				return err
			}
		} else if p.prunable(rec) {
			p.n.More = true
		}
		if rec.Pruned.IsZero() {
			p.kept[rec.Key], p.episodes[rec.Episode] = true, true
			continue
		}
		if !p.episodes[rec.Episode] {
			p.episodes[rec.Episode] = false
		}
		// Also of a record that was pruned before: whoever did it may have been killed right then.
		if err := p.evidence(ctx, rec.Key); err != nil {
			return err
		}
	}
	return nil
}

// tombstone shrinks a record, unless it changed meanwhile.
func (p *pruning) tombstone(ctx context.Context, rec ledger.Record) (ledger.Record, error) {
	return p.h.cfg.Stores.Ledger.Update(ctx, rec.Key, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		if !p.prunable(cur) {
			return cur, nil
		}
		p.n.Records++
		return ledger.Apply(cur, ledger.Change{Event: ledger.Prune, Now: now, Actor: p.h.self})
	})
}

// evidence discards what lies there for a tombstone's lineage: of the last try first, so that those of a lineage that are
// left always begin with the first, and the next call finds them.
func (p *pruning) evidence(ctx context.Context, k ledger.Key) error {
	d, ok := p.h.cfg.Stores.Evidence.(ledger.EvidenceDiscarder)
	if !ok {
		return nil
	}
	tries := []ledger.Key{k}
	for try := 2; try < maxTries; try++ {
		at := tryKey(k, try)
		if _, err := p.h.cfg.Stores.Evidence.Get(ctx, at); errors.Is(err, ledger.ErrNotFound) {
			break
		}
		tries = append(tries, at)
	}
	for _, at := range slices.Backward(tries) {
		gone, err := d.DiscardEvidence(ctx, at)
		if err != nil {
			return err
		}
		if gone {
			p.n.Evidence++
		}
	}
	return nil
}

// reports discards those of episodes of which only tombstones are left.
func (p *pruning) reports(ctx context.Context) error {
	d, ok := p.h.cfg.Stores.Reports.(ledger.ReportDiscarder)
	if !ok || p.blind {
		return nil
	}
	for id, kept := range p.episodes {
		if kept || id == "" {
			continue
		}
		gone, err := d.DiscardReport(ctx, id)
		if err != nil {
			return err
		}
		if gone {
			p.n.Reports++
		}
	}
	return nil
}

func (p *pruning) answers(ctx context.Context) error {
	a, ok := p.h.cfg.Stores.Answers.(ledger.AnswerPruner)
	if !ok {
		return nil
	}
	n, err := a.PruneAnswers(ctx, func(a ledger.Answer) bool { return p.old(a.At) && (a.Told || !a.Loud) })
	p.n.Answers += n
	return err
}

// runs discards those that ended long ago, whose lineage has a tombstone or no record at all, and for which nothing has
// rung.
func (p *pruning) runs(ctx context.Context) error {
	d, ok := p.h.cfg.Stores.Runs.(run.Discarder)
	if !ok || p.blind {
		return nil
	}
	may := func(r run.Run) bool { return r.Ended != nil && p.old(r.Ended.At) && !p.kept[r.Key()] }
	var old []run.Run
	for r, err := range p.h.cfg.Stores.Runs.List(ctx) {
		if err == nil && may(r) { // one that cannot be read is reported by doctor, and stays
			old = append(old, r)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if len(old) == 0 {
		return nil
	}
	rang := map[string]bool{}
	items, err := p.h.cfg.Stores.Doorbells.Pending(ctx)
	if err != nil {
		return fmt.Errorf("look at the doorbells: %w", err)
	}
	for _, it := range items {
		if it.Err != nil {
			return nil // it may be any of them that rang
		}
		rang[it.Note.Run] = true
	}
	// The oldest first: a name is given up by its last holder only when those before are gone.
	slices.SortFunc(old, func(a, b run.Run) int {
		return cmp.Or(a.Started.Wall.Compare(b.Started.Wall), cmp.Compare(a.ID, b.ID))
	})
	for _, r := range old {
		if p.n.Runs >= pruneMost {
			p.n.More = true
			break
		}
		if rang[r.ID] {
			continue
		}
		gone, err := d.Discard(ctx, r.ID, may)
		if err != nil {
			return err
		}
		if gone {
			p.n.Runs++
		}
	}
	return nil
}
