package drain

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// abreast is how many marks are written at once. A store flushes once for all that wait together.
const abreast = 64

var errUnfinished = errors.New("it was still being written when the drain went on")

// marks writes marks beside the drain, so that a store that hangs holds up nothing but its own marks.
type marks struct {
	d    *Drain
	o    Order
	slot chan struct{}

	mu      sync.Mutex
	asked   map[*sessions.Turn]error // errUnfinished while it is being written, nil when it stands or is not needed
	running int
	idle    chan struct{} // closed when none is running, nil while nobody waits for that
}

func newMarks(d *Drain, o Order) *marks {
	return &marks{d: d, o: o, slot: make(chan struct{}, abreast), asked: map[*sessions.Turn]error{}}
}

// ask marks the turns that have not been asked for yet.
func (m *marks) ask(open []*sessions.Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range open {
		if _, known := m.asked[t]; !known {
			m.start(t)
		}
	}
}

// again marks turns like ask, and tries once more what has failed: the store may be back.
func (m *marks) again(open []*sessions.Turn) {
	m.ask(open)
	m.mu.Lock()
	defer m.mu.Unlock()
	for t, err := range m.asked {
		if err != nil && !errors.Is(err, errUnfinished) {
			m.start(t)
		}
	}
}

// start writes one mark. The caller holds the lock.
func (m *marks) start(t *sessions.Turn) {
	m.asked[t] = errUnfinished
	m.running++
	go func() {
		err := m.write(t)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asked[t] = err
		if m.running--; m.running == 0 && m.idle != nil {
			close(m.idle)
			m.idle = nil
		}
	}()
}

func (m *marks) write(t *sessions.Turn) error {
	ctx, cancel := context.WithTimeout(context.Background(), m.d.c.Mark)
	defer cancel()
	var err error
	select {
	case m.slot <- struct{}{}:
		err = m.o.Sessions.Mark(ctx, t.Session(), t.ID(), m.d.why)
		<-m.slot
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil || errors.Is(err, session.ErrNoOpenTurn) { // it has ended, and needs none
		return nil
	}
	m.d.c.Log.Error("an open turn could not be marked", "session", t.Session(), "turn", t.ID(), "error", err)
	if m.d.c.Metrics != nil {
		m.d.c.Metrics.MarkFailed()
	}
	return err
}

// wait is until no mark is being written, or the time for marks is over.
func (m *marks) wait() {
	m.mu.Lock()
	if m.running == 0 {
		m.mu.Unlock()
		return
	}
	if m.idle == nil {
		m.idle = make(chan struct{})
	}
	idle := m.idle
	m.mu.Unlock()
	timer := time.NewTimer(m.d.c.Mark)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

// failed are the marks that do not stand.
func (m *marks) failed() (out []Unmarked) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t, err := range m.asked {
		if err != nil {
			out = append(out, Unmarked{Session: t.Session(), Turn: t.ID(), Err: err})
		}
	}
	slices.SortFunc(out, func(a, b Unmarked) int { return cmp.Compare(a.Session, b.Session) })
	return out
}
