package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Event is what moves a record.
type Event string

// The events of the machine. Everything that is not in its table is an [*IllegalTransitionError].
const (
	Claim       Event = "claim"        // a new record, or a deferred one taken up again
	Takeover    Event = "takeover"     // a claimed or launching record whose owner is gone gets a new owner
	Renew       Event = "renew"        // the owner's lease is extended
	Defer       Event = "defer"        // not now; nobody owns it
	Decline     Event = "decline"      // no, for good
	BeginLaunch Event = "begin_launch" // the one launch is committed to, before anything is started
	Bind        Event = "bind"         // the replacement passed the gate
	Abort       Event = "abort"        // the launch never bound
	SettleOK    Event = "settle_ok"    // the replacement ended well
	SettleBad   Event = "settle_failed"
	Intend      Event = "intent"   // a person did something about the lineage's run; a deferred record is declined by it
	Annotate    Event = "annotate" // facts, episode label, told marks; the state stays
	Prune       Event = "prune"    // a final record shrinks to what keeps its lineage closed
)

// Errors of the machine that callers branch on.
var (
	// ErrNotOwner means that another instance owns the record, or that the caller's lease is over.
	ErrNotOwner = errors.New("not the owner of the record")
	// ErrOwned means that a living instance within its lease owns the record.
	ErrOwned = errors.New("the record is owned by a living instance")
	// ErrIncomplete means that the change lacks what has to be on record before it is made.
	ErrIncomplete = errors.New("incomplete")
	// ErrTooEarly means that a replacement whose healer is gone may still bind: see Launch.Grace.
	ErrTooEarly = errors.New("the replacement may still bind")
	// ErrBound means that the launch is bound to another process, or over: the caller must not run.
	ErrBound = errors.New("the launch belongs to another process or is over")
)

// IllegalTransitionError is a change that the machine does not allow.
type IllegalTransitionError struct {
	Key   Key
	From  State
	Event Event
}

func (e *IllegalTransitionError) Error() string {
	from := string(e.From)
	if from == "" {
		from = "no record"
	}
	return fmt.Sprintf("%s: %s is not allowed from %s", e.Key, e.Event, from)
}

// IntendedError means that a person was faster: what they did about the run is on record, and nothing is started past
// it. It is an ErrBound, so that who stands at the gate does not run.
type IntendedError struct {
	Key    Key
	Event  Event
	Intent Intent
}

func (e *IntendedError) Error() string {
	return fmt.Sprintf("%s %s: a person decided about run %s (%s)", e.Event, e.Key, e.Intent.Run, e.Intent.Reason)
}

// Unwrap makes it an ErrBound.
func (e *IntendedError) Unwrap() error { return ErrBound }

// Change is one event with all that it needs. Fields that the event does not use are ignored.
type Change struct {
	Event  Event
	Now    stamp.Time
	Actor  Instance
	Reason string
	Note   string
	// Cause is what is known for certain of a replacement's end (SettleBad), a reason code; empty for nothing.
	Cause string
	// Lease is how long the actor will own the record (Claim, Takeover, Renew, BeginLaunch); zero or less means
	// DefaultLease.
	Lease time.Duration
	// OwnerDead is set when the present owner is proven dead by its lock; a lease that is over needs no proof.
	OwnerDead bool
	// Facts replace the record's when set (Claim, Defer, Decline, BeginLaunch, Annotate).
	Facts *Facts
	// Episode is set once, at the latest by BeginLaunch; a later one is ignored.
	Episode string
	// Evidence is where the evidence lies (BeginLaunch, which is refused without).
	Evidence string
	// Launch is the fresh launch id (BeginLaunch), or the one presented (Bind).
	Launch string
	// Run is the replacement's run id (Bind), or the run that a person means (Intend).
	Run string
	// By is the person (Intend), empty when unknown.
	By string
	// Told are notice kinds to mark as acknowledged (Annotate).
	Told []string
}

// New is the record of a lineage's first claim.
func New(k Key, c Change) (Record, error) {
	if c.Event != Claim {
		return Record{}, &IllegalTransitionError{Key: k, Event: c.Event}
	}
	r := Record{Schema: Schema, Key: k, First: c.Now}
	if k.Lineage == "" {
		return Record{}, r.lacks(c, "a lineage")
	}
	if err := r.complete(c); err != nil {
		return Record{}, err
	}
	return r.step(c, Claimed, owned(c)), nil
}

// Apply is the machine: the record after one change, or why it is refused. It never alters r, and with an error it
// returns r as it was.
//
// A change that is repeated is an error like any other, with one exception: a Bind by the same process of the same run
// returns the record unchanged, with its revision.
func Apply(r Record, c Change) (Record, error) {
	if err := r.complete(c); err != nil {
		return r, err
	}
	illegal := &IllegalTransitionError{Key: r.Key, From: r.State, Event: c.Event}
	switch c.Event {
	case Claim:
		if r.State != Deferred {
			return r, illegal
		}
		return r.step(c, Claimed, owned(c)), nil
	case Takeover:
		return r.takeover(c, illegal)
	case Renew:
		if r.State != Claimed && r.State != Launching {
			return r, illegal
		}
		if err := r.mustOwn(c); err != nil {
			return r, err
		}
		next := r.clone()
		next.Revision++
		next.Owner = owned(c)
		return next, nil
	case Defer, Decline:
		return r.close(c, illegal)
	case BeginLaunch:
		return r.beginLaunch(c, illegal)
	case Bind:
		return r.bind(c, illegal)
	case Abort:
		return r.abort(c, illegal)
	case SettleOK, SettleBad:
		if r.State != Launched {
			return r, illegal
		}
		to := SettledOK
		if c.Event == SettleBad {
			to = SettledFailed
		}
		return r.step(c, to, nil), nil
	case Intend:
		return r.intend(c)
	case Annotate:
		return r.annotate(c), nil
	case Prune:
		return r.prune(c, illegal)
	}
	return r, illegal
}

// complete refuses a change without a time or an actor: neither owner nor lease could be told afterwards.
func (r Record) complete(c Change) error {
	switch {
	case c.Now.IsZero():
		return r.lacks(c, "a time")
	case c.Actor.ID == "":
		return r.lacks(c, "an actor with an id")
	}
	return nil
}

func (r Record) lacks(c Change, what string) error {
	return fmt.Errorf("%s %s: it needs %s: %w", c.Event, r.Key, what, ErrIncomplete)
}

// takeover gives a record whose owner is gone, or oneself with a lease that is over, a new owner. A launch that somebody
// else began gets a grace of one lease in which its replacement may still bind; a further takeover does not extend it.
func (r Record) takeover(c Change, illegal error) (Record, error) {
	if r.State != Claimed && r.State != Launching {
		return r, illegal
	}
	if !r.ownerGone(c) {
		return r, fmt.Errorf("take over %s from %s: %w", r.Key, r.Owner.Instance.ID, ErrOwned)
	}
	next := r.step(c, r.State, owned(c))
	began := r.Owner != nil && r.Owner.Instance.Same(c.Actor)
	if r.State == Launching && r.Launch != nil && r.Launch.Grace.IsZero() && !began {
		next.Launch.Grace = next.Owner.Until
	}
	return next, nil
}

// beginLaunch commits to the one launch. What has to survive whatever happens next is on record before it.
func (r Record) beginLaunch(c Change, illegal error) (Record, error) {
	if r.State != Claimed {
		return r, illegal
	}
	if err := r.mustOwn(c); err != nil {
		return r, err
	}
	switch {
	case c.Launch == "":
		return r, r.lacks(c, "a launch id")
	case c.Evidence == "":
		return r, r.lacks(c, "evidence that is on disk")
	case c.Episode == "" && r.Episode == "":
		return r, r.lacks(c, "an episode")
	case r.Intent != nil:
		return r, &IntendedError{Key: r.Key, Event: c.Event, Intent: *r.Intent}
	}
	next := r.step(c, Launching, owned(c))
	next.Evidence = c.Evidence
	next.Launch = &Launch{ID: c.Launch, Begun: c.Now}
	return next, nil
}

// abort gives up a launch that never bound. Who began it knows whether anything was started; who took it over does not,
// and waits.
func (r Record) abort(c Change, illegal error) (Record, error) {
	if r.State != Launching || r.Launch == nil {
		return r, illegal
	}
	if err := r.mustOwn(c); err != nil {
		return r, err
	}
	if g := r.Launch.Grace; !g.IsZero() && !c.Now.After(g) {
		return r, fmt.Errorf("abort %s before %s: %w", r.Key, g, ErrTooEarly)
	}
	return r.step(c, SettledFailed, nil), nil
}

// close is Defer and Decline: by the owner of a claimed record, or by anyone for a deferred one, which nobody owns.
func (r Record) close(c Change, illegal error) (Record, error) {
	to := Declined
	if c.Event == Defer {
		to = Deferred
	}
	switch {
	case r.State == Claimed:
		if err := r.mustOwn(c); err != nil {
			return r, err
		}
	case r.State == Deferred && c.Event == Decline:
	default:
		return r, illegal
	}
	return r.step(c, to, nil), nil
}

// bind is the gate. Who presents the launch id first is the replacement; the same process of the same run may repeat
// it after a lost acknowledgement, anything else must not run. The dead run is never its own replacement.
func (r Record) bind(c Change, illegal error) (Record, error) {
	if r.State != Launching && r.State != Launched {
		if r.State.Final() {
			return r, fmt.Errorf("bind %s: the record is %s: %w", r.Key, r.State, ErrBound)
		}
		return r, illegal
	}
	if r.Launch == nil || r.Launch.ID != c.Launch || c.Launch == "" {
		return r, fmt.Errorf("bind %s: launch %q is not the record's: %w", r.Key, c.Launch, ErrBound)
	}
	if c.Run != "" && c.Run == r.Facts.Death.Run {
		return r, fmt.Errorf("bind %s: run %s is the dead one and cannot replace itself: %w", r.Key, c.Run, ErrBound)
	}
	if b := r.Launch.Bound; b != nil {
		if b.Same(c.Actor) && r.Launch.Run == c.Run {
			return r, nil
		}
		return r, fmt.Errorf("bind %s: bound to %s: %w", r.Key, b.ID, ErrBound)
	}
	if r.Intent != nil {
		return r, &IntendedError{Key: r.Key, Event: c.Event, Intent: *r.Intent}
	}
	next := r.step(c, Launched, nil)
	actor := c.Actor
	next.Launch.Run, next.Launch.Bound, next.Launch.BoundAt = c.Run, &actor, c.Now
	return next, nil
}

// intend records what a person did. It needs no ownership: a person is faster than any lease. From then on no launch
// begins and none passes the gate. A deferred record, which nobody works on, is declined by it; a claimed one is its
// owner's to decline. Saying the same again changes nothing, unless that owner put the record off in the meantime.
func (r Record) intend(c Change) (Record, error) {
	in := Intent{Reason: c.Reason, Run: c.Run, By: c.By, Note: c.Note, At: c.Now}
	switch {
	case c.Reason == "":
		return r, r.lacks(c, "a reason")
	case c.Run == "":
		return r, r.lacks(c, "a run")
	case !r.Pruned.IsZero():
		return r, nil
	case r.Intent != nil && r.State != Deferred && *r.Intent == (Intent{in.Reason, in.Run, in.By, in.Note, r.Intent.At}):
		return r, nil
	}
	next := r.clone()
	next.Revision++
	if next.Intent = &in; r.State == Deferred {
		next.State, next.Reason, next.Note = Declined, c.Reason, c.Note
	}
	next.History = append(next.History, Entry{State: next.State, Event: c.Event, At: c.Now, Actor: c.Actor.ID, By: c.By,
		Reason: c.Reason, Note: c.Note})
	return next, nil
}

// annotate changes what is known and told, never what was decided. What changes nothing is not written.
func (r Record) annotate(c Change) Record {
	next := r.clone()
	if r.Pruned.IsZero() {
		next.learn(c)
	}
	fresh := false
	for _, k := range c.Told {
		if next.Told == nil {
			next.Told = map[string]stamp.Time{}
		}
		if _, ok := next.Told[k]; !ok {
			next.Told[k], fresh = c.Now, true
		}
	}
	if !fresh && c.Facts == nil && next.Episode == r.Episode {
		return r
	}
	next.Revision++
	return next
}

// prune drops what was found out and how it came about. What was decided, launched and told stays, and so does the
// record: its lineage can never be claimed again.
func (r Record) prune(c Change, illegal error) (Record, error) {
	if !r.State.Final() || !r.Pruned.IsZero() {
		return r, illegal
	}
	next := r.clone()
	next.Revision++
	next.Pruned = c.Now
	next.Evidence = ""
	d := r.Facts.Death
	next.Facts = Facts{Death: Death{Run: d.Run, Name: d.Name, At: d.At, Booted: d.Booted, Phase: d.Phase, Exit: d.Exit, Signal: d.Signal}}
	// The entry that led to the state stays; what a person did afterwards is kept as the intent.
	last := len(next.History) - 1
	for last > 0 && next.History[last].Event == Intend && next.History[last-1].State == next.History[last].State {
		last--
	}
	next.History = next.History[last : last+1]
	next.History[0].Note = ""
	return next, nil
}

// ownerGone reports whether the present owner may be overtaken.
func (r Record) ownerGone(c Change) bool {
	return r.Owner == nil || c.OwnerDead || r.Owner.Instance.Same(c.Actor) || c.Now.After(r.Owner.Until)
}

func (r Record) mustOwn(c Change) error {
	switch {
	case r.Owner == nil || !r.Owner.Instance.Same(c.Actor):
		return fmt.Errorf("%s %s: %w", c.Event, r.Key, ErrNotOwner)
	case c.Now.After(r.Owner.Until):
		return fmt.Errorf("%s %s: the lease ended at %s: %w", c.Event, r.Key, r.Owner.Until, ErrNotOwner)
	}
	return nil
}

func owned(c Change) *Owner {
	lease := c.Lease
	if lease <= 0 {
		lease = DefaultLease
	}
	return &Owner{Instance: c.Actor, Until: c.Now.Add(lease)}
}

// step is the copy of r after an event that is allowed.
func (r Record) step(c Change, to State, owner *Owner) Record {
	next := r.clone()
	next.Revision++
	next.State, next.Owner = to, owner
	if c.Reason != "" {
		next.Reason, next.Note = c.Reason, c.Note
	}
	next.learn(c)
	next.History = append(next.History, Entry{State: to, Event: c.Event, At: c.Now, Actor: c.Actor.ID, Reason: c.Reason, Note: c.Note,
		Cause: c.Cause})
	return next
}

func (r *Record) learn(c Change) {
	if c.Facts != nil {
		r.Facts = *c.Facts
	}
	if r.Episode == "" {
		r.Episode = c.Episode
	}
}

// clone copies all that a step may alter; facts are replaced whole and never altered in place.
func (r Record) clone() Record {
	r.History = slices.Clone(r.History)
	r.Told = maps.Clone(r.Told)
	if r.Launch != nil {
		l := *r.Launch
		r.Launch = &l
	}
	return r
}
