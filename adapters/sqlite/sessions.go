package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// Sessions is the store of sessions. It is a session.Store and a session.Watcher, and safe for concurrent use. One machine
// shares it, where kernel locks prove more than a lease does.
type Sessions struct {
	db     *DB
	writer *writer
	watch  watch

	mu     sync.Mutex
	queue  []*work // what waits for the next transaction
	busy   bool    // somebody is in one
	idle   *sync.Cond
	closed bool
}

// work is one append on its way.
type work struct {
	name    string
	batch   []session.Draft
	receipt session.Receipt
	err     error
	taken   bool // it is in a transaction, or was
	done    chan struct{}
	lead    chan struct{}
}

func newSessions(ctx context.Context, db *DB) (*Sessions, error) {
	w, err := newWriter(ctx, db)
	if err != nil {
		return nil, err
	}
	s := &Sessions{db: db, writer: w, watch: watch{db: db.read, channels: map[chan struct{}]string{}}}
	s.idle = sync.NewCond(&s.mu)
	return s, nil
}

var errClosed = errors.New("the database was closed")

func (s *Sessions) close() error {
	s.mu.Lock()
	s.closed = true // first, so that those who go on appending do not hold this up for ever
	for _, w := range s.queue {
		w.err, w.taken = errClosed, true
		close(w.done)
	}
	s.queue = nil
	for s.busy {
		s.idle.Wait()
	}
	s.mu.Unlock()
	s.watch.close()
	return s.writer.close()
}

// Append implements session.Log.
func (s *Sessions) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	if err := ready(ctx, name); err != nil {
		return session.Receipt{}, err
	}
	w := &work{name: name, batch: batch, done: make(chan struct{}), lead: make(chan struct{}, 1)}
	if err := s.wait(ctx, w); err != nil {
		return session.Receipt{}, fmt.Errorf("append to session %s: %w", name, err)
	}
	return w.receipt, nil
}

// ready refuses what no store may begin.
func ready(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return session.CheckSession(name)
}

// wait puts the work into the queue and returns when it is done. Whoever finds nobody at it takes all that waits through
// one transaction, and ends that whatever becomes of its own context.
func (s *Sessions) wait(ctx context.Context, w *work) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	s.queue = append(s.queue, w)
	for {
		if !w.taken && !s.busy {
			s.transact()
		}
		s.mu.Unlock()
		select {
		case <-w.done:
			return w.err
		case <-w.lead:
			s.mu.Lock()
		case <-ctx.Done():
			return s.giveUp(ctx, w)
		}
	}
}

// giveUp takes work whose context ended out of the queue; what is in a transaction already has an unknown outcome.
func (s *Sessions) giveUp(ctx context.Context, w *work) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.done:
		return w.err
	default:
	}
	if w.taken {
		return fmt.Errorf("%w: %w", session.ErrOutcomeUnknown, context.Cause(ctx))
	}
	for i, other := range s.queue {
		if other == w {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			break
		}
	}
	s.pass()
	return context.Cause(ctx)
}

// pass lets one of those who wait lead the next transaction.
func (s *Sessions) pass() {
	if len(s.queue) > 0 && !s.busy {
		select {
		case s.queue[0].lead <- struct{}{}:
		default:
		}
	}
}

// most bounds how many appends share a transaction, so that the first of them does not wait for ever.
const most = 256

// transact takes what waits through one transaction. It is called with the lock, and gives it away meanwhile.
func (s *Sessions) transact() {
	group := s.queue[:min(len(s.queue), most)]
	s.queue = s.queue[len(group):]
	for _, w := range group {
		w.taken = true
	}
	s.busy = true
	s.mu.Unlock()
	changed := s.writer.write(group)
	if len(changed) > 0 {
		s.watch.tell(changed)
	}
	s.mu.Lock()
	s.busy = false
	for _, w := range group {
		close(w.done)
	}
	s.idle.Broadcast()
	s.pass()
}

// writer is the one connection that writes sessions, with its statements and what it knows of the heads. One goroutine
// uses it at a time.
type writer struct {
	db                                              *DB
	conn                                            *sql.Conn
	begin, commit, rollback, version                *sql.Stmt
	getHead, putHead, setHead, findEvent, putEvents *sql.Stmt
	// heads are those of sessions that were written lately. They hold as long as no other connection has written.
	heads map[string]known
	seen  int64
	event []byte // memory for the next one
}

type known struct {
	id   int64
	head session.Head
}

// keepHeads bounds the heads in memory.
const keepHeads = 4096

func newWriter(ctx context.Context, db *DB) (*writer, error) {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{db: db, conn: conn, heads: map[string]known{}}
	for _, s := range []struct {
		to   **sql.Stmt
		text string
	}{
		{&w.begin, "BEGIN IMMEDIATE"}, {&w.commit, "COMMIT"}, {&w.rollback, "ROLLBACK"}, {&w.version, "PRAGMA data_version"},
		{&w.getHead, "SELECT id, head FROM sessions WHERE name = ?"},
		{&w.putHead, "INSERT INTO sessions (name, last, head) VALUES (?, ?, ?)"},
		{&w.setHead, "UPDATE sessions SET last = ?, head = ? WHERE id = ?"},
		{&w.findEvent, "SELECT event FROM events WHERE session = ? AND id = ?"},
		{&w.putEvents, "INSERT INTO events (session, seq, id, event) VALUES (?, ?, ?, ?)"},
	} {
		if *s.to, err = conn.PrepareContext(ctx, s.text); err != nil {
			return nil, errors.Join(fmt.Errorf("prepare %q: %w", s.text, err), conn.Close())
		}
	}
	return w, nil
}

func (w *writer) close() error { return w.conn.Close() }

// errKnown ends an attempt in which an id was taken for new and is not.
var errKnown = errors.New("an id is in the log already")

// write takes a group through one transaction, each on its own, and says which sessions were changed. Nearly every event
// is new, and the index of ids tells in the same moment when one is not: only then all are looked up first.
func (w *writer) write(group []*work) (changed []string) {
	ctx := context.Background() // an append that began is ended, whoever asked for it
	changed, err := w.attempt(ctx, group, false)
	if errors.Is(err, errKnown) {
		changed, err = w.attempt(ctx, group, true)
	}
	if damaged(err) && len(group) > 1 {
		// One session's page is no reason to refuse what the others say.
		for _, one := range group {
			one.err = nil
			changed = append(changed, w.write([]*work{one})...)
		}
		return changed
	}
	if err != nil {
		failAll(group, w.db.advise(err))
		return nil
	}
	return changed
}

func (w *writer) attempt(ctx context.Context, group []*work, look bool) (changed []string, err error) {
	if err := w.start(ctx); err != nil {
		return nil, fmt.Errorf("nothing was written: %w", err)
	}
	heads := map[string]known{}
	for _, one := range group {
		plan, err := w.one(ctx, one, heads, look)
		if bad := (*session.UnreadableError)(nil); errors.As(err, &bad) {
			one.err = fmt.Errorf("nothing was written: %w", err) // nor was anything tried: the others go on
			continue
		}
		if err != nil {
			// The transaction cannot be trusted any more, and nobody's events are written.
			return nil, fmt.Errorf("nothing was written: %w", errors.Join(err, w.back(ctx)))
		}
		one.receipt = plan.Receipt
		if len(plan.Events) > 0 {
			changed = append(changed, one.name)
		}
	}
	if _, err := w.commit.ExecContext(ctx); err != nil {
		outcome := "nothing was written"
		back := w.back(ctx)
		if code := sqliteCode(err); code == sqlite3.SQLITE_IOERR || code == 0 {
			err = fmt.Errorf("%w: %w", session.ErrOutcomeUnknown, err)
			outcome = "the commit failed"
		}
		return nil, fmt.Errorf("%s: %w", outcome, errors.Join(err, back))
	}
	if len(w.heads)+len(heads) > keepHeads {
		clear(w.heads)
	}
	for name, k := range heads {
		w.heads[name] = k
	}
	return changed, nil
}

// failAll fails what has no error of its own: after a damaged page was met, SQLite commits nothing any more.
func failAll(group []*work, err error) {
	for _, one := range group {
		one.receipt = session.Receipt{}
		if one.err == nil {
			one.err = err
		}
	}
}

// start begins the transaction and forgets the heads when another connection has written since.
func (w *writer) start(ctx context.Context) error {
	if _, err := w.begin.ExecContext(ctx); err != nil {
		return err
	}
	var version int64
	if err := w.version.QueryRowContext(ctx).Scan(&version); err != nil {
		return errors.Join(err, w.back(ctx))
	}
	if version != w.seen {
		clear(w.heads)
		w.seen = version
	}
	return nil
}

// back rolls back; a transaction that SQLite has ended by itself is no error.
func (w *writer) back(ctx context.Context) error {
	clear(w.heads)
	_, err := w.rollback.ExecContext(ctx)
	if sqliteCode(err) == sqlite3.SQLITE_ERROR {
		return nil
	}
	return err
}

// one judges an append and writes what was accepted. Unless it is told to look ids up, it takes them for new, and fails
// with errKnown when one is not.
func (w *writer) one(ctx context.Context, one *work, heads map[string]known, look bool) (session.Plan, error) {
	k, err := w.head(ctx, one.name, heads)
	if err != nil {
		return session.Plan{}, err
	}
	plan, err := session.Step(k.head, one.batch, func(id string) (session.Event, bool, error) {
		if k.id == 0 || !look {
			return session.Event{}, false, nil
		}
		return scanEvent(w.findEvent.QueryRowContext(ctx, k.id, id))
	})
	if err == nil && !look && plan.Receipt.Err() != nil {
		// What is refused may have been accepted before: then the answer is its first sequence.
		return w.one(ctx, one, heads, true)
	}
	if err != nil || len(plan.Events) == 0 {
		return plan, err
	}
	k.head = plan.Receipt.Head
	raw, err := json.Marshal(k.head)
	if err != nil {
		return plan, err
	}
	if k.id == 0 {
		res, err := w.putHead.ExecContext(ctx, one.name, int64(k.head.Last), raw)
		if err != nil {
			return plan, err
		}
		if k.id, err = res.LastInsertId(); err != nil {
			return plan, err
		}
	} else if _, err := w.setHead.ExecContext(ctx, int64(k.head.Last), raw, k.id); err != nil {
		return plan, err
	}
	for i, e := range plan.Events {
		if w.event, err = plan.AppendEvent(w.event[:0], i); err != nil {
			return plan, err
		}
		if _, err := w.putEvents.ExecContext(ctx, k.id, int64(e.Seq), e.ID, w.event); err != nil {
			if !look && sqliteCode(err) == sqlite3.SQLITE_CONSTRAINT {
				err = errKnown
			}
			return plan, err
		}
	}
	heads[one.name] = k
	return plan, nil
}

// head is the session's state within the transaction.
func (w *writer) head(ctx context.Context, name string, heads map[string]known) (known, error) {
	if k, ok := heads[name]; ok {
		return k, nil
	}
	if k, ok := w.heads[name]; ok {
		return k, nil
	}
	k := known{head: session.Head{Session: name}}
	var raw []byte
	err := w.getHead.QueryRowContext(ctx, name).Scan(&k.id, &raw)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return k, nil
	case damaged(err):
		return k, w.db.unreadable(name, err)
	case err != nil:
		return k, err
	}
	if err := w.db.decode(name, raw, &k.head); err != nil {
		return k, err
	}
	heads[name] = k
	return k, nil
}

func scanEvent(row *sql.Row) (session.Event, bool, error) {
	var raw []byte
	err := row.Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return session.Event{}, false, nil
	}
	if err != nil {
		return session.Event{}, false, err
	}
	e, err := session.Decode(raw)
	return e, err == nil, err
}

// sqliteCode is the primary result code of an error of SQLite's, 0 for any other.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

var _ interface {
	session.Store
	session.Watcher
} = (*Sessions)(nil)
