package classify

import (
	"bytes"
	"encoding/json"

	"github.com/mulligan-dev/mulligan/classify/text"
)

// Decision is what a verdict rests on.
type Decision string

// The decisions, in the order in which they are looked for.
const (
	ByCause     Decision = "typed_cause" // the host knew the cause
	ByExit      Decision = "exit_status" // the exit status is proof by itself
	ByFailure   Decision = "failure"     // a failure in the text
	ByStatement Decision = "statement"   // a line that says why the run ended
	ByNothing   Decision = "nothing"     // the text says nothing about an end
)

// Exclusion is why something in a text did not decide.
type Exclusion string

// The exclusions.
const (
	NotLast        Exclusion = "not_last"         // another failure was printed later, or read the same lines better
	Survived       Exclusion = "survived"         // the text reports it as handled
	WentOn         Exclusion = "went_on"          // the process worked on after it
	EndedOtherwise Exclusion = "ended_otherwise"  // a later line says what ended the process
	ExitOutweighs  Exclusion = "exit_status"      // the exit status says that something outside ended the process
	CauseOutweighs Exclusion = "typed_cause"      // the host knows the cause
	NoWord         Exclusion = "no_word_of_it"    // the text holds no word of the runtime's
	NoFailure      Exclusion = "no_failure_found" // words of the runtime's are there, and no failure of its
)

// Span is a part of the text that was given, by byte offsets.
type Span struct {
	From int `json:"from"`
	To   int `json:"to"` // behind the last byte
}

// Explanation says how a verdict came about.
type Explanation struct {
	Decision Decision `json:"decision"`
	// Deciding are the parts that decided, in the order of the text: whole lines' words without their dress.
	Deciding []Span `json:"deciding"`
	// RuledOut is what did not decide, and why.
	RuledOut []RuledOut `json:"ruled_out"`
}

// RuledOut is something that did not decide: a failure, or a runtime that found none.
type RuledOut struct {
	Runtime   string    `json:"runtime"`
	Exception string    `json:"exception,omitempty"`
	Message   string    `json:"message,omitempty"`
	Why       Exclusion `json:"why"`
	// Spans are the lines of the failure, none for a runtime without one.
	Spans []Span `json:"spans,omitempty"`
}

// Explain judges one death as [Classifier.Classify] does, and says how. It costs more: every runtime that may find a failure
// is asked over all of the tail.
func (c *Classifier) Explain(in Input) (Verdict, Explanation) {
	var t course
	v := c.judged(in, &t)
	e := Explanation{Decision: t.decided, Deciding: []Span{}, RuledOut: []RuledOut{}}
	if e.Decision == "" {
		e.Decision = ByNothing
	}
	// The offsets of lines are found again in the text, from its end.
	if t.log != nil && t.to > t.from {
		e.Deciding = newPlaces(in.Text, t.log).spans(t.from, t.to)
	}
	if in.Cause != "" {
		t.asked = all
	}
	log := text.Read(in.Text, TailLimit)
	where := newPlaces(in.Text, log)
	for i, r := range c.runtimes {
		if t.log == nil && in.Cause == "" || !asks(t.asked, i) {
			e.RuledOut = append(e.RuledOut, RuledOut{Runtime: r.Name(), Why: NoWord})
			continue
		}
		f := r.Parse(log)
		switch {
		case f == nil:
			e.RuledOut = append(e.RuledOut, RuledOut{Runtime: r.Name(), Why: NoFailure})
			continue
		case t.decided == ByFailure && t.by != nil && r.Name() == t.by.Name():
			continue
		}
		out := RuledOut{Runtime: r.Name(), Exception: f.Type, Message: firstLine(f.Message), Spans: where.spans(f.First, f.Last+1)}
		switch {
		case in.Cause != "":
			out.Why = CauseOutweighs
		case t.decided == ByExit:
			out.Why = ExitOutweighs
		case t.by == nil || r.Name() != t.by.Name():
			out.Why = NotLast
		case f.Survived:
			out.Why = Survived
		case t.decided == ByStatement:
			out.Why = EndedOtherwise
		default:
			out.Why = WentOn
		}
		e.RuledOut = append(e.RuledOut, out)
	}
	return v, e
}

// places finds lines of an undressed log again in the text that it was read from.
type places struct {
	text []byte
	at   []Span
}

// maxTries bounds the search for lines that are nowhere as they are, as in a text full of colours.
const maxTries = 1 << 18

// newPlaces looks for every line from the end on, each at or before the one that was printed later. What was taken out of a
// record stands for the whole record; a line that is not found has an empty span.
func newPlaces(raw []byte, log *text.Log) *places {
	p := &places{text: raw, at: make([]Span, len(log.Lines))}
	base := max(0, len(raw)-TailLimit)
	type line struct{ from, to int }
	var lines []line
	for from := base; from < len(raw); {
		to := len(raw)
		if n := bytes.IndexByte(raw[from:], '\n'); n >= 0 {
			to = from + n
		}
		lines = append(lines, line{from, to})
		from = to + 1
	}
	// Lines of several sources were put in order, so a search that finds nothing behind begins again at the end.
	next, budget := len(lines)-1, maxTries
	for i := len(log.Lines) - 1; i >= 0; i-- {
		want := []byte(log.Lines[i])
		if len(bytes.TrimSpace(want)) == 0 {
			continue
		}
		quoted, _ := json.Marshal(log.Lines[i]) // a string always has a form in JSON
		quoted = bytes.Trim(quoted, `"`)
		for tries, n := 0, next; tries < len(lines) && budget > 0; tries, n, budget = tries+1, n-1, budget-1 {
			if n < 0 {
				n = len(lines) - 1
			}
			l := raw[lines[n].from:lines[n].to]
			if at := bytes.LastIndex(l, want); at >= 0 {
				p.at[i] = Span{lines[n].from + at, lines[n].from + at + len(want)}
				next = max(n-1, 0)
				break
			}
			if len(l) > 0 && bytes.Contains(l, quoted) {
				p.at[i] = Span{lines[n].from, lines[n].to}
				next = n
				break
			}
		}
	}
	return p
}

// spans are the places of the lines from from up to to, joined where they touch.
func (p *places) spans(from, to int) []Span {
	out := []Span{}
	for i := max(from, 0); i < min(to, len(p.at)); i++ {
		s := p.at[i]
		if s.To == s.From {
			continue
		}
		if n := len(out); n > 0 && s.From >= out[n-1].From && s.From <= out[n-1].To+2 {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}
