package episode

import (
	"cmp"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Episode is one update's story: every record whose death it caused.
type Episode struct {
	// ID is the records' episode; empty for the records that have none (yet), which stand together at the end.
	ID string
	// Members are the records, the earliest death first.
	Members []ledger.Record
	// Root is the root that was updated, and From and To its identity keys: what the agent that booted first had, and
	// what the one that died last found. Empty when nothing is known.
	Root, From, To string
	// Boots is how many different identities of Root the members booted with.
	Boots int
	// Update is the journal row's id, empty when no member names one.
	Update string
	// Culprit is the commit that the members name; one that was found after the id was fixed is a label like any other.
	Culprit *ledger.Culprit
	// When is the narrowest span in which a witness saw the update happen.
	When   stamp.Window
	Counts Counts
	// Changed is when a member last moved.
	Changed stamp.Time
}

// Counts are the members by where they stand.
type Counts struct {
	Waiting   int `json:"waiting"`    // claimed or deferred: not decided yet
	Launching int `json:"launching"`  // being put back
	Running   int `json:"running"`    // put back, and not ended since
	Finished  int `json:"finished"`   // put back, and ended well
	Broken    int `json:"broken"`     // put back, and ended badly or never came up
	LeftAlone int `json:"left_alone"` // declined, with a reason
}

// Total is the number of members.
func (c Counts) Total() int {
	return c.Waiting + c.Launching + c.Running + c.Finished + c.Broken + c.LeftAlone
}

// PutBack is the number of members whose launch was begun.
func (c Counts) PutBack() int { return c.Launching + c.Running + c.Finished + c.Broken }

// Group puts records together by the episode that was fixed at their claim, never by what their texts say. The episode
// that changed last comes first; the records without one come last, in one Episode whose ID is empty.
func Group(records []ledger.Record) []Episode {
	by := map[string]*Episode{}
	var all []*Episode
	clock := newTimeline(records)
	for _, r := range records {
		e := by[r.Episode]
		if e == nil {
			e = &Episode{ID: r.Episode}
			by[r.Episode] = e
			all = append(all, e)
		}
		e.Members = append(e.Members, r)
	}
	out := make([]Episode, len(all))
	for i, e := range all {
		e.fill(clock)
		out[i] = *e
	}
	slices.SortFunc(out, func(a, b Episode) int {
		if (a.ID == "") != (b.ID == "") {
			return cmp.Compare(b.ID, a.ID)
		}
		return cmp.Or(clock.at(b.Changed).Compare(clock.at(a.Changed)), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// fill derives everything from the members.
func (e *Episode) fill(clock timeline) {
	slices.SortFunc(e.Members, func(a, b ledger.Record) int {
		return cmp.Or(clock.at(a.Facts.Death.At).Compare(clock.at(b.Facts.Death.At)),
			cmp.Compare(a.Project, b.Project), cmp.Compare(a.Lineage, b.Lineage))
	})
	for _, r := range e.Members {
		e.Counts.add(r.State)
		if c := r.Changed(); e.Changed.IsZero() || clock.at(c).After(clock.at(e.Changed)) {
			e.Changed = c
		}
		if e.Culprit == nil {
			e.Culprit = culprit(r.Facts)
		}
		for _, w := range r.Facts.Witnesses {
			if e.Update == "" {
				e.Update = w.Update
			}
			e.narrow(w.When)
		}
	}
	if e.ID == "" {
		// Records without an episode share nothing.
		e.Culprit, e.Update, e.When = nil, "", stamp.Window{}
		return
	}
	e.Root = e.root()
	e.span(clock)
}

func (c *Counts) add(s ledger.State) {
	switch s {
	case ledger.Claimed, ledger.Deferred:
		c.Waiting++
	case ledger.Launching:
		c.Launching++
	case ledger.Launched:
		c.Running++
	case ledger.SettledOK:
		c.Finished++
	case ledger.SettledFailed:
		c.Broken++
	case ledger.Declined:
		c.LeftAlone++
	}
}

// culprit is the one found later, else the first that a witness names.
func culprit(f ledger.Facts) *ledger.Culprit {
	if f.Culprit != nil {
		return f.Culprit
	}
	for _, w := range f.Witnesses {
		if w.Culprit != nil {
			return w.Culprit
		}
	}
	return nil
}

// narrow keeps the shorter of the spans that have two ends.
func (e *Episode) narrow(w stamp.Window) {
	if w.From.IsZero() || w.To.IsZero() || w.Backwards() {
		return
	}
	if e.When.To.IsZero() || w.To.Sub(w.From) < e.When.To.Sub(e.When.From) {
		e.When = w
	}
}

// root is the root of the culprit, else of the first witness, else of the first signature that names one.
func (e *Episode) root() string {
	if e.Culprit != nil && e.Culprit.Root != "" {
		return e.Culprit.Root
	}
	for _, r := range e.Members {
		for _, w := range r.Facts.Witnesses {
			if w.Root != "" {
				return w.Root
			}
		}
	}
	for _, r := range e.Members {
		if r.Facts.Signature.Root != "" {
			return r.Facts.Signature.Root
		}
	}
	return ""
}

// span finds the identity range over the members: identities have no order of their own, so the members' times give
// it.
func (e *Episode) span(clock timeline) {
	var first time.Time
	boots := map[string]bool{}
	for _, r := range e.Members {
		from, to := change(r.Facts, e.Root)
		if from != "" {
			boots[from] = true
			if t := clock.at(r.Facts.Death.Booted); e.From == "" || t.Before(first) {
				e.From, first = from, t
			}
		}
		if to != "" {
			e.To = to // the members stand in the order of their deaths
		}
	}
	e.Boots = len(boots)
}

// change is one root's identity at boot and at death, as read, else as a witness tells it.
func change(f ledger.Facts, root string) (from, to string) {
	for _, c := range f.Roots {
		if c.Root == root {
			from, to = c.From, c.To
		}
	}
	for _, w := range f.Witnesses {
		if w.Root == root {
			from, to = cmp.Or(from, w.From), cmp.Or(to, w.To)
		}
	}
	return from, to
}

// timeline puts stamps of several kernel boots in one order. Within a boot the boot-time clock decides, which a clock
// change cannot move; it is laid over the wall clock as the latest stamp of that boot shows both.
type timeline map[string]stamp.Time

func newTimeline(records []ledger.Record) timeline {
	t := timeline{}
	see := func(s stamp.Time) {
		if s.Boot != "" && (t[s.Boot].Boot == "" || s.Uptime > t[s.Boot].Uptime) {
			t[s.Boot] = s
		}
	}
	for _, r := range records {
		see(r.First)
		see(r.Facts.Death.Booted)
		see(r.Facts.Death.At)
		for _, h := range r.History {
			see(h.At)
		}
	}
	return t
}

// at is the wall time that the order goes by.
func (t timeline) at(s stamp.Time) time.Time {
	if ref, ok := t[s.Boot]; ok && s.Boot != "" {
		return ref.Wall.Add(s.Uptime - ref.Uptime)
	}
	return s.Wall
}
