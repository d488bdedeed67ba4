// Package process starts, holds, watches and ends programs on one Linux machine: the probe of a tree of code, the start
// of a replacement that waits for the launch gate, the start of a runner, and the supervision of a run's program. It is
// the adapter behind [probe.Prober] and behind the launchers of the engine.
//
// Call [NewPython], [NewInterpreter] (Node.js, Ruby, PHP, JVM), [NewCommand] or [NewELF] for a prober, take the planner of
// the same name with it, and call [Runtime] once at a run's boot, so that the prober knows the run's interpreter.
// [StartHeld] and [StartDetached] start replacements; [Run] supervises a program as a direct child.
//
// It refuses commands that cannot be started, with a [StartError] that carries the exit code a shell would give; a
// command that starts no interpreter it knows has no runtime, and a plan that cannot be probed is an Unknown result, never
// a guess.
//
// What is promised: the host is never executed again; a held child runs no line of its program before Release, and
// none at all when the host dies first; no descriptor of the host reaches a probe or a replacement but those named; a
// process group is signalled only while its leader is known to be the process that was started; a probe says Healthy
// only after every module was loaded (or, for classes and native objects, looked through without running any of it), and
// leaves no process of its group behind. A process that a module moves into a session of its own is out of reach, as it is
// for the program itself.
//
// How failure shows: as a typed error before the start, afterwards as the program's [classify.Exit] and, for probes, as
// an outcome with the end of what the interpreter said.
package process
