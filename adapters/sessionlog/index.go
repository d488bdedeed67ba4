package sessionlog

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/mulligan-dev/mulligan/internal/framelog"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// index is what is known of a log in memory: a head for each session, and where its events are.
type index struct {
	seed  maphash.Seed
	logs  map[string]*log
	names []string // sorted; nil when it has to be made
	// ids finds the record of an event by a hash of session and id. It is a hint: the record is read to be sure.
	ids map[uint64]framelog.Position
}

// log is one session.
type log struct {
	name string
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
	head   session.Head
}

func newIndex() *index {
	return &index{seed: maphash.MakeSeed(), logs: map[string]*log{}, ids: map[uint64]framelog.Position{}}
}

func (x *index) hash(name, id string) uint64 {
	var h maphash.Hash
	h.SetSeed(x.seed)
	h.WriteString(name)
	h.WriteByte(0)
	h.WriteString(id)
	return h.Sum64()
}

// get is a session's log, made when it is absent.
func (x *index) get(name string) *log {
	l := x.logs[name]
	if l == nil {
		head := session.Head{Session: name}
		l = &log{name: name, head: head, kept: head}
		x.logs[name] = l
		x.names = nil
	}
	return l
}

// take notes a durable record.
func (x *index) take(at framelog.Position, name string, events []session.Event) {
	l := x.get(name)
	for _, e := range events {
		l.kept = l.kept.Apply(e)
		x.ids[x.hash(name, e.ID)] = at
	}
	l.head, l.doubt = l.kept, 0
	l.batches = append(l.batches, batch{events[0].Seq, at})
}

// settle moves what has become durable from waiting to batches.
func (x *index) settle(l *log, end int64) {
	for len(l.waiting) > 0 && l.waiting[0].at.Block < end {
		w := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.kept = w.head
		l.batches = append(l.batches, batch{w.events[0].Seq, w.at})
		for _, e := range w.events {
			x.ids[x.hash(l.name, e.ID)] = w.at
		}
	}
	if len(l.waiting) == 0 {
		l.waiting = nil
	}
}

// forget drops what never became durable.
func (x *index) forget(end int64) {
	for name, l := range x.logs {
		x.settle(l, end)
		l.waiting, l.head = nil, l.kept
		if l.kept.Last == 0 {
			delete(x.logs, name)
			x.names = nil
		}
	}
}

// sorted are the names of all sessions.
func (x *index) sorted() []string {
	if x.names == nil {
		x.names = make([]string, 0, len(x.logs))
		for name := range x.logs {
			x.names = append(x.names, name)
		}
		slices.Sort(x.names)
	}
	return x.names
}

// from is where the event after a sequence is, or the first one behind a gap.
func (l *log) from(after uint64) []batch {
	i, exact := slices.BinarySearchFunc(l.batches, after+1, func(b batch, seq uint64) int { return cmp.Compare(b.first, seq) })
	if !exact && i > 0 {
		i-- // the batch before may reach beyond its first event
	}
	return l.batches[i:]
}
