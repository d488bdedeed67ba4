// Package prometheus counts what happens to sessions: auto-resume by outcome, marks that a drain could not write, pauses,
// aborts, calls by what the effect guard decided, how long appends take, and how many sessions need a person. The file
// alerts.md beside it says what to alert on.
//
// Call [New] with a registerer and the workloads of the host, then hang the [Metrics] in where things happen:
//
//	m, err := prometheus.New(prometheus.Config{Registerer: registry, Workloads: []string{"chat", "oncall"}, Workload: workloadOf})
//	service, err := sessions.New(sessions.Config{Store: m.Store(store), Instances: instances}) // appends, pauses, aborts
//	runner, err := resume.New(resume.Config{Sessions: service, Metrics: m, ...})                // outcomes
//	d, err := drain.New(drain.Config{Metrics: m})                                               // marks
//	tools := m.Effects("oncall", guard)                                                         // calls
//	err = m.Survey(ctx, service)                                                                // every half a minute
//
// It refuses a config without a registerer, workloads that are empty, doubled or too many, and a registry that has these
// metrics already.
//
// What is promised: the label sets are fixed when New returns, and every series is there from then on with the value
// zero, so that an increase is seen from the first event on. No label ever holds a session's id or anything else that a
// caller makes up: a workload that was not declared counts under the value "undeclared", and in a counter of its own.
// Pauses, aborts and appends are counted by the process that appends them; the gauges of a survey are about all sessions
// of the store, whoever runs them, so one process of several is enough to make it.
//
// Failure shows as an error of New or of Survey. Nothing else can fail: counting never stands in the way of what it
// counts.
package prometheus
