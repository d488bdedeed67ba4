// Package managed is the run's side of Mulligan: it registers a run under its name, keeps its phase, and rings the
// doorbell when the run ends badly. A host calls it around its own work ([Host.Start]) or around a program in any
// language ([Host.Exec]); a replacement goes through [Host.Replace], which passes the launch gate first.
//
// What people do about a run are calls here too, the same that the command line has: [Host.Dismiss], [Host.Stop],
// [Host.Ask] and [Host.Retry], and [Host.Intend] for a host that does it itself. [Host.Successor] tells a waiter whom to
// follow after a run was put back or started again.
//
// What is promised: the identities are read before the program runs a line, those of a replacement by the healer where
// it read them a moment before; a phase mark is visible before the work
// that it announces; a bad end is rung durably, with the identities at the death, before anything else is written. A
// replacement whose launch was bound to another process, settled or overtaken never starts its program: Replace
// returns [ledger.ErrBound] instead.
//
// What a person did is durable when the call returns, stands in the record's history with who and why, and nothing is
// launched past it, up to the launch gate. A signal from outside is not taken for it.
//
// In a canary (probe/canary/inside) a run of the host's own is registered nowhere and rings nothing, and no program is
// started.
//
// What is refused: a name whose holder is alive (*run.NameHeldError), a launch id that the record does not carry, and a
// person's word about a run whose place another has (*SucceededError) or which it does not fit ([ErrAlive], [ErrEnded]).
package managed
