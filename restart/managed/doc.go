// Package managed is the run's side of Mulligan: it registers a run under its name, keeps its phase, and rings the
// doorbell when the run ends badly. A host calls it around its own work ([Host.Start]) or around a program in any
// language ([Host.Exec]); a replacement goes through [Host.Replace], which passes the launch gate first.
//
// What is promised: the identities are read before the program runs a line; a phase mark is visible before the work
// that it announces; a bad end is rung durably, with the identities at the death, before anything else is written. A
// replacement whose launch was bound to another process, settled or overtaken never starts its program: Replace
// returns [ledger.ErrBound] instead.
//
// What is refused: a name whose holder is alive (*run.NameHeldError), a launch id that the record does not carry.
package managed
