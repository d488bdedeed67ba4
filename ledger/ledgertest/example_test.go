package ledgertest_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/ledgertest"
)

func Example() {
	// In the adapter's own test file; the function makes an empty store for each check.
	_ = func(t *testing.T) {
		ledgertest.Run(t, func(*testing.T) ledger.Store { return memory.New(memory.Config{}).Ledger() })
	}
	// Output:
}
