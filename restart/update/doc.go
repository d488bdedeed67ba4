// Package update makes any update of managed code a well-behaved one: quiet while it lasts and witnessed afterwards.
// [Updater.Run] does it for a command, [Updater.Do] for a function of the host's own.
//
// An update takes the writer lock, so that no healer probes or launches from a half-new tree; it writes a begun row
// with the process that does the work before that process does anything, so that even a killed updater leaves the tree
// known as not quiet; and it closes the row with what each root was before and is after. What the row says is a
// witness (W2) for every run that was alive meanwhile.
//
// A lock that stays taken is a *journal.HeldError that names the holder. A command that fails is no error of this
// package: its exit code is in the row.
package update
