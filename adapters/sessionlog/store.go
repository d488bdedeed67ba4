package sessionlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/framelog"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// ErrReadOnly refuses an append to a store that was opened by [Read].
var ErrReadOnly = errors.New("the session log is open for reading only: its host writes it, and a canary writes to its own folder alone")

// Config says where a log is.
type Config struct {
	// Path is the log's file, in a folder on a local disk. Files with this name and an ending lie beside it.
	Path string
	// Holder is how this process calls itself to others that want to write; empty is the program's name and pid.
	Holder string
	// Now is the clock that stamps what the store itself writes (a gate after a repair). Nil means the machine's.
	Now func() stamp.Time

	fs durable.FS // nil is the machine's
}

// Store is the log of all sessions. It is a session.Store and a session.Watcher, and safe for concurrent use.
type Store struct {
	c   Config
	dir durable.Dir

	idx     *index
	log     *framelog.Log // of a writer
	cursors sync.Pool     // of *framelog.Cursor
	scratch sync.Pool     // of *scratch

	reading sync.Mutex
	reader  *framelog.Reader // of one that only reads

	watching sync.Mutex
	watchers map[chan struct{}]string
	closed   bool
	late     sync.WaitGroup // hints whose append went away before its event was durable
}

func (c Config) store(d durable.Dir, l *framelog.Log, r *framelog.Reader, cursor func() *framelog.Cursor) *Store {
	return &Store{c: c, dir: d, idx: newIndex(), log: l, reader: r, watchers: map[chan struct{}]string{},
		cursors: sync.Pool{New: func() any { return cursor() }}, scratch: sync.Pool{New: func() any { return new(scratch) }}}
}

func (c *Config) dir() (durable.Dir, string, error) {
	if c.Path == "" {
		return nil, "", errors.New("Path is missing: the log's file")
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, "", err
	}
	if c.Holder == "" {
		c.Holder = fmt.Sprintf("%s, pid %d", filepath.Base(os.Args[0]), os.Getpid())
	}
	if c.Now == nil {
		c.Now = host.Now
	}
	if c.fs == nil {
		c.fs = durable.System{}
	}
	d, err := c.fs.Open(filepath.Dir(path))
	return d, filepath.Base(path), err
}

// Open opens a log for writing, made when it is absent.
//
// Errors: [*BusyError] when another process writes it, [*DamageError] when it needs [Repair], and that of a folder that is
// on a network file system. In a canary a log outside of its folder is opened for reading only: appends are [ErrReadOnly].
func Open(c Config) (*Store, error) {
	if outside := inside.Refuse(c.Path); outside != nil {
		if _, err := os.Stat(c.Path); err != nil {
			return nil, fmt.Errorf("open session log: %w", outside)
		}
		return Read(c)
	}
	d, name, err := c.dir()
	if err != nil {
		return nil, fmt.Errorf("open session log: %w", err)
	}
	l, err := framelog.Open(framelog.Config{Dir: d, Name: name, Holder: c.Holder})
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	s := c.store(d, l, nil, l.Cursor)
	if err = s.load(l.Scan); err == nil {
		err = s.gateDoubtful()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open session log %s: %w", c.Path, err), s.Close())
	}
	return s, nil
}

// Read opens a log for reading, beside the process that writes it. Each look shows what is there by then. fs.ErrNotExist
// when there is none.
func Read(c Config) (*Store, error) {
	d, name, err := c.dir()
	if err != nil {
		return nil, fmt.Errorf("open session log: %w", err)
	}
	r, err := framelog.Read(d, name)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open session log: %w", err), d.Close())
	}
	s := c.store(d, nil, r, r.Cursor)
	if err := s.load(r.Next); err != nil {
		return nil, errors.Join(fmt.Errorf("open session log %s: %w", c.Path, err), s.Close())
	}
	return s, nil
}

// Gap is a part of a log that was lost to damage.
type Gap = framelog.Gap

// Repair makes a damaged log writable again and says what was lost. The damaged bytes are kept in files beside it.
func Repair(c Config) ([]Gap, error) {
	d, name, err := c.dir()
	if err != nil {
		return nil, fmt.Errorf("repair session log: %w", err)
	}
	gaps, err := framelog.Repair(d, name, c.Holder)
	return gaps, errors.Join(err, d.Close())
}

// load takes in what a scan finds.
func (s *Store) load(scan func(func(framelog.Entry) bool) error) error {
	var bad error
	err := scan(func(e framelog.Entry) bool {
		if e.Gap != nil {
			s.idx.each(func(l *log) { l.doubt += uint64(e.Gap.Size) }) // an event is longer than one byte
			return true
		}
		name, events, err := decode(e.Record)
		if err != nil {
			bad = fmt.Errorf("record at %d: %w", e.Position.Block, err)
			return false
		}
		p := s.idx.of(name)
		p.Lock()
		p.take(e.Position, name, events)
		p.Unlock()
		return true
	})
	return errors.Join(err, bad)
}

// gateDoubtful stops the sessions whose last events may be lost: their numbers are not used again, and a person has to
// look before the next turn.
func (s *Store) gateDoubtful() error {
	for _, name := range s.idx.sorted() {
		l := s.idx.of(name).logs[name] // nobody else has the store yet
		if l.doubt == 0 {
			continue
		}
		lost := l.doubt
		l.head.Last += lost
		question, err := json.Marshal(fmt.Sprintf("The log was damaged and repaired. Events after %d may be lost, also calls "+
			"whose effect took place. Look at what the session did, and answer to let it go on.", l.kept.Last))
		if err != nil {
			return err
		}
		gate := session.NewGate(s.c.Now(), session.Pause{Interrupt: fmt.Sprintf("log-damage-%d", l.kept.Last), Question: question})
		r, err := s.Append(context.Background(), name, []session.Draft{gate})
		if err = errors.Join(err, r.Err()); err != nil {
			return fmt.Errorf("gate session %s after a repair: %w", name, err)
		}
	}
	return nil
}

// Close ends the store. What waits is written first.
func (s *Store) Close() error {
	var err error
	if s.log != nil {
		s.watching.Lock()
		s.closed = true
		s.watching.Unlock()
		err = s.log.Close()
		s.late.Wait()
	} else {
		s.reading.Lock()
		defer s.reading.Unlock()
		err = s.reader.Close()
	}
	return errors.Join(err, s.dir.Close())
}

// Append implements session.Log.
func (s *Store) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	if err := ready(ctx, name); err != nil {
		return session.Receipt{}, err
	}
	if s.log == nil {
		return session.Receipt{}, fmt.Errorf("append to session %s: %w", name, ErrReadOnly)
	}
	receipt, ticket, err := s.add(name, batch)
	if err != nil {
		return session.Receipt{}, fmt.Errorf("append to session %s: %w", name, err)
	}
	if ticket == nil {
		return receipt, nil
	}
	switch err := s.log.Wait(ctx, *ticket); {
	case errors.Is(err, framelog.ErrUnknown):
		s.tellLater(name, s.log.Also(*ticket))
		return session.Receipt{}, fmt.Errorf("append to session %s: %w: %w", name, session.ErrOutcomeUnknown, err)
	case err != nil:
		return session.Receipt{}, s.failed(name, err)
	}
	s.tell(name)
	return receipt, nil
}

// ready refuses what no store may begin.
func ready(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return session.CheckSession(name)
}

// add judges the batch and puts it into the log. The ticket is for what the receipt speaks of: also a repeated event, and
// the facts that refused one, may not be durable yet.
func (s *Store) add(name string, batch []session.Draft) (r session.Receipt, t *framelog.Ticket, err error) {
	r, t, err = s.step(name, batch)
	if errors.Is(err, framelog.ErrBroken) {
		// An earlier write failed. What the batch was judged by may be gone with it, so it is judged again.
		if err := s.mend(err); err != nil {
			return r, nil, err
		}
		r, t, err = s.step(name, batch)
	}
	return r, t, err
}

func (s *Store) step(name string, batch []session.Draft) (r session.Receipt, t *framelog.Ticket, err error) {
	b := s.scratch.Get().(*scratch)
	defer s.scratch.Put(b)
	p := s.idx.of(name)
	p.Lock()
	defer p.Unlock()
	l := p.get(name)
	p.settle(l, s.log.End())
	plan, err := session.Step(l.head, batch, func(id string) (session.Event, bool, error) { return s.find(p, l, id) })
	if err != nil {
		return r, nil, err
	}
	if len(plan.Events) == 0 {
		if n := len(l.waiting); n > 0 {
			also := s.log.Also(l.waiting[n-1].ticket)
			t = &also
		}
		if l.head.Last == 0 {
			p.drop(name) // refused: there is no such session still
		}
		return plan.Receipt, t, nil
	}
	rec, err := b.encode(name, plan)
	if err != nil {
		return r, nil, err
	}
	at, ticket, err := s.log.Add(rec)
	if err != nil {
		return r, nil, err
	}
	l.wait(waiting{at: at, ticket: ticket, events: plan.Events}, plan.Receipt.Head)
	return plan.Receipt, &ticket, nil
}

// failed takes back what could not be written. When that succeeds nothing of it is in the log, for certain.
func (s *Store) failed(name string, cause error) error {
	if err := s.mend(cause); err != nil {
		return fmt.Errorf("append to session %s: %w: %w", name, session.ErrOutcomeUnknown, err)
	}
	return fmt.Errorf("append to session %s: nothing was written: %w", name, cause)
}

// mend makes the log usable again. Nobody judges meanwhile: what was added and is not durable is gone, for all sessions.
func (s *Store) mend(cause error) error {
	s.idx.lock()
	defer s.idx.unlock()
	recovered, err := s.log.Recover()
	if err != nil {
		return errors.Join(cause, err)
	}
	if recovered { // else another one did, and what waits by now is not what failed
		for i := range s.idx.parts {
			s.idx.parts[i].forget(s.log.End())
		}
	}
	return nil
}

// find is the event of an id, among what waits and what is durable.
func (s *Store) find(p *part, l *log, id string) (session.Event, bool, error) {
	for _, w := range slices.Backward(l.waiting) {
		if e, ok := byID(w.events, id); ok {
			return e, true, nil
		}
	}
	at, ok := p.ids[p.hash(l, id)]
	if !ok {
		return session.Event{}, false, nil
	}
	cursor := s.cursors.Get().(*framelog.Cursor)
	defer s.cursors.Put(cursor)
	rec, err := cursor.Record(at)
	if err != nil {
		return session.Event{}, false, err
	}
	name, events, err := decode(rec)
	if err != nil {
		return session.Event{}, false, fmt.Errorf("record at %d: %w", at.Block, err)
	}
	e, ok := byID(events, id)
	return e, ok && name == l.name, nil
}

func byID(events []session.Event, id string) (session.Event, bool) {
	i := slices.IndexFunc(events, func(e session.Event) bool { return e.ID == id })
	if i < 0 {
		return session.Event{}, false
	}
	return events[i], true
}
