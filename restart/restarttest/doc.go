// Package restarttest is a host for tests: a small world in which runs boot, updates happen and things die, with the real
// healer, classifier, policy and launch gate in it. A host's author writes down a story (this run booted, this update
// came, it died with that text, the healer looked) and reads what happened, without processes, git or waiting.
//
// Call [New], then [World.Boot], [World.Update], [Agent.Die] and [World.Pass]; [Agent.Stands] is what became of a run,
// [World.Rows] what a person was shown, [World.Starts] what was started again. What is simulated are the world's edges:
// the trees of code, the prober, the programs and the clock. What is kept lies in memory, or in the stores that
// [Config.Open] opens, one opening for each simulated process.
//
// What is promised: time moves by [World.Advance] and by one second with each thing that happens, and by nothing else,
// so that a story gives the same answers every time. A healer process can be killed or stopped at any of its durable
// steps ([Healer.Hook]); from then on nothing of it reaches the stores, the notifiers or the launcher, as after a kill
// of a real one. The power can be cut ([World.PowerCut]).
//
// What it does not show: how a real launcher, prober or source fails. What the world itself cannot do (a run that is not
// there, stores that cannot be opened) ends the test; what the healer says is an outcome like any other.
package restarttest
