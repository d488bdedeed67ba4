package sessionlog

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mulligan-dev/mulligan/internal/framelog"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// index is what is known of a log in memory: a head for each session, and where its events are. It is in parts with a
// lock each, so that appends to different sessions are judged beside each other: what one waits for is the flush alone.
type index struct {
	names, ids maphash.Seed
	parts      [16]part

	// list holds the names of all sessions, sorted, as long as stale is not set.
	listing sync.Mutex
	list    []string
	stale   atomic.Bool
}

// part is some of the sessions. Its lock is held while one of them is judged and added to, and is taken before that of
// the framed log.
type part struct {
	sync.Mutex
	x    *index
	logs map[string]*log
	// ids finds the record of an event by a hash of session and id. It is a hint: the record is read to be sure.
	ids map[uint64]framelog.Position
}

// log is one session.
type log struct {
	name string
	hash uint64
	// head is the state after all that was added, kept the one after all that is durable.
	head, kept session.Head
	// batches are where its events are, by their first sequence. Those of waiting are not among them.
	batches []batch
	// waiting are the batches that were added and are not durable yet.
	waiting []waiting
	// doubt is set after a gap in the log: events may be lost, at most so many.
	doubt uint64
}

type batch struct {
	first uint64
	at    framelog.Position
}

type waiting struct {
	at     framelog.Position
	ticket framelog.Ticket
	events []session.Event
	// head is the state after it; nil for the last one, whose is the log's.
	head *session.Head
}

func newIndex() *index {
	x := &index{names: maphash.MakeSeed(), ids: maphash.MakeSeed()}
	for i := range x.parts {
		x.parts[i] = part{x: x, logs: map[string]*log{}, ids: map[uint64]framelog.Position{}}
	}
	return x
}

// of is the part that a session is in.
func (x *index) of(name string) *part {
	return &x.parts[maphash.String(x.names, name)%uint64(len(x.parts))]
}

// lock takes the locks of all parts.
func (x *index) lock() {
	for i := range x.parts {
		x.parts[i].Lock()
	}
}

func (x *index) unlock() {
	for i := range x.parts {
		x.parts[i].Unlock()
	}
}

// each calls a function with every session, one part after the other, with its lock.
func (x *index) each(do func(l *log)) {
	for i := range x.parts {
		p := &x.parts[i]
		p.Lock()
		for _, l := range p.logs {
			do(l)
		}
		p.Unlock()
	}
}

func (p *part) hash(l *log, id string) uint64 { return l.hash ^ maphash.String(p.x.ids, id) }

// get is a session's log, made when it is absent.
func (p *part) get(name string) *log {
	l := p.logs[name]
	if l == nil {
		head := session.Head{Session: name}
		l = &log{name: name, hash: maphash.String(p.x.names, name), head: head, kept: head}
		p.logs[name] = l
		p.x.stale.Store(true)
	}
	return l
}

// drop forgets a session of which nothing is there.
func (p *part) drop(name string) {
	delete(p.logs, name)
	p.x.stale.Store(true)
}

// take notes a durable record.
func (p *part) take(at framelog.Position, name string, events []session.Event) {
	l := p.get(name)
	for _, e := range events {
		l.kept = l.kept.Apply(e)
		p.ids[p.hash(l, e.ID)] = at
	}
	l.head, l.doubt = l.kept, 0
	l.batches = append(l.batches, batch{events[0].Seq, at})
}

// wait notes what was added: the session's state is another now, and becomes durable with it.
func (l *log) wait(w waiting, head session.Head) {
	if n := len(l.waiting); n > 0 {
		before := l.head
		l.waiting[n-1].head = &before
	}
	l.waiting, l.head = append(l.waiting, w), head
}

// settle moves what has become durable from waiting to batches.
func (p *part) settle(l *log, end int64) {
	n := 0
	for ; n < len(l.waiting) && l.waiting[n].at.Block < end; n++ {
		w := l.waiting[n]
		if w.head != nil {
			l.kept = *w.head
		} else {
			l.kept = l.head
		}
		l.batches = append(l.batches, batch{w.events[0].Seq, w.at})
		for _, e := range w.events {
			p.ids[p.hash(l, e.ID)] = w.at
		}
	}
	if n > 0 {
		l.waiting = slices.Delete(l.waiting, 0, n) // its memory is for the next ones
	}
}

// forget drops what never became durable. It is called with the lock.
func (p *part) forget(end int64) {
	for name, l := range p.logs {
		p.settle(l, end)
		l.waiting, l.head = nil, l.kept
		if l.kept.Last == 0 {
			p.drop(name)
		}
	}
}

// sorted are the names of all sessions. Who gets them does not change them.
func (x *index) sorted() []string {
	x.listing.Lock()
	defer x.listing.Unlock()
	if x.stale.Swap(false) { // before the look around: whoever comes meanwhile sets it again
		var names []string
		x.each(func(l *log) { names = append(names, l.name) })
		slices.Sort(names)
		x.list = names
	}
	return x.list
}

// from is where the event after a sequence is, or the first one behind a gap.
func (l *log) from(after uint64) []batch {
	i, exact := slices.BinarySearchFunc(l.batches, after+1, func(b batch, seq uint64) int { return cmp.Compare(b.first, seq) })
	if !exact && i > 0 {
		i-- // the batch before may reach beyond its first event
	}
	return l.batches[i:]
}
