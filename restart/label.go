package restart

import (
	"context"
	"fmt"

	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// label finds the episode of deaths that were declined before anybody looked at the tree (a person was involved, or
// work had begun): the report of an update also names what it left alone. It decides nothing. While the tree is not
// quiet it waits, and when that takes too long the death stands for itself.
func (p *pass) label(ctx context.Context) error {
	for _, rec := range p.h.seen {
		if !unlabelled(rec) {
			continue
		}
		if err := p.labelOne(ctx, rec); err != nil {
			return fmt.Errorf("find the episode of %s: %w", rec.Key, err)
		}
	}
	return nil
}

func (p *pass) labelOne(ctx context.Context, rec ledger.Record) error {
	d := p.fromRecord(ctx, rec)
	if d == nil {
		return nil
	}
	for _, o := range p.deaths {
		if o.run.ID == d.run.ID {
			d.note.Identities = o.note.Identities
		}
	}
	d.facts.Signature = signatureOf(rec.Facts.Signature)
	id := episode.ID(episode.Cause{Lineage: rec.Key})
	facts := rec.Facts
	if age, _ := p.age(rec.First); age <= p.h.set.MaxDefer {
		if err := p.quiet(ctx, d); err != nil {
			return err
		}
		if q := d.facts.Quiet; !q.Quiet {
			p.due(q.Until)
			return nil
		}
		if err := p.witnesses(ctx, d); err != nil {
			return err
		}
		id = p.episode(d)
		for _, e := range d.facts.Witnesses.Evidence {
			facts.Witnesses = append(facts.Witnesses, witnessOf(e))
		}
		facts.Culprit = culpritOf(d.facts.Witnesses.Culprit())
	}
	next, err := p.update(ctx, rec.Key, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		return ledger.Apply(cur, ledger.Change{Event: ledger.Annotate, Now: now, Actor: p.h.self, Episode: id, Facts: &facts})
	})
	if err != nil {
		return err
	}
	p.saw(next)
	p.touch(next.Key)
	return nil
}
