package prometheus

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// label is a workload with a state, or with a need.
type label struct{ workload, value string }

// survey is what the last survey found. A scrape sees one survey whole, and never half of the next: single gauges would
// change one after the other under it.
type survey struct {
	sessions, operator, at *prometheus.Desc
	shown                  atomic.Pointer[[]prometheus.Metric]
}

func newSurvey() *survey {
	return &survey{
		sessions: prometheus.NewDesc("mulligan_sessions", "Sessions of the store by state, as of the last survey.", []string{"workload", "state"}, nil),
		operator: prometheus.NewDesc("mulligan_sessions_needing_operator", "Sessions that wait for a person, by what they need, as of the last survey.", []string{"workload", "need"}, nil),
		at:       prometheus.NewDesc("mulligan_sessions_surveyed_timestamp_seconds", "When the last survey of the store ended well, zero before.", nil, nil),
	}
}

// show puts a survey that ended at a time in the place of the last one.
func (s *survey) show(workloads []string, state, need map[label]float64, at float64) {
	all := []prometheus.Metric{prometheus.MustNewConstMetric(s.at, prometheus.GaugeValue, at)}
	for _, w := range append([]string{Undeclared}, workloads...) {
		for _, v := range states {
			all = append(all, prometheus.MustNewConstMetric(s.sessions, prometheus.GaugeValue, state[label{w, string(v)}], w, string(v)))
		}
		for _, n := range session.Needs() {
			all = append(all, prometheus.MustNewConstMetric(s.operator, prometheus.GaugeValue, need[label{w, string(n)}], w, string(n)))
		}
	}
	s.shown.Store(&all)
}

// Describe implements prometheus.Collector.
func (s *survey) Describe(to chan<- *prometheus.Desc) {
	to <- s.sessions
	to <- s.operator
	to <- s.at
}

// Collect implements prometheus.Collector.
func (s *survey) Collect(to chan<- prometheus.Metric) {
	if all := s.shown.Load(); all != nil {
		for _, m := range *all {
			to <- m
		}
	}
}
