package restart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// Admission is the host's word on whether one more replacement may be begun now. It is asked in a pass, after the
// launcher's preflight and before the breaker's slot, for one lineage at a time; nothing has been spent then. [Quota] is
// a ready one.
//
// A refusal for now defers the death with the refusal's code and text, and is asked again at its Until and on every
// tick, until the deferral expires. A refusal for good declines it at once.
type Admission interface {
	Admit(ctx context.Context, o Order, l Load) policy.Preflight
}

// Load is what is under way while an order waits to be admitted.
type Load struct {
	// Now is the pass's clock.
	Now stamp.Time
	// Busy are the lineages whose replacement is being launched or runs, as the ledger has it, and those that this pass
	// has admitted already. Another healer that admits at the same moment is not among them.
	Busy []ledger.Key
}

// In is how many lineages of one project are busy.
func (l Load) In(project string) (n int) {
	for _, k := range l.Busy {
		if k.Project == project {
			n++
		}
	}
	return n
}

// QuotaConfig is what a Quota begins with. The zero value admits everything.
type QuotaConfig struct {
	// Capacity is how many replacements may be under way at once, and PerProject how many of one project. Zero means
	// without bound.
	Capacity, PerProject int
	// Holds are there from the beginning.
	Holds []Hold
}

// Hold keeps replacements back for a time.
type Hold struct {
	// Project and Name choose the runs: an empty Name is every run of the project, both empty is every run. A Name without
	// a Project is refused, for names are a project's own.
	Project, Name string
	// Until is when the hold ends by itself; zero is not before it is lifted.
	Until time.Time
	// Why is what people read, a sentence without a full stop; empty says only that there is a hold.
	Why string
}

func (h Hold) String() string {
	switch {
	case h.Project == "":
		return "all projects"
	case h.Name == "":
		return "project " + h.Project
	}
	return h.Project + "/" + h.Name
}

func (h Hold) covers(r run.Run) bool {
	return (h.Project == "" || h.Project == r.Project) && (h.Name == "" || h.Name == r.Name)
}

func (h Hold) validate() error {
	if h.Name != "" && h.Project == "" {
		return fmt.Errorf("the hold on %q names no project: a name is a project's own", h.Name)
	}
	return nil
}

// Quota is an [Admission] by capacity and named holds. Its methods may be called at any time, also while a pass goes on.
//
// Capacity is counted from the ledger, so that the replacements of every healer and of earlier processes count. Two
// healers that pass at the very same moment may each see the last free place; what must never be exceeded is the storm
// breaker's to keep. Holds live in this process and end with it.
type Quota struct {
	capacity, perProject int

	mu    sync.Mutex
	holds []Hold
}

var _ Admission = (*Quota)(nil)

// NewQuota validates the config and reports all that is wrong with it at once.
func NewQuota(c QuotaConfig) (*Quota, error) {
	var errs []error
	if c.Capacity < 0 {
		errs = append(errs, fmt.Errorf("Capacity is %d, want 0 or more", c.Capacity))
	}
	if c.PerProject < 0 {
		errs = append(errs, fmt.Errorf("PerProject is %d, want 0 or more", c.PerProject))
	}
	q := &Quota{capacity: c.Capacity, perProject: c.PerProject}
	for _, h := range c.Holds {
		errs = append(errs, q.Hold(h))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("quota: %w", err)
	}
	return q, nil
}

// Hold adds a hold, or replaces the one on the same project and name.
func (q *Quota) Hold(h Hold) error {
	if err := h.validate(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lift(h.Project, h.Name)
	q.holds = append(q.holds, h)
	return nil
}

// Lift ends the hold on exactly this project and name, and reports whether there was one. What it kept back is decided at
// the healer's next pass.
func (q *Quota) Lift(project, name string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lift(project, name)
}

func (q *Quota) lift(project, name string) bool {
	before := len(q.holds)
	q.holds = slices.DeleteFunc(q.holds, func(h Hold) bool { return h.Project == project && h.Name == name })
	return len(q.holds) < before
}

// Admit implements [Admission]. Of several holds the one that lasts longest is given as the reason.
func (q *Quota) Admit(_ context.Context, o Order, l Load) policy.Preflight {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.holds = slices.DeleteFunc(q.holds, func(h Hold) bool { return !h.Until.IsZero() && !h.Until.After(l.Now.Wall) })
	on := slices.DeleteFunc(slices.Clone(q.holds), func(h Hold) bool { return !h.covers(o.Dead) })
	if len(on) > 0 {
		return slices.MaxFunc(on, longer).refusal(l.Now)
	}
	switch n := l.In(o.Key.Project); {
	case q.capacity > 0 && len(l.Busy) >= q.capacity:
		return policy.Preflight{Code: policy.AtCapacity,
			Text: fmt.Sprintf("%s under way, and no more than %d may be at once.", replacements(len(l.Busy), ""), q.capacity)}
	case q.perProject > 0 && n >= q.perProject:
		return policy.Preflight{Code: policy.AtCapacity,
			Text: fmt.Sprintf("%s under way, and no more than %d may be at once.", replacements(n, " of project "+o.Key.Project), q.perProject)}
	}
	return policy.Preflight{}
}

// longer compares two holds by their ends; one without an end lasts longest.
func longer(a, b Hold) int {
	switch {
	case a.Until.IsZero():
		return 1
	case b.Until.IsZero():
		return -1
	}
	return a.Until.Compare(b.Until)
}

func (h Hold) refusal(now stamp.Time) policy.Preflight {
	p := policy.Preflight{Code: policy.OnHold, Text: h.String() + " is on hold"}
	if h.Project == "" {
		p.Text = h.String() + " are on hold"
	}
	if !h.Until.IsZero() {
		p.Until = now.Add(h.Until.Sub(now.Wall))
		p.Text += " until " + h.Until.UTC().Format(time.RFC3339)
	}
	if why := strings.TrimSuffix(h.Why, "."); why != "" {
		p.Text += ": " + why
	}
	p.Text += "."
	return p
}

// preflight asks everybody who may refuse a launch, the one whose refusal is final first.
func (p *pass) preflight(ctx context.Context, d *death) policy.Preflight {
	o := Order{Key: d.run.Key(), Dead: d.run}
	if s := SupervisedPreflight(d.run); s.Code != "" {
		return s
	}
	if pre := p.h.cfg.Launcher.Preflight(ctx, o); !pre.Admitted() {
		return pre
	}
	if p.h.cfg.Admission == nil {
		return policy.Preflight{}
	}
	load := Load{Now: p.now, Busy: slices.Clone(p.admitted)}
	p.mu.Lock()
	for k, rec := range p.h.seen {
		if rec.State == ledger.Launching || rec.State == ledger.Launched {
			load.Busy = append(load.Busy, k)
		}
	}
	p.mu.Unlock()
	pre := p.h.cfg.Admission.Admit(ctx, o, load)
	if pre.Admitted() {
		p.admitted = append(p.admitted, o.Key)
	}
	return pre
}

// replacements is "1 replacement is" or "5 replacements are"; of follows the noun.
func replacements(n int, of string) string {
	if n == 1 {
		return "1 replacement" + of + " is"
	}
	return fmt.Sprintf("%d replacements%s are", n, of)
}
