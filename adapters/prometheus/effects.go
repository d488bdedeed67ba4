package prometheus

import (
	"context"
	"errors"

	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// Decision is what became of one call of a tool.
type Decision string

// The decisions. Those that the guard refuses by name have the log's codes.
const (
	Ran             Decision = "run"                                  // it ran, and its completion is in the log if it needs one
	Replayed        Decision = "replayed"                             // it had been completed before, and did not run
	Ambiguous                = Decision(session.ErrAmbiguous)         // refused: an earlier turn left a call unresolved
	InProgress               = Decision(session.ErrInProgress)        // refused: the same call runs
	KeyConflict              = Decision(session.ErrEffectKeyConflict) // refused: the key is that of another call
	AcceptedUnknown          = Decision(session.ErrAcceptedUnknown)   // refused: it was acknowledged as unknown
	Compensated              = Decision(session.ErrCompensated)       // refused: it happened and was undone
	Refused         Decision = "refused"                              // refused for another reason: an abort, another owner
	NotApplied               = Decision(effect.NotApplied)            // it ran, and certainly did nothing
	Dangling        Decision = "dangling"                             // it ran, and the log does not know what came of it
	Failed          Decision = "error"                                // the log could not be asked, and it did not run
)

// Decisions are all of them.
func Decisions() []Decision {
	return []Decision{Ran, Replayed, Ambiguous, InProgress, KeyConflict, AcceptedUnknown, Compensated, Refused, NotApplied, Dangling, Failed}
}

// Doer runs calls. *effect.Guard is one.
type Doer interface {
	Do(ctx context.Context, c effect.Call, f func(context.Context) (effect.Result, error)) (effect.Result, error)
}

// Effects is a guard that counts what becomes of its calls, in a turn of one workload.
func (m *Metrics) Effects(workload string, guard Doer) Doer { return counted{m, workload, guard} }

// Effect counts one call, for hosts that use Guard.Begin and Guard.Complete. A decision that is none of Decisions counts
// as Failed.
func (m *Metrics) Effect(workload string, d Decision) {
	for _, known := range Decisions() {
		if d == known {
			m.effects.WithLabelValues(m.workload(workload), string(d)).Inc()
			return
		}
	}
	m.effects.WithLabelValues(m.workload(workload), string(Failed)).Inc()
}

type counted struct {
	m        *Metrics
	workload string
	guard    Doer
}

// Do implements Doer.
func (c counted) Do(ctx context.Context, call effect.Call, f func(context.Context) (effect.Result, error)) (effect.Result, error) {
	ran := false
	decision := Dangling // also after a panic, which passes
	defer func() { c.m.Effect(c.workload, decision) }()
	result, err := c.guard.Do(ctx, call, func(ctx context.Context) (effect.Result, error) {
		ran = true
		return f(ctx)
	})
	decision = decide(ran, err)
	return result, err
}

func decide(ran bool, err error) Decision {
	code := Decision(session.CodeOf(err))
	switch {
	case ran && err == nil:
		return Ran
	case ran && errors.Is(err, effect.NotApplied):
		return NotApplied
	case ran:
		return Dangling
	case err == nil:
		return Replayed
	case code == Ambiguous, code == InProgress, code == KeyConflict, code == AcceptedUnknown, code == Compensated:
		return code
	case code != "" && code != Decision(session.ErrOutcomeUnknown):
		return Refused
	case code != "":
		return Dangling // the intent may be in the log, though nothing ran
	}
	return Failed
}
