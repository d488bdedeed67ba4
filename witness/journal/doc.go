// Package journal is the update journal, witness W2 of the design: one [Row] for each command that changed managed
// code, written by whoever ran it, and the writer lock that keeps a healer from judging a tree that is being written.
//
// Begin with a [Store] and a [Lock] from an adapter (adapters/files keeps both in a state folder). An updater takes
// [Lock.Exclusive], appends a row with status [Begun] that names the update's process, runs the command, and appends
// the same ID again with the closing status and the identities before and after. A healer takes [Lock.Shared], which
// never waits.
//
// The package decides nothing: whether a row is a witness for a death is the business of package witness. A row
// without a root that really changed ([Root.Changed]) is no witness, whatever its exit code.
//
// Promised: an appended row survives a power cut; a row that was begun and never closed stays visible as open, with
// the process to ask about. Failure shows as an error of the call, and damage inside the journal as errors between the
// rows, so that one bad line hides no other.
package journal
