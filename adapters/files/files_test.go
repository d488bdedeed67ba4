package files_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/ledgertest"
)

// openIn opens a home in a folder of its own until the test ends.
func openIn(t testing.TB, dir string) *files.Home {
	t.Helper()
	h, err := files.Open(files.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func home(t testing.TB) *files.Home { return openIn(t, t.TempDir()+"/home") }

func TestLedger(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(t *testing.T) ledger.Store { return home(t).Ledger() })
}
