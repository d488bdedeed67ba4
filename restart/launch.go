package restart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// launchAtOnce bounds the launches that go on side by side.
const launchAtOnce = 8

// launch relaunches what passed every rule: the records are made ours, the breaker gives slots for all of them in one
// step, and then each goes its way side by side, since most of that is waiting for the disk and for the handshakes. A run
// that waits for another is begun after that one.
func (p *pass) launch(ctx context.Context, ds []*death) {
	ds = slices.DeleteFunc(ds, func(d *death) bool {
		ready, err := p.prepare(ctx, d)
		d.err = err
		return !ready || err != nil
	})
	ds = p.reserve(ctx, ds)
	begun := make([]chan struct{}, len(ds))
	for i := range ds {
		begun[i] = make(chan struct{})
	}
	turns := make(chan struct{}, launchAtOnce)
	var wg sync.WaitGroup
	for i, d := range ds {
		wg.Go(func() {
			// The order is the caller's: who is waited for comes first, and a circle of waits is cut there.
			for j, before := range ds[:i] {
				if before.run.Project == d.run.Project && slices.Contains(d.run.WaitsFor, before.run.Name) {
					<-begun[j]
				}
			}
			turns <- struct{}{}
			defer func() { <-turns }()
			p.launchOne(ctx, d, begun[i])
		})
	}
	wg.Wait()
}

// prepare makes the record ours, fixes the launch id and the episode, and has the evidence on its way.
func (p *pass) prepare(ctx context.Context, d *death) (ready bool, err error) {
	if d.rec.State == ledger.Deferred {
		if err := p.claim(ctx, d); err != nil || d.decision.Verdict == policy.Skip {
			return false, err
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return false, fmt.Errorf("make a launch id: %w", err)
	}
	d.id = id.String()
	p.file(ctx, d)
	return true, nil
}

// reserve asks the storm breaker for a slot for each, in one durable step, and returns those that got one. A slot whose
// launch never begins counts all the same: too high is allowed.
func (p *pass) reserve(ctx context.Context, ds []*death) []*death {
	if len(ds) == 0 {
		return nil
	}
	_, err := p.h.cfg.Stores.Storm.UpdateState(ctx, func(cur storm.State, now stamp.Time) (storm.State, error) {
		cur = cur.Enable(now) // another healer may have noted that it is switched off; this one is not
		for _, d := range ds {
			var tripped *storm.Pause
			cur, tripped = storm.Reserve(cur, storm.Slot{Launch: d.id, Project: d.rec.Project, Lineage: d.rec.Lineage,
				Episode: d.episode, At: now}, p.h.set.limits(), now)
			d.facts.Slot = &policy.Slot{Tripped: tripped}
		}
		return cur, nil
	})
	return slices.DeleteFunc(ds, func(d *death) bool {
		if err != nil {
			d.err = fmt.Errorf("reserve a slot for %s: %w", d.rec.Key, err)
			return true
		}
		d.decision = policy.Decide(d.facts, p.limits())
		return d.decision.Verdict != policy.Relaunch // the breaker tripped
	})
}

// launchOne takes one death from its slot to the handshake. begun is closed as soon as the launcher was asked.
func (p *pass) launchOne(ctx context.Context, d *death, begun chan struct{}) {
	started, ok := p.launchBegun(ctx, d)
	close(begun)
	if ok {
		d.err = p.handshake(ctx, d, started)
		if p.follow != nil && started.Exited != nil && d.rec.State == ledger.Launched {
			p.follow(started.Exited)
		}
	}
	if d.launch == "" || d.rec == nil {
		return
	}
	p.keep(d, *d.rec)
	if d.rec.State != ledger.Launching {
		p.remove(ctx, d.bells)
	}
}

func (p *pass) launchBegun(ctx context.Context, d *death) (s Started, ok bool) {
	ready, err := p.commit(ctx, d)
	if err != nil {
		d.err = err
	}
	if !ready || p.h.dry {
		return s, false
	}
	if s, err = p.start(ctx, d); err != nil {
		aborted := p.abort(ctx, d, policy.LaunchFailed, "The launcher could not start it: "+err.Error())
		if d.decision.Verdict == policy.Settle && !d.decision.Loud {
			err = nil // a person was faster, which is no failure
		}
		d.err = errors.Join(err, aborted)
		return s, false
	}
	return s, true
}

// commit puts the evidence on disk, looks once more at what a person may have done, and begins the launch: nothing is
// started before all that is durable. ready is false when something said no; then the decision tells which.
func (p *pass) commit(ctx context.Context, d *death) (ready bool, err error) {
	facts := d.record()
	for i, r := range d.run.Roots {
		if o, ok := p.looked(r); ok {
			facts.Roots[i].Now, facts.Roots[i].NowAt = o.Identity.Key(), o.Identity.At
		}
	}
	path, err := p.filed(ctx, d)
	if err != nil {
		d.decision = policy.Decision{Verdict: policy.Defer, Code: policy.EvidenceFailed, Written: policy.Record,
			Text: "The evidence cannot be written, so nothing is started: " + err.Error()}
		return false, fmt.Errorf("write the evidence of %s: %w", d.rec.Key, errors.Join(err, p.move(ctx, d, ledger.Defer)))
	}
	if err := p.recheck(ctx, d); err != nil {
		return false, err
	}
	if d.decision = policy.Decide(d.facts, p.limits()); d.decision.Verdict != policy.Relaunch {
		return false, nil // a person was faster: late finishes it
	}
	rec, err := p.update(ctx, d.rec.Key, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		return ledger.Apply(cur, ledger.Change{
			Event: ledger.BeginLaunch, Now: now, Actor: p.h.self, Lease: p.h.set.Lease, Reason: d.decision.Code,
			Note: d.decision.Text, Launch: d.id, Episode: d.episode, Evidence: path, Facts: &facts,
		})
	})
	var intended *ledger.IntendedError
	switch {
	case errors.As(err, &intended):
		p.yield(d, intended.Intent) // also when it was said since the look above
		return false, nil
	case refused(err):
		p.lost(d, "Another healer works on it.")
		return false, nil
	case err != nil:
		return false, fmt.Errorf("begin the launch of %s: %w", d.rec.Key, err)
	}
	d.launch = d.id
	p.keep(d, rec)
	return true, nil
}

// yield decides by what a person did, as it stands in the record.
func (p *pass) yield(d *death, in ledger.Intent) {
	for _, k := range []run.IntentKind{run.Killed, run.Dismissed, run.Relaunched, run.Asked} {
		if k.Code() == in.Reason {
			d.facts.Intent, d.facts.By, d.facts.Said = k, in.By, in.Note
		}
	}
	d.decision = policy.Decide(d.facts, p.limits())
}

// start asks the launcher, once.
func (p *pass) start(ctx context.Context, d *death) (Started, error) {
	o := Order{Key: d.rec.Key, Launch: d.launch, Dead: d.run}
	if p.h.cfg.Launcher.Mode() == Held {
		return p.startHeld(ctx, d, o)
	}
	s, err := p.h.cfg.Launcher.Launch(ctx, o)
	if err != nil {
		return Started{}, fmt.Errorf("launch %s: %w", d.run.Name, err)
	}
	return s, nil
}

// handshakePoll is how often the record is looked at while a runner is on its way to the gate. A runner needs some
// milliseconds; nothing waits on the answer but the writer lock and the report.
const handshakePoll = 5 * time.Millisecond

// handshake waits until the replacement is bound, its runner is gone, or the lease is over.
func (p *pass) handshake(ctx context.Context, d *death, s Started) error {
	deadline := p.h.cfg.Now().Add(p.h.set.Lease)
	tick := time.NewTicker(handshakePoll)
	defer tick.Stop()
	exited := s.Exited
	for gone := false; ; {
		rec, err := p.h.cfg.Stores.Ledger.Get(ctx, d.rec.Key)
		if err != nil {
			return fmt.Errorf("wait for the replacement of %s: %w", d.run.Name, err)
		}
		switch {
		case rec.State != ledger.Launching:
			d.rec = &rec
			return nil
		case gone:
			return p.abort(ctx, d, policy.LaunchAborted, "What was started ended before it passed the launch gate.")
		case p.h.cfg.Now().After(deadline):
			return p.abort(ctx, d, policy.LaunchAborted, "The replacement did not pass the launch gate within the lease.")
		}
		select {
		case <-exited:
			// The record is read once more: the replacement may have passed the gate and ended since.
			gone, exited = true, nil
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the replacement of %s: %w", d.run.Name, ctx.Err())
		}
	}
}

// abort settles a launch that never bound. A replacement that was faster keeps it; a person who was faster, and so took
// the name from under the launch, is the reason and no failure.
func (p *pass) abort(ctx context.Context, d *death, code, note string) error {
	if err := p.recheck(ctx, d); err == nil {
		if dec := policy.Decide(d.facts, p.limits()); dec.Verdict == policy.Skip {
			code, note = dec.Code, dec.Text
		}
	}
	rec, err := p.update(ctx, d.rec.Key, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		if cur.State != ledger.Launching {
			return cur, nil
		}
		if cur.Owner.Instance.Same(p.h.self) && now.After(cur.Owner.Until) {
			renewed, err := ledger.Apply(cur, ledger.Change{Event: ledger.Takeover, Now: now, Actor: p.h.self, Lease: p.h.set.Lease})
			if err != nil {
				return cur, err
			}
			cur = renewed
		}
		return ledger.Apply(cur, ledger.Change{Event: ledger.Abort, Now: now, Actor: p.h.self, Reason: code, Note: note})
	})
	if refused(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("abort the launch of %s: %w", d.run.Name, err)
	}
	d.rec = &rec
	if rec.State == ledger.SettledFailed && rec.Reason == code {
		d.decision = policy.Decision{Verdict: policy.Settle, Code: code, Text: note, Loud: loud(rec) != ""}
	}
	return nil
}
