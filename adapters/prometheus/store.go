package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// Store is a store whose appends are measured, and whose pauses and aborts are counted. It has the optional powers of the
// store that it wraps, and no others.
func (m *Metrics) Store(s session.Store) session.Store {
	base := &measured{s, m}
	w, watches := s.(session.Watcher)
	l, leases := s.(session.Leaser)
	switch {
	case watches && leases:
		return struct {
			*measured
			session.Watcher
			session.Leaser
		}{base, w, l}
	case watches:
		return struct {
			*measured
			session.Watcher
		}{base, w}
	case leases:
		return struct {
			*measured
			session.Leaser
		}{base, l}
	}
	return base
}

type measured struct {
	session.Store
	m *Metrics
}

// Append implements session.Log.
func (s *measured) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	began := time.Now()
	receipt, err := s.Store.Append(ctx, name, batch)
	took := time.Since(began)
	outcome := appendDone
	switch {
	case errors.Is(err, session.ErrOutcomeUnknown):
		outcome = appendUnknown
	case err != nil:
		outcome = appendError
	}
	s.m.appends.WithLabelValues(outcome).Observe(took.Seconds())
	if err == nil {
		s.m.count(name, batch, receipt)
	}
	return receipt, err
}

// count counts what was appended for the first time.
func (m *Metrics) count(name string, batch []session.Draft, receipt session.Receipt) {
	for i, o := range receipt.Outcomes {
		if i >= len(batch) || o.Refused != nil || o.Repeated {
			continue
		}
		switch d := batch[i]; d.Kind {
		case session.KindAbort:
			m.aborts.WithLabelValues(m.workload(m.c.Workload(name))).Inc()
		case session.KindGate, session.KindPark:
			var p session.Pause
			if err := json.Unmarshal(d.Payload, &p); err == nil && !p.Extend {
				m.pauses.WithLabelValues(m.workload(m.c.Workload(name)), string(d.Kind)).Inc()
			}
		}
	}
}

// Lister lists sessions with their states. *sessions.Service is one.
type Lister interface {
	List(ctx context.Context, after string, limit int) ([]session.Status, error)
}

// Survey counts all sessions of a store by state and by what they need from a person. It reads every head: call it every
// half a minute or so, from one process. The gauges change all together when it has seen everything; after an error they
// stay as they were, and so does the time of the last survey. A session that cannot be read is one that needs a person
// ("repair"), and no error.
func (m *Metrics) Survey(ctx context.Context, l Lister) error {
	state, need := map[label]float64{}, map[label]float64{}
	for s, err := range session.All(ctx, l.List) {
		var bad *session.UnreadableError
		switch {
		case errors.As(err, &bad):
			need[label{m.workload(m.c.Workload(bad.Session)), string(session.NeedRepair)}]++
			continue
		case err != nil:
			return err
		}
		w := m.workload(m.c.Workload(s.Head.Session))
		state[label{w, string(s.Headline)}]++
		for _, n := range s.Needs() {
			need[label{w, string(n)}]++
		}
	}
	m.survey.show(m.c.Workloads, state, need, float64(time.Now().UnixNano())/1e9)
	return nil
}
