package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// target is one session of a group: what is known of it, what was asked for and what is to be written.
type target struct {
	name   string
	known  known
	loaded bool // known, and log for the works that asked for their ids
	log    map[string]session.Event
	works  []*work
	bad    error // what the log has of it and cannot be read: nothing is written to it, and the other sessions go on

	head   session.Head // after the events
	events []session.Event
	raw    [][]byte // the events, encoded
}

// write takes a group through one statement and returns what has to be judged again, on another head.
func (s *Sessions) write(ctx context.Context, group []*work) (again []*work) {
	ctx, land := s.fly(ctx)
	defer land()
	conn, err := s.db.pool.Acquire(ctx)
	if err != nil {
		return fail(group, cmp.Or(context.Cause(ctx), err))
	}
	defer conn.Release()
	targets := s.targets(group)
	if err := s.judge(ctx, conn, targets); err != nil {
		return fail(group, err)
	}
	return s.conclude(ctx, targets, func() (map[string]int64, error) { return s.send(ctx, conn, targets) })
}

// writeLocked is write for one session, under its row lock: nobody else moves it on meanwhile.
func (s *Sessions) writeLocked(name string, group []*work) (again []*work) {
	ctx, land := s.fly(context.Background())
	defer land()
	tx, err := s.db.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return fail(group, err)
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after a commit there is nothing to roll back
	// A process that is stopped in here does not keep the row for longer than it may write, nor do we wait longer for one.
	limit := fmt.Sprint(s.db.c.Timeout.Milliseconds())
	_, err = tx.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', $1::text, true), set_config('lock_timeout', $1::text, true)`, limit)
	if err == nil {
		_, err = tx.Exec(ctx, s.db.q.lock, name)
	}
	if err != nil {
		return fail(group, err)
	}
	targets := s.targets(group)
	for _, w := range group {
		w.ids = true
	}
	if err := s.judge(ctx, tx, targets); err != nil {
		return fail(group, err)
	}
	return s.conclude(ctx, targets, func() (map[string]int64, error) {
		written, err := s.send(ctx, tx, targets)
		if err != nil {
			return nil, definite{err} // the commit was not sent
		}
		return written, tx.Commit(ctx)
	})
}

// definite is an error after which certainly nothing is written, whatever it is.
type definite struct{ error }

func (d definite) Unwrap() error { return d.error }

func fail(group []*work, err error) []*work {
	for _, w := range group {
		w.receipt, w.err = session.Receipt{}, fmt.Errorf("nothing was written: %w", err)
	}
	return nil
}

// targets sorts a group by session, in the order of their names.
func (s *Sessions) targets(group []*work) []*target {
	by := make(map[string]*target, len(group))
	out := make([]*target, 0, len(group))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range group {
		t := by[w.name]
		if t == nil {
			t = &target{name: w.name}
			t.known, t.loaded = s.heads[w.name]
			by[w.name], out = t, append(out, t)
		}
		t.works = append(t.works, w)
		t.loaded = t.loaded && !w.ids
	}
	slices.SortFunc(out, func(a, b *target) int { return strings.Compare(a.name, b.name) })
	return out
}

// judge works out what is to be written. A head from memory is good enough for a plan that is written only if the head is
// still that one. A refusal writes nothing, so it has to rest on what the log says now, the ids of the batch included: an
// event that is in the log already is not judged at all.
func (s *Sessions) judge(ctx context.Context, in querier, targets []*target) error {
	if err := s.load(ctx, in, targets); err != nil {
		return err
	}
	var unsure []*target
	for _, t := range targets {
		if !t.judge() {
			for _, w := range t.works {
				w.ids = true
			}
			t.loaded = false
			unsure = append(unsure, t)
		}
	}
	if err := s.load(ctx, in, unsure); err != nil {
		return err
	}
	for _, t := range unsure {
		t.judge()
	}
	return nil
}

// judge judges the session's works one after the other. False means that one of them was refused without a look at the
// log.
func (t *target) judge() (sure bool) {
	t.head, t.events, t.raw = t.known.head, nil, nil
	if t.bad != nil {
		fail(t.works, t.bad)
		return true
	}
	sure = true
	for _, w := range t.works {
		w.receipt, w.err = session.Receipt{}, nil
		plan, err := session.Step(t.head, w.batch, func(id string) (session.Event, bool, error) {
			for _, e := range t.events {
				if e.ID == id {
					return e, true, nil
				}
			}
			e, ok := t.log[id]
			return e, ok, nil
		})
		var raw [][]byte
		for _, e := range plan.Events {
			b, errEncode := session.Encode(e)
			err = errors.Join(err, errEncode)
			raw = append(raw, b)
		}
		if err != nil {
			w.err = fmt.Errorf("nothing was written: %w", err)
			continue
		}
		w.receipt, t.head = plan.Receipt, plan.Receipt.Head
		t.events, t.raw = append(t.events, plan.Events...), append(t.raw, raw...)
		sure = sure && (w.ids || plan.Receipt.Err() == nil && len(w.batch) > 0)
	}
	return sure
}

// load reads the heads of the targets that have none, and the events of the ids that their works ask for.
func (s *Sessions) load(ctx context.Context, in querier, targets []*target) error {
	var names, of, ids []string
	by := map[string]*target{}
	for _, t := range targets {
		if t.loaded {
			continue
		}
		t.loaded, t.known, t.log, t.bad = true, known{head: session.Head{Session: t.name}}, nil, nil
		names, by[t.name] = append(names, t.name), t
		for _, w := range t.works {
			if !w.ids {
				continue
			}
			for _, d := range w.batch {
				if session.CheckName(d.ID) == nil { // another one is in no log
					of, ids = append(of, t.name), append(ids, d.ID)
				}
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	rows, err := in.Query(ctx, s.db.q.lookup, names, of, ids)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var (
			number      int64
			name        string
			head, event []byte
		)
		if err := rows.Scan(&number, &name, &head, &event); err != nil {
			return err
		}
		if number == 0 {
			if name == "off" {
				return &SettingError{Name: "synchronous_commit", Value: name}
			}
			continue
		}
		t := by[name]
		t.known.number = number
		if event == nil {
			if bad := s.db.decode(name, head, &t.known.head); bad != nil {
				t.bad = bad
			}
			continue
		}
		e, err := session.Decode(event)
		if err != nil {
			t.bad = fmt.Errorf("read an event of session %s: %w", name, err)
			continue
		}
		if t.log == nil {
			t.log = map[string]session.Event{}
		}
		t.log[e.ID] = e
	}
	return rows.Err()
}

// send writes what was judged, in one statement, or in two that are one transaction when some sessions are new. It returns
// the sessions that were written, each with its number.
func (s *Sessions) send(ctx context.Context, in querier, targets []*target) (map[string]int64, error) {
	create, appendTo, err := s.statements(targets)
	if err != nil {
		return nil, definite{err}
	}
	written := make(map[string]int64, len(targets))
	switch {
	case create == nil && appendTo == nil:
		return written, nil
	case create == nil:
		rows, err := in.Query(ctx, appendTo.text, appendTo.args...)
		return written, collect(rows, err, targets, written)
	case appendTo == nil:
		rows, err := in.Query(ctx, create.text, create.args...)
		return written, collect(rows, err, targets, written)
	}
	var batch pgx.Batch
	batch.Queue(create.text, create.args...)
	batch.Queue(appendTo.text, appendTo.args...)
	results := in.SendBatch(ctx, &batch)
	for range batch.Len() {
		rows, errQuery := results.Query()
		if err = collect(rows, errQuery, targets, written); err != nil {
			break
		}
	}
	// The server commits before it answers this: until then a row means nothing.
	return written, cmp.Or(err, results.Close())
}

// statement is one of the queries with its arguments.
type statement struct {
	text string
	args []any
}

// statements are what writes the events of new sessions and of others, nil where there are none.
func (s *Sessions) statements(targets []*target) (create, appendTo *statement, err error) {
	var news, olds columns
	for _, t := range targets {
		if len(t.events) == 0 {
			continue
		}
		head, err := json.Marshal(t.head)
		if err != nil {
			return nil, nil, fmt.Errorf("encode the head of session %s: %w", t.name, err)
		}
		if t.known.number == 0 {
			news.add(t, head)
		} else {
			olds.add(t, head)
		}
	}
	if c := &news; len(c.names) > 0 {
		create = &statement{s.db.q.create, []any{c.names, c.last, c.heads, c.namesOf, c.seqs, c.ids, c.events}}
	}
	switch c := &olds; {
	case len(c.numbers) == 0:
	case len(c.events) == 1:
		appendTo = &statement{s.db.q.appendEvent, []any{c.numbers[0], c.judged[0], c.last[0], c.heads[0], c.seqs[0], c.ids[0], c.events[0]}}
	case len(c.numbers) == 1:
		appendTo = &statement{s.db.q.appendOne, []any{c.numbers[0], c.judged[0], c.last[0], c.heads[0], c.seqs, c.ids, c.events}}
	default:
		appendTo = &statement{s.db.q.append, []any{c.numbers, c.judged, c.last, c.heads, c.numbersOf, c.seqs, c.ids, c.events}}
	}
	return create, appendTo, nil
}

// columns are the sessions of a statement, and their events, as the arrays that it takes.
type columns struct {
	names        []string
	numbers      []int64
	judged, last []int64
	heads        [][]byte
	namesOf, ids []string
	numbersOf    []int64
	seqs         []int64
	events       [][]byte
}

func (c *columns) add(t *target, head []byte) {
	c.names, c.numbers = append(c.names, t.name), append(c.numbers, t.known.number)
	c.judged, c.last = append(c.judged, int64(t.known.head.Last)), append(c.last, int64(t.head.Last))
	c.heads = append(c.heads, head)
	for i, e := range t.events {
		c.namesOf, c.numbersOf = append(c.namesOf, t.name), append(c.numbersOf, t.known.number)
		c.seqs, c.ids, c.events = append(c.seqs, int64(e.Seq)), append(c.ids, e.ID), append(c.events, t.raw[i])
	}
}

// collect reads which sessions a statement wrote: by their names when it made them, else by their numbers. Outside of a
// batch it returns after the server has committed.
func collect(rows pgx.Rows, err error, targets []*target, written map[string]int64) error {
	if err != nil {
		return err
	}
	var number int64
	var name *string
	_, err = pgx.ForEachRow(rows, []any{&number, &name}, func() error {
		if name != nil {
			written[*name] = number
			return nil
		}
		for _, t := range targets {
			if t.known.number == number {
				written[t.name] = number
				break
			}
		}
		return nil
	})
	return err
}

// conclude sends, and gives each work its outcome or returns it.
func (s *Sessions) conclude(ctx context.Context, targets []*target, send func() (map[string]int64, error)) (again []*work) {
	written, err := send()
	var changed []string
	heads := make(map[string]known, len(targets))
	s.mu.Lock()
	for _, t := range targets {
		if len(t.events) > 0 && written[t.name] == 0 || err != nil {
			delete(s.heads, t.name)
		}
	}
	s.mu.Unlock()
	for _, t := range targets {
		switch {
		case len(t.events) == 0: // judged on what the log says
		case err != nil && retryable(err), err == nil && written[t.name] == 0:
			again = append(again, t.retry(err)...)
		case err != nil:
			t.fail(ctx, err)
		default:
			changed = append(changed, t.name)
			heads[t.name] = known{number: written[t.name], head: t.head}
		}
	}
	if len(changed) > 0 {
		s.remember(heads)
		s.watch.wrote(changed)
	}
	return again
}

// giveUp bounds how often one append is judged. Under the row lock it is written at once, so this is a session that another
// program writes to.
const giveUp = 10

func (t *target) retry(cause error) (again []*work) {
	for _, w := range t.works {
		if w.err != nil {
			continue // it is no part of what was sent
		}
		w.tries++
		w.ids = true
		w.receipt = session.Receipt{}
		if w.tries >= giveUp {
			w.err = errors.Join(fmt.Errorf("nothing was written: the session changed %d times while this was judged", w.tries), cause)
			continue
		}
		again = append(again, w)
	}
	return again
}

// fail tells the works of a session that the statement failed, and whether it may have been done all the same.
func (t *target) fail(ctx context.Context, err error) {
	if undecided(err) {
		if cause := context.Cause(ctx); cause != nil {
			err = errors.Join(cause, err)
		}
		err = fmt.Errorf("%w: %w", session.ErrOutcomeUnknown, err)
	} else {
		err = fmt.Errorf("nothing was written: %w", err)
	}
	for _, w := range t.works {
		if w.err == nil {
			w.receipt, w.err = session.Receipt{}, err
		}
	}
}

// undecided tells whether a statement that failed may have been committed. The server answers with an ERROR when it rolled
// back; a connection that it or a pooler ends, or that breaks, says nothing about what was sent on it.
func undecided(err error) bool {
	var sure definite
	if errors.As(err, &sure) {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		severity := cmp.Or(pg.SeverityUnlocalized, pg.Severity)
		return severity != "ERROR" || strings.HasPrefix(pg.Code, "08")
	}
	return !pgconn.SafeToRetry(err)
}

// retryable tells whether the server rolled back because others wrote the same rows: a serialization failure, a deadlock, a
// unique key that somebody else took.
func retryable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01" || pg.Code == "23505")
}
