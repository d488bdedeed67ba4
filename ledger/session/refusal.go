package session

import (
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger"
)

// Code is a stable reason. It is an error, so that errors.Is(err, session.ErrFenced) tells whether a [*Refusal], or an
// error that wraps one, has it. Codes are added, never renamed.
type Code string

// Error is the code itself.
func (c Code) Error() string { return string(c) }

// Why an event is refused.
const (
	ErrFenced      Code = "fenced"       // another owner has taken the session
	ErrOwned       Code = "owned"        // somebody holds it who is not proven dead
	ErrAborted     Code = "aborted"      // an abort stands
	ErrPaused      Code = "paused"       // a gate stands
	ErrTurnOpen    Code = "turn_open"    // a turn is open, and its owner is not proven dead
	ErrNoOpenTurn  Code = "no_open_turn" // the turn that it is about is not the open one
	ErrSuperseded  Code = "superseded"   // something came later that the writer had not seen
	ErrChained     Code = "chained"      // the event before it in the batch was refused
	ErrMalformed   Code = "malformed"    // not an event of this kind
	ErrOversize    Code = "oversize"     // larger than MaxPayload
	ErrNewer       Code = "newer"        // a newer version of Mulligan writes this session
	ErrIDConflict  Code = "id_conflict"  // the id is that of another event
	ErrQuarantined Code = "quarantined"  // too many attempts without a completed turn
)

// Why a call, or what is said about one, is refused.
const (
	ErrAmbiguous         Code = "ambiguous_prior_effect" // an earlier turn left a mutating call unresolved
	ErrInProgress        Code = "in_progress"            // the call is in flight in the open turn
	ErrEffectKeyConflict Code = "effect_key_conflict"    // the key is that of another tool or other arguments
	ErrNoSuchCall        Code = "no_such_call"           // no such call is unresolved
	ErrAcceptedUnknown   Code = "accepted_unknown"       // it was acknowledged: nobody knows, and it does not run again
	ErrCompensated       Code = "compensated"            // it happened and was undone: it does not run again
)

// Why a pause, or an answer to one, is refused.
const (
	ErrNoSuchInterrupt Code = "no_such_interrupt" // no such gate or park is open
	ErrAnswerConflict  Code = "answer_conflict"   // it was answered, and otherwise
	ErrWrongToken      Code = "wrong_token"       // the token is not that of the pause
	ErrTokenExpired    Code = "token_expired"     // it was, and is over; the pause stays
)

// ErrOutcomeUnknown is returned by Append when the context ended, or the connection did, while the write was under way:
// the events may be in the log or not. Append the same events again to find out.
const ErrOutcomeUnknown Code = "outcome_unknown"

// Refusal says why one event was not appended. Nothing was changed by it.
type Refusal struct {
	Code Code   `json:"code"`
	Text string `json:"text"` // one plain sentence without a full stop
	// Seq is the fact that stands in the way, where it is one event.
	Seq uint64 `json:"seq,omitempty"`
	// Owner and Fence are those of the session, for ErrFenced, ErrOwned and ErrTurnOpen.
	Owner ledger.Instance `json:"owner,omitzero"`
	Fence uint64          `json:"fence,omitempty"`
	// Size is what was too large, in bytes.
	Size int `json:"size,omitempty"`
}

// Error is the text, with the code that programs read.
func (r *Refusal) Error() string { return fmt.Sprintf("%s (%s)", r.Text, r.Code) }

// Is makes errors.Is work with a Code.
func (r *Refusal) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == r.Code
}

// CodeOf is the code of an error that is or wraps a *Refusal or a Code, empty when there is none.
func CodeOf(err error) Code {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	var c Code
	if errors.As(err, &c) {
		return c
	}
	return ""
}

func refuse(c Code, format string, args ...any) *Refusal {
	return &Refusal{Code: c, Text: fmt.Sprintf(format, args...)}
}

func (r *Refusal) at(seq uint64) *Refusal {
	r.Seq = seq
	return r
}
