// Package sessiontest holds a store of sessions to the promises of ledger/session. An adapter's own test needs three lines:
//
//	func TestStore(t *testing.T) {
//		sessiontest.Run(t, func(t *testing.T) session.Store { return open(t.TempDir()) }, sessiontest.Sheet{})
//	}
//
// Begin with [Run]. The [Sheet] says what else the store can do: survive, be opened twice, give hints, keep leases. What
// it claims is checked, and what it has without claiming it is a failure, because then nothing holds it to it. [Bench] measures appends.
//
// A check that fails names the broken promise in words and says what was seen instead. The suite is itself tested by
// stores that are broken on purpose. It sleeps for nothing, and asserts nothing about how long something takes; what
// has to happen is waited for, up to [Patience].
package sessiontest
