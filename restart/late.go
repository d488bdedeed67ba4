package restart

import (
	"context"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
	"github.com/mulligan-dev/mulligan/witness/quiet"
)

// late takes every death that is still undecided through the table. The probe comes for all of them at once, so that
// one interpreter answers for everything that one update broke.
func (p *pass) late(ctx context.Context) {
	open := undecided(p.deaths)
	for more := open; len(more) > 0; more = p.arrivals(ctx) {
		if len(open) > 0 && more[0] != open[0] {
			open = append(open, more...)
		}
		for _, d := range more {
			d.err = p.advance(ctx, d)
		}
	}
	// While the probe runs others may ring; they are answered from its result, or by a probe of their own.
	for waiting := p.needing(open, policy.NeedProbe); len(waiting) > 0; waiting = p.needing(open, policy.NeedProbe) {
		open = append(open, p.whileProbing(ctx, waiting)...)
		for _, d := range waiting {
			if d.err == nil {
				d.err = p.advance(ctx, d)
			}
		}
	}
	p.launch(ctx, inOrder(p.needing(open, policy.NeedSlot)))
	for _, d := range open {
		if d.filing != nil {
			<-d.filing.done
		}
		if d.err == nil && d.decision.Need == policy.NeedNothing && d.launch == "" {
			d.err = p.finish(ctx, d)
		}
	}
}

func undecided(ds []*death) []*death {
	var out []*death
	for _, d := range ds {
		if d.err == nil && d.decision.Verdict == policy.Undecided {
			out = append(out, d)
		}
	}
	return out
}

func (p *pass) needing(ds []*death, n policy.Need) []*death {
	var out []*death
	for _, d := range ds {
		if d.err == nil && d.decision.Need == n {
			out = append(out, d)
		}
	}
	return out
}

// advance asks the table and looks up what it needs, until it decides or needs what is looked up for all at once.
func (p *pass) advance(ctx context.Context, d *death) error {
	for {
		d.decision = policy.Decide(d.facts, p.limits())
		var err error
		switch d.decision.Need {
		case policy.NeedQuiet:
			err = p.quiet(ctx, d)
		case policy.NeedWitnesses:
			err = p.oneWitness(ctx, d)
		case policy.NeedPreflight:
			pre := p.preflight(ctx, d)
			d.facts.Preflight = &pre
		case policy.NeedProbe:
			return nil // the probe begins now, and what it leaves time for comes beside it
		default:
			return p.allWitnesses(ctx, d)
		}
		if err != nil {
			return err
		}
	}
}

// finish writes a decision of rules 9 to 13. A deferral that is there already with the same cause is left alone.
func (p *pass) finish(ctx context.Context, d *death) error {
	switch d.decision.Verdict {
	case policy.Skip:
		// A person was faster than the launch, or another healer was.
		if d.decision.Code == policy.TakenElsewhere {
			return nil
		}
		return p.decline(ctx, d)
	case policy.Decline:
		return p.decline(ctx, d)
	case policy.Defer, policy.Pause:
		if q := d.facts.Quiet; q != nil && !q.Quiet {
			p.due(q.Until)
		}
		if pre := d.facts.Preflight; pre != nil {
			p.due(pre.Until)
		}
		if d.rec.State == ledger.Deferred {
			if d.rec.Reason == d.decision.Code {
				return nil
			}
			if err := p.claim(ctx, d); err != nil || d.decision.Verdict == policy.Skip {
				return err
			}
		}
		return p.move(ctx, d, ledger.Defer)
	}
	return nil
}

// quiet takes the writer lock shared, for the rest of the pass, and looks when each root last changed.
func (p *pass) quiet(ctx context.Context, d *death) error {
	in := quiet.Input{Now: p.now, Quiescence: p.h.set.Quiescence}
	holder, err := p.share(ctx)
	if err != nil {
		return err
	}
	if holder != "" {
		in.LockHeld, in.Holder = true, holder
	} else if err := p.readJournal(ctx); err != nil {
		return err
	}
	for _, r := range p.rows {
		if r.Open() {
			in.Open = append(in.Open, quiet.Update{Row: r, Alive: update.Alive(p.h.cfg.Stores.Instances, r)})
		}
	}
	for _, r := range d.involved() {
		o, err := p.look(ctx, r)
		if err != nil {
			return err
		}
		in.Roots = append(in.Roots, quiet.Root{Name: r.Name, LastChange: o.Changed, Err: o.NoSignal, Since: p.since(r, o.Changed)})
	}
	res := quiet.Check(in)
	d.facts.Quiet = &res
	return nil
}

// share takes the writer lock once for the pass; a holder means that an update has it.
func (p *pass) share(ctx context.Context) (holder string, err error) {
	if p.release != nil {
		return "", nil
	}
	release, err := p.h.cfg.Stores.Lock.Shared(ctx, "healer "+p.h.self.ID)
	var held *journal.HeldError
	if errors.As(err, &held) {
		return held.Holder, nil
	}
	if err != nil {
		return "", fmt.Errorf("take the writer lock shared: %w", err)
	}
	p.release = release
	return "", nil
}

// readJournal reads the updates, and closes those whose process and writer are gone: with the lock shared nobody else
// can be writing.
func (p *pass) readJournal(ctx context.Context) error {
	if p.read {
		return nil
	}
	var rows []journal.Row
	for r, err := range p.h.cfg.Stores.Journal.Rows(ctx) {
		var damage *ledger.DamageError
		switch {
		case errors.As(err, &damage):
			p.h.log.Warn("a row of the update journal cannot be read", "error", err)
		case err != nil:
			// Nobody knows what is in it: an update may be under way.
			return fmt.Errorf("read the update journal: %w", err)
		default:
			rows = append(rows, r)
		}
	}
	rows, err := update.CloseOrphans(ctx, update.Orphans{
		Journal: p.h.cfg.Stores.Journal, Instances: p.h.cfg.Stores.Instances, Sources: p.h.cfg.Sources,
		Now: p.h.cfg.Now, By: "healer " + p.h.self.ID,
	}, rows)
	if err != nil {
		return fmt.Errorf("close an update that was cut off: %w", err)
	}
	p.rows, p.read = rows, true
	return nil
}

// look reads a root once for the pass.
func (p *pass) look(ctx context.Context, r witness.Root) (witness.Observation, error) {
	if o, ok := p.looked(r); ok {
		return o, nil
	}
	o, err := p.observe(ctx, r)
	if err == nil {
		p.sawRoot(r, o)
	}
	return o, err
}

func (p *pass) sawRoot(r witness.Root, o witness.Observation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seenRoots[r.Place()] = o
}

// looked is what the pass read of a root, if it did.
func (p *pass) looked(r witness.Root) (witness.Observation, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, ok := p.seenRoots[r.Place()]
	return o, ok
}

// observe reads a root now, whatever was read before.
func (p *pass) observe(ctx context.Context, r witness.Root) (witness.Observation, error) {
	src := p.h.cfg.Sources[r.Kind]
	if src == nil {
		err := fmt.Errorf("no source reads roots of kind %q", r.Kind)
		return witness.Observation{NoSignal: err, Identity: witness.Identity{Root: r.Name, Kind: r.Kind, Unknown: err.Error()}}, nil
	}
	o, err := witness.Observe(ctx, src, r)
	o.Identity.Root, o.Identity.Kind, o.Identity.At = r.Name, r.Kind, p.h.cfg.Now()
	return o, err
}

// witnesses searches for all proof of the update, and fixes the episode with it.
func (p *pass) witnesses(ctx context.Context, d *death) error {
	if err := p.oneWitness(ctx, d); err != nil {
		return err
	}
	return p.allWitnesses(ctx, d)
}

// oneWitness searches for proof of the update until there is some, which is enough for the table.
func (p *pass) oneWitness(ctx context.Context, d *death) error {
	req := witness.Request{
		Verdict: d.facts.Signature, Roots: d.run.Roots, Boot: d.run.Boot, Death: d.note.Identities, Window: d.window(),
		Rows: p.rows, Sources: p.h.cfg.Sources, Modules: map[string]witness.Modules{},
	}
	for name, rt := range p.h.cfg.Runtimes {
		if rt.Modules != nil {
			req.Modules[name] = rt.Modules
		}
	}
	s, err := witness.Begin(ctx, req)
	if err != nil {
		return fmt.Errorf("search for witnesses: %w", err)
	}
	d.search = s
	if found := s.Found(); found.Holds() {
		d.facts.Witnesses = &found
		return nil
	}
	return p.allWitnesses(ctx, d)
}

// allWitnesses ends a search that oneWitness left. Nothing is written about a death before.
func (p *pass) allWitnesses(ctx context.Context, d *death) error {
	if d.search == nil {
		return nil
	}
	found, err := d.search.Finish(ctx)
	if err != nil {
		return fmt.Errorf("search for witnesses: %w", err)
	}
	d.facts.Witnesses, d.search = &found, nil
	return nil
}

// episode is the id that the death's record gets: by what the update was, never by what the text said. A death without
// a witness stands for itself.
func (p *pass) episode(d *death) string {
	c := episode.Cause{Lineage: d.run.Key()}
	w := d.facts.Witnesses
	if w == nil || !w.Holds() {
		return episode.ID(c)
	}
	c.Culprit = w.Culprit()
	name := w.Evidence[0].Root
	if c.Culprit != nil {
		name = c.Culprit.Root
	}
	for _, e := range w.Evidence {
		if c.Update == "" {
			c.Update = e.Update
		}
	}
	for _, r := range d.run.Roots {
		if r.Name == name {
			c.Root = r.Live() // the victims of one switch of a release booted from different folders
			o, _ := p.looked(r)
			c.Quiet = o.Identity.Key()
		}
	}
	return episode.ID(c)
}

// recheck looks once more, right before a launch, at what a person may have done meanwhile.
func (p *pass) recheck(ctx context.Context, d *death) error {
	r, err := p.h.cfg.Stores.Runs.Get(ctx, d.run.ID)
	if err != nil {
		return fmt.Errorf("look at run %s again: %w", d.run.ID, err)
	}
	heard(&d.facts, r)
	return p.holder(ctx, d)
}
