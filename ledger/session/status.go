package session

import (
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Headline is the one word for a session's state. What is true beside it is in the other fields of Status.
type Headline string

// The headlines, the strongest first: where several are true, the first counts.
const (
	Aborted     Headline = "aborted"
	Paused      Headline = "paused"      // a gate or a park is open
	Running     Headline = "running"     // a turn is open, and its owner is not known to be dead
	Interrupted Headline = "interrupted" // a turn began and did not end, and no later turn completed
	Idle        Headline = "idle"
)

// Status is what a session is doing, as far as its log and the liveness of its owner tell.
type Status struct {
	Headline Headline `json:"headline"`
	// Unproven is set when a turn is open and nothing proves its owner alive or dead: "running (unproven)".
	Unproven bool `json:"unproven,omitempty"`
	// Liveness is that of the owner, empty when nobody owns the session.
	Liveness ledger.Liveness `json:"liveness,omitempty"`
	// Interruption is what was interrupted, whatever the headline.
	Interruption *Interruption `json:"interruption,omitempty"`
	// Ambiguous says that a turn which began now would refuse mutating calls.
	Ambiguous bool `json:"ambiguous,omitempty"`
	// Quarantined says that auto-resume leaves the session alone.
	Quarantined bool `json:"quarantined,omitempty"`
	// Head has the facts: open turn, owner, gates, parks, dangling calls, abort, mark, attempts.
	Head Head `json:"head"`
}

// Interruption is a turn that was cut off.
type Interruption struct {
	Turn string `json:"turn,omitempty"`
	Seq  uint64 `json:"seq"`
	// Since is the last proof of life of the turn's owner in the log, or the moment of the mark.
	Since stamp.Time `json:"since"`
	// Marked is set when a drain said so. No mark is needed: a dead owner is enough.
	Marked bool   `json:"marked,omitempty"`
	Why    string `json:"why,omitempty"`
}

// String is the headline as people read it.
func (s Status) String() string {
	if s.Unproven && s.Headline == Running {
		return "running (unproven)"
	}
	return string(s.Headline)
}

// Fold is the head of a log that is read from its beginning.
func Fold(session string, events []Event) Head {
	h := Head{Session: session}
	for _, e := range events {
		h = h.Apply(e)
	}
	return h
}

// Derive is the status of a session whose whole log is given, with what is known of its owner. Who has the head calls
// [Head.Status], which is the same.
func Derive(session string, events []Event, owner ledger.Liveness) Status {
	return Fold(session, events).Status(owner)
}

// Status is what the head means when its owner is alive, dead or unknown. The liveness of nobody does not matter.
func (h Head) Status(owner ledger.Liveness) Status {
	s := Status{Headline: Idle, Ambiguous: h.Ambiguous(), Quarantined: h.Quarantined(), Head: h}
	if h.Owner.ID != "" {
		s.Liveness = owner
	}
	// A turn of an owner whose fence is no longer the session's was taken away from it: it runs no more, whoever lives.
	running := h.led() && owner != ledger.Dead
	s.Unproven = running && owner != ledger.Alive
	s.Interruption = h.interruption(running)
	switch {
	case h.Abort != nil:
		s.Headline = Aborted
	case len(h.Gates)+len(h.Parks) > 0:
		s.Headline = Paused
	case running:
		s.Headline = Running
	case s.Interruption != nil:
		s.Headline = Interrupted
	}
	return s
}

// interruption is the latest turn that was cut off. While a turn runs, what was cut off before it stands beside it.
func (h Head) interruption(running bool) *Interruption {
	marked := h.Mark != nil
	switch {
	case h.Turn != nil && !running:
		i := &Interruption{Turn: h.Turn.ID, Seq: h.Turn.Seq, Since: h.Turn.Seen}
		if marked && h.Mark.Turn == h.Turn.ID {
			i.Marked, i.Why = true, h.Mark.Why
		}
		return i
	case marked && !(running && h.Mark.Turn == h.Turn.ID):
		return &Interruption{Turn: h.Mark.Turn, Seq: h.Mark.Seq, Since: h.Mark.At, Marked: true, Why: h.Mark.Why}
	case h.Interrupted != nil:
		return &Interruption{Turn: h.Interrupted.Turn, Seq: h.Interrupted.Seq, Since: h.Interrupted.At}
	}
	return nil
}
