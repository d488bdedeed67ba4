package ledger

import (
	"fmt"
	"iter"
	"slices"
)

// Problem is something in a ledger that the machine cannot have made.
type Problem struct {
	// Key is the record's, zero when not even that can be told.
	Key Key
	// Text is one sentence.
	Text string
}

func (p Problem) String() string {
	if p.Key == (Key{}) {
		return p.Text
	}
	return p.Key.String() + ": " + p.Text
}

// edge is one line of the machine's table: an event in a state.
type edge struct {
	from  State
	event Event
}

// table is where each event leads. Renew and Annotate keep the state and leave no entry; Prune drops the entries.
var table = map[edge]State{
	{"", Claim}:            Claimed,
	{Claimed, Takeover}:    Claimed,
	{Claimed, Defer}:       Deferred,
	{Claimed, Decline}:     Declined,
	{Claimed, BeginLaunch}: Launching,
	{Deferred, Claim}:      Claimed,
	{Deferred, Decline}:    Declined,
	{Launching, Takeover}:  Launching,
	{Launching, Bind}:      Launched,
	{Launching, Abort}:     SettledFailed,
	{Launched, SettleOK}:   SettledOK,
	{Launched, SettleBad}:  SettledFailed,

	{Claimed, Intend}:       Claimed,
	{Deferred, Intend}:      Declined,
	{Launching, Intend}:     Launching,
	{Launched, Intend}:      Launched,
	{Declined, Intend}:      Declined,
	{SettledOK, Intend}:     SettledOK,
	{SettledFailed, Intend}: SettledFailed,
}

// Validate reports what is impossible in one record; nothing for one that the machine made.
func Validate(r Record) []Problem {
	c := checker{r: r}
	c.head()
	c.history()
	c.owner()
	c.launch()
	return c.found
}

type checker struct {
	r     Record
	found []Problem
}

func (c *checker) sayf(format string, args ...any) {
	c.found = append(c.found, Problem{Key: c.r.Key, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) head() {
	r := c.r
	if r.Schema < 1 || r.Schema > Schema {
		c.sayf("it has schema %d, and this version knows 1 to %d", r.Schema, Schema)
	}
	if r.Lineage == "" {
		c.sayf("it names no lineage")
	}
	if r.First.IsZero() {
		c.sayf("it does not say when the lineage was first claimed")
	}
	if !slices.Contains([]State{Claimed, Deferred, Declined, Launching, Launched, SettledOK, SettledFailed}, r.State) {
		c.sayf("its state %q does not exist", r.State)
	}
	if r.Reason == "" && (r.State == Deferred || r.State == Declined || r.State == SettledFailed) {
		c.sayf("it is %s without a reason", r.State)
	}
	if !r.Pruned.IsZero() && r.Open() {
		c.sayf("it is %s and was pruned, which only a final record can be", r.State)
	}
}

// history walks the entries through the table.
func (c *checker) history() {
	r := c.r
	if len(r.History) == 0 {
		c.sayf("it has no history")
		return
	}
	if last := r.History[len(r.History)-1]; last.State != r.State {
		c.sayf("it is %s, and its history ends with %s", r.State, last.State)
	}
	if !r.Pruned.IsZero() {
		return
	}
	if r.Revision < uint64(len(r.History)) {
		c.sayf("revision %d cannot have %d entries of history", r.Revision, len(r.History))
	}
	var state State
	for i, e := range r.History {
		to, ok := table[edge{state, e.Event}]
		switch {
		case !ok:
			c.sayf("entry %d of its history is %s, which is not allowed from %s", i+1, e.Event, orNone(state))
		case to != e.State:
			c.sayf("entry %d of its history is %s, which leads to %s and not to %s", i+1, e.Event, to, e.State)
		}
		if i > 0 && e.At.SameBoot(r.History[i-1].At) && e.At.Before(r.History[i-1].At) {
			c.sayf("entry %d of its history happened before entry %d", i+1, i)
		}
		state = e.State
	}
}

func orNone(s State) string {
	if s == "" {
		return "nothing"
	}
	return string(s)
}

func (c *checker) owner() {
	r := c.r
	switch needs := r.State == Claimed || r.State == Launching; {
	case needs && r.Owner == nil:
		c.sayf("it is %s and nobody owns it", r.State)
	case !needs && r.Owner != nil:
		c.sayf("it is %s and instance %s still owns it", r.State, r.Owner.Instance.ID)
	case r.Owner != nil && (r.Owner.Instance.ID == "" || r.Owner.Until.IsZero()):
		c.sayf("its owner has no id or no lease")
	}
}

func (c *checker) launch() {
	r := c.r
	begun := slices.Contains([]State{Launching, Launched, SettledOK, SettledFailed}, r.State)
	switch {
	case r.Launch == nil && begun:
		c.sayf("it is %s without a launch", r.State)
		return
	case r.Launch != nil && !begun:
		c.sayf("it is %s and has launch %s", r.State, r.Launch.ID)
		return
	case r.Launch == nil:
		return
	}
	if r.Launch.ID == "" || r.Launch.Begun.IsZero() {
		c.sayf("its launch has no id or no beginning")
	}
	if r.Episode == "" {
		c.sayf("a launch began and it belongs to no episode")
	}
	if r.Evidence == "" && r.Pruned.IsZero() {
		c.sayf("a launch began and there is no evidence")
	}
	c.bound()
}

func (c *checker) bound() {
	r := c.r
	// What a person did afterwards may follow in the history.
	aborted := slices.ContainsFunc(r.History, func(e Entry) bool { return e.Event == Abort })
	switch b := r.Launch.Bound; {
	case b == nil && (r.State == Launched || r.State == SettledOK || r.State == SettledFailed && !aborted):
		c.sayf("it is %s and no process passed the gate", r.State)
	case b != nil && (r.State == Launching || aborted):
		c.sayf("instance %s passed the gate, and the record does not know it", b.ID)
	case b != nil && (b.ID == "" || r.Launch.BoundAt.IsZero()):
		c.sayf("its replacement has no id or no time")
	case b != nil && r.Launch.BoundAt.SameBoot(r.Launch.Begun) && r.Launch.BoundAt.Before(r.Launch.Begun):
		c.sayf("its replacement passed the gate before the launch began")
	}
	if r.Launch.Run != "" && r.Launch.Run == r.Facts.Death.Run {
		c.sayf("run %s is its own replacement", r.Launch.Run)
	}
}

// Check audits a ledger, as [Store.List] yields it: what is impossible in each record, what cannot be read, and what
// is impossible between two records.
func Check(records iter.Seq2[Record, error]) []Problem {
	var found []Problem
	keys, launches, runs := map[Key]int{}, map[string]Key{}, map[string]Key{}
	for r, err := range records {
		if err != nil {
			found = append(found, Problem{Text: err.Error()})
			continue
		}
		found = append(found, Validate(r)...)
		if keys[r.Key]++; keys[r.Key] == 2 {
			found = append(found, Problem{r.Key, "it is in the ledger more than once"})
		}
		if r.Launch == nil {
			continue
		}
		found = append(found, twice(launches, r.Launch.ID, r.Key, "launch")...)
		found = append(found, twice(runs, r.Launch.Run, r.Key, "replacement")...)
	}
	return found
}

// twice reports an id that two lineages use.
func twice(seen map[string]Key, id string, k Key, what string) []Problem {
	other, ok := seen[id]
	if id == "" || !ok || other == k {
		if id != "" {
			seen[id] = k
		}
		return nil
	}
	return []Problem{{k, fmt.Sprintf("its %s %s is also that of %s", what, id, other)}}
}
