package files_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/ledgertest"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// openIn opens a home in a folder until the test ends.
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

// home opens a home in a folder of its own.
func home(t testing.TB) *files.Home {
	t.Helper()
	return openIn(t, t.TempDir()+"/home")
}

func TestConformance(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(t *testing.T) ledger.Store { return home(t).Ledger() })
	ledgertest.RunRuns(t, func(t *testing.T) run.Store { return home(t).Runs() })
	ledgertest.RunDoorbell(t, func(t *testing.T) doorbell.Box { return home(t).Doorbell() })
	ledgertest.RunBreaker(t, func(t *testing.T) storm.Store { return home(t).Breaker() })
	ledgertest.RunAnswers(t, func(t *testing.T) ledger.Answers { return home(t).Answers() })
	ledgertest.RunJournal(t, func(t *testing.T) journal.Store { return home(t).Updates() })
	ledgertest.RunEvidence(t, func(t *testing.T) ledger.Evidence { return home(t).Evidence() })
	ledgertest.RunReports(t, func(t *testing.T) ledger.Reports { return home(t).Reports() })
	ledgertest.RunLock(t, func(t *testing.T) journal.Lock { return home(t).Writer() })
}
