package sessiontest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Patience is how long the suite waits for what has to happen.
const Patience = time.Minute

// Sheet is what a store can do beside what every store must. Its zero value is a store that lives in one process's memory.
type Sheet struct {
	// Reopen takes the store away as the end of its process would, and opens what it kept. Nil means that it forgets.
	Reopen func(t *testing.T, s session.Store) session.Store
	// Another opens the same store once more, as a second process would while s is in use. Nil means that it has one
	// process alone.
	Another func(t *testing.T, s session.Store) session.Store
	// Damage makes the head of one session unreadable behind the store's back, and mend puts it back as it was. Nil means
	// that no session of the store can be damaged alone.
	Damage func(t *testing.T, s session.Store, name string) (mend func())
	// Watches is set for a session.Watcher, Leases for a session.Leaser.
	Watches, Leases bool
}

// bench is what one check works with.
type bench struct {
	store session.Store
	// reopen and another are nil where the sheet has none.
	reopen, another func() session.Store
	damage          func(name string) (mend func())
	sheet           Sheet
}

// check is one promise of a store and how it is tried. An error says what was seen instead.
type check struct {
	promise string
	try     func(ctx context.Context, b bench) error
}

// Run checks a store. open makes an empty one for each check.
func Run(t *testing.T, open func(t *testing.T) session.Store, sheet Sheet) {
	t.Helper()
	for _, c := range checks {
		t.Run(strings.ReplaceAll(c.promise, " ", "_"), func(t *testing.T) {
			t.Parallel()
			b := bench{store: open(t), sheet: sheet}
			if sheet.Reopen != nil {
				b.reopen = func() session.Store { return sheet.Reopen(t, b.store) }
			}
			if sheet.Another != nil {
				b.another = func() session.Store { return sheet.Another(t, b.store) }
			}
			if sheet.Damage != nil {
				b.damage = func(name string) func() { return sheet.Damage(t, b.store, name) }
			}
			if err := c.try(t.Context(), b); err != nil {
				t.Errorf("broken promise: %s\n%v", c.promise, err)
			}
		})
	}
}

var checks = []check{
	{"a session that does not exist is empty, and nothing about it is an error", nothing},
	{"what was written is what is read", roundTrip},
	{"a kind of a newer version is kept, and read like any other", unknownKinds},
	{"sequence numbers begin at one and have no gap, also when many append at once", gapless},
	{"an event that is appended again returns its first sequence and is not written again", repeated},
	{"one id is not two events", conflicts},
	{"a refused event changes nothing and never fails its batch-mates", refusals},
	{"each event is judged after those before it", judgedInOrder},
	{"what is larger than the limit is refused, and what is not is kept", sizes},
	{"names that no store could keep are refused", names},
	{"sessions do not touch each other", apart},
	{"of many that take a session one gets it, and the owner before writes nothing more", fencing},
	{"the head is the fold of the log", headIsFold},
	{"pages are in order, no longer than asked for, and together everything", pages},
	{"a session that cannot be read holds up no other, and loses nothing", damaged},
	{"an event is found by its id in its own session", finds},
	{"what a caller holds is a copy", copies},
	{"a context that has ended writes nothing", endedContext},
	{"one whose context ends is told the truth, and strands nobody who waits with it", cancelled},
	{"a tail sees every event once and in order, while many append", tail},
	{"hints come for what is appended, and are claimed by the store that gives them", watches},
	{"a lease is counted, on the store's clock, and claimed by the store that keeps it", leases},
	{"what was acknowledged is there when the store is opened again", reopened},
	{"two processes write one log", twoProcesses},
}

// day is the moment at which everything in the checks happens.
func day(d time.Duration) stamp.Time {
	t := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return stamp.Time{Wall: t, Boot: "boot", Uptime: time.Hour}.Add(d)
}

// say is a message with an id.
func say(id string) session.Draft {
	return session.Say(day(0), id, json.RawMessage(`{"said":`+quote(id)+`}`))
}

// someone is an instance that no machine has.
func someone(n int) ledger.Instance {
	return ledger.Instance{ID: fmt.Sprint("instance-", n), Host: "host", Boot: "boot", PIDNS: "pid:[1]", PID: n + 1, Start: 7}
}

// put appends a batch and wants every event of it accepted.
func put(ctx context.Context, s session.Store, name string, batch ...session.Draft) (session.Receipt, error) {
	r, err := s.Append(ctx, name, batch)
	if err != nil {
		return r, fmt.Errorf("append to %q: %w", name, err)
	}
	if len(r.Outcomes) != len(batch) {
		return r, fmt.Errorf("%d events had %d outcomes", len(batch), len(r.Outcomes))
	}
	if err := r.Err(); err != nil {
		return r, fmt.Errorf("append to %q: %w", name, err)
	}
	return r, nil
}

// all reads a log to its end, by pages of a size.
func all(ctx context.Context, s session.Store, name string, size int) (out []session.Event, err error) {
	var after uint64
	for {
		page, err := s.Read(ctx, name, after, size)
		if err != nil {
			return nil, fmt.Errorf("read %q after %d: %w", name, after, err)
		}
		if len(page) == 0 {
			return out, nil
		}
		if size > 0 && len(page) > size {
			return nil, fmt.Errorf("a page of %d has %d events", size, len(page))
		}
		for _, e := range page {
			if e.Seq != after+1 {
				return nil, fmt.Errorf("event %d comes after event %d", e.Seq, after)
			}
			after = e.Seq
		}
		out = append(out, page...)
	}
}

// same reports how two values differ as JSON, which is all that a store has to keep.
func same(got, want any) error {
	g, err := json.Marshal(got)
	if err != nil {
		return err
	}
	w, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if !bytes.Equal(g, w) {
		return fmt.Errorf("got  %s\nwant %s", g, w)
	}
	return nil
}

// wants says when an error has not the code that it must have.
func wants(err error, code session.Code, what string) error {
	if got := session.CodeOf(err); got != code {
		return fmt.Errorf("%s: got %v, want %s", what, err, code)
	}
	return nil
}

// race runs f n times at once and returns the first error.
func race(n int, f func(i int) error) error {
	var all sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { <-start; errs[i] = f(i) })
	}
	close(start)
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// awkward are names that a careless store confuses, or cannot keep.
func awkward() []string {
	long := strings.Repeat("long", 63)
	return []string{"s", "S", " s", "s ", "s/", "s/s", "s__s", "s%2F", "..", ".", "../../etc/passwd", "s\n", "s'", `s"`, "s\\",
		"é", "e\u0301", "🙂", "%", "_", "*", "s\x7f", long + "a", long + "b", "\u2028", "-s", "0", "00"}
}

// story is a log with one event of every kind, as its owner and others write it.
func story(owner int, fence uint64) []session.Draft {
	own := func(d session.Draft) session.Draft { return d.As(fence, "turn") }
	now := day(time.Second)
	call := session.NewCall(now, session.Call{Invocation: "i", Call: "1", Tool: "scale", Class: session.Mutating,
		Args: json.RawMessage(`{"to":12}`)})
	lost := session.NewCall(now, session.Call{Invocation: "i", Call: "2", Tool: "scale", Class: session.Mutating})
	shown := session.NewCall(now, session.Call{Invocation: "i", Call: "3", Tool: "scale", Class: session.Mutating})
	return []session.Draft{
		say("message"),
		session.Own(now, "own", someone(owner), fence-1),
		session.Try(now, "try", 3).As(fence, ""),
		own(session.Begin(now, "begin", session.TurnBegun{Invocation: "i"})),
		own(session.Reply(now, "reply", session.ModelTurn{Calls: []string{"1"}})),
		own(call), own(session.NewResult(now, session.Result{Call: call.ID, Value: json.RawMessage(`[1, 2]`)})),
		own(lost), own(shown),
		session.NewMark(now, "mark", "turn", "draining"),
		own(session.NewPark(now, session.Pause{Interrupt: "q", Token: session.HashToken("token"), Expires: day(time.Hour)})),
		own(session.Finish(now, "end", session.TurnEnded{End: session.EndParked})).After(),
		session.Extend(session.KindPark, now, "extend", "q", "another", day(2*time.Hour)),
		session.NewAnswer(now, session.Answer{Interrupt: "q", Value: json.RawMessage(`true`), Token: session.HashToken("another")}),
		session.NewGate(now, session.Pause{Interrupt: "g"}),
		session.NewResolve(now, session.Resolve{Call: shown.ID, Outcome: session.Compensated}),
		session.NewAck(now, "ack", session.Ack{Through: 8, By: "ada"}),
		session.Release(now, "release", "ada"),
		session.NewAbort(now, "abort", "enough"),
	}
}
