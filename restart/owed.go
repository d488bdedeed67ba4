package restart

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/episode/report"
	"github.com/mulligan-dev/mulligan/ledger"
)

// owedFor is how far back a healer looks, when it starts, for reports that another one did not come to.
const owedFor = 24 * time.Hour

// behind are the episodes whose report does not tell how their records stand. A record moves before its report is
// written, so a healer that is killed in between leaves a report of the past, and once the record is final nothing would
// ever touch it again. Whoever starts next makes it good; a healer looks once, for later it knows what it owes.
func (p *pass) behind(ctx context.Context) (map[string][]ledger.Key, error) {
	recent, err := p.recent(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for reports that are behind: %w", err)
	}
	owed := map[string][]ledger.Key{}
	for _, ep := range episode.Group(recent) {
		var told report.Report
		files, err := p.h.cfg.Stores.Reports.GetReport(ctx, ep.ID)
		if err == nil && json.Unmarshal(files["report.json"], &told) == nil && told.Changed == ep.Changed.String() && whole(told, ep) {
			continue
		}
		for _, m := range ep.Members { // a report that cannot be read is made anew
			owed[ep.ID] = append(owed[ep.ID], m.Key)
		}
	}
	return owed, nil
}

// whole reports whether a report has every member of the episode. A member that was found to belong to it later does not
// change the episode's time.
func whole(told report.Report, ep episode.Episode) bool {
	in := map[ledger.Key]bool{}
	for _, a := range told.Agents {
		in[ledger.Key{Project: a.Project, Lineage: a.Lineage}] = true
	}
	for _, a := range told.LeftAlone {
		in[ledger.Key{Project: a.Project, Lineage: a.Lineage}] = true
	}
	for _, m := range ep.Members {
		if !in[m.Key] {
			return false
		}
	}
	return true
}

// recent are the records of episodes that changed lately, those at rest among them: a store that can tell them by their
// time need not read the others.
func (p *pass) recent(ctx context.Context) (out []ledger.Record, err error) {
	lately := func(r ledger.Record) bool { return p.now.Sub(r.Changed()) <= owedFor }
	newest, ok := p.h.cfg.Stores.Ledger.(ledger.Newest)
	if !ok {
		for _, r := range p.h.seen {
			if lately(r) && r.Episode != "" && r.Pruned.IsZero() {
				out = append(out, r)
			}
		}
		return out, nil
	}
	var recs []ledger.Record
	for n := 64; ; n *= 4 {
		if recs, err = newest.Newest(ctx, n); err != nil {
			return nil, err
		}
		if len(recs) < n || !lately(recs[len(recs)-1]) {
			break
		}
	}
	for _, r := range recs {
		if lately(r) && r.Episode != "" && r.Pruned.IsZero() {
			out = append(out, r)
		}
	}
	return out, nil
}

// owes notes whether an episode's report and row are still to be brought up to date, and whose changes they lack.
func (p *pass) owes(id string, changed []ledger.Key, still bool) {
	switch {
	case p.h.owed == nil: // a dry run owes nothing
	case still:
		p.h.owed[id] = changed
	default:
		delete(p.h.owed, id)
	}
}
