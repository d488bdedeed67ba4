// Package storm is the breaker that stops a healer from relaunching without end, and the pause that goes with it.
//
// Call [Reserve] inside [Store.UpdateState] before a launch begins: it reserves a slot, keyed by the launch id, or trips
// the breaker. [State.Pause], [State.Resume], [State.Disable] and [State.Enable] are what people and the config do. [State.Unheld] is the age of something less the time in which the healer was paused or disabled.
//
// Three limits hold, each an inclusive number of launches: per episode; per window; and for slow loops, where launches
// chained by gaps shorter than the window are one burst, limited like the window. A slot whose launch never began counts
// like any other: the number that is counted may be too high, never too low. What a person resumed is forgiven and
// counts no more.
//
// It refuses everything while paused or disabled. It promises that tripping spends nobody's do-over: a refused launch
// has no slot. Everything is a pure function of the state that it is given; a state that was not changed keeps its
// revision, and the store then writes nothing.
package storm
