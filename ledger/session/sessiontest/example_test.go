package sessiontest_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/session/sessiontest"
)

func Example() {
	// In the adapter's own test file; the function makes an empty store for each check.
	_ = func(t *testing.T) {
		sessiontest.Run(t, func(*testing.T) session.Store { return memory.NewSessions(memory.SessionsConfig{}) },
			sessiontest.Sheet{Watches: true, Leases: true})
	}
	// Output:
}
