package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// TurnBegun is the payload of the event that opens a turn. The turn's id is the event's Turn.
type TurnBegun struct {
	// Invocation is the request that the turn works for. A turn that takes up an interrupted one keeps its invocation, so
	// that calls which were completed replay. Empty means the turn's own id.
	Invocation string `json:"invocation,omitempty"`
	// Resumes is set when auto-resume or an operator runs the turn, and names the turn it takes up.
	Resumes string `json:"resumes,omitempty"`
}

// End is how a turn ended.
type End string

// The ends. Done and parked complete a turn: they lift interruption, mark and quarantine. Restarting lifts the first two, since
// who asked for a restart was not cut off by it, and leaves the attempts, since a restart that is asked for again and again
// is how a loop looks. After failed all stay.
const (
	EndDone       End = "done"
	EndFailed     End = "failed"
	EndParked     End = "parked"
	EndRestarting End = "restarting"
)

func (e End) completes() bool { return e == EndDone || e == EndParked }

func (e End) orderly() bool { return e.completes() || e == EndRestarting }

// TurnEnded is the payload of the event that closes a turn.
type TurnEnded struct {
	End End    `json:"end"`
	Why string `json:"why,omitempty"` // for a turn that failed
}

// ModelTurn is the payload of what a model said.
type ModelTurn struct {
	// Calls are the calls that it proposes. A proposal is no intent: none of them has begun. A model turn without calls
	// is clean: the log may end there, and nothing is left to do.
	Calls []string `json:"calls,omitempty"`
	// Content is the host's.
	Content json.RawMessage `json:"content,omitempty"`
}

// Class says what a call may do to the world outside of the session.
type Class string

// The classes. A tool of which nothing is known is mutating.
const (
	ReadOnly Class = "read_only"
	Mutating Class = "mutating"
	// Spawning starts another session, which has a log of its own. In ambiguous mode it is refused like a mutating call;
	// left dangling, it does not make later turns ambiguous.
	Spawning Class = "spawning"
)

// Call is the payload of the intent of a call.
type Call struct {
	Invocation string `json:"invocation"`
	Call       string `json:"call"` // the call's id within the invocation
	// Try counts the tries of one key from 1: one that is known not to have happened may be tried again.
	Try   int             `json:"try,omitempty"`
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args,omitempty"`
	Class Class           `json:"class"`
}

// Result is the payload of the completion of a call.
type Result struct {
	// Call is the id of the call's event.
	Call string `json:"call"`
	// NotApplied is set when the call certainly did nothing; it may then be tried again.
	NotApplied bool `json:"not_applied,omitempty"`
	// Failed marks a result that is an error of the tool. It completes the call like any other.
	Failed bool            `json:"failed,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	// Class is that of the call, needed for a read-only one alone: those are not kept in the head.
	Class Class `json:"class,omitempty"`
}

// Pause is the payload of a gate and of a park.
type Pause struct {
	// Interrupt is the pause's id, unique in its session, for good.
	Interrupt string          `json:"interrupt"`
	Question  json.RawMessage `json:"question,omitempty"`
	// Token is the hash of the token that answers it, empty when only session and interrupt id do.
	Token   string     `json:"token,omitempty"`
	Expires stamp.Time `json:"expires,omitzero"` // when the token is over; the pause is not
	// Extend is set when the pause is open already, and gets a new token.
	Extend bool `json:"extend,omitempty"`
}

// Answer is the payload of an answer.
type Answer struct {
	Interrupt string          `json:"interrupt"`
	Value     json.RawMessage `json:"value,omitempty"`
	// Token is the hash of the token that was shown, empty for an answer by session and interrupt id.
	Token string `json:"token,omitempty"`
	By    string `json:"by,omitempty"`
}

// Ack is the payload of an acknowledgement: all unresolved calls up to a sequence are accepted as unknown. It raises the
// session's fence.
type Ack struct {
	// Through is the sequence that the operator was shown.
	Through uint64 `json:"through"`
	// Dead is the fence of the owner that was proven dead, zero when none was. A turn of any other owner still refuses.
	Dead uint64 `json:"dead,omitempty"`
	By   string `json:"by,omitempty"`
}

// Resolution is what became of one call.
type Resolution string

// The ways out.
const (
	Happened     Resolution = "happened"
	DidNotHappen Resolution = "did_not_happen"
	Compensated  Resolution = "compensated"
)

// Resolve is the payload of the resolution of one call.
type Resolve struct {
	Call    string          `json:"call"` // the id of the call's event
	Outcome Resolution      `json:"outcome"`
	Value   json.RawMessage `json:"value,omitempty"` // the result, when it happened
	// Dead is the fence of the owner that was proven dead, as in Ack. Without it a call in flight is not resolved.
	Dead uint64 `json:"dead,omitempty"`
	By   string `json:"by,omitempty"`
}

// Abort is the payload of an abort.
type Abort struct {
	Why string `json:"why,omitempty"`
}

// Mark is the payload of a mark: what a drain durably says about the open turn before it waits for it, and what takes
// that and an interruption away again.
type Mark struct {
	Why string `json:"why,omitempty"`
	// Clear, when not zero, takes away mark and interruption instead: those that the writer had seen, up to this sequence.
	Clear uint64 `json:"clear,omitempty"`
}

// Attempt is the payload of an attempt of auto-resume, written before its turn.
type Attempt struct {
	// Limit is how many attempts without a completed turn mean quarantine; zero means DefaultAttempts.
	Limit int `json:"limit,omitempty"`
	// Release lifts the quarantine instead. It needs no owner.
	Release bool   `json:"release,omitempty"`
	By      string `json:"by,omitempty"`
}

// DefaultAttempts is the limit of attempts without a completed turn.
const DefaultAttempts = 3

// Lease is the payload of a change of ownership.
type Lease struct {
	Owner ledger.Instance `json:"owner"`
	// Over is the fence of the owner before, proven dead or given up by itself; zero when the session is free.
	Over uint64 `json:"over,omitempty"`
	// Release gives the session up.
	Release bool `json:"release,omitempty"`
}

// CallID is the id of the event of a call: one per key and try.
func CallID(invocation, call string, try int) string {
	h := sha256.New()
	// The length keeps two keys apart whose parts join to the same text.
	h.Write([]byte(strconv.Itoa(len(invocation)) + "/" + invocation + call))
	return "call/" + hex.EncodeToString(h.Sum(nil)[:16]) + "/" + strconv.Itoa(try)
}

// ResultID is the id of the event of a call's completion: a call completes once.
func ResultID(callID string) string { return "result/" + callID }

// ResolveID is the id of the event of a call's resolution: a call is resolved once.
func ResolveID(callID string) string { return "resolve/" + callID }

// PauseID is the id of the event that opens a pause.
func PauseID(interrupt string) string { return named("pause/", interrupt) }

// AnswerID is the id of the event that answers a pause: it is answered once.
func AnswerID(interrupt string) string { return named("answer/", interrupt) }

// named is an id made of a name that may itself be as long as an id; a long one goes in as its hash.
func named(prefix, name string) string {
	if len(name) <= 128 && !strings.HasPrefix(name, "#") {
		return prefix + name
	}
	sum := sha256.Sum256([]byte(name))
	return prefix + "#" + hex.EncodeToString(sum[:])
}
