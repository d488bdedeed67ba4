// Package ledgertest says whether a store keeps the promises that Mulligan builds on. An adapter's test is three lines:
//
//	func TestStore(t *testing.T) {
//		ledgertest.Run(t, func(t *testing.T) ledger.Store { return mystore.New(t.TempDir()) })
//	}
//
// [Run] is for the ledger; [RunRuns], [RunDoorbell], [RunBreaker], [RunAnswers], [RunEvidence], [RunReports],
// [RunJournal] and [RunLock] are for what else is stored. Every check gets a store of its own from the function, which
// may use t to close it again. A check that fails says in words which promise was broken, and what was seen.
//
// The checks race goroutines against each other; what only separate processes or a power cut can show is left to the
// adapter's own tests. Time is not waited for: all of it takes a second or two on a disk.
package ledgertest
