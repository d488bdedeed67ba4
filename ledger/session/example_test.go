package session_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// What a store does in its atomic step, here on a log of one batch.
func ExampleStep() {
	now := stamp.Time{Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	nothing := func(string) (session.Event, bool, error) { return session.Event{}, false, nil }

	plan, err := session.Step(session.Head{Session: "s1"}, []session.Draft{
		session.Own(now, "e1", ledger.Instance{ID: "daemon-1"}, 0),
		session.Begin(now, "e2", session.TurnBegun{}).As(1, "turn-1"),
		session.Begin(now, "e3", session.TurnBegun{}).As(7, "turn-2"), // by an owner of another time
	}, nothing)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range plan.Receipt.Outcomes {
		fmt.Println(o.Seq, o.Err() != nil)
	}
	fmt.Println(plan.Receipt.Head.Status(ledger.Alive))
	fmt.Println(plan.Receipt.Head.Status(ledger.Dead))
	// Output:
	// 1 false
	// 2 false
	// 0 true
	// running
	// interrupted
}

// shelf is a list of two sessions, one of which cannot be read.
type shelf struct{}

func (shelf) List(_ context.Context, after string, _ int) ([]session.Head, error) {
	if after >= "s2" {
		return nil, nil
	}
	return session.Page([]session.Head{{Session: "s2"}},
		[]*session.UnreadableError{{Session: "s1", Place: "agents.db, table sessions", Err: errors.New("it is no JSON")}})
}

// Every session of a store, with those that cannot be read.
func ExampleAll() {
	for h, err := range session.All(context.Background(), shelf{}.List) {
		var unreadable *session.UnreadableError
		switch {
		case errors.As(err, &unreadable):
			fmt.Println(unreadable.Session, "cannot be read:", unreadable.Place)
		case err != nil:
			fmt.Println("and no more:", err)
		default:
			fmt.Println(h.Session)
		}
	}
	// Output:
	// s1 cannot be read: agents.db, table sessions
	// s2
}
