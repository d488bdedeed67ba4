package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Schema is the version of events and heads that this package writes.
const Schema = 1

// Limits of what a log takes.
const (
	// MaxPayload is the largest payload in bytes. What is larger belongs beside the log, with its hash in it.
	MaxPayload = 1 << 20
	// MaxID is the longest session, event, turn or interrupt id in bytes.
	MaxID = 256
	// DefaultPage is how many events or heads a page has when the caller does not say.
	DefaultPage = 500
)

// Kind says what an event is about. A kind that this version does not know is kept, shown, and changes no state.
type Kind string

// The vocabulary.
const (
	KindTurnBegun Kind = "turn_begun" // a turn runs from here; payload TurnBegun
	KindTurnEnded Kind = "turn_ended" // it ended, and how; payload TurnEnded
	KindMessage   Kind = "message"    // something was said to the agent; the payload is the host's
	KindModelTurn Kind = "model_turn" // what the model said; payload ModelTurn
	KindCall      Kind = "call"       // the intent of a call; payload Call
	KindResult    Kind = "result"     // its completion; payload Result
	KindGate      Kind = "gate"       // the session is stopped until answered; payload Pause
	KindPark      Kind = "park"       // a turn ended with a question; payload Pause
	KindAnswer    Kind = "answer"     // a gate or park was answered; payload Answer
	KindAck       Kind = "ack"        // unknown effects were accepted; payload Ack
	KindResolve   Kind = "resolve"    // what became of one call; payload Resolve
	KindAbort     Kind = "abort"      // no turn and no call from here on, for good; payload Abort
	KindMark      Kind = "mark"       // a drain found the turn open, or that is cleared; payload Mark
	KindAttempt   Kind = "attempt"    // auto-resume is about to try, or may again; payload Attempt
	KindLease     Kind = "lease"      // the session got or lost an owner; payload Lease
)

// Known reports whether this version knows the kind.
func (k Kind) Known() bool {
	switch k {
	case KindTurnBegun, KindTurnEnded, KindMessage, KindModelTurn, KindCall, KindResult, KindGate, KindPark, KindAnswer,
		KindAck, KindResolve, KindAbort, KindMark, KindAttempt, KindLease:
		return true
	}
	return false
}

// owned reports whether only the session's owner may append the kind. All other kinds are plain facts that any process
// may add; they carry a fence only if their writer wants to be refused when it is no longer the owner.
func (k Kind) owned() bool {
	switch k {
	case KindTurnBegun, KindTurnEnded, KindModelTurn, KindCall, KindResult:
		return true
	}
	return false
}

// Event is one entry of a session's log.
type Event struct {
	// ID is made by the caller and unique in its session, for good: appending it again returns the first sequence. The
	// constructors of calls, results, pauses, answers and resolutions make it from what the event is about.
	ID string `json:"id"`
	// Seq is given by the store: 1, 2, 3 without a gap. Zero in a Draft.
	Seq  uint64 `json:"seq,omitempty"`
	Kind Kind   `json:"kind"`
	// At is when it happened, on the caller's clock.
	At stamp.Time `json:"at"`
	// Schema is the version of the payload; zero in a Draft means the present one.
	Schema int `json:"schema"`
	// Fence is the owner's fencing number; zero for a fact that needs no owner.
	Fence uint64 `json:"fence,omitempty"`
	// Turn is the turn it belongs to, where it belongs to one.
	Turn string `json:"turn,omitempty"`
	// Payload is JSON. A store keeps it byte for byte; Step has compacted it.
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Into decodes the payload into one of the payload types. Fields that a newer version added are left out.
func (e Event) Into(v any) error {
	if len(e.Payload) == 0 {
		return nil // a payload whose fields are all zero may be left out
	}
	if err := json.Unmarshal(e.Payload, v); err != nil {
		return fmt.Errorf("read the payload of event %d (%s): %w", e.Seq, e.Kind, err)
	}
	return nil
}

// CheckName tells why a string cannot be the id of a session, an event, a turn or an interrupt: empty, longer than MaxID,
// no UTF-8, or with a zero byte, which not every database keeps.
func CheckName(s string) error {
	switch {
	case s == "":
		return errors.New("it is empty")
	case len(s) > MaxID:
		return fmt.Errorf("it has %d bytes, more than %d", len(s), MaxID)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return errors.New("it is no UTF-8 text without a zero byte")
	}
	return nil
}

// CheckSession refuses a name that not every store can keep: a store calls it before all else.
func CheckSession(name string) error {
	if err := CheckName(name); err != nil {
		return refuse(ErrMalformed, "session %.80q: its name: %v", name, err)
	}
	return nil
}

// Condition is what else must hold for one event, judged in the step that writes it. The zero Condition asks nothing;
// what a kind needs by itself is not repeated here.
type Condition struct {
	// Last, when not zero, is the highest sequence the log may have: whatever came later was not seen by the writer.
	Last uint64
	// Chained refuses the event when the one before it in the batch was refused.
	Chained bool
}

// Draft is an event that is to be appended, with its condition.
type Draft struct {
	Event
	If Condition
}

// normal fills in what a Draft leaves out and refuses what no log takes.
func (d Draft) normal() (Event, *Refusal) {
	e := d.Event
	e.Seq = 0
	if e.Schema == 0 {
		e.Schema = Schema
	}
	if err := CheckName(e.ID); err != nil {
		return e, refuse(ErrMalformed, "the event's id: %v", err)
	}
	if err := CheckName(string(e.Kind)); err != nil {
		return e, refuse(ErrMalformed, "the event's kind: %v", err)
	}
	if e.Turn != "" {
		if err := CheckName(e.Turn); err != nil {
			return e, refuse(ErrMalformed, "the event's turn: %v", err)
		}
	}
	if n := len(e.Payload); n > MaxPayload {
		r := refuse(ErrOversize, "the payload has %d bytes, more than %d: keep it beside the log and put its hash in", n, MaxPayload)
		r.Size = n
		return e, r
	}
	if len(e.Payload) == 0 {
		return e, nil
	}
	if compacted(e.Payload) {
		e.Payload = bytes.Clone(e.Payload) // the caller's memory stays the caller's
		return e, nil
	}
	var b bytes.Buffer
	b.Grow(len(e.Payload))
	if err := json.Compact(&b, e.Payload); err != nil || !utf8.Valid(b.Bytes()) {
		return e, refuse(ErrMalformed, "the payload is no JSON in UTF-8")
	}
	e.Payload = b.Bytes()
	return e, nil
}
