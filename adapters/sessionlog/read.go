package sessionlog

import (
	"context"
	"fmt"
	"slices"

	"github.com/mulligan-dev/mulligan/internal/framelog"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// refresh brings a store that only reads up to what is durable.
func (s *Store) refresh() error {
	if s.log != nil {
		return nil
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.load(s.reader.Next)
}

// look finds a session as it is now, and holds its part of the index for the caller to unlock; l is nil when there is none.
func (s *Store) look(name string) (p *part, l *log) {
	p = s.idx.of(name)
	p.Lock()
	l = p.logs[name]
	if l != nil && s.log != nil {
		p.settle(l, s.log.End())
	}
	if l == nil || l.kept.Last == 0 {
		return p, nil
	}
	return p, l
}

// Read implements session.Log.
func (s *Store) Read(ctx context.Context, name string, after uint64, limit int) ([]session.Event, error) {
	if err := ready(ctx, name); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = session.DefaultPage
	}
	if err := s.refresh(); err != nil {
		return nil, fmt.Errorf("read session %s: %w", name, err)
	}
	p, l := s.look(name)
	var todo []batch
	if l != nil {
		todo = l.from(after)
		todo = slices.Clone(todo[:min(len(todo), limit+1)]) // each has an event, but for the first
	}
	p.Unlock()
	cursor := s.cursors.Get().(*framelog.Cursor)
	defer s.cursors.Put(cursor)
	out := make([]session.Event, 0, min(limit, 2*len(todo)))
	for _, b := range todo {
		rec, err := cursor.Record(b.at)
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", name, err)
		}
		skip := 0
		if after >= b.first {
			skip = int(after - b.first + 1)
		}
		_, events, err := decodeSome(rec, skip, limit-len(out))
		if err != nil {
			return nil, fmt.Errorf("read session %s: record at %d: %w", name, b.at.Block, err)
		}
		if out = append(out, events...); len(out) == limit {
			break
		}
	}
	return out, nil
}

// Find implements session.Log.
func (s *Store) Find(ctx context.Context, name, id string) (session.Event, bool, error) {
	if err := ready(ctx, name); err != nil {
		return session.Event{}, false, err
	}
	if err := s.refresh(); err != nil {
		return session.Event{}, false, fmt.Errorf("find event %s of session %s: %w", id, name, err)
	}
	p, l := s.look(name)
	defer p.Unlock()
	if l == nil {
		return session.Event{}, false, nil
	}
	e, ok, err := s.find(p, l, id)
	if err != nil {
		return session.Event{}, false, fmt.Errorf("find event %s of session %s: %w", id, name, err)
	}
	if e.Seq > l.kept.Last {
		return session.Event{}, false, nil // on its way
	}
	return e, ok, nil
}

// Head implements session.Log.
func (s *Store) Head(ctx context.Context, name string) (session.Head, error) {
	if err := ready(ctx, name); err != nil {
		return session.Head{}, err
	}
	if err := s.refresh(); err != nil {
		return session.Head{Session: name}, fmt.Errorf("head of session %s: %w", name, err)
	}
	p, l := s.look(name)
	defer p.Unlock()
	if l == nil {
		return session.Head{Session: name}, nil
	}
	return l.kept, nil
}

// List implements session.Lister.
func (s *Store) List(ctx context.Context, after string, limit int) ([]session.Head, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = session.DefaultPage
	}
	if err := s.refresh(); err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	names := s.idx.sorted()
	i, exact := slices.BinarySearch(names, after)
	if exact {
		i++
	}
	var out []session.Head
	for _, name := range names[i:] {
		p, l := s.look(name)
		if l != nil {
			out = append(out, l.kept)
		}
		p.Unlock()
		if len(out) == limit {
			break
		}
	}
	return out, nil
}

// Watch implements session.Watcher, for what this process appends.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := make(chan struct{}, 1)
	s.watching.Lock()
	defer s.watching.Unlock()
	s.watchers[c] = name
	context.AfterFunc(ctx, func() {
		s.watching.Lock()
		defer s.watching.Unlock()
		delete(s.watchers, c)
	})
	return c, nil
}

// tellLater is tell for an append whose caller has gone away: its event becomes durable all the same, and nobody else would
// tell of it.
func (s *Store) tellLater(name string, t framelog.Ticket) {
	s.watching.Lock()
	defer s.watching.Unlock()
	if s.closed {
		return
	}
	s.late.Go(func() {
		if s.log.Wait(context.Background(), t) == nil {
			s.tell(name)
		}
	})
}

// tell wakes those who watch.
func (s *Store) tell(name string) {
	s.watching.Lock()
	defer s.watching.Unlock()
	for c, watched := range s.watchers {
		if watched == name || watched == "" {
			select {
			case c <- struct{}{}:
			default: // one is waiting already
			}
		}
	}
}
