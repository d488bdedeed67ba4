// Package ledger is the record of each lineage's one do-over and the machine that moves it. It holds the promise that no
// crash, race, restart or clock jump starts a second replacement: whoever wants to launch one must first win the record.
//
// Begin with [New], which makes the record of a first claim, and give it to [Store.Create]: of all callers for one key
// exactly one gets nil. Every later change goes through [Apply] inside [Store.Update], which reads, decides and writes
// as one step:
//
//	rec, err = store.Update(ctx, key, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
//		return ledger.Apply(cur, ledger.Change{Event: ledger.Decline, Now: now, Actor: self, Reason: "no_update_witness"})
//	})
//
// What it refuses: every transition outside of the table below ([*IllegalTransitionError]); a change by anybody but the
// owner within its lease ([ErrNotOwner]); taking a record from a living owner ([ErrOwned]); beginning a launch without
// a launch id, an episode and evidence on disk ([ErrIncomplete]); giving a launch up while its replacement may still
// bind ([ErrTooEarly]); a second process at the gate, or one that comes late ([ErrBound]);
// a launch past what a person did ([*IntendedError]).
//
//   - claim                            claimed
//     claimed    defer, decline, begin_launch     deferred, declined, launching
//     deferred   claim, decline                   claimed, declined
//     launching  bind, abort                      launched, settled_failed
//     launched   settle_ok, settle_failed         settled_ok, settled_failed
//     claimed, launching: takeover and renew keep the state. Any state: annotate, and intent, which declines a deferred
//     record. A final state: prune.
//
// Promised: a record never leaves a final state and its lineage never gets another one; a launch id is on record before
// anything is started under it, and at most one process is ever bound to it; the episode and the evidence are fixed
// once. Failure shows as an error that wraps one of the above; a record that cannot be used is a [*DamageError] and
// keeps its lineage closed. [Check] audits a whole ledger and says in sentences what is impossible in it.
//
// The package is pure: it reads no clock, file or process. What is true of them is an argument. Stores are adapters; the
// suite in ledger/ledgertest says whether one keeps the promises made here.
package ledger
