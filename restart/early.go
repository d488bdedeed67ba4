package restart

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

func (p *pass) limits() policy.Limits { return policy.Limits{MaxDefer: p.h.set.MaxDefer} }

// early decides what needs no look at the tree. It reports whether the death is still undecided and its lineage has to
// be claimed.
func (p *pass) early(ctx context.Context, d *death) (claim bool) {
	if d.err = p.judge(ctx, d); d.err != nil {
		return false
	}
	d.decision = policy.Decide(d.facts, p.limits())
	if d.decision.Verdict == policy.Undecided {
		return d.rec == nil || d.rec.State == ledger.Claimed
	}
	d.err = p.conclude(ctx, d)
	return false
}

// conclude writes a decision that ends a death's way, where the table says.
func (p *pass) conclude(ctx context.Context, d *death) error {
	dec := d.decision
	switch {
	case dec.Verdict == policy.Settle:
		return p.settleDead(ctx, d, dec.Code, dec.Text+brokeOn(d.facts.Signature))
	case d.facts.Replacement:
		// A person ended the replacement: its record is settled, quietly.
		return p.settleDead(ctx, d, dec.Code, dec.Text)
	case d.rec != nil:
		return p.decline(ctx, d)
	case dec.Written == policy.Answer:
		return p.answer(ctx, d)
	}
	if err := p.claim(ctx, d); err != nil || d.decision.Code != dec.Code {
		return err
	}
	return p.decline(ctx, d)
}

// brokeOn says in a sentence what a replacement ended on.
func brokeOn(v classify.Verdict) string {
	switch {
	case v.Message != "" && !strings.HasPrefix(v.Message, v.Exception):
		return " It ended on " + v.Exception + ": " + v.Message
	case v.Message != "":
		return " It ended on " + v.Message
	case v.Exception != "":
		return " It ended on " + v.Exception + "."
	}
	return ""
}

// answer writes the answer of a death that gets no record; only then does the doorbell go.
func (p *pass) answer(ctx context.Context, d *death) error {
	f := d.record()
	a := ledger.Answer{
		Schema: ledger.Schema, Run: d.run.ID, Key: d.run.Key(), Name: d.run.Name, At: p.now, Died: d.note.At,
		Verdict: string(d.decision.Verdict), Reason: d.decision.Code, Text: d.decision.Text, Death: &f.Death, Signature: &f.Signature,
		Loud: d.decision.Loud,
	}
	if err := p.h.cfg.Stores.Answers.Append(ctx, a); err != nil {
		return fmt.Errorf("answer run %s: %w", d.run.ID, err)
	}
	p.remove(ctx, d.bells)
	return p.tellAnswer(ctx, a)
}

// claim makes the lineage's record, or takes over one whose claimer is gone. A record that somebody else works on ends
// this death's way through the pass without an error.
func (p *pass) claim(ctx context.Context, d *death) error {
	facts := d.record()
	c := ledger.Change{Event: ledger.Claim, Now: p.now, Actor: p.h.self, Lease: p.h.set.Lease, Facts: &facts}
	if d.rec == nil {
		rec, err := ledger.New(d.run.Key(), c)
		if err != nil {
			return err
		}
		err = p.create(ctx, d, rec)
		if errors.Is(err, ledger.ErrExists) {
			p.lost(d, "Another healer has claimed it.")
			return nil
		}
		if err != nil {
			return fmt.Errorf("claim %s: %w", rec.Key, err)
		}
		p.keep(d, rec)
		d.facts.Seen = true
		return nil
	}
	rec, err := p.update(ctx, d.rec.Key, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		c := c
		c.Now = now
		if cur.State == ledger.Claimed {
			if cur.Owner != nil && cur.Owner.Instance.Same(p.h.self) && !now.After(cur.Owner.Until) {
				return cur, nil
			}
			c.Event, c.OwnerDead = ledger.Takeover, p.ownerDead(cur)
		}
		return ledger.Apply(cur, c)
	})
	if refused(err) {
		p.lost(d, "Another healer works on it.")
		return nil
	}
	if err != nil {
		return fmt.Errorf("claim %s: %w", d.rec.Key, err)
	}
	p.keep(d, rec)
	return nil
}

// create is the claim itself: exclusive, and for good.
func (p *pass) create(ctx context.Context, d *death, rec ledger.Record) error {
	if r, ok := p.h.cfg.Stores.Ledger.(ledger.Reclaimer); ok && d.torn {
		return r.Reclaim(ctx, rec)
	}
	return p.h.cfg.Stores.Ledger.Create(ctx, rec)
}

// decline ends a record for good: its own after a claim, or a deferred one, which nobody owns. A claim of an earlier pass
// may be this healer's own and over, when the clock went on by more than a lease in between.
func (p *pass) decline(ctx context.Context, d *death) error {
	if o := d.rec.Owner; d.rec.State == ledger.Claimed && (!o.Instance.Same(p.h.self) || p.now.After(o.Until)) {
		dec := d.decision
		if err := p.claim(ctx, d); err != nil || d.decision.Code != dec.Code {
			return err
		}
	}
	return p.move(ctx, d, ledger.Decline)
}

// move writes a decision onto the death's record.
func (p *pass) move(ctx context.Context, d *death, e ledger.Event) error {
	c := ledger.Change{Event: e, Actor: p.h.self, Reason: d.decision.Code, Note: d.decision.Text}
	facts := d.record()
	c.Facts = &facts
	if d.facts.Witnesses != nil {
		c.Episode = p.episode(d)
	}
	rec, err := p.update(ctx, d.rec.Key, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		c := c
		c.Now = now
		return ledger.Apply(cur, c)
	})
	if refused(err) {
		p.lost(d, "Another healer works on it.")
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", e, d.rec.Key, err)
	}
	p.keep(d, rec)
	if rec.State.Final() {
		p.remove(ctx, d.bells)
	}
	return nil
}

// lost ends a death's way: somebody else has it.
func (p *pass) lost(d *death, why string) {
	d.decision = policy.Decision{Verdict: policy.Skip, Code: policy.TakenElsewhere, Text: why}
}

// keep remembers a record that this pass wrote.
func (p *pass) keep(d *death, rec ledger.Record) {
	d.rec = &rec
	p.saw(rec)
	p.touch(rec.Key)
}

func (p *pass) update(ctx context.Context, k ledger.Key, f func(ledger.Record, stamp.Time) (ledger.Record, error)) (ledger.Record, error) {
	return p.h.cfg.Stores.Ledger.Update(ctx, k, f)
}

func (p *pass) ownerDead(r ledger.Record) bool {
	return r.Owner != nil && p.h.cfg.Stores.Instances.Liveness(r.Owner.Instance) == ledger.Dead
}

// refused reports that the machine said no because somebody else was first.
func refused(err error) bool {
	var illegal *ledger.IllegalTransitionError
	return errors.Is(err, ledger.ErrOwned) || errors.Is(err, ledger.ErrNotOwner) || errors.Is(err, ledger.ErrBound) ||
		errors.Is(err, ledger.ErrTooEarly) || errors.As(err, &illegal)
}
