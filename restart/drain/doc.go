// Package drain stops a process that runs sessions without losing sight of what it was doing: it admits nothing new,
// says durably which turns were open, waits for them, and reports those that would not end.
//
// Begin with [New], give [Drain.Admit] and [Drain.Begun] to the sessions, and call [Drain.Drain] once when the process is
// to stop:
//
//	d, err := drain.New(drain.Config{})
//	service, err := sessions.New(sessions.Config{Store: store, Instances: instances, Admit: d.Admit, Draining: d.Begun()})
//	...
//	result, err := d.Drain(ctx, drain.Order{Sessions: service, Why: "deploy", Teardown: closeAll})
//	os.Exit(result.ExitCode()) // the host's decision: this package never exits the process
//
// The order of things: admission stops; every open turn gets a mark in its session's log; the turns are waited for, each
// for its own budget; then calls are frozen ([Drain.Calls]), the turns that are left are cancelled and have a grace; who
// is left then is a survivor. Teardown comes last, so reading and tailing work up to it, and a watchdog writes the stacks
// of all goroutines when it overruns. [Drain.Bound] is how long all that takes at most, known before it begins: a
// supervisor's stop timeout should be above it.
//
// What it refuses: everything that asks for admission after the drain began, also a resume from outside, with
// [ErrDraining]. A mark is lifted by the turn when it completes; a turn that fails after the drain began keeps it, and
// auto-resume of a later process takes it up.
//
// Promised: nobody holds the drain up. A turn, a mark, a teardown or a dump that hangs costs its own bound and no more.
// What is not promised is that a survivor is dead: its goroutine runs until the process ends, and its fence is no
// obstacle before another process has taken the session.
//
// Failure shows in the [Result]: survivors, marks that could not be written, the teardown's error, an overrun.
// [Listen] is for signals: the first begins a drain, the second is told apart, none is raised twice or swallowed.
package drain
