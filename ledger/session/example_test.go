package session_test

import (
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
