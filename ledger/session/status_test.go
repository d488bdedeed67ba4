package session_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func at(d time.Duration) stamp.Time {
	return stamp.Time{Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}.Add(d)
}

// twin is what a status says, told the slow and obvious way: each fact by looking through the whole log for it.
type twin struct {
	Headline    session.Headline
	Unproven    bool
	Fence       uint64
	Owner, Turn string
	Ambiguous   bool // the open turn
	Would       bool // a turn that began now
	Calls       []string
	Gates       []string
	Parks       []string
	Tokens      []string
	Interrupted string
	Since       stamp.Time
	Marked      bool
	Attempts    int
	Quarantined bool
	Clean       bool
	Newer       int
}

// log is a whole log with the questions that the twin asks of it.
type log []session.Event

func into[T any](e session.Event) (p T) {
	if err := e.Into(&p); err != nil {
		panic(err)
	}
	return p
}

// any reports whether an event from a place on fits.
func (l log) any(from int, fits func(session.Event) bool) bool {
	return from < len(l) && slices.ContainsFunc(l[from:], fits)
}

func completes(e session.Event) bool {
	end := into[session.TurnEnded](e).End
	return e.Kind == session.KindTurnEnded && (end == session.EndDone || end == session.EndParked)
}

func restarts(e session.Event) bool {
	return e.Kind == session.KindTurnEnded && into[session.TurnEnded](e).End == session.EndRestarting
}

func clears(e session.Event) bool {
	return e.Kind == session.KindMark && into[session.Mark](e).Clear != 0
}

// fence counts what raises it among the first n events.
func (l log) fence(n int) (fence uint64) {
	for _, e := range l[:n] {
		if e.Kind == session.KindAck || e.Kind == session.KindLease && !into[session.Lease](e).Release {
			fence++
		}
	}
	return fence
}

func (l log) owner() (owner string) {
	for i, e := range l {
		switch e.Kind {
		case session.KindLease:
			owner = into[session.Lease](e).Owner.ID
			if into[session.Lease](e).Release {
				owner = ""
			}
		case session.KindAck:
			if dead := into[session.Ack](e).Dead; dead != 0 && dead == l.fence(i) {
				owner = ""
			}
		}
	}
	return owner
}

// dangling are the calls before place n that have no completion before place m.
func (l log) dangling(n, m int) (out []session.Event) {
	for i, e := range l[:n] {
		if e.Kind != session.KindCall || into[session.Call](e).Class == session.ReadOnly {
			continue
		}
		settled := l[:m].any(i+1, func(x session.Event) bool {
			switch x.Kind {
			case session.KindResult:
				return into[session.Result](x).Call == e.ID
			case session.KindResolve:
				return into[session.Resolve](x).Call == e.ID
			case session.KindAck:
				return into[session.Ack](x).Through >= e.Seq
			}
			return false
		})
		if !settled {
			out = append(out, e)
		}
	}
	return out
}

func ambiguous(calls []session.Event) bool {
	return slices.ContainsFunc(calls, func(e session.Event) bool { return into[session.Call](e).Class == session.Mutating })
}

func (l log) open(kind session.Kind) (interrupts, tokens []string) {
	for i, e := range l {
		p := into[session.Pause]
		if e.Kind != kind || p(e).Extend {
			continue
		}
		token := p(e).Token
		answered := false
		for _, x := range l[i+1:] {
			switch {
			case x.Kind == session.KindAnswer && into[session.Answer](x).Interrupt == p(e).Interrupt:
				answered = true
			case x.Kind == kind && p(x).Extend && p(x).Interrupt == p(e).Interrupt:
				token = p(x).Token
			}
		}
		if !answered {
			interrupts, tokens = append(interrupts, p(e).Interrupt), append(tokens, token)
		}
	}
	return interrupts, tokens
}

// begun is the place of the turn that is open after the first n events, -1 when none is.
func (l log) begun(n int) int {
	last := -1
	for i, e := range l[:n] {
		if e.Kind == session.KindTurnBegun {
			last = i
		}
	}
	if last >= 0 && l[:n].any(last, func(e session.Event) bool { return e.Kind == session.KindTurnEnded || clears(e) }) {
		return -1
	}
	return last
}

// seen is the last event of a turn's owner before another one took over.
func (l log) seen(turn int) stamp.Time {
	t := l[turn].At
	for i := turn; i < len(l) && l.fence(i) == l[turn].Fence; i++ {
		if l[i].Fence == l[turn].Fence {
			t = l[i].At
		}
	}
	return t
}

func slowly(l log, owner ledger.Liveness) (s twin) {
	n := len(l)
	s.Fence, s.Owner = l.fence(n), l.owner()
	turn := l.begun(n)
	running := turn >= 0 && l[turn].Fence == s.Fence && owner != ledger.Dead
	s.Unproven = running && owner == ledger.LifeUnknown
	if turn >= 0 {
		s.Turn, s.Ambiguous = l[turn].Turn, ambiguous(l.dangling(turn, turn))
	}
	calls := l.dangling(n, n)
	s.Would = ambiguous(calls)
	for _, e := range calls {
		s.Calls = append(s.Calls, e.ID)
	}
	s.Gates, s.Tokens = l.open(session.KindGate)
	parks, tokens := l.open(session.KindPark)
	s.Parks, s.Tokens = parks, append(s.Tokens, tokens...)

	lifted := func(i int) bool {
		return l.any(i+1, func(e session.Event) bool { return completes(e) || restarts(e) || clears(e) })
	}
	mark := -1
	for i, e := range l {
		if e.Kind == session.KindMark && !clears(e) && !lifted(i) {
			mark = i
		}
	}
	cut := -1 // a turn that another one took the place of
	at := -1
	for i, e := range l {
		if e.Kind == session.KindTurnBegun && l.begun(i) >= 0 && !lifted(i) {
			cut, at = l.begun(i), i
		}
	}
	switch {
	case turn >= 0 && !running:
		s.Interrupted, s.Since = l[turn].Turn, l.seen(turn)
		s.Marked = mark >= 0 && l[mark].Turn == l[turn].Turn
	case mark >= 0 && !(running && l[mark].Turn == l[turn].Turn):
		s.Interrupted, s.Since, s.Marked = l[mark].Turn, l[mark].At, true
	case cut >= 0:
		s.Interrupted, s.Since = l[cut].Turn, l[:at].seen(cut)
	}

	limit := 0
	for _, e := range l {
		a := into[session.Attempt]
		switch {
		case completes(e), e.Kind == session.KindAttempt && a(e).Release:
			s.Attempts = 0
		case e.Kind == session.KindAttempt:
			s.Attempts++
			limit = a(e).Limit
		}
	}
	s.Quarantined = s.Attempts > 0 && s.Attempts >= limit
	for _, e := range l {
		switch e.Kind {
		case session.KindModelTurn:
			s.Clean = len(into[session.ModelTurn](e).Calls) == 0
		case session.KindTurnBegun, session.KindMessage, session.KindCall, session.KindResult, session.KindAnswer:
			s.Clean = false
		}
		if !e.Kind.Known() {
			s.Newer++
		}
	}
	aborted := l.any(0, func(e session.Event) bool { return e.Kind == session.KindAbort })
	switch {
	case aborted:
		s.Headline = session.Aborted
	case len(s.Gates)+len(s.Parks) > 0:
		s.Headline = session.Paused
	case running:
		s.Headline = session.Running
	case s.Interrupted != "":
		s.Headline = session.Interrupted
	default:
		s.Headline = session.Idle
	}
	return s
}

// quickly says the same of a status.
func quickly(st session.Status) (s twin) {
	h := st.Head
	s = twin{Headline: st.Headline, Unproven: st.Unproven, Fence: h.Fence, Owner: h.Owner.ID, Would: st.Ambiguous,
		Attempts: h.Attempts, Quarantined: st.Quarantined, Clean: h.Clean, Newer: h.Newer}
	if h.Turn != nil {
		s.Turn, s.Ambiguous = h.Turn.ID, h.Turn.Ambiguous
	}
	for _, c := range h.Calls {
		s.Calls = append(s.Calls, c.ID)
	}
	for _, o := range h.Gates {
		s.Gates, s.Tokens = append(s.Gates, o.Interrupt), append(s.Tokens, o.Token)
	}
	for _, o := range h.Parks {
		s.Parks, s.Tokens = append(s.Parks, o.Interrupt), append(s.Tokens, o.Token)
	}
	if i := st.Interruption; i != nil {
		s.Interrupted, s.Since, s.Marked = i.Turn, i.Since, i.Marked
	}
	return s
}

// anything is a draft of any kind, mostly one that may follow.
func anything(t *rapid.T, n int, h session.Head) session.Draft {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	now, id := at(time.Duration(n)*time.Second), fmt.Sprint("e", n)
	fence, turn := h.Fence, pick("turn", "t1", "t2")
	if h.Turn != nil && rapid.IntRange(0, 9).Draw(t, "this turn") > 0 {
		turn = h.Turn.ID
	}
	if h.Turn == nil {
		turn = fmt.Sprint("t", n)
	}
	if fence > 0 && rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		fence--
	}
	dead := rapid.SampledFrom([]uint64{0, h.Fence}).Draw(t, "dead")
	interrupt := pick("interrupt", "a", "b", "c", "d")
	own := func(d session.Draft) session.Draft { return d.As(fence, turn) }
	call := session.Call{Invocation: pick("invocation", "i", "j"), Call: pick("call", "1", "2", "3"), Tool: "x",
		Class: rapid.SampledFrom([]session.Class{session.Mutating, session.Spawning, session.ReadOnly}).Draw(t, "class")}
	known := session.CallID(call.Invocation, call.Call, 1)
	if len(h.Calls) > 0 && rapid.Bool().Draw(t, "a dangling one") {
		known = h.Calls[rapid.IntRange(0, len(h.Calls)-1).Draw(t, "which")].ID
	}
	seen := uint64(rapid.IntRange(1, int(h.Last)+1).Draw(t, "seen"))
	switch rapid.IntRange(0, 21).Draw(t, "kind") {
	case 0, 1:
		return session.Own(now, id, ledger.Instance{ID: pick("owner", "x", "y")}, dead)
	case 2:
		return session.Disown(now, id, ledger.Instance{ID: "x"}).As(fence, "")
	case 3, 4, 5:
		return own(session.Begin(now, id, session.TurnBegun{}))
	case 6, 7:
		ends := []session.End{session.EndDone, session.EndFailed, session.EndParked, session.EndRestarting}
		return own(session.Finish(now, id, session.TurnEnded{End: rapid.SampledFrom(ends).Draw(t, "end")}))
	case 8, 9, 10:
		return own(session.NewCall(now, call))
	case 11, 12:
		return own(session.NewResult(now, session.Result{Call: known, Class: call.Class, NotApplied: dead == 0}))
	case 13:
		return session.NewResolve(now, session.Resolve{Call: known, Outcome: session.Happened, Dead: dead})
	case 14:
		return session.NewAck(now, id, session.Ack{Through: seen, Dead: dead})
	case 15:
		return session.New(rapid.SampledFrom([]session.Kind{session.KindGate, session.KindPark}).Draw(t, "pause"), now,
			session.PauseID(interrupt), session.Pause{Interrupt: interrupt, Token: id})
	case 16:
		return session.New(rapid.SampledFrom([]session.Kind{session.KindGate, session.KindPark}).Draw(t, "pause"), now, id,
			session.Pause{Interrupt: interrupt, Token: id, Extend: true})
	case 17:
		return session.NewAnswer(now, session.Answer{Interrupt: interrupt})
	case 18:
		if rapid.Bool().Draw(t, "clear") {
			return session.Clear(now, id, seen)
		}
		return session.NewMark(now, id, turn, "drain")
	case 19:
		if rapid.Bool().Draw(t, "release") {
			return session.Release(now, id, "")
		}
		return session.Try(now, id, rapid.IntRange(1, 3).Draw(t, "limit")).As(fence, "")
	case 20:
		return own(session.Reply(now, id, session.ModelTurn{Calls: rapid.SampledFrom([][]string{nil, {"1"}}).Draw(t, "proposes")}))
	}
	switch rapid.IntRange(0, 20).Draw(t, "rare") {
	case 0:
		return session.NewAbort(now, id, "")
	case 1, 2:
		return session.New("from_the_future", now, id, nil)
	}
	return session.Say(now, id, nil)
}

// The status, folded event by event and kept as JSON between, is at every place of every log what the whole log says.
func TestStatusIsWhatTheWholeLogSays(t *testing.T) {
	t.Parallel()
	reached := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		head := session.Head{Session: "s"}
		var events log
		for n := range rapid.IntRange(1, 60).Draw(t, "events") {
			plan, err := session.Step(head, []session.Draft{anything(t, n, head)}, func(id string) (session.Event, bool, error) {
				i := slices.IndexFunc(events, func(e session.Event) bool { return e.ID == id })
				if i < 0 {
					return session.Event{}, false, nil
				}
				return events[i], true, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, plan.Events...)
			b, err := json.Marshal(plan.Receipt.Head)
			if err != nil {
				t.Fatal(err)
			}
			head = session.Head{}
			if err := json.Unmarshal(b, &head); err != nil {
				t.Fatal(err)
			}
			for _, live := range []ledger.Liveness{ledger.Alive, ledger.Dead, ledger.LifeUnknown} {
				want := slowly(events, live)
				if d := cmp.Diff(want, quickly(head.Status(live))); d != "" {
					t.Fatalf("%s, after %s: -whole +folded\n%s", live, show(events), d)
				}
				if d := cmp.Diff(want, quickly(session.Derive("s", events, live))); d != "" {
					t.Fatalf("%s, after %s: -whole +derived\n%s", live, show(events), d)
				}
				reached[string(want.Headline)]++
			}
		}
	})
	if testing.Short() {
		return // so few logs need not reach them all
	}
	for _, h := range []session.Headline{session.Aborted, session.Paused, session.Running, session.Interrupted, session.Idle} {
		if reached[string(h)] == 0 {
			t.Errorf("no log was %s", h)
		}
	}
}

func show(events log) (s string) {
	for _, e := range events {
		s += fmt.Sprintf("\n%d %s %s fence %d turn %s %s", e.Seq, e.Kind, e.ID, e.Fence, e.Turn, e.Payload)
	}
	return s
}
