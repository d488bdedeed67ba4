package session

import (
	"slices"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Head is what a store keeps of a session beside its events: the fold of the log, small, and all that judging the next
// event needs. It serialises as JSON. Its slices are never changed in place, so copies may share them.
type Head struct {
	Session string `json:"session"`
	// Schema is the newest version that wrote to the session. One above ours is read, and not written.
	Schema int `json:"schema"`
	// Last is the sequence of the last event; zero for a session that does not exist.
	Last uint64 `json:"last"`
	// Began and At are when the first and the last event happened.
	Began stamp.Time `json:"began"`
	At    stamp.Time `json:"at"`
	// Fence is the present fencing number. It only rises.
	Fence uint64 `json:"fence,omitempty"`
	// Owner holds the session; zero when nobody does.
	Owner Owner `json:"owner,omitzero"`
	// Proof is the last event that the present owner wrote as such.
	Proof stamp.Time `json:"proof,omitzero"`
	// Turn is the turn that has begun and not ended.
	Turn *Turn `json:"turn,omitempty"`
	// Gates and Parks are open, oldest first.
	Gates []Open `json:"gates,omitempty"`
	Parks []Open `json:"parks,omitempty"`
	// Calls are the calls that may change something and have no completion, oldest first.
	Calls []Dangling `json:"calls,omitempty"`
	// Abort is the first abort.
	Abort *Fact `json:"abort,omitempty"`
	// Mark is the last mark of a drain that no completed turn has lifted.
	Mark *Fact `json:"mark,omitempty"`
	// Interrupted is the last turn that another one took the place of before it ended, until a turn completes; At is its
	// owner's last event.
	Interrupted *Fact `json:"interrupted,omitempty"`
	// Attempts counts attempts since the last completed turn, Limit is how many mean quarantine.
	Attempts int `json:"attempts,omitempty"`
	Limit    int `json:"limit,omitempty"`
	// Ended is how the last turn ended that did, empty before.
	Ended End `json:"ended,omitempty"`
	// Clean is set when the last thing said in the turn is the model's, and proposes no call.
	Clean bool `json:"clean,omitempty"`
	// Newer counts events that this version does not understand.
	Newer int `json:"newer,omitempty"`
}

// Owner is who holds a session.
type Owner struct {
	ledger.Instance
	// Seq is the event by which it got the session, At when.
	Seq uint64     `json:"seq"`
	At  stamp.Time `json:"at"`
}

// Turn is a turn that has begun and not ended.
type Turn struct {
	ID         string     `json:"id"`
	Invocation string     `json:"invocation"`
	Seq        uint64     `json:"seq"`
	Fence      uint64     `json:"fence"`
	At         stamp.Time `json:"at"`
	// Seen is the last event that its owner wrote: its last proof of life in the log.
	Seen stamp.Time `json:"seen"`
	// Ambiguous is decided when the turn begins, and holds for all of it: a mutating call from before was unresolved.
	Ambiguous bool `json:"ambiguous,omitempty"`
}

// Open is a gate or park without an answer.
type Open struct {
	Interrupt string     `json:"interrupt"`
	Seq       uint64     `json:"seq"`
	At        stamp.Time `json:"at"`
	// Token is the hash of the token that answers it, Expires when that is over.
	Token   string     `json:"token,omitempty"`
	Expires stamp.Time `json:"expires,omitzero"`
}

// Dangling is a call that has begun and is not completed.
type Dangling struct {
	ID    string     `json:"id"`
	Seq   uint64     `json:"seq"`
	Turn  string     `json:"turn"`
	Tool  string     `json:"tool"`
	Class Class      `json:"class"`
	At    stamp.Time `json:"at"`
}

// Fact is one event that stands.
type Fact struct {
	Seq  uint64     `json:"seq"`
	At   stamp.Time `json:"at"`
	Turn string     `json:"turn,omitempty"`
	Why  string     `json:"why,omitempty"`
}

// Ambiguous reports whether a turn that began now would be in ambiguous mode.
func (h Head) Ambiguous() bool {
	return slices.ContainsFunc(h.Calls, func(c Dangling) bool { return c.Class != Spawning })
}

// Dangling is the unresolved call with an id.
func (h Head) Dangling(id string) (Dangling, bool) {
	i := slices.IndexFunc(h.Calls, func(c Dangling) bool { return c.ID == id })
	if i < 0 {
		return Dangling{}, false
	}
	return h.Calls[i], true
}

// Pause is the open gate or park with an interrupt id.
func (h Head) Pause(interrupt string) (Open, bool) {
	for _, list := range [][]Open{h.Gates, h.Parks} {
		if i := find(list, interrupt); i >= 0 {
			return list[i], true
		}
	}
	return Open{}, false
}

// Quarantined reports that auto-resume leaves the session alone: its attempts are used up.
func (h Head) Quarantined() bool { return h.Attempts > 0 && h.Attempts >= h.limit() }

func (h Head) limit() int {
	if h.Limit > 0 {
		return h.Limit
	}
	return DefaultAttempts
}

// led reports whether a turn is open whose owner still is the session's, as far as the log tells.
func (h Head) led() bool { return h.Turn != nil && h.Turn.Fence == h.Fence }

// Apply is the head after one more event, which the log holds: it judges nothing. An event that this version does not
// understand moves the sequence and is counted.
func (h Head) Apply(e Event) Head { return h.apply(e, said{}) }

func (h Head) apply(e Event, s said) Head {
	h.Last, h.At = e.Seq, e.At
	if h.Began.IsZero() {
		h.Began = e.At
	}
	h.Schema = max(h.Schema, e.Schema, Schema)
	if e.Fence != 0 && e.Fence == h.Fence {
		h.Proof = e.At
		if h.led() {
			turn := *h.Turn
			turn.Seen = e.At
			h.Turn = &turn
		}
	}
	if !e.Kind.Known() || e.Schema > Schema || !h.fold(e, s) {
		h.Newer++
	}
	return h
}

// fold changes the head by what a known event says; false when its payload is not one of this version.
func (h *Head) fold(e Event, s said) bool {
	switch e.Kind {
	case KindMessage:
		h.Clean = false
	case KindModelTurn:
		var p ModelTurn
		if e.Into(&p) != nil {
			return false
		}
		h.Clean = len(p.Calls) == 0
	case KindTurnBegun, KindTurnEnded, KindMark, KindAttempt, KindLease, KindAbort:
		return h.foldTurn(e)
	case KindCall, KindResult, KindResolve, KindAck:
		return h.foldCall(e, s)
	case KindGate, KindPark, KindAnswer:
		return h.foldPause(e)
	}
	return true
}

func (h *Head) foldTurn(e Event) bool {
	switch e.Kind {
	case KindTurnBegun:
		var p TurnBegun
		if e.Into(&p) != nil {
			return false
		}
		if h.Turn != nil {
			h.Interrupted = &Fact{Seq: h.Turn.Seq, At: h.Turn.Seen, Turn: h.Turn.ID}
		}
		if p.Invocation == "" {
			p.Invocation = e.Turn
		}
		h.Turn = &Turn{ID: e.Turn, Invocation: p.Invocation, Seq: e.Seq, Fence: e.Fence, At: e.At, Seen: e.At,
			Ambiguous: h.Ambiguous()}
		h.Clean = false // what the model said in an earlier turn leaves this one undone
	case KindTurnEnded:
		var p TurnEnded
		if e.Into(&p) != nil {
			return false
		}
		h.Turn, h.Ended = nil, p.End
		if p.End.orderly() {
			h.Mark, h.Interrupted = nil, nil
		}
		if p.End.completes() {
			h.Attempts = 0
		}
	case KindMark:
		var p Mark
		if e.Into(&p) != nil {
			return false
		}
		if p.Clear == 0 {
			h.Mark = &Fact{Seq: e.Seq, At: e.At, Turn: e.Turn, Why: p.Why}
		} else {
			h.Mark, h.Interrupted, h.Turn = nil, nil, nil
		}
	case KindAttempt:
		var p Attempt
		if e.Into(&p) != nil {
			return false
		}
		if p.Release {
			h.Attempts = 0
		} else {
			h.Attempts, h.Limit = h.Attempts+1, p.Limit
		}
	case KindLease:
		var p Lease
		if e.Into(&p) != nil {
			return false
		}
		if p.Release {
			h.Owner = Owner{}
		} else {
			h.Fence++
			h.Owner, h.Proof = Owner{Instance: p.Owner, Seq: e.Seq, At: e.At}, e.At
		}
	case KindAbort:
		var p Abort
		if e.Into(&p) != nil {
			return false
		}
		if h.Abort == nil {
			h.Abort = &Fact{Seq: e.Seq, At: e.At, Why: p.Why}
		}
	}
	return true
}

func (h *Head) foldCall(e Event, s said) bool {
	switch e.Kind {
	case KindCall:
		p := s.call
		if p == nil {
			if p = new(Call); e.Into(p) != nil {
				return false
			}
		}
		h.Clean = false
		if p.Class != ReadOnly {
			h.Calls = append(slices.Clip(h.Calls),
				Dangling{ID: e.ID, Seq: e.Seq, Turn: e.Turn, Tool: p.Tool, Class: p.Class, At: e.At})
		}
	case KindResult:
		p := s.result
		if p == nil {
			if p = new(Result); e.Into(p) != nil {
				return false
			}
		}
		h.Clean = false
		h.settle(func(c Dangling) bool { return c.ID == p.Call })
	case KindResolve:
		var p Resolve
		if e.Into(&p) != nil {
			return false
		}
		h.settle(func(c Dangling) bool { return c.ID == p.Call })
	case KindAck:
		var p Ack
		if e.Into(&p) != nil {
			return false
		}
		h.settle(func(c Dangling) bool { return c.Seq <= p.Through })
		if p.Dead != 0 && p.Dead == h.Fence {
			h.Owner = Owner{}
		}
		h.Fence++
	}
	return true
}

func (h *Head) settle(which func(Dangling) bool) {
	h.Calls = slices.DeleteFunc(slices.Clone(h.Calls), which)
	if len(h.Calls) == 0 {
		h.Calls = nil
	}
}

func (h *Head) foldPause(e Event) bool {
	if e.Kind == KindAnswer {
		var p Answer
		if e.Into(&p) != nil {
			return false
		}
		h.Clean = false
		h.Gates, h.Parks = without(h.Gates, p.Interrupt), without(h.Parks, p.Interrupt)
		return true
	}
	var p Pause
	if e.Into(&p) != nil {
		return false
	}
	list := &h.Gates
	if e.Kind == KindPark {
		list = &h.Parks
	}
	if !p.Extend {
		*list = append(slices.Clip(*list), Open{Interrupt: p.Interrupt, Seq: e.Seq, At: e.At, Token: p.Token, Expires: p.Expires})
		return true
	}
	if i := find(*list, p.Interrupt); i >= 0 {
		*list = slices.Clone(*list)
		(*list)[i].Token, (*list)[i].Expires = p.Token, p.Expires
	}
	return true
}

func find(list []Open, interrupt string) int {
	return slices.IndexFunc(list, func(o Open) bool { return o.Interrupt == interrupt })
}

func without(list []Open, interrupt string) []Open {
	i := find(list, interrupt)
	if i < 0 {
		return list
	}
	if len(list) == 1 {
		return nil
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}
