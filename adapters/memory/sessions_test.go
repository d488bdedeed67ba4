package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/session/sessiontest"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	sessiontest.Run(t, func(*testing.T) session.Store { return memory.NewSessions(memory.SessionsConfig{}) },
		sessiontest.Sheet{
			Watches: true, Leases: true,
			// Another user of the same memory is what comes nearest to another process.
			Another: func(_ *testing.T, s session.Store) session.Store { return s },
		})
}

func ExampleNewSessions() {
	ctx := context.Background()
	store := memory.NewSessions(memory.SessionsConfig{})
	now := stamp.Time{Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	receipt, err := store.Append(ctx, "s1", []session.Draft{session.NewAbort(now, "event-1", "enough")})
	fmt.Println(receipt.Outcomes[0].Seq, err)
	head, err := store.Head(ctx, "s1")
	fmt.Println(head.Abort.Why, err)
	// Output:
	// 1 <nil>
	// enough <nil>
}

func BenchmarkSessions(b *testing.B) {
	sessiontest.Bench(b, func(*testing.B) session.Store { return memory.NewSessions(memory.SessionsConfig{}) })
}
