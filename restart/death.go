package restart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness"
)

// death is one death on its way through a pass.
type death struct {
	bells []string // its doorbells, none when only the record is left
	note  doorbell.Note
	run   run.Run
	rec   *ledger.Record // the lineage's record, nil when there is none yet
	lost  bool           // nobody rang: its runner is gone without a word
	end   string         // what somebody else says of how a lost one ended
	torn  bool           // the record's first revision was torn by a power cut, and may be claimed again

	facts    policy.Facts
	decision policy.Decision
	id       string          // the launch id, once a slot is asked for
	launch   string          // the same, once the launch is begun
	episode  string          // what the launch will belong to
	probed   stamp.Time      // when the probe's result was had
	search   *witness.Search // the witnesses, as long as more of them may be found
	filing   *filing
	err      error
}

// Scope limits a pass. The zero Scope is everything that is pending.
type Scope struct {
	// Project and Name choose one run; an empty Project matches all.
	Project, Name string
	// Dir chooses the runs whose workspace or folder is in it.
	Dir string
}

func (s Scope) holds(r run.Run) bool {
	if s.Name != "" && (r.Name != s.Name || s.Project != "" && r.Project != s.Project) {
		return false
	}
	if s.Dir == "" || within(r.Recipe.Dir, s.Dir) {
		return true
	}
	return slices.ContainsFunc(r.Workspaces, func(w string) bool { return within(w, s.Dir) })
}

// collect takes up the deaths to decide: those that rang, and the deferred or orphaned records whose doorbell is gone.
func (p *pass) collect(ctx context.Context, bells []*ring) {
	found := p.loadAll(ctx, bells)
	for _, rec := range p.h.seen {
		if (rec.State == ledger.Deferred || rec.State == ledger.Claimed) && !p.rang[rec.Facts.Death.Run] {
			if d := p.fromRecord(ctx, rec); d != nil && p.scope.holds(d.run) {
				found = append(found, d)
			}
		}
	}
	p.take(ctx, found)
}

// arrivals takes up the deaths that rang while the pass was at work, so that the victims of one update share what was
// found for the first of them. It returns those that are still undecided.
func (p *pass) arrivals(ctx context.Context) []*death {
	bells, err := p.listen(ctx)
	if err != nil || len(bells) == 0 {
		return nil // the next pass comes to them
	}
	p.now = p.h.cfg.Now()
	return undecided(p.take(ctx, p.loadAll(ctx, bells)))
}

// loadAll loads the deaths that some doorbells tell of.
func (p *pass) loadAll(ctx context.Context, bells []*ring) (found []*death) {
	for _, it := range bells {
		d, err := p.load(ctx, it)
		if err != nil {
			p.failed(it.note.Run, err)
			p.unloaded(it, err)
			continue
		}
		if d != nil && p.scope.holds(d.run) {
			found = append(found, d)
		}
	}
	return found
}

// take decides what can be decided at once, in order, and claims the lineages of the rest for the late rules, side by
// side.
func (p *pass) take(ctx context.Context, found []*death) []*death {
	found = inOrder(found)
	var claims sync.WaitGroup
	for _, d := range found {
		if p.early(ctx, d) {
			claims.Go(func() { d.err = p.claim(ctx, d) })
		}
	}
	claims.Wait()
	p.deaths = append(p.deaths, found...)
	return found
}

// load joins a doorbell with the run's registration and its lineage's record. A nil death needs nothing more.
func (p *pass) load(ctx context.Context, it *ring) (*death, error) {
	r, err := p.h.cfg.Stores.Runs.Get(ctx, it.note.Run)
	if err != nil {
		return nil, fmt.Errorf("the run that rang is not registered: %w", err)
	}
	if ProgramLives(p.h.cfg.Stores.Instances, r) {
		p.premature(r, it.note.At)
		return nil, nil
	}
	if _, answered, err := p.h.cfg.Stores.Answers.Answer(ctx, r.ID); err != nil {
		return nil, fmt.Errorf("look for an answer: %w", err)
	} else if answered {
		p.remove(ctx, it.ids)
		return nil, nil
	}
	d := &death{bells: it.ids, note: it.note, run: r, lost: it.lost, end: it.ending}
	rec, err := p.h.cfg.Stores.Ledger.Get(ctx, r.Key())
	var damage *ledger.DamageError
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return d, nil
	case errors.As(err, &damage) && damage.Torn && p.canReclaim():
		d.torn = true
		return d, nil
	case err != nil:
		return nil, err
	}
	p.saw(rec)
	d.rec = &rec
	if owns(rec, r) {
		return nil, p.removeOwned(ctx, it.ids, rec.Key)
	}
	if rec.Facts.Death.Run == r.ID && rec.State == ledger.Launching {
		return nil, nil
	}
	return d, nil
}

// premature leaves a doorbell until its run is over: a program may ring, and then go on in another thread, or be about to
// end. Two processes would share the name otherwise. It is said once, and looked at again after as long as it has lain
// there: whoever watches the program rings at its end, but may have been killed.
func (p *pass) premature(r run.Run, rang stamp.Time) {
	p.due(p.now.Add(max(time.Second, p.now.Sub(rang))))
	key := "premature/" + r.ID
	if p.h.shown[key] {
		return
	}
	p.h.shown[key] = true
	p.h.log.Warn("a run rang and still runs: its doorbell waits for its end", "name", r.Name, "project", r.Project, "run", r.ID, "pid", r.PID)
}

// owns reports that a record has the death of r, or its end as a replacement, and needs the doorbell no more.
func owns(rec ledger.Record, r run.Run) bool {
	switch rec.State {
	case ledger.Claimed, ledger.Deferred, ledger.Launching:
		return false
	case ledger.Launched:
		return rec.Facts.Death.Run == r.ID
	}
	return rec.Facts.Death.Run == r.ID || rec.Launch != nil && rec.Launch.Run == r.ID
}

// removeOwned takes away the doorbell of a death that a record has which somebody else wrote. Such a record may be
// visible before it is flushed, so it is made durable first.
func (p *pass) removeOwned(ctx context.Context, bells []string, k ledger.Key) error {
	if s, ok := p.h.cfg.Stores.Ledger.(ledger.Syncer); ok {
		if err := s.Sync(ctx, k); err != nil {
			return fmt.Errorf("make %s durable: %w", k, err)
		}
	}
	p.remove(ctx, bells)
	return nil
}

func (p *pass) canReclaim() bool {
	_, ok := p.h.cfg.Stores.Ledger.(ledger.Reclaimer)
	return ok
}

// fromRecord makes a death of a record whose doorbell is gone.
func (p *pass) fromRecord(ctx context.Context, rec ledger.Record) *death {
	rd := rec.Facts.Death
	r, err := p.h.cfg.Stores.Runs.Get(ctx, rd.Run)
	if err != nil {
		p.failed(rd.Run, fmt.Errorf("the run of %s is not registered: %w", rec.Key, err))
		return nil
	}
	n := doorbell.Note{Schema: doorbell.Schema, Run: r.ID, At: rd.At, Phase: run.Phase(rd.Phase),
		Exit: classify.Exit{Code: rd.Exit, Signal: rd.Signal}, Silenced: rd.Silenced}
	if r.Ended != nil {
		n.Identities = r.Ended.Identities
	}
	return &death{note: n, run: r, rec: &rec}
}

// judge fills in everything that rules 1 to 8 rest on.
func (p *pass) judge(ctx context.Context, d *death) error {
	f := &d.facts
	f.Marking, f.Silenced = d.run.Recipe.Marking, d.note.Silenced || d.run.Silenced
	f.Replacement = d.run.Launch != ""
	f.Lost, f.Ending = d.lost, d.end
	heard(f, d.run)
	if err := p.holder(ctx, d); err != nil {
		return err
	}
	f.Phase = phaseOf(d)
	if d.rec != nil && d.rec.Facts.Death.Run == d.run.ID && len(d.bells) == 0 {
		f.Signature = signatureOf(d.rec.Facts.Signature)
	} else {
		f.Signature = p.h.cfg.Classifier.Classify(classify.Input{
			Text: d.note.Text, Exit: d.note.Exit, Cause: d.note.Cause, Roots: roots(d.run.Roots), Workspaces: d.run.Workspaces,
		})
	}
	p.probeable(d)
	since := d.note.At
	if d.rec != nil && d.rec.Facts.Death.Run == d.run.ID {
		since, f.Seen = d.rec.First, true
		if d.rec.State == ledger.Deferred {
			f.Last = d.rec.Note
		}
	}
	f.Age, f.Held = p.age(since)
	return nil
}

// heard takes over what a person did about a run.
func heard(f *policy.Facts, r run.Run) {
	if in := r.Intent; in != nil {
		f.Intent, f.By, f.Said = in.Kind, in.By, in.Note
	}
}

// phaseOf is the mark that counts. A note without one leaves it to the registration, which knows the marks of a host's
// own run; those of a program lie in a file that only its runner reads.
func phaseOf(d *death) run.Phase {
	switch {
	case d.note.Phase != "":
		return run.High(d.run.Phase, d.note.Phase)
	case d.run.Recipe.Marking == run.Idempotent:
		return run.Preparing
	case d.run.Recipe.Marking == run.Phases && d.run.PhaseFile == "":
		return d.run.Phase
	}
	return run.UnknownPhase
}

// holder looks who has the run's name now. A newer run wins over any relaunch.
func (p *pass) holder(ctx context.Context, d *death) error {
	d.facts.Superseded = ""
	holder, err := p.h.cfg.Stores.Runs.Holder(ctx, d.run.Project, d.run.Name)
	switch {
	case errors.Is(err, run.ErrNotFound):
	case err != nil:
		return fmt.Errorf("look who holds the name %s/%s: %w", d.run.Project, d.run.Name, err)
	case holder.ID != d.run.ID && holder.Replaces != d.run.ID:
		d.facts.Superseded = holder.ID
	}
	return nil
}

// involved are the roots that the failure is about: the one that owns the module, and those of the frames that asked.
// A failure that names none involves all of the run's roots.
func (d *death) involved() []witness.Root {
	sig := d.facts.Signature
	var out []witness.Root
	for _, r := range d.run.Roots {
		if r.Name == sig.Root || slices.Contains(sig.Asked, r.Name) {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return d.run.Roots
	}
	return out
}

// record is the death as the ledger keeps it.
func (d *death) record() ledger.Facts {
	sig := d.facts.Signature
	f := ledger.Facts{
		Death: ledger.Death{
			Run: d.run.ID, Name: d.run.Name, At: d.note.At, Booted: d.run.Started, Phase: string(d.facts.Phase),
			Exit: d.note.Exit.Code, Signal: d.note.Exit.Signal, Silenced: d.facts.Silenced,
			Workspace: first(d.run.Workspaces), Log: d.run.Log,
		},
		Signature: ledger.Signature{
			Family: string(sig.Family), Reason: string(sig.Reason), Exception: sig.Exception, Module: sig.Module,
			Symbol: sig.Symbol, Modules: sig.ManagedModules, Root: sig.Root, Asked: sig.Asked, Message: sig.Message,
		},
	}
	if d.rec != nil && len(d.bells) == 0 {
		f.Signature = d.rec.Facts.Signature
	}
	for _, r := range d.run.Roots {
		f.Roots = append(f.Roots, ledger.RootChange{Root: r.Name, From: keyOf(d.run.Boot, r.Name), To: keyOf(d.note.Identities, r.Name)})
	}
	// What an earlier pass has found stays where this one had no reason to look again, as in an expiry.
	if d.rec != nil && d.facts.Witnesses == nil {
		f.Witnesses, f.Culprit, f.Probe = d.rec.Facts.Witnesses, d.rec.Facts.Culprit, d.rec.Facts.Probe
	}
	if w := d.facts.Witnesses; w != nil {
		for _, e := range w.Evidence {
			f.Witnesses = append(f.Witnesses, witnessOf(e))
		}
		f.Culprit = culpritOf(w.Culprit())
	}
	if pr := d.facts.Probe; pr != nil && pr.Result != nil {
		f.Probe = &ledger.Probe{Outcome: string(pr.Result.Outcome), Modules: pr.Modules, Detail: pr.Result.Detail, At: d.probed}
	}
	return f
}

// window is the life of the run, in which an update must lie.
func (d *death) window() stamp.Window { return stamp.Window{From: d.run.Started, To: d.note.At} }

// inOrder puts a run that waits behind the runs that it waits for, and otherwise the oldest death first.
func inOrder(ds []*death) []*death {
	slices.SortFunc(ds, func(a, b *death) int {
		switch {
		case a.note.At.Before(b.note.At):
			return -1
		case b.note.At.Before(a.note.At):
			return 1
		}
		return cmp.Compare(a.run.ID, b.run.ID)
	})
	byName := map[[2]string]*death{}
	for _, d := range ds {
		byName[[2]string{d.run.Project, d.run.Name}] = d
	}
	out := make([]*death, 0, len(ds))
	placed := map[*death]bool{}
	var place func(d *death)
	place = func(d *death) {
		if placed[d] {
			return // also ends a circle of waits
		}
		placed[d] = true
		for _, n := range d.run.WaitsFor {
			if w := byName[[2]string{d.run.Project, n}]; w != nil {
				place(w)
			}
		}
		out = append(out, d)
	}
	for _, d := range ds {
		place(d)
	}
	return out
}
