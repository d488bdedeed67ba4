package boot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// spoiled is a store in which some sessions cannot be read until they are mended.
type spoiled struct {
	session.Store
	mu  sync.Mutex
	bad []string
}

func (s *spoiled) set(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = names
}

func (s *spoiled) check(name string) *session.UnreadableError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.bad, name) {
		return &session.UnreadableError{Session: name, Place: "agents.db", Err: errors.New("it is no JSON")}
	}
	return nil
}

func (s *spoiled) List(ctx context.Context, after string, limit int) (good []session.Head, err error) {
	heads, err := s.Store.List(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	var bad []*session.UnreadableError
	for _, h := range heads {
		if err := s.check(h.Session); err != nil {
			bad = append(bad, err)
		} else {
			good = append(good, h)
		}
	}
	return session.Page(good, bad)
}

func (s *spoiled) Head(ctx context.Context, name string) (session.Head, error) {
	if err := s.check(name); err != nil {
		return session.Head{}, err
	}
	return s.Store.Head(ctx, name)
}

func (s *spoiled) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	if err := s.check(name); err != nil {
		return session.Receipt{}, err
	}
	return s.Store.Append(ctx, name, batch)
}

// starting starts an instance over the store, whose reports of unreadable sessions go into the list.
func (s *spoiled) starting(m *machine, a *agents) (i *instance, reported func() []string) {
	var mu sync.Mutex
	var got []string
	i = m.start(func(c *CoordinatorConfig, sc *sessions.Config) {
		sc.Store = s
		c.Unreadable = func(err *session.UnreadableError) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, err.Session+" in "+err.Place)
		}
	}, a)
	return i, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
}

// TestUnreadableSessionHoldsUpNobody: the others are resumed and told, it is reported once, and as soon as it can be read
// it is resumed with its notice like them.
func TestUnreadableSessionHoldsUpNobody(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.midTurn("a", "bad", "c")
	s := &spoiled{Store: m.store, bad: []string{"bad"}}
	i, reported := s.starting(m, &agents{})
	i.run()
	m.until("the others are resumed", func() bool { return len(i.ran()) == 2 })
	m.settled(i)
	ran := i.ran()
	slices.Sort(ran)
	same(t, "the turns", ran, []string{"a turn", "c turn"})
	same(t, "the reports", reported(), []string{"bad in agents.db"})

	s.set()
	m.until("it is resumed", func() bool { return len(i.ran()) == 3 })
	m.settled(i)
	same(t, "the turns then", i.ran()[2:], []string{"bad turn"})
	if got := m.texts("bad"); len(got) != 1 {
		t.Errorf("it was told %q", got)
	}
	m.stop(i)
}

// TestUnreadableSessionIsToldAfterAnotherBoot: what a stop cut off in a session is not forgotten when it cannot be read
// before the boot after the next.
func TestUnreadableSessionIsToldAfterAnotherBoot(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.midTurn("bad")
	s := &spoiled{Store: m.store, bad: []string{"bad"}}
	for range 2 {
		i, reported := s.starting(m, &agents{})
		i.run()
		m.until("it is reported", func() bool { return len(reported()) == 1 })
		m.stop(i)
	}
	s.set()
	i, reported := s.starting(m, &agents{})
	i.run()
	m.until("it is resumed", func() bool { return slices.Contains(i.ran(), "bad turn") })
	m.settled(i)
	if got := m.texts("bad"); len(got) != 1 || !strings.Contains(got[0], "You were in the middle of a turn") || len(reported()) != 0 {
		t.Errorf("it was told %q, reported %v", got, reported())
	}
	m.stop(i)
}

// TestUnreadableSessionKeepsItsAttempts: a notice for it is not attempted while nobody could take it.
func TestUnreadableSessionKeepsItsAttempts(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.idle("main")
	s := &spoiled{Store: m.store, bad: []string{"main"}}
	i, reported := s.starting(m, &agents{})
	i.run()
	m.until("it is reported", func() bool { return len(reported()) == 1 })
	for range 3 {
		i.keeper.again()
		if r := i.rule(t.Context(), "main"); r.Fate != bootnotice.Resumed {
			t.Errorf("it would be told as %+v", r)
		}
	}
	open, err := i.pending(t.Context())
	must(t, err)
	if len(open) != 1 || len(open[0].Attempts) != 0 {
		t.Errorf("its notices are %+v", open)
	}
	s.set()
	m.until("it is woken", func() bool { return slices.Contains(i.ran(), "main wake") })
	m.settled(i)
	m.stop(i)
}

// TestKeeperTellsWhatCouldNotBeRead: a host that resumes its sessions itself says that one is there, and it is looked at
// again then.
func TestKeeperTellsWhatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.midTurn("bad")
	s := &spoiled{Store: m.store, bad: []string{"bad"}}
	self := m.home.Spawn()
	service, err := sessions.New(sessions.Config{Store: s, Instances: m.home.Instances()})
	must(t, err)
	rec := &recorder{seen: true}
	k, err := New(t.Context(), Config{Dir: m.dir, Instance: self, Deliver: rec, Sessions: service, Startup: []string{"main"}, Notice: noWait})
	must(t, err)
	must(t, k.Run(t.Context()))
	same(t, "those told", rec.told(), []string{"main wake"})
	s.set()
	k.Appeared("bad")
	must(t, k.Run(t.Context()))
	same(t, "those told then", rec.told(), []string{"main wake", "bad wake"})
	must(t, errors.Join(k.Close(), service.Close()))
}
