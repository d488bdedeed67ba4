package run

import (
	"fmt"
	"strings"
)

// Phase is how far a run is. What counts is the high-water mark: after any phase of work a run is never before work
// again.
type Phase string

// The phases of the design.
const (
	Booting         Phase = "booting"
	Waiting         Phase = "waiting"
	Preparing       Phase = "preparing"
	ProviderRunning Phase = "provider_running"
	ProviderDone    Phase = "provider_done"
	Finalizing      Phase = "finalizing"
	Handoff         Phase = "handoff" // plan, question, monitor, gate, pipe: a person is involved
	UnknownPhase    Phase = "unknown"
)

// All are the phases that a program may mark, in rising order.
var All = [...]Phase{Booting, Waiting, Preparing, Handoff, ProviderRunning, ProviderDone, Finalizing}

func (p Phase) rank() int {
	for i, q := range All {
		if p == q {
			return i
		}
	}
	return len(All)
}

// BeforeWork reports whether nothing has been done yet that a second start would repeat.
func (p Phase) BeforeWork() bool { return p == Booting || p == Waiting || p == Preparing }

// AfterWork reports whether the model turn began.
func (p Phase) AfterWork() bool { return p == ProviderRunning || p == ProviderDone || p == Finalizing }

// High is the higher of two marks. Unknown is higher than all, and so is what is no phase, the empty one among them: a
// mark that cannot be read is never lowered.
func High(a, b Phase) Phase {
	switch {
	case a.rank() == len(All) || b.rank() == len(All):
		return UnknownPhase
	case b.rank() > a.rank():
		return b
	}
	return a
}

// ParsePhase reads a phase's name.
func ParsePhase(s string) (Phase, error) {
	for _, p := range All {
		if string(p) == s {
			return p, nil
		}
	}
	names := make([]string, len(All))
	for i, p := range All {
		names[i] = string(p)
	}
	return UnknownPhase, fmt.Errorf("phase %q is not known: use one of %s", s, strings.Join(names, ", "))
}
