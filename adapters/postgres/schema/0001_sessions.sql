-- Sessions: a head for each, which is the fold of its events, and the events, both as JSON in UTF-8:
--   SELECT convert_from(event, 'UTF8')::json FROM events
-- Pages are left half empty, so that a head finds its next version a place beside it and no index is touched.
CREATE TABLE {schema}.sessions (
	session bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name    text COLLATE "C" NOT NULL UNIQUE,
	last    bigint NOT NULL,
	head    bytea NOT NULL
) WITH (fillfactor = 50);

-- One statement alone writes here, and it holds the row of the session: no foreign key has to ask again.
CREATE TABLE {schema}.events (
	session bigint NOT NULL,
	seq     bigint NOT NULL,
	id      text COLLATE "C" NOT NULL,
	event   bytea NOT NULL,
	PRIMARY KEY (session, seq),
	UNIQUE (session, id)
);

-- Proof of life of the instances that own sessions, on this server's clock.
CREATE TABLE {schema}.instances (
	id      text COLLATE "C" PRIMARY KEY,
	count   bigint NOT NULL,
	renewed timestamptz NOT NULL,
	ttl     bigint NOT NULL -- nanoseconds
);
