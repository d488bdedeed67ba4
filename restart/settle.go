package restart

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// settle ends launches that were begun: by the replacement's end, or, where their owner is gone, by waiting one lease
// for the replacement to pass the gate. It is all that goes on while the healer is paused or disabled.
func (p *pass) settle(ctx context.Context) {
	for _, rec := range p.h.seen {
		var err error
		switch rec.State {
		case ledger.Launched:
			err = p.settleLaunched(ctx, rec)
		case ledger.Launching:
			err = p.settleLaunching(ctx, rec)
		}
		if err != nil {
			p.failed(rec.Facts.Death.Run, err)
		}
	}
}

// settleLaunched looks how the replacement is. A bad end that was rung is settled with its doorbell, which has the text.
func (p *pass) settleLaunched(ctx context.Context, rec ledger.Record) error {
	r, err := p.h.cfg.Stores.Runs.Get(ctx, rec.Launch.Run)
	if err != nil && !errors.Is(err, run.ErrNotFound) {
		return fmt.Errorf("look at the replacement of %s: %w", rec.Key, err)
	}
	if r.Ended != nil && !r.Ended.OK && !p.rang[rec.Launch.Run] {
		// A bad end is rung before it is recorded, so the bell may have come since the pass listened.
		more, err := p.listen(ctx)
		if err != nil {
			return err
		}
		p.bells = append(p.bells, more...)
	}
	switch {
	case p.rang[rec.Launch.Run]:
		return nil
	case r.Ended != nil && r.Ended.OK:
		return p.settleRecord(ctx, rec.Key, ledger.SettleOK, policy.ReplacementOK, "")
	case r.Ended != nil && r.Intent != nil:
		return p.settleRecord(ctx, rec.Key, ledger.SettleBad, string(r.Intent.Kind), "A person ended the replacement.")
	case r.Ended != nil:
		return p.settleRecord(ctx, rec.Key, ledger.SettleBad, policy.AlreadyRestarted,
			"This run was already the one restart of its lineage. It is reported and not started again.")
	case p.h.cfg.Stores.Instances.Liveness(*rec.Launch.Bound) == ledger.Dead && !p.watched(rec):
		return p.settleLost(ctx, rec)
	}
	return nil
}

// watched reports that somebody is about to say how a replacement ended. A program that was started held is gone a
// moment before its watcher, the healer that launched it, has read the identities and recorded the end.
func (p *pass) watched(rec ledger.Record) bool {
	if !rec.Launch.Bound.Unlocked {
		return false
	}
	for _, e := range rec.History {
		switch {
		case e.Event != ledger.BeginLaunch:
		case e.Actor == p.h.self.ID:
			_, ok := p.h.watching.Load(rec.Launch.Run)
			return ok
		default:
			return p.h.cfg.Stores.Instances.Liveness(ledger.Instance{ID: e.Actor}) == ledger.Alive
		}
	}
	return false
}

// settleLost reads the run once more before it believes that the replacement is gone without a word: its runner
// records the end right before it exits.
func (p *pass) settleLost(ctx context.Context, rec ledger.Record) error {
	r, err := p.h.cfg.Stores.Runs.Get(ctx, rec.Launch.Run)
	if err == nil && r.Ended != nil {
		return p.settleLaunched(ctx, rec)
	}
	if err == nil && ProgramLives(p.h.cfg.Stores.Instances, r) {
		p.lingers(r.ID)
		return nil // only its runner was killed, so far
	}
	delete(p.h.lingering, rec.Launch.Run)
	note, end := "The replacement is gone and left no word of its end. It is reported and not started again.", End{}
	if err == nil {
		end = p.ended(ctx, r)
	}
	if end.Text != "" {
		note += " " + end.Text
	}
	return p.settleAs(ctx, rec.Key, ledger.Change{Event: ledger.SettleBad, Reason: policy.ReplacementLost, Note: note,
		Cause: string(end.Cause)})
}

// lingers has a program looked at again whose runner is gone. Whoever kills both at once, as a service manager does, kills
// one a moment before the other. The looks are as far apart as the runner's end is ago, and end where the tick is nearer.
func (p *pass) lingers(id string) {
	since, ok := p.h.lingering[id]
	if !ok {
		since = p.now
		p.h.lingering[id] = since
	}
	if rest := max(lingerFirst, p.now.Sub(since)); rest < p.h.set.Tick {
		p.due(p.now.Add(rest))
	}
}

// lingerFirst is how long after its runner's end a program is looked at for the second time.
const lingerFirst = 20 * time.Millisecond

// settleLaunching takes a begun launch over from an owner that is gone, gives the replacement one lease to bind, and gives
// the launch up when that is over.
func (p *pass) settleLaunching(ctx context.Context, rec ledger.Record) error {
	mine := rec.Owner != nil && rec.Owner.Instance.Same(p.h.self)
	if mine && !p.now.After(rec.Owner.Until) {
		p.due(rec.Owner.Until)
		return nil
	}
	next, err := p.update(ctx, rec.Key, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		if cur.State != ledger.Launching {
			return cur, nil
		}
		c := ledger.Change{Event: ledger.Takeover, Now: now, Actor: p.h.self, Lease: p.h.set.Lease, OwnerDead: p.ownerDead(cur)}
		next, err := ledger.Apply(cur, c)
		// Healers that make one pass each never own it for a lease: what counts is the time that the first of them gave it.
		over := mine || !cur.Launch.Grace.IsZero() && now.After(cur.Launch.Grace)
		if err != nil || !over {
			return next, err
		}
		return ledger.Apply(next, ledger.Change{Event: ledger.Abort, Now: now, Actor: p.h.self, Reason: policy.LaunchAborted,
			Note: "The healer that began the launch is gone, and the replacement did not pass the launch gate in time."})
	})
	if refused(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("settle the launch of %s: %w", rec.Key, err)
	}
	p.saw(next)
	p.touch(next.Key)
	if next.State == ledger.Launching {
		p.due(next.Owner.Until)
	}
	return nil
}

// settleDead settles the record of a replacement that rang.
func (p *pass) settleDead(ctx context.Context, d *death, code, text string) error {
	if d.rec == nil {
		return fmt.Errorf("run %s is a replacement, and its lineage %s has no record", d.run.ID, d.run.Key())
	}
	if err := p.settleRecord(ctx, d.rec.Key, ledger.SettleBad, code, text); err != nil {
		return err
	}
	rec := p.last(d.rec.Key)
	d.rec = &rec
	if rec.State.Final() {
		p.remove(ctx, d.bells)
	}
	return nil
}

func (p *pass) settleRecord(ctx context.Context, k ledger.Key, e ledger.Event, code, note string) error {
	return p.settleAs(ctx, k, ledger.Change{Event: e, Reason: code, Note: note})
}

func (p *pass) settleAs(ctx context.Context, k ledger.Key, c ledger.Change) error {
	rec, err := p.update(ctx, k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		if cur.State != ledger.Launched {
			return cur, nil
		}
		c := c
		c.Now, c.Actor = now, p.h.self
		return ledger.Apply(cur, c)
	})
	if err != nil {
		return fmt.Errorf("settle %s: %w", k, err)
	}
	p.saw(rec)
	p.touch(k)
	return nil
}
