package restart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// Outcome is what a pass did about one run.
type Outcome struct {
	Project string `json:"project"`
	Name    string `json:"name"`
	Run     string `json:"run"`
	Lineage string `json:"lineage"`
	// Verdict and Code are the decision; Text is its sentence.
	Verdict policy.Verdict `json:"verdict"`
	Code    string         `json:"code"`
	Text    string         `json:"text"`
	// State is where the lineage's record stands after the pass, empty without one.
	State   ledger.State `json:"state,omitempty"`
	Episode string       `json:"episode,omitempty"`
	Launch  string       `json:"launch,omitempty"`
	// Error is set when the run could not be dealt with; the pass went on with the others.
	Error string `json:"error,omitempty"`
}

// Result is what a pass did.
type Result struct {
	Outcomes []Outcome `json:"outcomes"`
	// Held is "disabled", "paused", "state_unreadable" or "canary" when nothing was decided for that reason.
	Held string `json:"held,omitempty"`
	// Next is when something will be due, zero when nothing is.
	Next stamp.Time `json:"next,omitzero"`
}

// Failed reports whether any run could not be dealt with.
func (r Result) Failed() bool {
	return slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Error != "" })
}

// Pass decides, once, everything that is pending within the scope. Every decision is durable when it returns, and the
// programs that it relaunched have passed the gate.
func (h *Healer) Pass(ctx context.Context, s Scope) (Result, error) {
	return h.passOver(ctx, s, true, nil)
}

// passOver is Pass; full reads every record anew, otherwise only what rang and what is known to be open is looked at.
// follow, where it is not nil, is given the end of each launch that passed the gate.
func (h *Healer) passOver(ctx context.Context, s Scope, full bool, follow func(exited <-chan struct{})) (Result, error) {
	if inside.Inert() {
		return Result{Held: "canary"}, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &pass{h: h, scope: s, follow: follow, now: h.cfg.Now(), seenRoots: map[string]witness.Observation{}, touched: map[ledger.Key]bool{},
		heard: map[string]bool{}, rang: map[string]bool{}}
	defer p.unlock()
	if err := p.run(ctx, full); err != nil {
		return p.result, err
	}
	return p.result, nil
}

// pass is one pass under way. It holds what is read once and used for many deaths.
type pass struct {
	h     *Healer
	scope Scope
	now   stamp.Time
	state storm.State
	// follow is nil where nobody waits for the ends of launches.
	follow func(exited <-chan struct{})

	bells     []*ring         // what had rung when the pass began to decide
	heard     map[string]bool // doorbells that were read
	rang      map[string]bool // runs that have one
	full      bool            // the box has more than one look may read
	unread    []notify.UnreadableFacts
	deaths    []*death
	admitted  []ledger.Key                   // lineages that the host's admission let pass
	seenRoots map[string]witness.Observation // by root place
	rows      []journal.Row
	read      bool // rows were read
	release   func() error

	mu      sync.Mutex          // guards the maps while launches go on side by side, or beside a probe
	touched map[ledger.Key]bool // records that changed, for notices and reports
	result  Result
}

func (p *pass) run(ctx context.Context, full bool) error {
	if full {
		if err := p.readLedger(ctx); err != nil {
			return err
		}
	}
	held, unreadable := p.readState(ctx)
	if unreadable != nil {
		// Nothing may be launched past a breaker that nobody can see. What was begun is settled, and failures are shown.
		held = policy.StateUnreadable
	}
	bells, err := p.listen(ctx)
	if err != nil {
		return err
	}
	p.bells = bells
	if full {
		p.bells = append(p.bells, p.lostRuns(ctx)...)
	}
	p.settle(ctx)
	if held != "" {
		p.result.Held = held
		return errors.Join(unreadable, p.showHeld(ctx, p.bells, held), p.tell(ctx))
	}
	p.collect(ctx, p.bells)
	p.late(ctx)
	err = p.label(ctx)
	p.unlock() // the handshakes are over
	for _, d := range p.deaths {
		p.report(d)
	}
	if full {
		err = errors.Join(err, p.retell(ctx))
		p.letGo(ctx)
	}
	return errors.Join(err, p.tell(ctx))
}

// listen returns the doorbells that have rung since the pass last asked.
func (p *pass) listen(ctx context.Context) ([]*ring, error) {
	if p.full {
		return nil, nil
	}
	items, err := p.h.cfg.Stores.Doorbells.Pending(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the doorbells: %w", err)
	}
	var rang []*ring
	byRun := map[string]*ring{}
	for _, it := range items {
		if p.heard[it.ID] || p.later(it) {
			continue
		}
		p.heard[it.ID] = true
		switch r := byRun[it.Note.Run]; {
		case it.Err != nil && p.scope != (Scope{}):
			// It may be anybody's.
		case it.Err != nil:
			p.unusable(notify.UnreadableFacts{Bell: it.ID, Place: it.Place, Why: it.Err.Error()})
			p.result.Outcomes = append(p.result.Outcomes, Outcome{Code: policy.Unreadable, Error: fmt.Sprintf("doorbell %s: %v", it.ID, it.Err)})
		case r != nil:
			r.join(it)
		case p.rang[it.Note.Run]:
			// It rang before in this pass; the next one comes to this note.
		default:
			r = &ring{ids: []string{it.ID}, place: it.Place, note: it.Note}
			byRun[it.Note.Run], p.rang[it.Note.Run] = r, true
			rang = append(rang, r)
		}
	}
	return rang, nil
}

// ring is one death as its doorbells tell it. Several may have been left for one: they are read as one note, and go
// together.
type ring struct {
	ids   []string
	place string // where the first of them lies
	note  doorbell.Note
	lost  bool // it did not ring: its runner was killed before it could
	// ending is what somebody else says of how a lost one ended.
	ending string
}

// join adds what another note of the same death knows: the higher mark counts, and nothing that either of them says is
// lost.
func (r *ring) join(it doorbell.Item) {
	r.ids = append(r.ids, it.ID)
	n, m := &r.note, it.Note
	switch {
	case n.Phase == "":
		n.Phase = m.Phase
	case m.Phase != "":
		n.Phase = run.High(n.Phase, m.Phase)
	}
	n.Cause = cmp.Or(n.Cause, m.Cause)
	n.Silenced = n.Silenced || m.Silenced
	if len(m.Text) > len(n.Text) {
		n.Text, n.Exit = m.Text, m.Exit
	}
	if len(n.Identities) == 0 {
		n.Identities = m.Identities
	}
	if m.At.Before(n.At) {
		n.At = m.At
	}
}

// readState reads the pause and keeps track of times in which the healer is switched off.
func (p *pass) readState(ctx context.Context) (held string, err error) {
	p.state, err = p.h.cfg.Stores.Storm.State(ctx)
	if err != nil {
		return "", fmt.Errorf("read the pause and breaker state: %w", err)
	}
	if err := p.noteSwitch(ctx); err != nil {
		return "", err
	}
	switch {
	case p.h.set.Disabled:
		return policy.Disabled, nil
	case p.state.Paused != nil:
		return policy.Paused, nil
	}
	return "", nil
}

// noteSwitch notes, once in a healer's life, that its config switches it on or off. What it finds then was left by an
// earlier healer, or by one beside it that is configured otherwise: those two do not take turns in writing.
func (p *pass) noteSwitch(ctx context.Context) (err error) {
	if off := p.h.set.Disabled; !p.h.switched && off != (p.state.Disabled != nil) {
		p.state, err = p.h.cfg.Stores.Storm.UpdateState(ctx, func(cur storm.State, now stamp.Time) (storm.State, error) {
			if off {
				return cur.Disable(now), nil
			}
			return cur.Enable(now), nil
		})
		if err != nil {
			return fmt.Errorf("note that the healer is switched on or off: %w", err)
		}
	}
	p.h.switched = true
	return nil
}

// age is how old something is, without the time in which the healer was held, and that time. That another healer is
// switched off now keeps nothing young for this one, which is there to decide.
func (p *pass) age(since stamp.Time) (age, held time.Duration) {
	st := p.state
	if !p.h.set.Disabled {
		st.Disabled = nil
	}
	age = st.Unheld(since, p.now)
	return age, max(0, p.now.Sub(since)-age)
}

// due remembers when the next look is worth while.
func (p *pass) due(t stamp.Time) {
	if !t.IsZero() && (p.result.Next.IsZero() || t.Before(p.result.Next)) {
		p.result.Next = t
	}
}

// saw remembers a record as it was read or written.
func (p *pass) saw(rec ledger.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.h.seen[rec.Key] = rec
}

// last is a record as it was seen last. Others may be claimed at the same time.
func (p *pass) last(k ledger.Key) ledger.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.h.seen[k]
}

// touch notes that a record changed.
func (p *pass) touch(k ledger.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.touched[k] = true
}

func (p *pass) unlock() {
	if p.release == nil {
		return
	}
	if err := p.release(); err != nil {
		p.h.log.Warn("the writer lock could not be released", "error", err)
	}
	p.release = nil
}

// remove takes a doorbell away. One that stays is only looked at again.
func (p *pass) remove(ctx context.Context, bells []string) {
	for _, bell := range bells {
		if err := p.h.cfg.Stores.Doorbells.Remove(ctx, bell); err != nil {
			p.h.log.Warn("a decided doorbell could not be removed", "doorbell", bell, "error", err)
		}
	}
}

func (p *pass) failed(run string, err error) {
	p.h.log.Error("a death could not be dealt with", "run", run, "error", err)
	p.result.Outcomes = append(p.result.Outcomes, Outcome{Run: run, Error: err.Error()})
}

// report adds a death's outcome to the result.
func (p *pass) report(d *death) {
	o := Outcome{Project: d.run.Project, Name: d.run.Name, Run: d.run.ID, Lineage: d.run.Lineage,
		Verdict: d.decision.Verdict, Code: d.decision.Code, Text: d.decision.Text}
	if d.rec != nil {
		o.State, o.Episode = d.rec.State, d.rec.Episode
		if d.rec.Launch != nil {
			o.Launch = d.rec.Launch.ID
		}
	}
	if d.err != nil {
		o.Error = d.err.Error()
		p.h.log.Error("a death could not be dealt with", "run", d.run.ID, "name", d.run.Name, "error", d.err)
	} else {
		p.h.log.Info("decided", "run", d.run.ID, "name", d.run.Name, "verdict", string(o.Verdict), "code", o.Code)
	}
	p.result.Outcomes = append(p.result.Outcomes, o)
}
