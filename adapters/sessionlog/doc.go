// Package sessionlog keeps the events of all sessions in one log file, for a host that makes many calls: whoever appends
// while a flush is under way shares the next one, so that 64 writers pay a tenth of what each would alone.
//
// Which call first: [Open] gives a session.Store to the one process that writes. [Read] gives another process a store that
// only reads, for looking at sessions beside their host.
//
// What it refuses: a second writer ([*framelog.BusyError] through errors.As names the first); a log with damage in its
// middle, until [Repair]. Appends to a store of [Read] are [ErrReadOnly]: whoever wants to answer, abort or acknowledge
// from other processes takes a database.
//
// What is promised: an append is durable when it returns. After a crash everything that was acknowledged is there, and
// what was not is there as a whole batch or not at all. A store that could not write (a full disk) tells so, forgets what
// it could not write, and goes on when there is room.
//
// After a repair the lost events stay visible as numbers that are missing. A session whose own last events may be among
// them gets a gate before its next turn: a person has to look, since a call may be lost whose effect is not.
//
// In memory it keeps a head for each session and some forty bytes for each event. Opening reads the log through once.
package sessionlog

import "github.com/mulligan-dev/mulligan/internal/framelog"

// BusyError says which process writes the log.
type BusyError = framelog.BusyError

// DamageError says where a log is damaged.
type DamageError = framelog.DamageError
