package restart

import (
	"context"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// What is pending for long is shown before it is decided: a deferral after a while, and everything at once while the
// healer is held. Both are rows of one key, and take their last form under it when the outcome comes.

// The marks of a deferral that was shown because it takes long, and of its row's last form.
const (
	kindWaiting = "waiting"
	kindOver    = "waiting_over"
)

// waiting shows, once and without noise, a run that has waited for long: nobody should wonder where it is. When its
// outcome comes the same row says so. While the healer is held nothing is written: the hold has its own row.
func (p *pass) waiting(ctx context.Context, rec ledger.Record) error {
	if p.result.Held != "" {
		return nil
	}
	_, shown := rec.Told[kindWaiting]
	_, over := rec.Told[kindOver]
	f := facts(rec)
	switch age, _ := p.age(rec.First); {
	case rec.State == ledger.Deferred && !shown && age >= p.h.set.Resurface:
		f.Reason = kindWaiting
		if err := p.deliver(ctx, notify.AnswerRow(notify.AnswerFacts{EscalationFacts: f})); err != nil {
			return err
		}
		return p.markTold(ctx, rec.Key, kindWaiting)
	case shown && !over && (rec.State.Final() || putBack(rec)):
		if err := p.deliver(ctx, notify.Outcome(kindWaiting, f)); err != nil {
			return err
		}
		return p.markTold(ctx, rec.Key, kindOver)
	}
	return nil
}

// facts are what a row says of a record as it stands.
func facts(rec ledger.Record) notify.EscalationFacts {
	d := rec.Facts.Death
	return notify.EscalationFacts{Project: rec.Project, Lineage: rec.Lineage, Run: d.Run, Name: d.Name, Reason: rec.Reason,
		Note: rec.Note, At: rec.Changed().Wall, Workspace: d.Workspace}
}

// tellPause tells once that nothing is launched any more.
func (p *pass) tellPause(ctx context.Context) error {
	if p.result.Held == policy.StateUnreadable {
		return nil
	}
	st, err := p.h.cfg.Stores.Storm.State(ctx)
	if err != nil || st.Paused == nil {
		return err
	}
	row := notify.PauseRow(notify.PauseFacts{Since: st.Paused.Since.Wall, Reason: st.Paused.Reason, Note: st.Paused.Note})
	if _, told := st.Told[row.Key]; told {
		return nil
	}
	if err := p.deliver(ctx, row); err != nil {
		return err
	}
	return p.markState(ctx, row.Key)
}

// showHeld shows, once each, the failures that arrive while the healer is paused, disabled or blind. Their doorbells stay. The
// end of a replacement is no such failure: it is settled as ever.
func (p *pass) showHeld(ctx context.Context, bells []*ring, held string) error {
	var errs []error
	// A failure whose doorbell is gone has its record alone.
	for _, rec := range p.h.seen {
		if (rec.State == ledger.Deferred || rec.State == ledger.Claimed) && !p.rang[rec.Facts.Death.Run] {
			if d := p.fromRecord(ctx, rec); d != nil && p.scope.holds(d.run) && d.run.Intent == nil {
				errs = append(errs, p.showOne(ctx, d, held))
			}
		}
	}
	for _, it := range bells {
		d, err := p.load(ctx, it)
		if err != nil {
			p.failed(it.note.Run, err)
			p.unloaded(it, err)
			continue
		}
		switch {
		case d == nil || !p.scope.holds(d.run):
		case d.run.Intent != nil && d.run.Launch == "":
			// What a person ended or takes care of is no failure to show; it is answered after the pause.
		case d.run.Launch != "":
			p.deaths = append(p.deaths, d)
			p.early(ctx, d)
			p.report(d)
		default:
			errs = append(errs, p.showOne(ctx, d, held))
		}
	}
	return errors.Join(errs...)
}

func (p *pass) showOne(ctx context.Context, d *death, held string) error {
	r := d.run
	d.decision = policy.Decision{Verdict: policy.Defer, Code: held, Text: notify.Reason(held).Text}
	p.report(d)
	row := notify.AnswerRow(notify.AnswerFacts{Loud: true, EscalationFacts: notify.EscalationFacts{Project: r.Project,
		Lineage: r.Lineage, Run: r.ID, Name: r.Name, Reason: held, At: d.note.At.Wall, Workspace: first(r.Workspaces)}})
	if _, told := p.state.Told[row.Key]; told || p.h.shown[row.Key] {
		return nil
	}
	if err := p.deliver(ctx, row); err != nil {
		return err
	}
	if held == policy.StateUnreadable {
		p.h.shown[row.Key] = true // there is nowhere else to remember it
		return nil
	}
	return p.markState(ctx, row.Key)
}

// overdue gives the rows that a hold made their last form, once the failure is decided, and forgets them. The notice of a
// pause that is over goes the same way.
func (p *pass) overdue(ctx context.Context) error {
	if p.result.Held != "" {
		return nil
	}
	var errs []error
	for key := range p.state.Told {
		row, over, err := p.over(ctx, key)
		if err == nil && over {
			err = p.deliver(ctx, row)
		}
		if err == nil && over {
			err = p.forget(ctx, key)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// over is the last form of the row under a key of the state, when there is one by now.
func (p *pass) over(ctx context.Context, key string) (row notify.Row, over bool, err error) {
	if since, ok := notify.PauseOf(key); ok {
		if st := p.state.Paused; st != nil && st.Since.Wall.Equal(since) {
			return row, false, nil
		}
		return notify.ResumedRow(since, p.now.Wall), true, nil
	}
	for _, held := range []string{policy.Disabled, policy.Paused} {
		id, ok := notify.RunOf(key, held)
		if !ok {
			continue
		}
		f, over, err := p.became(ctx, id)
		if err != nil || !over {
			return row, false, err
		}
		return notify.Outcome(held, f), true, nil
	}
	return row, false, nil
}

// became is what was decided about a run that was shown while the healer was held. A run that is registered no more was
// pruned: long decided.
func (p *pass) became(ctx context.Context, id string) (f notify.EscalationFacts, over bool, err error) {
	a, ok, err := p.h.cfg.Stores.Answers.Answer(ctx, id)
	if err != nil {
		return f, false, fmt.Errorf("look what became of run %s: %w", id, err)
	}
	if ok {
		return notify.EscalationFacts{Project: a.Key.Project, Lineage: a.Key.Lineage, Run: id, Name: a.Name, Reason: a.Reason,
			Note: a.Text, At: a.At.Wall}, true, nil
	}
	r, err := p.h.cfg.Stores.Runs.Get(ctx, id)
	if errors.Is(err, run.ErrNotFound) {
		return notify.EscalationFacts{Run: id, Lineage: id, At: p.now.Wall}, true, nil
	}
	if err != nil {
		return f, false, fmt.Errorf("look what became of run %s: %w", id, err)
	}
	rec, err := p.h.cfg.Stores.Ledger.Get(ctx, r.Key())
	if errors.Is(err, ledger.ErrNotFound) {
		return f, false, nil
	}
	if err != nil {
		return f, false, fmt.Errorf("look what became of run %s: %w", id, err)
	}
	return facts(rec), rec.Facts.Death.Run == id && (rec.State.Final() || putBack(rec)), nil
}

func (p *pass) forget(ctx context.Context, key string) error {
	st, err := p.h.cfg.Stores.Storm.UpdateState(ctx, func(cur storm.State, _ stamp.Time) (storm.State, error) {
		return cur.Forget(key), nil
	})
	if err != nil {
		return fmt.Errorf("forget the notice %s: %w", key, err)
	}
	p.state = st
	return nil
}
