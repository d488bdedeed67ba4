-- Sessions: a head for each, which is the fold of its events, and the events. Times and states are inside the JSON.
CREATE TABLE sessions (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	last INTEGER NOT NULL,
	head BLOB NOT NULL
) STRICT;

CREATE TABLE events (
	session INTEGER NOT NULL REFERENCES sessions (id),
	seq     INTEGER NOT NULL,
	id      TEXT NOT NULL,
	event   BLOB NOT NULL,
	PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX events_by_id ON events (session, id);
