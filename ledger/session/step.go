package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// Plan is what a store has to write for one batch: the events, in order, and the head, in one atomic step. With no events
// there is nothing to write.
type Plan struct {
	Events  []Event
	Receipt Receipt
}

// Step judges a batch against a session's head. It is a store's atomic step: load the head, call Step, write what it
// plans, all while nobody else can append to the session. find is the event of an id in the session, as of the same
// moment; its error is Step's. It is asked for each id of the batch that could be appended, once, so a store may fetch
// them all beforehand.
//
// An id that is in the log already, or earlier in the batch, is not judged again: the same event gets its first
// sequence, another one is refused (ErrEffectKeyConflict for a call, ErrAnswerConflict for an answer, else
// ErrIDConflict).
func Step(head Head, batch []Draft, find func(id string) (Event, bool, error)) (Plan, error) {
	plan := Plan{Receipt: Receipt{Outcomes: make([]Outcome, 0, len(batch)), Head: head}}
	for i, d := range batch {
		out, err := plan.one(i, d, find)
		if err != nil {
			return Plan{}, err
		}
		plan.Receipt.Outcomes = append(plan.Receipt.Outcomes, out)
	}
	return plan, nil
}

func (p *Plan) one(i int, d Draft, find func(id string) (Event, bool, error)) (Outcome, error) {
	e, r := d.normal()
	if r != nil {
		return Outcome{Refused: r}, nil
	}
	first, known, err := p.find(e.ID, find)
	if err != nil {
		return Outcome{}, fmt.Errorf("look for event %s: %w", e.ID, err)
	}
	if known {
		if r := repeat(first, e); r != nil {
			return Outcome{Refused: r}, nil
		}
		return Outcome{Seq: first.Seq, Repeated: true}, nil
	}
	if d.If.Chained && i > 0 && p.Receipt.Outcomes[i-1].Refused != nil {
		return Outcome{Refused: refuse(ErrChained, "the event before it in the batch was refused: %v", p.Receipt.Outcomes[i-1].Refused)}, nil
	}
	var s said
	if r := judge(p.Receipt.Head, e, d.If, &s); r != nil {
		return Outcome{Refused: r}, nil
	}
	e.Seq = p.Receipt.Head.Last + 1
	p.Receipt.Head = p.Receipt.Head.apply(e, s)
	p.Events = append(p.Events, e)
	return Outcome{Seq: e.Seq}, nil
}

func (p *Plan) find(id string, in func(id string) (Event, bool, error)) (Event, bool, error) {
	for _, e := range p.Events {
		if e.ID == id {
			return e, true, nil
		}
	}
	return in(id)
}

// repeat tells whether an event is the one that has its id already. Time, fence and turn may differ: what was written is
// what counts, and a writer that asks again may be another process.
func repeat(first, again Event) *Refusal {
	if first.Kind != again.Kind {
		return refuse(ErrIDConflict, "id %s is that of event %d, a %s", again.ID, first.Seq, first.Kind).at(first.Seq)
	}
	switch first.Kind {
	case KindCall:
		var a, b Call
		if first.Into(&a) != nil || again.Into(&b) != nil || a.Tool != b.Tool || !sameJSON(a.Args, b.Args) {
			return refuse(ErrEffectKeyConflict, "the key of call %d is taken: it was %s with other arguments or another tool",
				first.Seq, a.Tool).at(first.Seq)
		}
		return nil
	case KindAnswer:
		return repeatAnswer(first, again)
	}
	if !sameJSON(first.Payload, again.Payload) {
		return refuse(ErrIDConflict, "id %s is that of event %d, which says something else", again.ID, first.Seq).at(first.Seq)
	}
	return nil
}

func repeatAnswer(first, again Event) *Refusal {
	var a, b Answer
	if first.Into(&a) != nil || again.Into(&b) != nil {
		return refuse(ErrMalformed, "the answer cannot be read")
	}
	// A token that did not answer the pause is wrong, whatever it comes with.
	if a.Token != "" && b.Token != "" && !sameHash(a.Token, b.Token) {
		return refuse(ErrWrongToken, "the token is not the one that answered %s", a.Interrupt).at(first.Seq)
	}
	if !sameJSON(a.Value, b.Value) {
		return refuse(ErrAnswerConflict, "%s was answered, and otherwise (event %d)", a.Interrupt, first.Seq).at(first.Seq)
	}
	return nil
}

// sameJSON compares two values by what they say: neither white space nor the order of fields counts. Numbers are
// compared by their digits, so that large ones are not rounded together.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decodeJSON(a)
	y, errY := decodeJSON(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decodeJSON(b json.RawMessage) (v any, err error) {
	if len(b) == 0 {
		return nil, nil // left out is null
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
