package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// book is a log in its simplest form.
type book struct {
	t      *testing.T
	head   session.Head
	events []session.Event
}

func newBook(t *testing.T) *book { return &book{t: t, head: session.Head{Session: "s"}} }

func (b *book) append(batch ...session.Draft) []session.Outcome {
	b.t.Helper()
	plan, err := session.Step(b.head, batch, func(id string) (session.Event, bool, error) {
		for _, e := range b.events {
			if e.ID == id {
				return e, true, nil
			}
		}
		return session.Event{}, false, nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.head, b.events = plan.Receipt.Head, append(b.events, plan.Events...)
	return plan.Receipt.Outcomes
}

// accepts appends what must be accepted, refuses what must be refused with a code.
func (b *book) accepts(batch ...session.Draft) {
	b.t.Helper()
	for i, o := range b.append(batch...) {
		if o.Refused != nil {
			b.t.Fatalf("%s %s: %v", batch[i].Kind, batch[i].ID, o.Refused)
		}
	}
}

func (b *book) refuses(code session.Code, d session.Draft) {
	b.t.Helper()
	before := b.head
	err := b.append(d)[0].Err()
	if !errors.Is(err, code) {
		b.t.Errorf("%s %s: got %v, want %s", d.Kind, d.ID, err, code)
	}
	if diff := cmp.Diff(before, b.head); diff != "" {
		b.t.Errorf("a refused event changed the head:\n%s", diff)
	}
}

// running is a session that daemon 1 owns under fence 1, with turn t1 open.
func running(t *testing.T) *book {
	b := newBook(t)
	b.accepts(own("own1", "1", 0), begin("t1").As(1, "t1"))
	return b
}

func own(id, daemon string, over uint64) session.Draft {
	return session.Own(at(0), id, ledger.Instance{ID: daemon}, over)
}

func begin(turn string) session.Draft {
	return session.Begin(at(0), "begin/"+turn, session.TurnBegun{}).As(1, turn)
}

func end(turn string, e session.End) session.Draft {
	return session.Finish(at(0), "end/"+turn, session.TurnEnded{End: e}).As(1, turn)
}

func call(id string) session.Draft {
	return session.NewCall(at(0), session.Call{Invocation: "i", Call: id, Tool: "scale", Class: session.Mutating}).As(1, "t1")
}

func TestATurnBeginsOnlyWhenNothingStandsBeforeIt(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.refuses(session.ErrTurnOpen, begin("t2"))
	b.accepts(end("t1", session.EndDone))
	b.refuses(session.ErrNoOpenTurn, session.Finish(at(0), "again", session.TurnEnded{End: session.EndDone}).As(1, "t1"))
	b.accepts(session.NewGate(at(0), session.Pause{Interrupt: "g"}))
	b.refuses(session.ErrPaused, begin("t2"))
	b.accepts(session.NewAnswer(at(0), session.Answer{Interrupt: "g"}), begin("t2"))
	// A gate in the middle lets the turn and its calls go on.
	b.accepts(session.NewGate(at(0), session.Pause{Interrupt: "h"}), call("1").As(1, "t2"))
	b.accepts(session.NewAbort(at(0), "abort", "enough"))
	b.refuses(session.ErrAborted, call("2").As(1, "t2"))
	// What has begun is completed and ended all the same.
	b.accepts(session.NewResult(at(0), session.Result{Call: call("1").ID}).As(1, "t2"), end("t2", session.EndFailed))
	b.accepts(session.NewAnswer(at(0), session.Answer{Interrupt: "h"}))
	b.refuses(session.ErrAborted, begin("t3"))
	if got := b.head.Status(ledger.Alive).Headline; got != session.Aborted {
		t.Error(got)
	}
}

func TestAParkIsNoGate(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.accepts(session.NewPark(at(0), session.Pause{Interrupt: "q"}).As(1, "t1"), end("t1", session.EndParked).After())
	if got := b.head.Status(ledger.Alive).Headline; got != session.Paused {
		t.Error(got)
	}
	b.accepts(begin("t2"))
}

func TestOwnership(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.refuses(session.ErrFenced, begin("t1").As(0, "t1"))
	b.refuses(session.ErrFenced, begin("t1").As(1, "t1"))
	b.accepts(own("own1", "1", 0))
	b.refuses(session.ErrOwned, own("own2", "2", 0))
	b.refuses(session.ErrOwned, own("own2", "1", 0)) // a second handle of the same instance
	b.accepts(begin("t1"))
	b.refuses(session.ErrTurnOpen, session.Disown(at(0), "bye", ledger.Instance{ID: "1"}).As(1, ""))
	b.accepts(own("own2", "2", 1)) // 1 was proven dead
	b.refuses(session.ErrOwned, own("own3", "3", 1))
	b.refuses(session.ErrFenced, call("1"))
	b.refuses(session.ErrFenced, end("t1", session.EndDone))
	if st := b.head.Status(ledger.Alive); st.Headline != session.Interrupted {
		t.Error("a turn whose owner was replaced is", st)
	}
	b.accepts(begin("t2").As(2, "t2"), end("t2", session.EndFailed).As(2, "t2"))
	if st := b.head.Status(ledger.Alive); st.Headline != session.Interrupted || st.Interruption.Turn != "t1" {
		t.Error("a failed turn cleared the interruption:", st)
	}
	b.accepts(begin("t3").As(2, "t3"), end("t3", session.EndDone).As(2, "t3"))
	if st := b.head.Status(ledger.Alive); st.Headline != session.Idle {
		t.Error("a completed turn did not clear the interruption:", st)
	}
	b.accepts(session.Disown(at(0), "bye", ledger.Instance{ID: "2"}).As(2, ""))
	b.refuses(session.ErrFenced, begin("t4").As(2, "t4"))
	b.accepts(own("own4", "4", 0))
}

func TestLivenessMakesTheHeadline(t *testing.T) {
	t.Parallel()
	b := running(t)
	for live, want := range map[ledger.Liveness]string{
		ledger.Alive: "running", ledger.LifeUnknown: "running (unproven)", ledger.Dead: "interrupted",
	} {
		if got := b.head.Status(live).String(); got != want {
			t.Errorf("%s: %s, want %s", live, got, want)
		}
	}
}

func TestAcknowledgement(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.accepts(call("1"), call("2"))
	ack := func(id string, through, dead uint64) session.Draft {
		return session.NewAck(at(0), id, session.Ack{Through: through, Dead: dead, By: "ada"})
	}
	b.refuses(session.ErrTurnOpen, ack("a", 3, 0))
	b.refuses(session.ErrTurnOpen, ack("a", 3, 7))
	b.refuses(session.ErrMalformed, ack("a", 99, 1))
	b.accepts(ack("a", 3, 1)) // the owner was proven dead, and call 2 was not shown
	if len(b.head.Calls) != 1 || b.head.Fence != 2 || b.head.Owner.ID != "" || !b.head.Ambiguous() {
		t.Errorf("%+v", b.head)
	}
	b.refuses(session.ErrFenced, call("3")) // whoever thought itself dead
	b.accepts(ack("b", b.head.Last, 0))     // its turn runs no more, so nothing has to be proven
	if st := b.head.Status(ledger.LifeUnknown); st.Ambiguous || st.Headline != session.Interrupted {
		t.Error(st)
	}
	// A living owner stays the owner, under the raised fence.
	b.accepts(own("own2", "2", 0), ack("c", 1, 0))
	if b.head.Owner.ID != "2" || b.head.Fence != 5 {
		t.Errorf("%+v under %d", b.head.Owner, b.head.Fence)
	}
}

func TestResolution(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.accepts(call("1"))
	resolve := func(o session.Resolution, dead uint64) session.Draft {
		return session.NewResolve(at(0), session.Resolve{Call: call("1").ID, Outcome: o, Dead: dead})
	}
	b.refuses(session.ErrInProgress, resolve(session.Happened, 0))
	b.refuses(session.ErrMalformed, resolve("perhaps", 0))
	b.accepts(resolve(session.Happened, 1), resolve(session.Happened, 1))
	b.refuses(session.ErrIDConflict, resolve(session.Compensated, 1))
	b.refuses(session.ErrNoSuchCall, session.NewResult(at(0), session.Result{Call: call("1").ID}).As(1, "t1"))
	b.refuses(session.ErrNoSuchCall, session.NewResolve(at(0), session.Resolve{Call: call("9").ID, Outcome: session.Happened}))
	// A call that dangles in an open turn that began after it is resolved although the owner lives.
	b.accepts(call("2"), end("t1", session.EndFailed), begin("t2"))
	b.accepts(session.NewResolve(at(0), session.Resolve{Call: call("2").ID, Outcome: session.DidNotHappen}))
}

func TestMarksAndTheirClearing(t *testing.T) {
	t.Parallel()
	mark := func(id, turn string) session.Draft { return session.NewMark(at(0), id, turn, "drain") }
	b := running(t)
	b.refuses(session.ErrNoOpenTurn, mark("m0", "t0"))
	b.accepts(mark("m1", "t1"))
	b.refuses(session.ErrTurnOpen, session.Clear(at(0), "c1", b.head.Last))
	b.accepts(end("t1", session.EndFailed))
	if st := b.head.Status(ledger.Alive); st.Headline != session.Interrupted || !st.Interruption.Marked {
		t.Error("a turn that failed after the drain began lost its mark:", st)
	}
	b.refuses(session.ErrNoOpenTurn, mark("m2", "t1"))
	shown := b.head.Last
	b.accepts(begin("t2"), mark("m2", "t2"), end("t2", session.EndFailed))
	b.refuses(session.ErrSuperseded, session.Clear(at(0), "c1", shown))
	b.accepts(session.Clear(at(0), "c1", b.head.Last))
	if st := b.head.Status(ledger.Alive); st.Headline != session.Idle {
		t.Error(st)
	}
	b.accepts(begin("t3"), mark("m3", "t3"), end("t3", session.EndDone))
	if st := b.head.Status(ledger.Alive); st.Headline != session.Idle || b.head.Mark != nil {
		t.Error("a turn that completed kept its mark:", st)
	}
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.accepts(own("own", "1", 0))
	b.refuses(session.ErrFenced, session.Try(at(0), "a", 0))
	try := func(n int) session.Draft { return session.Try(at(0), fmt.Sprint("try", n), 0).As(1, "") }
	b.accepts(try(1), try(2), try(3))
	if !b.head.Quarantined() {
		t.Error("three attempts are no quarantine")
	}
	b.refuses(session.ErrQuarantined, try(4))
	b.accepts(session.Release(at(0), "release", "ada"), try(4), begin("t1"), end("t1", session.EndDone))
	if b.head.Attempts != 0 {
		t.Error("a completed turn left", b.head.Attempts)
	}
}

func TestANewerVersionsSessionIsNotWritten(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	d := session.Say(at(0), "1", nil)
	d.Schema = session.Schema + 1
	b.refuses(session.ErrNewer, d)
	d.Schema, d.Seq = session.Schema+1, 1
	b.head = b.head.Apply(d.Event) // it was written by the newer version
	b.refuses(session.ErrNewer, session.Say(at(0), "2", nil))
}

func TestTokens(t *testing.T) {
	t.Parallel()
	random := [16]byte{1, 2, 3}
	token := session.Token("s 1", "q/1", random)
	name, interrupt, err := session.ParseToken(token)
	if err != nil || name != "s 1" || interrupt != "q/1" {
		t.Fatal(name, interrupt, err)
	}
	if strings.Contains(session.HashToken(token), token) {
		t.Error("the hash shows the token")
	}
	b := newBook(t)
	pause := session.Pause{Interrupt: "q", Token: session.HashToken(token), Expires: at(0).Add(session.TokenLife)}
	b.accepts(session.NewGate(at(0), pause))
	answer := func(when time.Duration, token, value string) session.Draft {
		return session.NewAnswer(at(when), session.Answer{Interrupt: "q", Value: json.RawMessage(value), Token: session.HashToken(token)})
	}
	b.refuses(session.ErrWrongToken, answer(0, "guess", "1"))
	b.refuses(session.ErrTokenExpired, answer(session.TokenLife, token, "1"))
	if len(b.head.Gates) != 1 {
		t.Fatal("expiry took the pause away")
	}
	b.refuses(session.ErrNoSuchInterrupt, session.Extend(session.KindPark, at(0), "x", "q", "new", at(0)))
	b.accepts(session.Extend(session.KindGate, at(session.TokenLife), "x", "q", "new", at(2*session.TokenLife)))
	b.refuses(session.ErrWrongToken, answer(session.TokenLife, token, "1"))
	b.accepts(answer(session.TokenLife, "new", "1"), answer(session.TokenLife, "new", "1"))
	b.accepts(answer(9*session.TokenLife, "new", "1")) // what has answered answers for good
	b.refuses(session.ErrAnswerConflict, answer(session.TokenLife, "new", "2"))
	b.refuses(session.ErrWrongToken, answer(session.TokenLife, "guess", "1"))
	// By session and interrupt id no token is needed, and the interrupt's name is used up.
	b.accepts(session.NewAnswer(at(0), session.Answer{Interrupt: "q", Value: json.RawMessage("1")}))
	b.refuses(session.ErrIDConflict, session.NewGate(at(0), session.Pause{Interrupt: "q"}))
	// A pause without a token cannot be answered by one.
	b.accepts(session.NewPark(at(0), session.Pause{Interrupt: "r"}))
	b.refuses(session.ErrWrongToken, session.NewAnswer(at(0), session.Answer{Interrupt: "r", Token: session.HashToken("")}))
	if len(b.events) != 4 {
		t.Errorf("%d events", len(b.events))
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(session.Token("s", "q", [16]byte{}))
	f.Add("mlgn1...")
	f.Fuzz(func(t *testing.T, token string) {
		name, interrupt, err := session.ParseToken(token)
		if err != nil {
			if len(token) > 8 && strings.Contains(err.Error(), token) {
				t.Error("the error shows the token")
			}
			return
		}
		if session.CheckName(name) != nil || session.CheckName(interrupt) != nil {
			t.Errorf("%q %q", name, interrupt)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, d := range []session.Draft{own("own", "1", 0), begin("t1"), call("1"), session.Say(at(0), "m", json.RawMessage(`"\u2028<&>"`))} {
		d.Seq = 7
		b, err := session.Encode(d.Event)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := session.Decode(b)
		if err != nil {
			return
		}
		session.Head{}.Apply(e).Status(ledger.Alive) // no event may crash who reads it
		once, err := session.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := session.Decode(once)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := session.Encode(again); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%s\n%s", once, twice)
		}
	})
}

func TestWatchProvesDeathOnlyByItsOwnEyes(t *testing.T) {
	t.Parallel()
	ttl := session.LeaseTTL
	life := func(count uint64, age time.Duration) session.Life {
		return session.Life{Count: count, Renewed: at(0), Now: at(age), TTL: ttl}
	}
	var w session.Watch
	see := func(l session.Life, awake time.Duration, want ledger.Liveness) {
		t.Helper()
		w = w.See(l, awake)
		if got := w.Liveness(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	see(session.Life{}, 0, ledger.LifeUnknown)               // never renewed
	see(life(1, time.Second), 0, ledger.Alive)               // fresh
	see(life(1, time.Hour), time.Second, ledger.LifeUnknown) // we slept, and so may it have
	see(life(1, time.Hour), ttl-1, ledger.LifeUnknown)       // not yet
	see(life(1, time.Hour), ttl, ledger.Dead)                // a full TTL of our own
	see(life(2, time.Hour), ttl, ledger.LifeUnknown)         // it renewed after all
	see(life(2, ttl-1), 9*ttl, ledger.Alive)                 // the store's clock says that it is fresh
	see(life(2, -time.Second), 10*ttl, ledger.LifeUnknown)   // the store's clock went back
	see(life(3, time.Hour), 10*ttl+1, ledger.LifeUnknown)    // a new one, seen for the first time
	see(life(3, time.Hour), 11*ttl+1, ledger.Dead)           // and standing still
	if !session.Held(at(0), at(ttl-1), ttl) || session.Held(at(0), at(ttl), ttl) {
		t.Error("an owner holds up to its TTL, counted from before the renewal was sent")
	}
}

func TestTake(t *testing.T) {
	t.Parallel()
	b := running(t)
	self := ledger.Instance{ID: "1"}
	if over, r := session.Take(b.head, self, ledger.LifeUnknown); r != nil || over != 1 {
		t.Error(over, r)
	}
	other := ledger.Instance{ID: "2"}
	for _, live := range []ledger.Liveness{ledger.Alive, ledger.LifeUnknown} {
		if _, r := session.Take(b.head, other, live); r == nil || r.Code != session.ErrOwned || r.Owner.ID != "1" {
			t.Error(live, r)
		}
	}
	if over, r := session.Take(b.head, other, ledger.Dead); r != nil || over != 1 {
		t.Error(over, r)
	}
	if over, r := session.Take(session.Head{Fence: 4}, other, ledger.LifeUnknown); r != nil || over != 0 {
		t.Error(over, r)
	}
}

func TestIDsOfDifferentThingsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	long := strings.Repeat("x", 200)
	for _, id := range []string{session.CallID("a", "bc", 1), session.CallID("ab", "c", 1), session.CallID("a", "bc", 2),
		session.CallID("1/a", "b", 1), session.CallID("", "1/ab", 1), session.PauseID(long), session.PauseID(long + "y"),
		session.AnswerID("q"), session.PauseID("q"), session.PauseID(strings.TrimPrefix(session.PauseID(long), "pause/"))} {
		if seen[id] || session.CheckName(session.ResolveID(id)) != nil {
			t.Errorf("%q", id)
		}
		seen[id] = true
	}
}

// BenchmarkStep is what judging costs a store, beside a flush of some 200 us.
func BenchmarkStep(b *testing.B) {
	nothing := func(string) (session.Event, bool, error) { return session.Event{}, false, nil }
	said := json.RawMessage(`"` + strings.Repeat("x", 240) + `"`)
	plan, err := session.Step(session.Head{Session: "s"}, []session.Draft{own("own", "1", 0), begin("t1")}, nothing)
	if err != nil {
		b.Fatal(err)
	}
	for name, d := range map[string]session.Draft{
		"message": session.Say(at(0), "m", said),
		"call":    session.NewCall(at(0), session.Call{Invocation: "i", Call: "1", Tool: "scale", Class: session.Mutating, Args: said}).As(1, "t1"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p, err := session.Step(plan.Receipt.Head, []session.Draft{d}, nothing); err != nil || len(p.Events) != 1 {
					b.Fatal(p, err)
				}
			}
		})
	}
}
