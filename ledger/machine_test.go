package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

var key = ledger.Key{Project: "p", Lineage: "l"}

func at(d time.Duration) stamp.Time {
	wall := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return stamp.Time{Wall: wall, Boot: "boot", Uptime: time.Hour}.Add(d)
}

func who(name string) ledger.Instance { return ledger.Instance{ID: name, PID: 1} }

// ready is a change by a that lacks nothing.
func ready(e ledger.Event, now time.Duration) ledger.Change {
	return ledger.Change{Event: e, Now: at(now), Actor: who("a"), Reason: "r", Launch: "L", Run: "run", Episode: "e", Evidence: "evidence/x"}
}

func must(t interface {
	Helper()
	Fatalf(string, ...any)
}, r ledger.Record, err error,
) ledger.Record {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return r
}

// walk is the record after these events, each by its owner a.
func walk(t *testing.T, events ...ledger.Event) ledger.Record {
	t.Helper()
	r, err := ledger.New(key, ready(ledger.Claim, 0))
	must(t, r, err)
	for i, e := range events {
		c := ready(e, time.Duration(i+1)*time.Second)
		r, err = ledger.Apply(r, c)
		must(t, r, err)
	}
	return r
}

var allEvents = []ledger.Event{
	ledger.Claim, ledger.Takeover, ledger.Renew, ledger.Defer, ledger.Decline, ledger.BeginLaunch, ledger.Bind, ledger.Abort,
	ledger.SettleOK, ledger.SettleBad, ledger.Annotate, ledger.Prune, ledger.Intend,
}

// TestTable tries every event in every state against the table of the design.
func TestTable(t *testing.T) {
	t.Parallel()
	states := map[ledger.State]ledger.Record{
		ledger.Claimed:       walk(t),
		ledger.Deferred:      walk(t, ledger.Defer),
		ledger.Declined:      walk(t, ledger.Decline),
		ledger.Launching:     walk(t, ledger.BeginLaunch),
		ledger.Launched:      walk(t, ledger.BeginLaunch, ledger.Bind),
		ledger.SettledOK:     walk(t, ledger.BeginLaunch, ledger.Bind, ledger.SettleOK),
		ledger.SettledFailed: walk(t, ledger.BeginLaunch, ledger.Bind, ledger.SettleBad),
	}
	leads := map[ledger.State]map[ledger.Event]ledger.State{
		ledger.Claimed: {ledger.Takeover: ledger.Claimed, ledger.Renew: ledger.Claimed, ledger.Defer: ledger.Deferred,
			ledger.Decline: ledger.Declined, ledger.BeginLaunch: ledger.Launching, ledger.Annotate: ledger.Claimed, ledger.Intend: ledger.Claimed},
		ledger.Deferred: {ledger.Claim: ledger.Claimed, ledger.Decline: ledger.Declined, ledger.Annotate: ledger.Deferred, ledger.Intend: ledger.Declined},
		ledger.Launching: {ledger.Takeover: ledger.Launching, ledger.Renew: ledger.Launching, ledger.Bind: ledger.Launched,
			ledger.Abort: ledger.SettledFailed, ledger.Annotate: ledger.Launching, ledger.Intend: ledger.Launching},
		ledger.Launched: {ledger.Bind: ledger.Launched, ledger.SettleOK: ledger.SettledOK, ledger.SettleBad: ledger.SettledFailed,
			ledger.Annotate: ledger.Launched, ledger.Intend: ledger.Launched},
		ledger.Declined:      {ledger.Annotate: ledger.Declined, ledger.Intend: ledger.Declined, ledger.Prune: ledger.Declined},
		ledger.SettledOK:     {ledger.Annotate: ledger.SettledOK, ledger.Intend: ledger.SettledOK, ledger.Prune: ledger.SettledOK},
		ledger.SettledFailed: {ledger.Annotate: ledger.SettledFailed, ledger.Intend: ledger.SettledFailed, ledger.Prune: ledger.SettledFailed},
	}
	for state, r := range states {
		for _, e := range allEvents {
			before := r
			next, err := ledger.Apply(r, ready(e, 10*time.Second))
			want, allowed := leads[state][e]
			switch illegal := (*ledger.IllegalTransitionError)(nil); {
			case allowed && err != nil:
				t.Errorf("%s from %s: %v", e, state, err)
			case allowed && next.State != want:
				t.Errorf("%s from %s leads to %s, want %s", e, state, next.State, want)
			case !allowed && err == nil:
				t.Errorf("%s from %s is allowed", e, state)
			case !allowed && !errors.As(err, &illegal) && !errors.Is(err, ledger.ErrBound):
				t.Errorf("%s from %s: %v, want an illegal transition", e, state, err)
			}
			if err != nil && next.Revision != r.Revision {
				t.Errorf("%s from %s was refused and made a revision", e, state)
			}
			if d := cmp.Diff(before, r); d != "" {
				t.Errorf("%s altered the record that it was given:\n%s", e, d)
			}
			if ps := ledger.Validate(next); len(ps) > 0 {
				t.Errorf("%s from %s: the auditor says %v", e, state, ps)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	change := func(e ledger.Event, now time.Duration, f func(*ledger.Change)) ledger.Change {
		c := ready(e, now)
		f(&c)
		return c
	}
	by := func(name string) func(*ledger.Change) { return func(c *ledger.Change) { c.Actor = who(name) } }
	const over = ledger.DefaultLease + time.Second
	begun := walk(t, ledger.BeginLaunch) // at 1 s, so the lease ends at 61 s
	bound := walk(t, ledger.BeginLaunch, ledger.Bind)
	taken, err := ledger.Apply(begun, change(ledger.Takeover, 2*over, by("b")))
	must(t, taken, err)
	retaken, err := ledger.Apply(taken, change(ledger.Takeover, 2*over+time.Second, func(c *ledger.Change) { c.Actor, c.OwnerDead = who("c"), true }))
	must(t, retaken, err)
	none := func(*ledger.Change) {}
	for name, c := range map[string]struct {
		r    ledger.Record
		c    ledger.Change
		want error
	}{
		"defer by a stranger":                       {walk(t), change(ledger.Defer, 0, by("b")), ledger.ErrNotOwner},
		"decline after the lease":                   {walk(t), change(ledger.Decline, over, none), ledger.ErrNotOwner},
		"decline at the end of the lease":           {walk(t), change(ledger.Decline, ledger.DefaultLease, none), nil},
		"renew after the lease":                     {walk(t), change(ledger.Renew, over, none), ledger.ErrNotOwner},
		"begin launch by a stranger":                {walk(t), change(ledger.BeginLaunch, 0, by("b")), ledger.ErrNotOwner},
		"begin launch without a launch id":          {walk(t), change(ledger.BeginLaunch, 0, func(c *ledger.Change) { c.Launch = "" }), ledger.ErrIncomplete},
		"begin launch without evidence":             {walk(t), change(ledger.BeginLaunch, 0, func(c *ledger.Change) { c.Evidence = "" }), ledger.ErrIncomplete},
		"begin launch without an episode":           {bare(t), change(ledger.BeginLaunch, 0, func(c *ledger.Change) { c.Episode = "" }), ledger.ErrIncomplete},
		"anything without a time":                   {walk(t), change(ledger.Defer, 0, func(c *ledger.Change) { c.Now = stamp.Time{} }), ledger.ErrIncomplete},
		"anything without an actor":                 {walk(t), change(ledger.Defer, 0, by("")), ledger.ErrIncomplete},
		"take over from a living owner":             {walk(t), change(ledger.Takeover, 0, by("b")), ledger.ErrOwned},
		"take over at the end of the lease":         {walk(t), change(ledger.Takeover, ledger.DefaultLease, by("b")), ledger.ErrOwned},
		"take over after the lease":                 {walk(t), change(ledger.Takeover, over, by("b")), nil},
		"take over from a dead owner":               {walk(t), change(ledger.Takeover, 0, func(c *ledger.Change) { c.Actor, c.OwnerDead = who("b"), true }), nil},
		"take one's own record again":               {walk(t), change(ledger.Takeover, over, none), nil},
		"bind another launch":                       {begun, change(ledger.Bind, 0, func(c *ledger.Change) { c.Launch = "M" }), ledger.ErrBound},
		"bind no launch":                            {begun, change(ledger.Bind, 0, func(c *ledger.Change) { c.Launch = "" }), ledger.ErrBound},
		"bind after everything is over":             {walk(t, ledger.BeginLaunch, ledger.Abort), change(ledger.Bind, 0, none), ledger.ErrBound},
		"bind again by the same process":            {bound, change(ledger.Bind, over, none), nil},
		"bind again by the same process, other run": {bound, change(ledger.Bind, 0, func(c *ledger.Change) { c.Run = "other" }), ledger.ErrBound},
		"bind by a second process":                  {bound, change(ledger.Bind, 0, by("b")), ledger.ErrBound},
		"bind by the dead run itself":               {ofRun(begun, "run"), change(ledger.Bind, time.Second, none), ledger.ErrBound},
		"bind after the healer's lease":             {begun, change(ledger.Bind, 10*over, by("b")), nil},
		"bind after a takeover":                     {taken, change(ledger.Bind, 2*over, by("r")), nil},
		"abort by who began":                        {begun, change(ledger.Abort, 2*time.Second, none), nil},
		"abort at once after a takeover":            {taken, change(ledger.Abort, 2*over, by("b")), ledger.ErrTooEarly},
		"abort at the end of the grace":             {taken, change(ledger.Abort, 2*over+ledger.DefaultLease, by("b")), ledger.ErrTooEarly},
		"abort by the old owner after a takeover":   {taken, change(ledger.Abort, 2*over, none), ledger.ErrNotOwner},
		"abort after the grace of an earlier owner": {retaken, change(ledger.Abort, 2*over+ledger.DefaultLease+time.Second, by("c")), nil},
	} {
		next, err := ledger.Apply(c.r, c.c)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if ps := ledger.Validate(next); len(ps) > 0 {
			t.Errorf("%s: the auditor says %v", name, ps)
		}
	}
	if again, err := ledger.Apply(bound, change(ledger.Bind, over, none)); err != nil || again.Revision != bound.Revision {
		t.Errorf("a repeated bind makes revision %d of %d, %v", again.Revision, bound.Revision, err)
	}
	if _, err := ledger.New(ledger.Key{Project: "p"}, ready(ledger.Claim, 0)); !errors.Is(err, ledger.ErrIncomplete) {
		t.Errorf("a claim without a lineage: %v", err)
	}
	if _, err := ledger.New(key, ready(ledger.Defer, 0)); err == nil {
		t.Error("a record begins with a defer")
	}
}

// ofRun is a record about the death of a run.
func ofRun(r ledger.Record, id string) ledger.Record {
	r.Facts.Death.Run = id
	return r
}

// bare is a claimed record that belongs to no episode yet.
func bare(t *testing.T) ledger.Record {
	c := ready(ledger.Claim, 0)
	c.Episode = ""
	r, err := ledger.New(key, c)
	return must(t, r, err)
}

func TestWhatIsFixed(t *testing.T) {
	t.Parallel()
	r := walk(t, ledger.Defer)
	c := ready(ledger.Claim, time.Minute)
	c.Episode, c.Reason, c.Note = "later", "", ""
	r, err := ledger.Apply(r, c)
	must(t, r, err)
	if r.Episode != "e" || r.First != at(0) || r.Reason != "r" {
		t.Errorf("a later claim rewrote episode %q, first claim %s or reason %q", r.Episode, r.First, r.Reason)
	}
	c = ready(ledger.Annotate, time.Minute)
	c.Evidence, c.Told = "elsewhere", []string{"k"}
	r, err = ledger.Apply(r, c)
	must(t, r, err)
	if r.Evidence != "" {
		t.Errorf("an annotation moved the evidence to %q", r.Evidence)
	}
	again, err := ledger.Apply(r, c)
	if err != nil || again.Revision != r.Revision {
		t.Errorf("an annotation with nothing new makes revision %d of %d, %v", again.Revision, r.Revision, err)
	}
}

func TestPruneKeepsWhatClosesTheLineage(t *testing.T) {
	t.Parallel()
	r := walk(t, ledger.BeginLaunch, ledger.Bind, ledger.SettleBad)
	r, err := ledger.Apply(r, ledger.Change{Event: ledger.Annotate, Now: at(time.Minute), Actor: who("b"), Told: []string{"k"},
		Facts: &ledger.Facts{Death: ledger.Death{Run: "dead", Workspace: "/w"}, Witnesses: []ledger.Witness{{Kind: "W1"}}}})
	must(t, r, err)
	p, err := ledger.Apply(r, ready(ledger.Prune, time.Hour))
	must(t, p, err)
	if p.State != r.State || p.Reason != r.Reason || p.Launch.ID != "L" || len(p.Told) != 1 || p.Facts.Death.Run != "dead" || p.First != r.First {
		t.Errorf("pruned too much: %+v", p)
	}
	if p.Evidence != "" || len(p.Facts.Witnesses) > 0 || p.Facts.Death.Workspace != "" || len(p.History) != 1 {
		t.Errorf("pruned too little: %+v", p)
	}
	if ps := ledger.Validate(p); len(ps) > 0 {
		t.Errorf("the auditor says %v", ps)
	}
	if _, err := ledger.Apply(p, ready(ledger.Prune, time.Hour)); err == nil {
		t.Error("pruned twice")
	}
}

// twin is the machine as the design tells it: what stands, said a second time and slowly.
type twin struct {
	state           string
	owner           string
	until           int // seconds
	launch, begunBy string
	graceEnds       int // 0: the one who began it still has it
	boundTo, run    string
	intended        bool
}

// may says whether an event is allowed, and makes it so.
func (w *twin) may(e ledger.Event, actor string, now, lease int, dead bool, launch, run string) bool {
	owns := w.owner == actor && now <= w.until
	open := w.state == "claimed" || w.state == "launching"
	switch e {
	case ledger.Claim:
		if w.state != "deferred" {
			return false
		}
		w.state, w.owner, w.until = "claimed", actor, now+lease
	case ledger.Takeover:
		if !open || !(dead || now > w.until || w.owner == actor) {
			return false
		}
		if w.state == "launching" && w.owner != actor && w.graceEnds == 0 {
			w.graceEnds = now + lease
		}
		w.owner, w.until = actor, now+lease
	case ledger.Renew:
		if !open || !owns {
			return false
		}
		w.until = now + lease
	case ledger.Defer:
		if w.state != "claimed" || !owns {
			return false
		}
		w.state, w.owner = "deferred", ""
	case ledger.Decline:
		if w.state == "claimed" && owns || w.state == "deferred" {
			w.state, w.owner = "declined", ""
			return true
		}
		return false
	case ledger.BeginLaunch:
		if w.state != "claimed" || !owns || w.intended {
			return false
		}
		w.state, w.until, w.launch, w.begunBy = "launching", now+lease, launch, actor
	case ledger.Bind:
		if w.state == "launched" {
			return w.launch == launch && w.boundTo == actor && w.run == run
		}
		if w.state != "launching" || w.launch != launch || w.intended {
			return false
		}
		w.state, w.owner, w.boundTo, w.run = "launched", "", actor, run
	case ledger.Abort:
		if w.state != "launching" || !owns || w.graceEnds != 0 && now <= w.graceEnds {
			return false
		}
		w.state, w.owner = "settled_failed", ""
	case ledger.SettleOK, ledger.SettleBad:
		if w.state != "launched" {
			return false
		}
		w.state = map[ledger.Event]string{ledger.SettleOK: "settled_ok", ledger.SettleBad: "settled_failed"}[e]
	case ledger.Intend:
		if w.intended = true; w.state == "deferred" {
			w.state = "declined"
		}
	case ledger.Annotate:
	default:
		return false
	}
	return true
}

func TestMachineIsItsTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := 0
		first := ready(ledger.Claim, 0)
		r, err := ledger.New(key, first)
		must(t, r, err)
		w := twin{state: "claimed", owner: "a", until: 60}
		events := slices.DeleteFunc(slices.Clone(allEvents), func(e ledger.Event) bool { return e == ledger.Prune })
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			now += rapid.SampledFrom([]int{0, 1, 59, 60, 61}).Draw(t, "pass")
			c := ledger.Change{
				Event: rapid.SampledFrom(events).Draw(t, "event"), Now: at(time.Duration(now) * time.Second),
				Actor: who(rapid.SampledFrom([]string{"a", "a", "b", "c"}).Draw(t, "actor")), OwnerDead: rapid.Bool().Draw(t, "dead"),
				Lease:  time.Duration(rapid.SampledFrom([]int{0, 10}).Draw(t, "lease")) * time.Second,
				Launch: rapid.SampledFrom([]string{"L", "L", "L", "M"}).Draw(t, "launch"), Run: rapid.SampledFrom([]string{"r", "r", "s"}).Draw(t, "run"),
				Reason: "r", Episode: "e", Evidence: "x",
			}
			lease := int(c.Lease / time.Second)
			if lease == 0 {
				lease = 60
			}
			before := w
			next, err := ledger.Apply(r, c)
			if ok := w.may(c.Event, c.Actor.ID, now, lease, c.OwnerDead, c.Launch, c.Run); ok != (err == nil) {
				t.Fatalf("%s by %s at %d from %+v: the machine says %v, the twin %v", c.Event, c.Actor.ID, now, before, err, ok)
			}
			if err != nil {
				w = before
				continue
			}
			r = next
			owner := ""
			if r.Owner != nil {
				owner = r.Owner.Instance.ID
			}
			if string(r.State) != w.state || owner != w.owner {
				t.Fatalf("after %s: %s owned by %q, the twin %+v", c.Event, r.State, owner, w)
			}
			if ps := ledger.Validate(r); len(ps) > 0 {
				t.Fatalf("after %s the auditor says %v of %+v", c.Event, ps, r)
			}
		}
	})
}

func TestErrorsSayWhatWasTried(t *testing.T) {
	t.Parallel()
	_, err := ledger.Apply(walk(t), ready(ledger.SettleOK, 0))
	if got, want := fmt.Sprint(err), "p/l: settle_ok is not allowed from claimed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err = ledger.New(key, ready(ledger.Defer, 0))
	if got, want := fmt.Sprint(err), "p/l: defer is not allowed from no record"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestIntentClosesTheGate: what a person did is on record with who and why, and no launch gets past it, neither one that
// would begin nor one that has begun. It says no more when it is said again, and outlives the pruning.
func TestIntentClosesTheGate(t *testing.T) {
	t.Parallel()
	say := ledger.Change{Event: ledger.Intend, Now: at(time.Second), Actor: who("p"), Reason: "dismissed", Run: "dead", By: "ana", Note: "known"}
	for name, c := range map[string]struct {
		before []ledger.Event
		next   ledger.Event
		state  ledger.State
	}{
		"before the launch begins": {nil, ledger.BeginLaunch, ledger.Claimed},
		"before the gate":          {[]ledger.Event{ledger.BeginLaunch}, ledger.Bind, ledger.Launching},
		"while it is deferred":     {[]ledger.Event{ledger.Defer}, ledger.Claim, ledger.Declined},
	} {
		r, err := ledger.Apply(walk(t, c.before...), say)
		must(t, r, err)
		last := r.History[len(r.History)-1]
		if r.State != c.state || last.By != "ana" || last.Reason != "dismissed" || last.Note != "known" || last.Actor != "p" || r.Intent == nil {
			t.Errorf("%s: the record is %s and its history ends with %+v", name, r.State, last)
		}
		if again, err := ledger.Apply(r, say); err != nil || again.Revision != r.Revision {
			t.Errorf("%s: said again it makes revision %d of %d (%v)", name, again.Revision, r.Revision, err)
		}
		_, err = ledger.Apply(r, ready(c.next, 2*time.Second))
		var intended *ledger.IntendedError
		var illegal *ledger.IllegalTransitionError
		switch {
		case c.state == ledger.Declined && !errors.As(err, &illegal):
			t.Errorf("%s: %s is %v, want that the record is closed", name, c.next, err)
		case c.state != ledger.Declined && (!errors.As(err, &intended) || !errors.Is(err, ledger.ErrBound) || intended.Intent.By != "ana"):
			t.Errorf("%s: %s is %v, want the person's word", name, c.next, err)
		}
	}
	bound := walk(t, ledger.BeginLaunch, ledger.Bind)
	r, err := ledger.Apply(bound, say)
	must(t, r, err)
	if _, err := ledger.Apply(r, ready(ledger.Bind, 2*time.Second)); err != nil {
		t.Errorf("a replacement that is running may not ask again after a lost answer: %v", err)
	}
	r, err = ledger.Apply(walk(t, ledger.BeginLaunch, ledger.Abort), say)
	must(t, r, err)
	r, err = ledger.Apply(r, ready(ledger.Prune, time.Hour))
	must(t, r, err)
	if ps := ledger.Validate(r); len(ps) > 0 || r.Intent == nil {
		t.Errorf("after pruning the auditor says %v, and the intent is %+v", ps, r.Intent)
	}
}
