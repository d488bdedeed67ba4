package session

import (
	"encoding/json"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// New makes a draft of any kind from its payload: one of the payload types, a json.RawMessage of the host's, or nil. A
// payload that is no JSON is refused when the draft is appended.
func New(kind Kind, now stamp.Time, id string, payload any) Draft {
	d := Draft{Event: Event{ID: id, Kind: kind, At: now, Schema: Schema}}
	switch p := payload.(type) {
	case nil:
	case json.RawMessage:
		d.Payload = p
	default:
		b, err := json.Marshal(p)
		if err != nil {
			b = []byte(err.Error()) // no JSON: malformed, with the error in sight
		}
		d.Payload = b
	}
	return d
}

// As is the draft as its owner writes it: under a fence, in a turn.
func (d Draft) As(fence uint64, turn string) Draft {
	d.Fence, d.Turn = fence, turn
	return d
}

// Seen is the draft under the condition that nothing was appended after a sequence.
func (d Draft) Seen(last uint64) Draft {
	d.If.Last = last
	return d
}

// After is the draft under the condition that the one before it in its batch was accepted.
func (d Draft) After() Draft {
	d.If.Chained = true
	return d
}

// Begin opens a turn. The owner's Draft.As gives it fence and turn.
func Begin(now stamp.Time, id string, p TurnBegun) Draft { return New(KindTurnBegun, now, id, p) }

// Finish closes the open turn.
func Finish(now stamp.Time, id string, p TurnEnded) Draft { return New(KindTurnEnded, now, id, p) }

// Say is a message to the agent, from any process.
func Say(now stamp.Time, id string, content json.RawMessage) Draft {
	return New(KindMessage, now, id, content)
}

// Reply is what the model said.
func Reply(now stamp.Time, id string, p ModelTurn) Draft { return New(KindModelTurn, now, id, p) }

// NewCall is the intent of a call, with the id that its key makes. A Try of zero is the first.
func NewCall(now stamp.Time, p Call) Draft {
	p.Try = max(p.Try, 1)
	return New(KindCall, now, CallID(p.Invocation, p.Call, p.Try), p)
}

// NewResult is the completion of a call.
func NewResult(now stamp.Time, p Result) Draft { return New(KindResult, now, ResultID(p.Call), p) }

// NewGate stops the session until it is answered: no turn begins.
func NewGate(now stamp.Time, p Pause) Draft { return New(KindGate, now, PauseID(p.Interrupt), p) }

// NewPark asks a question with which a turn ends. Append it together with the turn's end.
func NewPark(now stamp.Time, p Pause) Draft { return New(KindPark, now, PauseID(p.Interrupt), p) }

// Extend gives an open gate or park a new token; the old one is over. kind is that of the pause.
func Extend(kind Kind, now stamp.Time, id, interrupt, token string, expires stamp.Time) Draft {
	return New(kind, now, id, Pause{Interrupt: interrupt, Token: HashToken(token), Expires: expires, Extend: true})
}

// NewAnswer answers a gate or park.
func NewAnswer(now stamp.Time, p Answer) Draft {
	return New(KindAnswer, now, AnswerID(p.Interrupt), p)
}

// NewAck accepts the unresolved calls up to a sequence as unknown.
func NewAck(now stamp.Time, id string, p Ack) Draft { return New(KindAck, now, id, p) }

// NewResolve says what became of one call.
func NewResolve(now stamp.Time, p Resolve) Draft { return New(KindResolve, now, ResolveID(p.Call), p) }

// NewAbort stops the session for good: no turn begins and no call either.
func NewAbort(now stamp.Time, id, why string) Draft {
	return New(KindAbort, now, id, Abort{Why: why})
}

// NewMark is what a drain says about a turn that it found open.
func NewMark(now stamp.Time, id, turn, why string) Draft {
	return New(KindMark, now, id, Mark{Why: why}).As(0, turn)
}

// Clear takes away the mark and the interruption that its writer had seen. A turn of the present owner refuses it.
func Clear(now stamp.Time, id string, through uint64) Draft {
	return New(KindMark, now, id, Mark{Clear: through})
}

// Try is an attempt of auto-resume, written by the owner, with its fence, before the turn.
func Try(now stamp.Time, id string, limit int) Draft {
	return New(KindAttempt, now, id, Attempt{Limit: limit})
}

// Release lifts a quarantine.
func Release(now stamp.Time, id, by string) Draft {
	return New(KindAttempt, now, id, Attempt{Release: true, By: by})
}

// Own takes the session for an instance; over is what Take said.
func Own(now stamp.Time, id string, owner ledger.Instance, over uint64) Draft {
	return New(KindLease, now, id, Lease{Owner: owner, Over: over})
}

// Disown gives the session up. Its owner's fence goes on with Draft.As.
func Disown(now stamp.Time, id string, owner ledger.Instance) Draft {
	return New(KindLease, now, id, Lease{Owner: owner, Release: true})
}
