// Package postgres keeps Mulligan's durable state in a Postgres database: the store of sessions for several machines.
//
// Which call first: [Open], then [DB.Sessions] for a session.Store that is also a session.Watcher and a session.Leaser.
// Everything lies in a schema of its own, "mulligan" unless the [Config] says otherwise; opening makes it and brings it up
// to date, also when several processes start at the same moment. A role that may not create it can open one that is there.
//
// What it refuses: a server that forgets what it acknowledged, because synchronous_commit or fsync is off, wherever that
// was set ([*SettingError]; looked at on each new connection, synchronous_commit also with each append); a database whose
// encoding is not UTF8 (the same error); a schema that a newer version has changed ([*SchemaError]).
//
// What is promised: an append is durable when it returns. Each is judged by this process on the head that it knows, and
// one statement writes events and head if that head is still the newest; else the head is read and judged again, and after
// a few times under the session's row lock. Appends that arrive while a statement is under way share the next one and its
// flush. Each is judged on its own, so a refused event never fails another, nor does a session that somebody else has locked
// hold up the rest for longer than a moment. An event that is appended again while its session's head is known here may run
// into the unique key of its id first: the server logs that, everything of the statement is rolled back, and judged again.
//
// Failure shows in the error. When the context, the Timeout or the connection ended while the statement was under way, it is
// session.ErrOutcomeUnknown: append the same events again. Every other error means that nothing was written.
//
// Nothing rests on the state of a connection, so a transaction pooler may stand between: let the DSN say
// default_query_exec_mode=exec (or simple_protocol), which does without prepared statements, and name the server itself in
// Config.Listen. The only advisory lock is one that ends with the transaction of the migrations.
//
// A change is told at once to watchers in the same process. Those in others hear of it by NOTIFY, sent after the commit and
// coalesced; beside that they look once a second, which is all that is left while the listening connection is down.
//
// Leases are on the server's wall clock. A step of that clock alone proves nobody dead: session.Watch wants a whole TTL of
// the observer's own clock too. After a failover to another machine its clock counts.
package postgres
