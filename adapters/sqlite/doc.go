// Package sqlite keeps Mulligan's durable state in one SQLite database: the default store of sessions. Several processes on
// one machine may open it at once, each to run sessions of its own or to append what an operator says.
//
// Which call first: [Open], then [DB.Sessions] for a session.Store that is also a session.Watcher.
//
// What it refuses: a database on a network file system ([*NetworkError]), where SQLite's locks do not hold between machines;
// one that a newer version has changed ([*SchemaError]).
//
// What is promised: an append is durable when it returns (write-ahead log, synchronous FULL). Appends that arrive while
// one is being written share the next transaction and its flush; each is judged on its own, so one that is refused never
// fails another, and one whose caller went away strands nobody. Opening brings the schema up to date, also when several
// processes start at the same moment.
//
// How failure shows: a session whose head lies on a damaged page of the file is a *session.UnreadableError, in a list a
// *session.PageError beside the others, and one whose events do fails for itself. Such errors, and that of a file that is
// no database any more, say what an operator can do.
//
// A change is told at once to watchers in the same process; those in other processes look for one several times a second.
package sqlite
