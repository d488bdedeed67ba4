package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
)

// The world of the exhaustive test: two healers that go on with what they find, the runners that they started, one
// crash of a healer at any moment, and a clock. Each healer takes one step at a time, and any step of the others may
// come between: also between its look and its change, and between the begun launch and the start of the runner.
type world struct {
	Rec     *ledger.Record
	Healer  [2]healer
	Runners []runner
	Now     int // in leases
	Crashed bool
}

type healer struct {
	Dead bool
	// Next is the step that was decided, on a record that may be another by now.
	Next   string
	Launch string // begun by this healer, and to be started
	Tries  int
}

// runner is a started replacement on its way through the gate. It may ask again after a lost answer.
type runner struct {
	Launch  string
	Asked   int
	Running bool
	Refused bool
}

const (
	ticks = 3 // how far the clock goes, in leases
	tries = 3 // how often a healer looks
)

func (w world) clone() world {
	w.Runners = append([]runner(nil), w.Runners...)
	return w
}

func (w world) now() time.Duration { return time.Duration(w.Now) * (ledger.DefaultLease + time.Second) }

func name(h int) string { return string(rune('a' + h)) }

// apply is a store: the change is decided on the record as it is now.
func (w *world) apply(c ledger.Change) error {
	next, err := ledger.Apply(*w.Rec, c)
	if err == nil {
		w.Rec = &next
	}
	return err
}

func (w *world) change(h int, e ledger.Event) ledger.Change {
	c := ready(e, w.now())
	c.Actor, c.Launch, c.Run = who(name(h)), "", ""
	if w.Rec != nil && w.Rec.Owner != nil {
		c.OwnerDead = w.Healer[w.Rec.Owner.Instance.ID[0]-'a'].Dead
	}
	return c
}

// look decides the next step of a healer from what it reads.
func (w *world) look(h int) {
	me := &w.Healer[h]
	me.Tries++
	switch r := w.Rec; {
	case r == nil:
		me.Next = "claim"
	case r.State == ledger.Deferred:
		me.Next = "reclaim"
	case r.State == ledger.Claimed && r.Owner.Instance.Same(who(name(h))):
		me.Next = "begin"
	case r.State == ledger.Launching && r.Owner.Instance.Same(who(name(h))):
		me.Next = "abort"
	case r.State == ledger.Claimed || r.State == ledger.Launching:
		me.Next = "takeover"
	}
}

// act is the change or the start that was decided; whatever it was decided on may be outdated.
func (w *world) act(h int) {
	me := &w.Healer[h]
	step := me.Next
	me.Next = ""
	switch step {
	case "claim":
		if w.Rec == nil { // the exclusive creation
			if r, err := ledger.New(key, w.change(h, ledger.Claim)); err == nil {
				w.Rec, me.Next = &r, "begin"
			}
		}
	case "reclaim":
		if w.apply(w.change(h, ledger.Claim)) == nil {
			me.Next = "begin"
		}
	case "takeover":
		_ = w.apply(w.change(h, ledger.Takeover))
	case "begin":
		c := w.change(h, ledger.BeginLaunch)
		c.Launch = fmt.Sprint("launch-", name(h), me.Tries)
		if w.apply(c) == nil {
			me.Next, me.Launch = "start", c.Launch
		}
	case "start":
		w.Runners = append(w.Runners, runner{Launch: me.Launch})
	case "defer":
		_ = w.apply(w.change(h, ledger.Defer))
	case "abort":
		_ = w.apply(w.change(h, ledger.Abort))
	}
}

func (w *world) gate(i int) {
	r := &w.Runners[i]
	r.Asked++
	c := ready(ledger.Bind, w.now())
	c.Actor, c.Launch, c.Run = who(fmt.Sprint("runner-", i)), r.Launch, fmt.Sprint("run-", i)
	if w.apply(c) == nil {
		r.Running = true
	} else {
		r.Refused = true
	}
}

// id tells worlds apart by all that decides what can happen next: the record's history does not.
func (w world) id() string {
	rec := "none"
	if r := w.Rec; r != nil {
		rec = string(r.State)
		if r.Owner != nil {
			rec += fmt.Sprint(r.Owner.Instance.ID, r.Owner.Until)
		}
		if r.Launch != nil {
			rec += fmt.Sprint(r.Launch.ID, r.Launch.Grace, r.Launch.Bound != nil)
		}
	}
	return fmt.Sprint(w.Healer, w.Runners, w.Now, w.Crashed, rec)
}

// moves are all that can happen next.
func (w world) moves() []world {
	var out []world
	do := func(f func(*world)) {
		n := w.clone()
		f(&n)
		out = append(out, n)
	}
	for h := range w.Healer {
		me := w.Healer[h]
		switch {
		case me.Dead:
		case me.Next != "":
			do(func(n *world) { n.act(h) })
			if me.Next == "begin" { // or it finds the tree not quiet
				do(func(n *world) { n.Healer[h].Next = "defer" })
			}
		case me.Tries < tries:
			do(func(n *world) { n.look(h) })
		}
		if !me.Dead && !w.Crashed {
			do(func(n *world) { n.Crashed, n.Healer[h].Dead, n.Healer[h].Next = true, true, "" })
		}
	}
	for i, r := range w.Runners {
		if r.Asked < 2 && !r.Refused {
			do(func(n *world) { n.gate(i) })
		}
	}
	if w.Now < ticks {
		do(func(n *world) { n.Now++ })
	}
	return out
}

// TestNoInterleavingStartsTwo goes through every order in which two healers, their runners, a crash and the clock can
// take turns.
func TestNoInterleavingStartsTwo(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	ends := map[ledger.State]int{}
	todo := []world{{}}
	for len(todo) > 0 {
		w := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		b := w.id()
		if seen[b] {
			continue
		}
		seen[b] = true
		running, started := 0, map[string]int{}
		for _, r := range w.Runners {
			if r.Running {
				running++
			}
			if started[r.Launch]++; started[r.Launch] > 1 {
				t.Fatalf("launch %s was started twice: %s", r.Launch, b)
			}
		}
		if running > 1 || len(w.Runners) > 1 {
			t.Fatalf("%d replacements were started and %d passed the gate: %s", len(w.Runners), running, b)
		}
		if w.Rec != nil {
			if running == 1 != (w.Rec.State == ledger.Launched) {
				t.Fatalf("%d replacements run, and the record does not know: %s", running, b)
			}
			if ps := ledger.Validate(*w.Rec); len(ps) > 0 {
				t.Fatalf("the auditor says %v: %s", ps, b)
			}
			ends[w.Rec.State]++
		}
		todo = append(todo, w.moves()...)
	}
	for _, s := range []ledger.State{ledger.Claimed, ledger.Deferred, ledger.Launching, ledger.Launched, ledger.SettledFailed} {
		if ends[s] == 0 {
			t.Errorf("no interleaving reaches %s: the test does not try enough", s)
		}
	}
	t.Logf("%d states of the world", len(seen))
}
