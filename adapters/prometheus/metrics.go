package prometheus

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/drain"
	"github.com/mulligan-dev/mulligan/restart/resume"
)

// Undeclared is the workload under which everything counts whose workload was not declared.
const Undeclared = "undeclared"

// MaxWorkloads bounds the declared workloads: each is a label value of every metric for good.
const MaxWorkloads = 50

// Config is what the metrics are made of.
type Config struct {
	// Registerer is where they are registered. Required.
	Registerer prometheus.Registerer
	// Workloads are the kinds of sessions that the host runs, known before it begins: at most MaxWorkloads, none of them
	// with a session's id in it. Empty leaves the one workload "undeclared".
	Workloads []string
	// Workload says which of them a session is, by its name. Nil is the only declared one, and undeclared when there are
	// several. It is called at every append, and must not block.
	Workload func(session string) string
}

// Metrics are the metrics of one process. All methods are safe for concurrent use.
type Metrics struct {
	c Config

	autoresume, pauses, aborts, effects *prometheus.CounterVec
	markFailures, undeclared            prometheus.Counter
	appends                             *prometheus.HistogramVec
	survey                              *survey

	registered []prometheus.Collector
}

var _ interface {
	resume.Metrics
	drain.Metrics
} = (*Metrics)(nil)

// How an append ended: its label values.
const (
	appendDone    = "done"    // it was written, or judged and refused
	appendUnknown = "unknown" // nobody knows whether it was written
	appendError   = "error"   // nothing was written
)

// appendBuckets reach from a log file on a fast disk to a server that is in trouble.
var appendBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

var states = []session.Headline{session.Running, session.Paused, session.Interrupted, session.Idle, session.Aborted}

// New makes the metrics, registers them, and primes each series with zero. It reports all that is wrong with its config at
// once; after an error nothing is registered.
func New(c Config) (*Metrics, error) {
	c.Workloads = slices.Clone(c.Workloads)
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("make session metrics: %w", err)
	}
	if c.Workload == nil {
		only := ""
		if len(c.Workloads) == 1 {
			only = c.Workloads[0]
		}
		c.Workload = func(string) string { return only }
		if len(c.Workloads) == 0 {
			c.Workload = func(string) string { return Undeclared }
		}
	}
	m := &Metrics{c: c}
	m.make()
	if err := m.register(); err != nil {
		return nil, fmt.Errorf("make session metrics: %w", err)
	}
	m.prime()
	return m, nil
}

func (c Config) check() error {
	var errs []error
	if c.Registerer == nil {
		errs = append(errs, errors.New("Registerer is missing"))
	}
	if len(c.Workloads) > MaxWorkloads {
		errs = append(errs, fmt.Errorf("%d workloads, at most %d: each is a series for good", len(c.Workloads), MaxWorkloads))
	}
	for i, w := range c.Workloads {
		switch {
		case w == "" || !utf8.ValidString(w) || len(w) > 64:
			errs = append(errs, fmt.Errorf("workload %.80q: want one to 64 bytes of UTF-8", w))
		case w == Undeclared:
			errs = append(errs, fmt.Errorf("workload %q is the name of those that nobody declared", w))
		case slices.Contains(c.Workloads[:i], w):
			errs = append(errs, fmt.Errorf("workload %q is declared twice", w))
		}
	}
	return errors.Join(errs...)
}

func (m *Metrics) make() {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registered = append(m.registered, v)
		return v
	}
	m.autoresume = counter("mulligan_autoresume_total", "Interrupted sessions that auto-resume looked at, by what became of them.", "workload", "outcome")
	m.pauses = counter("mulligan_session_pauses_total", "Pauses that this process opened: gates before a turn, parks at the end of one.", "workload", "kind")
	m.aborts = counter("mulligan_session_aborts_total", "Sessions that this process aborted.", "workload")
	m.effects = counter("mulligan_effects_total", "Calls of tools, by what the effect guard decided or the call came to.", "workload", "decision")
	m.survey = newSurvey()
	m.markFailures = prometheus.NewCounter(prometheus.CounterOpts{Name: "mulligan_drain_mark_failures_total",
		Help: "Marks of open turns that a drain could not write."})
	m.undeclared = prometheus.NewCounter(prometheus.CounterOpts{Name: "mulligan_undeclared_workload_total",
		Help: "What was counted under a workload that the host has not declared."})
	m.appends = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "mulligan_session_append_duration_seconds",
		Help: "How long appends to the session store took, until they were durable.", Buckets: appendBuckets}, []string{"outcome"})
	m.registered = append(m.registered, m.markFailures, m.undeclared, m.survey, m.appends)
}

// register takes back what it registered when one is refused.
func (m *Metrics) register() error {
	for i, c := range m.registered {
		if err := m.c.Registerer.Register(c); err != nil {
			m.registered = m.registered[:i]
			m.Close()
			return fmt.Errorf("register: %w: one process has one Metrics per registry", err)
		}
	}
	return nil
}

// Close takes the metrics out of their registry. They may still be counted on, unseen.
func (m *Metrics) Close() {
	for _, c := range m.registered {
		m.c.Registerer.Unregister(c)
	}
}

// prime makes every series that there will ever be.
func (m *Metrics) prime() {
	for _, w := range append([]string{Undeclared}, m.c.Workloads...) {
		for _, o := range resume.Outcomes() {
			m.autoresume.WithLabelValues(w, string(o))
		}
		for _, k := range []session.Kind{session.KindGate, session.KindPark} {
			m.pauses.WithLabelValues(w, string(k))
		}
		m.aborts.WithLabelValues(w)
		for _, d := range Decisions() {
			m.effects.WithLabelValues(w, string(d))
		}
	}
	m.survey.show(m.c.Workloads, nil, nil, 0)
	for _, o := range []string{appendDone, appendUnknown, appendError} {
		m.appends.WithLabelValues(o)
	}
}

// workload is a label value: one that was declared, or the one for all others, which is counted.
func (m *Metrics) workload(w string) string {
	if w == Undeclared && len(m.c.Workloads) == 0 || slices.Contains(m.c.Workloads, w) {
		return w
	}
	m.undeclared.Inc()
	return Undeclared
}

// AutoResume implements resume.Metrics. An outcome that is not one of resume.Outcomes counts as an error: it is one that
// nobody can act on by its name.
func (m *Metrics) AutoResume(workload string, outcome resume.Outcome) {
	if !slices.Contains(resume.Outcomes(), outcome) {
		outcome = resume.Failed
	}
	m.autoresume.WithLabelValues(m.workload(workload), string(outcome)).Inc()
}

// MarkFailed implements drain.Metrics.
func (m *Metrics) MarkFailed() { m.markFailures.Inc() }
