package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Sessions keeps the logs of sessions. It is a session.Store, a Watcher and a Leaser, and safe for concurrent use.
type Sessions struct {
	now func() stamp.Time

	mu       sync.Mutex
	logs     map[string]*log
	lives    map[string]session.Life
	watchers map[chan struct{}]string
}

type log struct {
	head   session.Head
	events []session.Event
	ids    map[string]uint64
}

// SessionsConfig is how a store of sessions is made.
type SessionsConfig struct {
	// Now is the clock of the leases. Nil means the machine's.
	Now func() stamp.Time
}

// NewSessions is a store without a session.
func NewSessions(c SessionsConfig) *Sessions {
	if c.Now == nil {
		c.Now = host.Now
	}
	return &Sessions{now: c.Now, logs: map[string]*log{}, lives: map[string]session.Life{}, watchers: map[chan struct{}]string{}}
}

// Append implements session.Log.
func (s *Sessions) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	if err := ready(ctx, name); err != nil {
		return session.Receipt{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[name]
	if l == nil {
		l = &log{head: session.Head{Session: name}, ids: map[string]uint64{}}
	}
	plan, err := session.Step(l.head, batch, func(id string) (session.Event, bool, error) {
		e, ok := l.find(id)
		return e, ok, nil
	})
	if err != nil || len(plan.Events) == 0 {
		return plan.Receipt, err
	}
	s.logs[name] = l
	l.head = plan.Receipt.Head
	for _, e := range plan.Events {
		l.ids[e.ID] = e.Seq
		e.Payload = slices.Clone(e.Payload)
		l.events = append(l.events, e)
	}
	for c, watched := range s.watchers {
		if watched == name || watched == "" {
			select {
			case c <- struct{}{}:
			default: // one is waiting already
			}
		}
	}
	return plan.Receipt, nil
}

// ready refuses what no store may begin: a context that is over, and a name that not every store can keep.
func ready(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return session.CheckSession(name)
}

func (l *log) find(id string) (session.Event, bool) {
	seq, ok := l.ids[id]
	if !ok {
		return session.Event{}, false
	}
	return ownEvent(l.events[seq-1]), true
}

// ownEvent is an event that its holder may change.
func ownEvent(e session.Event) session.Event {
	e.Payload = slices.Clone(e.Payload)
	return e
}

// Read implements session.Log.
func (s *Sessions) Read(ctx context.Context, name string, after uint64, limit int) ([]session.Event, error) {
	if err := ready(ctx, name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[name]
	if l == nil || after >= uint64(len(l.events)) {
		return nil, nil
	}
	page := l.events[after:]
	page = page[:min(len(page), pageSize(limit))]
	out := make([]session.Event, len(page))
	for i, e := range page {
		out[i] = ownEvent(e)
	}
	return out, nil
}

func pageSize(limit int) int {
	if limit <= 0 {
		return session.DefaultPage
	}
	return limit
}

// Find implements session.Log.
func (s *Sessions) Find(ctx context.Context, name, id string) (session.Event, bool, error) {
	if err := ready(ctx, name); err != nil {
		return session.Event{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.logs[name]; l != nil {
		e, ok := l.find(id)
		return e, ok, nil
	}
	return session.Event{}, false, nil
}

// Head implements session.Log.
func (s *Sessions) Head(ctx context.Context, name string) (session.Head, error) {
	if err := ready(ctx, name); err != nil {
		return session.Head{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.logs[name]; l != nil {
		return l.head, nil
	}
	return session.Head{Session: name}, nil
}

// List implements session.Lister.
func (s *Sessions) List(ctx context.Context, after string, limit int) ([]session.Head, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []session.Head
	for _, name := range slices.SortedFunc(maps.Keys(s.logs), cmp.Compare[string]) {
		if name > after && len(out) < pageSize(limit) {
			out = append(out, s.logs[name].head)
		}
	}
	return out, nil
}

// Watch implements session.Watcher.
func (s *Sessions) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[c] = name
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, c)
	})
	return c, nil
}

// Renew implements session.Leaser.
func (s *Sessions) Renew(ctx context.Context, owner ledger.Instance, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lives[owner.ID]
	s.lives[owner.ID] = session.Life{Count: l.Count + 1, Renewed: s.now(), TTL: ttl}
	return nil
}

// Life implements session.Leaser.
func (s *Sessions) Life(ctx context.Context, instance string) (session.Life, error) {
	if err := ctx.Err(); err != nil {
		return session.Life{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lives[instance]
	l.Now = s.now()
	return l, nil
}
