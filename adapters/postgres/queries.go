package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// queries are the statements, with the schema's name in them: none rests on a search path. Every parameter says its type,
// for the execution modes that do not ask the server.
type queries struct {
	schema                                                        string
	create, append, lookup, lock, read, find, head, list, watched string
	renew, life                                                   string
}

// in puts the schema's name into a statement.
func (q queries) in(text string) string { return strings.ReplaceAll(text, "{schema}", q.schema) }

func newQueries(schema string) queries {
	q := queries{schema: pgx.Identifier{schema}.Sanitize()}
	for to, text := range map[*string]string{
		&q.create: createSQL, &q.append: appendSQL, &q.lookup: lookupSQL,
		&q.lock: `SELECT session FROM {schema}.sessions WHERE name = $1::text FOR UPDATE`,
		&q.read: `SELECT event FROM {schema}.events
			WHERE session = (SELECT session FROM {schema}.sessions WHERE name = $1::text) AND seq > $2::bigint ORDER BY seq LIMIT $3::bigint`,
		&q.find: `SELECT event FROM {schema}.events
			WHERE session = (SELECT session FROM {schema}.sessions WHERE name = $1::text) AND id = $2::text`,
		&q.head:    `SELECT head FROM {schema}.sessions WHERE name = $1::text`,
		&q.list:    `SELECT head FROM {schema}.sessions WHERE name > $1::text ORDER BY name LIMIT $2::bigint`,
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

// appendSQL writes the events of several sessions that exist, each if its head is still the one that they were judged by
// and none of the ids is in its log. It names the sessions that were written.
//
// A row that another transaction holds is skipped: whoever waits in here makes all others wait. The ids are looked for in
// the statement's snapshot, which is enough: whoever knows a head has seen it committed, and with it all events before.
const appendSQL = `
WITH want AS MATERIALIZED (
	SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[]) AS w (session, judged, last, head)
	WHERE current_setting('synchronous_commit') <> 'off'
), put AS MATERIALIZED (
	SELECT * FROM unnest($5::bigint[], $6::bigint[], $7::text[], $8::bytea[]) AS p (session, seq, id, event)
), known AS MATERIALIZED (
	SELECT p.session FROM put p CROSS JOIN LATERAL (
		SELECT FROM {schema}.events e WHERE e.session = p.session AND e.id = p.id LIMIT 1) e
), mine AS MATERIALIZED (
	SELECT s.session FROM want w JOIN {schema}.sessions s ON s.session = w.session AND s.last = w.judged
	WHERE w.session NOT IN (SELECT session FROM known)
	FOR UPDATE OF s SKIP LOCKED
), bumped AS (
	UPDATE {schema}.sessions s SET last = w.last, head = w.head
	FROM want w JOIN mine m ON m.session = w.session WHERE s.session = m.session
	RETURNING s.session, s.name
), written AS (
	INSERT INTO {schema}.events (session, seq, id, event)
	SELECT p.session, p.seq, p.id, p.event FROM put p JOIN bumped b ON b.session = p.session
)
SELECT current_setting('synchronous_commit'), session, name FROM (SELECT) one LEFT JOIN bumped ON true`

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
SELECT current_setting('synchronous_commit'), session, name FROM (SELECT) one LEFT JOIN made ON true`

// lookupSQL is the heads of sessions, and of each the events of some ids, as of one moment.
const lookupSQL = `
SELECT s.session, s.name, s.head, NULL FROM {schema}.sessions s WHERE s.name = ANY ($1::text[])
UNION ALL
SELECT s.session, s.name, NULL, e.event FROM unnest($2::text[], $3::text[]) AS q (name, id)
JOIN {schema}.sessions s ON s.name = q.name JOIN {schema}.events e ON e.session = s.session AND e.id = q.id`
