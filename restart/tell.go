package restart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/episode/report"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// tell brings reports and notices up to date with what the pass changed, and makes good what an earlier pass could not
// deliver. Whatever is not acknowledged stays unmarked in its record and is told again.
func (p *pass) tell(ctx context.Context) error {
	episodes := maps.Clone(p.h.owed)
	if episodes == nil {
		episodes = map[string][]ledger.Key{}
	}
	tell := func(r ledger.Record) { episodes[r.Episode] = append(slices.Clip(episodes[r.Episode]), r.Key) }
	var errs []error
	for k, rec := range p.h.seen {
		touched := p.touched[k]
		if rec.Episode != "" && (touched || rowDue(rec)) {
			tell(rec)
		}
		errs = append(errs, p.waiting(ctx, rec))
		if kind := loud(rec); kind != "" {
			if _, told := rec.Told[kind]; !told {
				if rec.Episode != "" {
					tell(rec) // a healer may have been killed between the decision and the report
				}
				errs = append(errs, p.escalate(ctx, rec, kind))
			}
		}
	}
	for id, changed := range episodes {
		err := p.tellEpisode(ctx, id, changed)
		p.owes(id, changed, err != nil)
		errs = append(errs, err)
	}
	errs = append(errs, p.tellUnreadable(ctx), p.tellPause(ctx), p.overdue(ctx))
	return errors.Join(errs...)
}

// loud is the kind of the notice of its own that a record deserves, empty for none. Refusals are loud, and so is every
// bad end of a replacement; what a person did is not.
func loud(r ledger.Record) string {
	switch r.Reason {
	case policy.Killed, policy.Dismissed, policy.ManualRelaunch, policy.Superseded, policy.Asked:
		return ""
	}
	if r.State == ledger.Declined || r.State == ledger.SettledFailed {
		return r.Reason
	}
	return ""
}

// putBack reports that the record's replacement passed the gate, whatever became of it.
func putBack(r ledger.Record) bool { return r.Launch != nil && r.Launch.Bound != nil }

func rowDue(r ledger.Record) bool {
	_, told := r.Told[notify.KindEpisode]
	return putBack(r) && !told
}

func (p *pass) escalate(ctx context.Context, rec ledger.Record, kind string) error {
	f := facts(rec)
	f.Episode = rec.Episode
	// The record keeps what the first run ended on. Of a replacement the decision's own note says what it ended on.
	if !putBack(rec) {
		f.Exception, f.Message = rec.Facts.Signature.Exception, rec.Facts.Signature.Message
	}
	if err := p.deliver(ctx, notify.Escalation(f)); err != nil {
		return err
	}
	return p.markTold(ctx, rec.Key, kind)
}

// tellEpisode renders the episode's report, and its one row once anything was put back.
func (p *pass) tellEpisode(ctx context.Context, id string, changed []ledger.Key) error {
	members, err := p.members(ctx, id, changed)
	if err != nil {
		return err
	}
	if len(members) == 0 {
		return nil // its records cannot be read any more; doctor shows them
	}
	ep := episode.Group(members)[0]
	opts := report.Options{Now: p.now, MaxDefer: p.h.set.MaxDefer, Paused: p.result.Held != ""}
	rep := report.Build(ep, p.row(ctx, ep.Update), opts)
	files, err := render(rep)
	if err != nil {
		return fmt.Errorf("render the report of episode %s: %w", id, err)
	}
	if err := p.h.cfg.Stores.Reports.PutReport(ctx, id, files); err != nil {
		return fmt.Errorf("write the report of episode %s: %w", id, err)
	}
	row := notify.EpisodeFacts{ID: id, Root: ep.Root, Report: "episodes/" + id}
	if c := ep.Culprit; c != nil {
		row.Commit, row.Subject = c.Commit, c.Subject
	} else {
		row.Commit = ep.To
	}
	var due []ledger.Key
	for _, m := range ep.Members {
		if !putBack(m) {
			continue
		}
		if rowDue(m) {
			due = append(due, m.Key)
		} else {
			row.Told = true
		}
		row.Agents = append(row.Agents, notify.Agent{Project: m.Project, Lineage: m.Lineage, Name: m.Facts.Death.Name,
			At: m.Launch.Begun.Wall, Exception: m.Facts.Signature.Exception, Message: m.Facts.Signature.Message,
			Now: report.Now(m, opts)})
	}
	if len(row.Agents) == 0 {
		return nil
	}
	if err := p.deliver(ctx, notify.EpisodeRow(row)); err != nil {
		return err
	}
	var errs []error
	for _, k := range due {
		errs = append(errs, p.markTold(ctx, k, notify.KindEpisode))
	}
	return errors.Join(errs...)
}

// row is a row of the update journal, nil when there is none.
func (p *pass) row(ctx context.Context, id string) *journal.Row {
	if id == "" {
		return nil
	}
	if !p.read {
		for r, err := range p.h.cfg.Stores.Journal.Rows(ctx) {
			if err == nil {
				p.rows = append(p.rows, r)
			}
		}
		p.read = true
	}
	if i := slices.IndexFunc(p.rows, func(r journal.Row) bool { return r.ID == id }); i >= 0 {
		return &p.rows[i]
	}
	return nil
}

// render is the report in every format that is kept.
func render(r report.Report) (map[string][]byte, error) {
	var j bytes.Buffer
	enc := json.NewEncoder(&j)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	return map[string][]byte{"report.json": j.Bytes(), "report.md": []byte(r.Markdown()), "report.txt": []byte(r.Text(report.Style{}))}, nil
}

// tellAnswer shows an answered failure that nobody else shows.
func (p *pass) tellAnswer(ctx context.Context, a ledger.Answer) error {
	if !a.Loud || a.Told {
		return nil
	}
	f := notify.EscalationFacts{Project: a.Key.Project, Lineage: a.Key.Lineage, Run: a.Run, Name: a.Name, Reason: a.Reason,
		Note: a.Text, At: a.At.Wall}
	if s := a.Signature; s != nil {
		f.Exception, f.Message = s.Exception, s.Message
	}
	if err := p.deliver(ctx, notify.AnswerRow(notify.AnswerFacts{EscalationFacts: f, Loud: true})); err != nil {
		return err
	}
	a.Told = true
	if err := p.h.cfg.Stores.Answers.Append(ctx, a); err != nil {
		return fmt.Errorf("mark the answer of run %s as told: %w", a.Run, err)
	}
	return nil
}

// retell makes good the answers that were not acknowledged. A full pass does it; between full passes nothing is lost.
func (p *pass) retell(ctx context.Context) error {
	var errs []error
	answers := p.h.cfg.Stores.Answers.Answers(ctx)
	if u, ok := p.h.cfg.Stores.Answers.(ledger.Untold); ok {
		answers = u.Untold(ctx)
	}
	for a, err := range answers {
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("read the answers: %w", err))...)
		}
		errs = append(errs, p.tellAnswer(ctx, a))
	}
	return errors.Join(errs...)
}

// deliver hands a row to every notifier; all of them must take it for it to count as told.
func (p *pass) deliver(ctx context.Context, row notify.Row) error {
	var errs []error
	for _, n := range p.h.cfg.Notifiers {
		if err := n.Notify(ctx, row); err != nil {
			errs = append(errs, fmt.Errorf("show %s: %w", row.Key, err))
		}
	}
	return errors.Join(errs...)
}

func (p *pass) markTold(ctx context.Context, k ledger.Key, kind string) error {
	rec, err := p.update(ctx, k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		return ledger.Apply(cur, ledger.Change{Event: ledger.Annotate, Now: now, Actor: p.h.self, Told: []string{kind}})
	})
	if err != nil {
		return fmt.Errorf("mark %s as told: %w", k, err)
	}
	p.saw(rec)
	return nil
}

func (p *pass) markState(ctx context.Context, key string) error {
	st, err := p.h.cfg.Stores.Storm.UpdateState(ctx, func(cur storm.State, now stamp.Time) (storm.State, error) {
		return cur.MarkTold(key, now), nil
	})
	if err != nil {
		return fmt.Errorf("mark %s as told: %w", key, err)
	}
	p.state = st
	return nil
}
