package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// queries are the statements, with the schema's name in them: none rests on a search path. Every parameter says its type,
// for the execution modes that do not ask the server.
type queries struct {
	schema                                                                                string
	create, append, appendOne, appendEvent, lookup, lock, read, find, head, list, watched string
	renew, life                                                                           string
}

// in puts the schema's name into a statement.
func (q queries) in(text string) string { return strings.ReplaceAll(text, "{schema}", q.schema) }

func newQueries(schema string) queries {
	q := queries{schema: pgx.Identifier{schema}.Sanitize()}
	for to, text := range map[*string]string{
		&q.create: createSQL, &q.append: appendSQL, &q.appendOne: appendOneSQL, &q.appendEvent: appendEventSQL, &q.lookup: lookupSQL,
		&q.lock: `SELECT session FROM {schema}.sessions WHERE name = $1::text FOR UPDATE`,
		&q.read: `SELECT event FROM {schema}.events
			WHERE session = (SELECT session FROM {schema}.sessions WHERE name = $1::text) AND seq > $2::bigint ORDER BY seq LIMIT $3::bigint`,
		&q.find: `SELECT event FROM {schema}.events
			WHERE session = (SELECT session FROM {schema}.sessions WHERE name = $1::text) AND id = $2::text`,
		&q.head:    `SELECT head FROM {schema}.sessions WHERE name = $1::text`,
		&q.list:    `SELECT name, head FROM {schema}.sessions WHERE name > $1::text ORDER BY name LIMIT $2::bigint`,
		&q.watched: `SELECT name, last FROM {schema}.sessions WHERE name = ANY ($1::text[])`,
		&q.renew: `INSERT INTO {schema}.instances AS i (id, count, renewed, ttl) VALUES ($1::text, 1, now(), $2::bigint)
			ON CONFLICT (id) DO UPDATE SET count = i.count + 1, renewed = now(), ttl = excluded.ttl`,
		// The clock is read after the snapshot was taken, so it is never behind a renewal that is seen.
		&q.life: `SELECT clock_timestamp(), i.count, i.renewed, i.ttl FROM (SELECT) one LEFT JOIN {schema}.instances i ON i.id = $1::text`,
	} {
		*to = q.in(text)
	}
	return q
}

// appendSQL writes the events of several sessions that exist, each if its head is still the one that they were judged by,
// and names the sessions that were written.
//
// A row that another transaction holds is skipped: whoever waits in here makes all others wait. Rows are joined by their
// place, so that the plan stays right when the tables grow. The arrays are hidden from the planner (SELECT $1), or it would
// find a plan for their length better than any, and plan each time.
const appendSQL = `
WITH want AS MATERIALIZED (
	SELECT * FROM unnest((SELECT $1::bigint[]), (SELECT $2::bigint[]), (SELECT $3::bigint[]), (SELECT $4::bytea[])) AS w (session, judged, last, head)
	WHERE current_setting('synchronous_commit') <> 'off'
), mine AS MATERIALIZED (
	SELECT s.ctid AS place, w.* FROM want w JOIN {schema}.sessions s ON s.session = w.session AND s.last = w.judged
	FOR UPDATE OF s SKIP LOCKED
), bumped AS (
	UPDATE {schema}.sessions s SET last = m.last, head = m.head FROM mine m WHERE s.ctid = m.place
), written AS (
	INSERT INTO {schema}.events (session, seq, id, event) SELECT p.session, p.seq, p.id, p.event
	FROM unnest((SELECT $5::bigint[]), (SELECT $6::bigint[]), (SELECT $7::text[]), (SELECT $8::bytea[])) AS p (session, seq, id, event)
	JOIN mine m ON m.session = p.session
)
SELECT session, NULL::text FROM mine`

// appendOneSQL is appendSQL for one session, in half the time. It waits for its row. Every row that it returns is an event.
const appendOneSQL = `
WITH bumped AS (
	UPDATE {schema}.sessions SET last = $3::bigint, head = $4::bytea
	WHERE session = $1::bigint AND last = $2::bigint AND current_setting('synchronous_commit') <> 'off' RETURNING session
)
INSERT INTO {schema}.events (session, seq, id, event) SELECT b.session, p.seq, p.id, p.event
FROM bumped b, unnest((SELECT $5::bigint[]), (SELECT $6::text[]), (SELECT $7::bytea[])) AS p (seq, id, event)
RETURNING session, NULL::text`

// appendEventSQL is appendOneSQL for one event, which is what nearly every append is.
const appendEventSQL = `
WITH bumped AS (
	UPDATE {schema}.sessions SET last = $3::bigint, head = $4::bytea
	WHERE session = $1::bigint AND last = $2::bigint AND current_setting('synchronous_commit') <> 'off' RETURNING session
)
INSERT INTO {schema}.events (session, seq, id, event) SELECT session, $5::bigint, $6::text, $7::bytea FROM bumped
RETURNING session, NULL::text`

// createSQL is appendSQL for sessions that did not exist when they were judged. Their names come in order, so that two
// processes that make the same sessions wait for each other in one direction alone.
const createSQL = `
WITH want AS MATERIALIZED (
	SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[]) WITH ORDINALITY AS w (name, last, head, place)
	WHERE current_setting('synchronous_commit') <> 'off'
), made AS (
	INSERT INTO {schema}.sessions (name, last, head) SELECT name, last, head FROM want ORDER BY place
	ON CONFLICT (name) DO NOTHING RETURNING session, name
), written AS (
	INSERT INTO {schema}.events (session, seq, id, event)
	SELECT m.session, p.seq, p.id, p.event FROM unnest($4::text[], $5::bigint[], $6::text[], $7::bytea[]) AS p (name, seq, id, event)
	JOIN made m ON m.name = p.name
)
SELECT session, name FROM made`

// lookupSQL is the heads of sessions, and of each the events of some ids, as of one moment; and a row of its own with the
// setting that keeps the others from writing.
const lookupSQL = `
SELECT 0, current_setting('synchronous_commit'), NULL::bytea, NULL::bytea
UNION ALL
SELECT s.session, s.name, s.head, NULL FROM {schema}.sessions s WHERE s.name = ANY ($1::text[])
UNION ALL
SELECT s.session, s.name, NULL, e.event FROM unnest($2::text[], $3::text[]) AS q (name, id)
JOIN {schema}.sessions s ON s.name = q.name JOIN {schema}.events e ON e.session = s.session AND e.id = q.id`
