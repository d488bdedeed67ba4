package session

import (
	"slices"

	"github.com/mulligan-dev/mulligan/ledger"
)

// Need is one thing about a session that waits for a person: nothing goes on by itself until somebody acts.
type Need string

// The needs. A session may have several; an aborted one has none.
const (
	NeedAnswer  Need = "answer"  // a gate or a park waits for its answer
	NeedResolve Need = "resolve" // a crash left mutating calls of which nobody knows whether they happened
	NeedRelease Need = "release" // auto-resume has used up its attempts
	NeedRepair  Need = "repair"  // its head cannot be read, see UnreadableError: that of no Status, since there is none
)

// Needs are all needs, for those who count by them.
func Needs() []Need { return []Need{NeedAnswer, NeedResolve, NeedRelease, NeedRepair} }

// Needs are those of the session. A call in flight of a turn that runs needs nobody.
func (s Status) Needs() (out []Need) {
	h := s.Head
	if h.Abort != nil {
		return nil
	}
	if len(h.Gates)+len(h.Parks) > 0 {
		out = append(out, NeedAnswer)
	}
	if slices.ContainsFunc(s.Unresolved(), func(c Dangling) bool { return c.Class != Spawning }) {
		out = append(out, NeedResolve)
	}
	if s.Quarantined {
		out = append(out, NeedRelease)
	}
	return out
}

// Unresolved are the calls without a completion that nobody works at any more, oldest first: those of a turn that may
// still run are in flight.
func (s Status) Unresolved() (out []Dangling) {
	h := s.Head
	running := h.led() && s.Liveness != ledger.Dead
	for _, c := range h.Calls {
		if !running || c.Seq < h.Turn.Seq {
			out = append(out, c)
		}
	}
	return out
}
