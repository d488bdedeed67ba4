package postgres

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// Sessions is the store of sessions. It is a session.Store, a session.Watcher and a session.Leaser, and safe for
// concurrent use.
type Sessions struct {
	db    *DB
	watch *watch
	// slots bounds how many sessions are written under their row lock at once, so that these leave connections for the rest.
	slots chan struct{}

	mu    sync.Mutex
	queue []*work
	busy  bool // a goroutine takes what waits through statements
	// lanes are the sessions that are written under their row lock, each with what waits for it.
	lanes map[string][]*work
	// heads are those of sessions that were written lately. They may be old: every statement asks for the head that it was
	// judged by.
	heads   map[string]known
	lone    *lone // the statement under way, when it is for one session alone
	flights map[*flight]struct{}
	stop    chan struct{} // closed with the store
	closed  bool
	running sync.WaitGroup
	grounds sync.WaitGroup // what runs until stop
}

// known is a session's number in the database, 0 for one that does not exist, and its head.
type known struct {
	number int64
	head   session.Head
}

// keepHeads bounds the heads in memory.
const keepHeads = 4096

// work is one append on its way. Its fields are guarded by the store's lock until it is taken, and belong to the writing
// goroutine from then on, except gone.
type work struct {
	name    string
	batch   []session.Draft
	receipt session.Receipt
	err     error
	// tries counts statements that did not write it because the session had moved on, or was locked.
	tries int
	// ids is set when the batch has to be judged with what the log has of its ids.
	ids   bool
	taken bool // it may be in a statement
	gone  bool // nobody waits for it any more
	done  chan struct{}
}

func newSessions(db *DB, listen *pgx.ConnConfig) *Sessions {
	return &Sessions{db: db, watch: newWatch(db, listen), lanes: map[string][]*work{}, heads: map[string]known{},
		flights: map[*flight]struct{}{}, stop: make(chan struct{})}
}

func (s *Sessions) close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	for _, w := range s.queue {
		w.err = errClosed
		close(w.done)
	}
	s.queue = nil
	s.mu.Unlock()
	s.running.Wait()
	close(s.stop)
	s.grounds.Wait()
	s.watch.close()
}

// flight is a write under way, which ends at its deadline.
type flight struct {
	deadline time.Time
	cancel   context.CancelCauseFunc
}

// fly is the context of a write: it ends after the Timeout, or when that of the one who is alone in it does.
func (s *Sessions) fly(ctx context.Context) (_ context.Context, land func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	f := &flight{deadline: time.Now().Add(s.db.c.Timeout), cancel: cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flights[f] = struct{}{}
	return ctx, func() {
		s.mu.Lock()
		delete(s.flights, f)
		s.mu.Unlock()
		cancel(nil)
	}
}

// ground ends the writes that are over their deadline. One ticker for all costs less than a timer for each.
func (s *Sessions) ground() {
	tick := time.NewTicker(max(s.db.c.Timeout/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-tick.C:
			s.mu.Lock()
			for f := range s.flights {
				if now.After(f.deadline) {
					f.cancel(fmt.Errorf("the server did not answer within %v: %w", s.db.c.Timeout, context.DeadlineExceeded))
				}
			}
			s.mu.Unlock()
		}
	}
}

// Append implements session.Log.
func (s *Sessions) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	if err := ready(ctx, name); err != nil {
		return session.Receipt{}, err
	}
	if inside.Inert() {
		return session.Receipt{}, fmt.Errorf("append to session %s: %w", name, inside.ErrOutside)
	}
	w := &work{name: name, batch: batch, done: make(chan struct{})}
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

// wait returns when the work is done, or its context is. Who comes alone writes by itself. All others wait in the queue for a
// goroutine that takes them through statements and ends when nothing waits, so a caller that goes away strands nobody.
func (s *Sessions) wait(ctx context.Context, w *work) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	if _, laned := s.lanes[w.name]; !s.busy && !laned {
		s.busy, w.taken = true, true
		s.running.Add(1)
		s.mu.Unlock()
		s.alone(ctx, w)
		s.running.Done()
	} else {
		s.queue = append(s.queue, w)
		s.kick()
		s.watchLone()
		s.mu.Unlock()
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.done:
		return w.err
	default:
	}
	w.gone = true
	if w.taken {
		return fmt.Errorf("%w: %w", session.ErrOutcomeUnknown, context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// alone writes what came while nobody wrote, and lets those who came meanwhile go on.
func (s *Sessions) alone(ctx context.Context, w *work) {
	handed := s.attend(ctx, []*work{w})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case handed:
		s.running.Go(func() { s.serveLane(w.name) })
	case len(s.queue) > 0:
		s.running.Go(s.run)
	default:
		s.busy = false
	}
}

// kick starts the goroutine for what waits, if it has to be. The caller holds the lock.
func (s *Sessions) kick() {
	if len(s.queue) > 0 && !s.busy {
		s.busy = true
		s.running.Go(s.run)
	}
}

// most bounds how many appends share a statement, and mostBytes what they bring, so that the first does not wait for ever.
const (
	most      = 256
	mostBytes = 8 << 20
)

// run takes what waits through statements, one after the other, until nothing does.
func (s *Sessions) run() {
	for {
		runtime.Gosched() // who was just told may have the next append ready, and share this statement
		s.mu.Lock()
		var group []*work
		group, s.queue = s.cut(s.queue, false)
		if len(group) == 0 && len(s.queue) == 0 {
			s.busy = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if len(group) == 0 {
			continue
		}
		if handed := s.attend(context.Background(), group); handed {
			s.serveLane(group[0].name)
			return
		}
	}
}

// stall is how long the statement of one session, which waits for its row, holds up all others.
const stall = 20 * time.Millisecond

// lone is the statement of a single session while it is under way.
type lone struct {
	name    string
	watched bool // somebody waits behind it, and a timer runs
	over    bool
	handed  bool // another goroutine has taken over for the others
}

// attend takes one group through its statement. One for a single session may wait for a row that somebody else holds: then
// another goroutine takes over for the others, and the caller goes on with serveLane. The statement ends with the context.
func (s *Sessions) attend(ctx context.Context, group []*work) (handed bool) {
	name := group[0].name
	if slices.ContainsFunc(group, func(w *work) bool { return w.name != name }) {
		s.settle(group, s.write(ctx, group))
		return false
	}
	l := &lone{name: name}
	s.mu.Lock()
	s.lone = l
	s.watchLone() // some may wait already
	s.mu.Unlock()
	again := s.write(ctx, group)
	s.mu.Lock()
	l.over = true
	if !l.handed {
		s.lone = nil
	}
	s.mu.Unlock()
	s.settle(group, again)
	return l.handed
}

// watchLone sees to it that what waits behind a statement for one session does not wait long. Those who wait start the
// timer, since a lone writer would pay for one with each append. The caller holds the lock.
func (s *Sessions) watchLone() {
	l := s.lone
	if l == nil || l.watched || len(s.queue) == 0 {
		return
	}
	l.watched = true
	time.AfterFunc(stall, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.over {
			return
		}
		select {
		case s.slots <- struct{}{}:
			l.handed = true
			s.lone = nil
			s.lanes[l.name] = nil
			s.running.Go(s.run)
		default: // too many are in lanes already
			l.watched = false
			s.watchLone()
		}
	})
}

// cut takes the next group from what waits. Work whose session has a lane goes there, unless the lane itself asks. The
// caller holds the lock.
func (s *Sessions) cut(queue []*work, forLane bool) (group, rest []*work) {
	size := 0
	for i, w := range queue {
		if len(group) == most || size > mostBytes {
			return group, queue[i:]
		}
		if w.gone {
			continue
		}
		if lane, ok := s.lanes[w.name]; ok && !forLane {
			s.lanes[w.name] = append(lane, w)
			continue
		}
		w.taken = true
		for _, d := range w.batch {
			size += len(d.Payload)
		}
		group = append(group, w)
	}
	return group, nil
}

// patience is how often a session is judged on a head that may be old before its row is locked.
const patience = 3

// settle tells those that are done, and puts the others back in front.
func (s *Sessions) settle(group, again []*work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var front []*work
	for _, w := range again {
		w.taken = false
		switch {
		case s.closed:
			w.err = errClosed
		case w.tries >= patience:
			s.lane(w)
		default:
			front = append(front, w)
		}
	}
	s.queue = append(front, s.queue...)
	waits := make(map[*work]bool, len(again))
	for _, w := range again {
		waits[w] = w.err == nil
	}
	for _, w := range group {
		if !waits[w] {
			close(w.done)
		}
	}
	s.kick()
}

// lane gives work to the goroutine that writes its session under the row lock, and starts it. The caller holds the lock.
func (s *Sessions) lane(w *work) {
	_, runs := s.lanes[w.name]
	s.lanes[w.name] = append(s.lanes[w.name], w)
	if !runs {
		s.running.Go(func() {
			s.slots <- struct{}{}
			s.serveLane(w.name)
		})
	}
}

// serveLane writes what waits in a lane until nothing does, and ends the lane. The caller has a slot, which it gives back.
func (s *Sessions) serveLane(name string) {
	defer func() { <-s.slots }()
	for {
		s.mu.Lock()
		var group []*work
		group, s.lanes[name] = s.cut(s.lanes[name], true)
		if len(group) == 0 {
			delete(s.lanes, name)
			s.mu.Unlock()
			return
		}
		delete(s.heads, name) // what we know of it is about to be old
		s.mu.Unlock()
		s.settle(group, s.writeLocked(name, group))
	}
}

// remember keeps heads, forget lets them go.
func (s *Sessions) remember(heads map[string]known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heads)+len(heads) > keepHeads {
		clear(s.heads)
	}
	for name, k := range heads {
		s.heads[name] = k
	}
}

func (s *Sessions) forgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.heads)
}

var _ interface {
	session.Store
	session.Watcher
	session.Leaser
} = (*Sessions)(nil)
