// Package scenarios holds the healer's contract as screenplays: short texts of what happens and what the healer does
// about it. They drive the real engine over the simulated host of restart/restarttest, once for every kind of store.
// Read testdata/*.txtar, not the tests.
//
// A screenplay begins with a sentence that says what it promises. Its section "play" has a command on each line and,
// indented below a command, what it shows; `go test ./internal/scenarios -update` rewrites what is shown, to be reviewed
// in the diff. Lines that begin with # are remarks. Other sections are failure texts. What happens takes a second;
// otherwise time stands still. Ids are written as NAME#N for the N-th run of a name, and E1, E2 for episodes.
//
// # What happens
//
//	boot NAME [ROOT@REV]...     a run boots; idempotent, unmarked, unprobed, shown, waits-for=NAME,
//	                            supervised=UNIT follow
//	phase NAME PHASE            it marks how far it is
//	die NAME with torn-import X it dies of the missing name X ("acme.wire", "acme.wire:Frame")
//	die NAME with TEXT          it dies of the section TEXT; cause=REASON, exit=N, signal=NAME follow
//	end NAME, vanish NAME       it ends well; it is gone with what runs it, and nobody rings
//	ring NAME                   the note of its death is left once more
//	update ROOT REV CHANGE...   removes X, adds X, breaks MODULE, mends MODULE; skipped, fails, unrecorded
//	begin update ..., end update the same in two halves, with the writer lock held in between
//	stop, dismiss, ask NAME     a person ended it, dismissed it, has been asked about it
//	pause, resume               by hand
//	settings KEY=VALUE...       the healer is started again: disabled, quiescence, max_defer, per_episode, per_30m, resurface
//	advance DURATION            time goes by
//	jump DURATION               the wall clock is set, forwards or back
//	launches runs|fails|dies|hangs, late    what becomes of replacements; those that hung go on
//	preflight CODE [for-good]|ok            what the launcher says beforehand
//	prune NAME                  its record shrinks to a tombstone
//
// # What goes wrong
//
//	kill healer before|after STEP   the next pass is killed there (steps: see restarttest.Op)
//	fail healer before|after STEP   that step of the next pass fails, undone or done
//	stop healer after STEP, continue    the next pass is stopped there, and goes on
//	crash power                 every process is gone; what was not flushed is lost
//	tear NAME                   the record of its lineage is cut in half, as by a power cut (files only)
//
// # What is looked at
//
//	pass [by another]           the healer looks, or another one beside it: each outcome, start and new notice
//	show                        where each run stands
//	ledger                      each record with its history, witnesses and probe
//	notices                     what a person sees
//	journal                     the updates
//
// A play that has the line "# files only" is about a store that can tear a record. What every play must also survive
// is in the package's tests: the power is cut at each durable step of its passes, the healer killed at each, and
// afterwards no lineage may have been put back twice and everything must come to an end.
package scenarios
