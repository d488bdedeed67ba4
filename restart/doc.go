// Package restart is the front door of Mulligan: it decides, by evidence, whether a run that a code update broke gets
// its one do-over, and starts it. A [Healer] reads the deaths that were rung, proves the update and the health of the
// new tree, claims the lineage's single restart in a durable ledger, launches once under the same name, and tells
// people what it did and why.
//
// Make one with [New] and call [Healer.Pass] for one round or [Healer.Run] for the loop. [Healer.DryRun] takes the same
// path with every write off; [Healer.Scan] replays it over history; [Healer.Explain] says all that is known of one run.
// The run's side is package managed, updates are package update, the decision table is package policy.
//
// What is promised: a lineage is relaunched at most once, whatever crashes, races or is overtaken in between; nothing is
// started before the claim, the breaker's slot, the evidence and the begun launch are durable, in this order; what a
// person did wins. What is refused: launchers that cannot keep a program from running before the launch gate. Deaths
// that cannot be dealt with are outcomes with an error; the pass goes on with the others.
package restart
