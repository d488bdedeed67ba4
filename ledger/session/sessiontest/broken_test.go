package sessiontest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// faults are what is wrong with a broken store.
type faults struct {
	racy          bool // judges and writes in two steps
	forgetsIDs    bool
	failsBatches  bool // one refused event fails all
	oneHead       bool // judges all of a batch against the head before it
	noFence       bool // writes whatever the fence
	dropsUnknown  bool
	truncates     bool
	reorders      bool // keeps a payload as a map would
	naiveNames    bool
	invents       bool // reading makes a session
	gaps          bool // a refused event takes a sequence
	staleHead     bool // the head is of one batch ago
	longPages     bool
	skips         bool // a page begins one too late
	early         bool // an event is seen before the one before it
	unsorted      bool
	findsAll      bool // looks for an id in all sessions
	shares        bool // hands out what it keeps
	deaf          bool // does not look at the context
	strands       bool // a cancelled leader fails who waits with it
	lies          bool // says not written although it was
	forgets       bool // keeps nothing when it is opened again
	forgetsLast   bool // loses the last event when it is opened again
	ids           bool // forgets the ids when it is opened again
	mute          bool // gives no hints
	late          bool // watches a moment after it has said so
	blocks        bool // hints wait for who should take them
	frozenLease   bool // a renewal is not counted
	secondProcess bool // another process has its own heads
	holdsUp       bool // a session that cannot be read fails the list
	hides         bool // or is left out of it
	beginsAnew    bool // what is appended to it begins a new log
	anyName       bool
}

// broken is a store in memory with faults, sound when it has none.
type broken struct {
	faults
	*shelf
}

type shelf struct {
	mu       sync.Mutex
	logs     map[string]*kept
	watchers map[chan struct{}]string
	lives    map[string]session.Life
	clock    time.Duration
	leader   chan struct{}
	reads    int
}

type kept struct {
	before, head session.Head
	events       []session.Event
	ids          map[string]session.Event
	damaged      bool
}

func (l *kept) unreadable() *session.UnreadableError {
	return &session.UnreadableError{Session: l.head.Session, Place: "the shelf", Err: errors.New("damaged")}
}

func newBroken(f faults) *broken {
	return &broken{f, &shelf{logs: map[string]*kept{}, watchers: map[chan struct{}]string{}, lives: map[string]session.Life{},
		leader: make(chan struct{}, 1)}}
}

func (b *broken) log(name string) *kept {
	if b.naiveNames {
		name = strings.ToLower(strings.TrimSpace(name))
	}
	if b.logs[name] == nil {
		l := &kept{head: session.Head{Session: name}, ids: map[string]session.Event{}}
		l.before = l.head
		b.logs[name] = l
	}
	return b.logs[name]
}

// look is a log that is only read.
func (b *broken) look(name string) *kept {
	_, there := b.logs[name]
	l := b.log(name)
	if !there && !b.invents {
		delete(b.logs, name)
	}
	return l
}

func (b *broken) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	if err := ctx.Err(); err != nil && !b.deaf {
		return session.Receipt{}, err
	}
	if err := session.CheckSession(name); err != nil && !b.anyName {
		return session.Receipt{}, err
	}
	if b.strands {
		// Its leader writes for all under its own context, and the followers are told what it is told.
		b.leader <- struct{}{}
		defer func() { <-b.leader }()
		time.Sleep(10 * time.Microsecond) // a fault may sleep
		if err := ctx.Err(); err != nil {
			b.mu.Lock()
			b.clock = -1
			b.mu.Unlock()
			return session.Receipt{}, session.ErrOutcomeUnknown
		}
		b.mu.Lock()
		failed := b.clock < 0
		b.clock = 0
		b.mu.Unlock()
		if failed {
			return session.Receipt{}, session.ErrOutcomeUnknown
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.log(name); l.damaged && b.beginsAnew {
		delete(b.logs, name)
	} else if l.damaged {
		return session.Receipt{}, l.unreadable()
	}
	head := b.log(name).head
	if b.racy {
		b.mu.Unlock()
		time.Sleep(10 * time.Microsecond)
		b.mu.Lock()
	}
	plan, err := b.step(name, head, batch)
	if err != nil {
		return session.Receipt{}, err
	}
	l := b.log(name)
	if b.failsBatches {
		if err := plan.Receipt.Err(); err != nil {
			return session.Receipt{}, err
		}
	}
	l.before = l.head
	for _, e := range plan.Events {
		if b.dropsUnknown && !e.Kind.Known() {
			continue
		}
		if b.truncates {
			e.Payload = e.Payload[:min(len(e.Payload), 1<<16)]
		}
		if b.reorders && string(e.Payload) == `{"b":1,"a":1,"a":2}` {
			e.Payload = []byte(`{"a":2,"b":1}`)
		}
		if !b.shares {
			e.Payload = slices.Clone(e.Payload)
		}
		l.events = append(l.events, e)
		l.ids[e.ID] = e
	}
	l.head = plan.Receipt.Head
	if len(l.events) == 0 && !b.invents {
		delete(b.logs, name)
	}
	b.hint(name)
	if b.lies {
		time.Sleep(10 * time.Microsecond)
		if ctx.Err() != nil {
			return session.Receipt{}, ctx.Err()
		}
	}
	return plan.Receipt, nil
}

func (b *broken) step(name string, head session.Head, batch []session.Draft) (session.Plan, error) {
	find := func(id string) (session.Event, bool, error) {
		if b.forgetsIDs {
			return session.Event{}, false, nil
		}
		e, ok := b.log(name).ids[id]
		return e, ok, nil
	}
	if b.noFence {
		batch = slices.Clone(batch)
		for i := range batch {
			if batch[i].Fence != 0 {
				batch[i].Fence = head.Fence
			}
		}
	}
	if !b.oneHead && !b.gaps {
		return session.Step(head, batch, find)
	}
	// One event at a time, in a wrong way.
	var all session.Plan
	all.Receipt.Head = head
	for _, d := range batch {
		plan, err := session.Step(head, []session.Draft{d}, find)
		if err != nil {
			return plan, err
		}
		for _, e := range plan.Events {
			e.Seq = all.Receipt.Head.Last + 1
			plan.Receipt.Outcomes[0].Seq = e.Seq
			all.Events = append(all.Events, e)
			all.Receipt.Head = all.Receipt.Head.Apply(e)
		}
		if b.gaps {
			if plan.Receipt.Outcomes[0].Refused != nil {
				all.Receipt.Head.Last++
			}
			head = all.Receipt.Head
		}
		all.Receipt.Outcomes = append(all.Receipt.Outcomes, plan.Receipt.Outcomes...)
	}
	return all, nil
}

func (b *broken) hint(name string) {
	for c, watched := range b.watchers {
		if b.mute || watched != "" && watched != name {
			continue
		}
		if b.blocks {
			b.mu.Unlock()
			select {
			case c <- struct{}{}:
			case <-time.After(time.Second): // stands for ever, and the test has to end
				b.mu.Lock()
				panic("blocked")
			}
			b.mu.Lock()
			continue
		}
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (b *broken) Read(_ context.Context, name string, after uint64, limit int) ([]session.Event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []session.Event
	b.reads++
	for i, e := range b.look(name).events {
		if b.early && b.reads%2 == 0 && i == len(b.look(name).events)-2 {
			continue
		}
		if b.skips && after > 0 && e.Seq == after+1 && i < len(b.look(name).events)-1 {
			continue
		}
		if e.Seq > after && (b.longPages || limit == 0 || len(out) < limit) {
			if !b.shares {
				e.Payload = slices.Clone(e.Payload)
			}
			out = append(out, e)
		}
	}
	return out, nil
}

func (b *broken) Find(_ context.Context, name, id string) (session.Event, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.look(name).ids[id]
	for _, l := range b.logs {
		if other, there := l.ids[id]; there && b.findsAll {
			e, ok = other, true
		}
	}
	e.Payload = slices.Clone(e.Payload)
	return e, ok, nil
}

func (b *broken) Head(_ context.Context, name string) (session.Head, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.staleHead {
		return b.look(name).before, nil
	}
	if l := b.look(name); l.damaged {
		return session.Head{}, l.unreadable()
	}
	return b.look(name).head, nil
}

func (b *broken) List(_ context.Context, after string, limit int) ([]session.Head, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := slices.Sorted(maps.Keys(b.logs))
	if b.unsorted {
		slices.SortFunc(names, func(x, y string) int { return strings.Compare(strings.ToLower(x), strings.ToLower(y)) })
	}
	var out []session.Head
	var bad []*session.UnreadableError
	for _, name := range names {
		switch l := b.logs[name]; {
		case name <= after || limit > 0 && len(out)+len(bad) == limit:
		case l.damaged && b.holdsUp:
			return nil, l.unreadable()
		case l.damaged && b.hides:
		case l.damaged:
			bad = append(bad, l.unreadable())
		default:
			out = append(out, l.head)
		}
	}
	return session.Page(out, bad)
}

func (b *broken) Watch(_ context.Context, name string) (<-chan struct{}, error) {
	c := make(chan struct{}, 1)
	watch := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.watchers[c] = name
	}
	if b.late {
		time.AfterFunc(time.Millisecond, watch)
	} else {
		watch()
	}
	return c, nil
}

func (b *broken) Renew(_ context.Context, owner ledger.Instance, ttl time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock++
	l := b.lives[owner.ID]
	if !b.frozenLease || l.Count == 0 {
		l.Count++
	}
	l.Renewed, l.TTL = day(b.clock), ttl
	b.lives[owner.ID] = l
	return nil
}

func (b *broken) Life(_ context.Context, instance string) (session.Life, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lives[instance]
	l.Now = stamp.Time{Wall: day(b.clock).Wall}
	return l, nil
}

// bench is the store as the suite gets it.
func (b *broken) bench() bench {
	return bench{store: b, sheet: Sheet{Watches: true, Leases: true},
		damage: func(name string) func() {
			set := func(to bool) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.log(name).damaged = to
			}
			set(true)
			return func() { set(false) }
		},
		reopen: func() session.Store {
			again := newBroken(faults{})
			for name, l := range b.logs {
				if b.ids {
					l.ids = map[string]session.Event{}
				}
				if b.forgetsLast {
					l.events = l.events[:len(l.events)-1]
					l.head = session.Fold(name, l.events)
				}
				if !b.forgets {
					again.logs[name] = l
				}
			}
			return again
		},
		another: func() session.Store {
			if b.secondProcess {
				return newBroken(faults{})
			}
			return b
		},
	}
}

// try tries one promise; a check that panics has failed.
func try(t *testing.T, c check, b *broken) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("panic")
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return c.try(ctx, b.bench())
}

func TestASoundStoreKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	for _, c := range checks {
		if err := c.try(t.Context(), newBroken(faults{}).bench()); err != nil {
			t.Errorf("%s: %v", c.promise, err)
		}
	}
}

func TestEachFaultIsCaughtByTheCheckThatClaimsTo(t *testing.T) {
	t.Parallel()
	claimed := map[string]bool{}
	for _, c := range []struct {
		promise string
		faults  faults
	}{
		{"a session that does not exist is empty", faults{invents: true}},
		{"what was written is what is read", faults{reorders: true}},
		{"a kind of a newer version is kept", faults{dropsUnknown: true}},
		{"sequence numbers begin at one", faults{racy: true}},
		{"an event that is appended again", faults{forgetsIDs: true}},
		{"one id is not two events", faults{forgetsIDs: true}},
		{"a refused event changes nothing", faults{failsBatches: true}},
		{"a refused event changes nothing", faults{gaps: true}},
		{"a refused event changes nothing", faults{invents: true}},
		{"each event is judged after those before it", faults{oneHead: true}},
		{"what is larger than the limit", faults{truncates: true}},
		{"names that no store could keep", faults{anyName: true}},
		{"sessions do not touch each other", faults{naiveNames: true}},
		{"of many that take a session one gets it", faults{noFence: true}},
		{"of many that take a session one gets it", faults{racy: true}},
		{"the head is the fold of the log", faults{staleHead: true}},
		{"pages are in order", faults{longPages: true}},
		{"pages are in order", faults{skips: true}},
		{"pages are in order", faults{unsorted: true}},
		{"a session that cannot be read", faults{holdsUp: true}},
		{"a session that cannot be read", faults{hides: true}},
		{"a session that cannot be read", faults{beginsAnew: true}},
		{"an event is found by its id", faults{findsAll: true}},
		{"what a caller holds is a copy", faults{shares: true}},
		{"a context that has ended writes nothing", faults{deaf: true}},
		{"one whose context ends is told the truth", faults{strands: true}},
		{"one whose context ends is told the truth", faults{deaf: true, lies: true}},
		{"a tail sees every event once", faults{early: true}},
		{"a tail sees every event once", faults{racy: true}},
		{"hints come for what is appended", faults{mute: true}},
		{"hints come for what is appended", faults{late: true}},
		{"hints come for what is appended", faults{blocks: true}},
		{"a lease is counted", faults{frozenLease: true}},
		{"what was acknowledged is there", faults{forgets: true}},
		{"what was acknowledged is there", faults{forgetsLast: true}},
		{"what was acknowledged is there", faults{ids: true}},
		{"two processes write one log", faults{secondProcess: true}},
	} {
		i := slices.IndexFunc(checks, func(k check) bool { return strings.HasPrefix(k.promise, c.promise) })
		if i < 0 {
			t.Fatalf("no check promises that %s", c.promise)
		}
		claimed[checks[i].promise] = true
		// A fault that is a race shows when the scheduler lets it: each try is a store of its own.
		var err error
		for range 100 {
			if err = try(t, checks[i], newBroken(c.faults)); err != nil {
				break
			}
		}
		if err == nil {
			t.Errorf("%q does not catch a store with %+v", c.promise, c.faults)
		} else {
			t.Logf("%s: %v", c.promise, err)
		}
	}
	for _, c := range checks {
		if !claimed[c.promise] {
			t.Errorf("no broken store shows that %q catches anything", c.promise)
		}
	}
}
