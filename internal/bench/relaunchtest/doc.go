// Package relaunchtest is what the benchmarks of a relaunch have in common: a tree that an update breaks, an agent that dies of
// it, the engine that puts the agent back ([Engine]), bare code that does the same writes, reads and starts ([Bare]), and
// the comparison of both in one run ([Compare]).
//
// Which call first: [Main], at the top of TestMain, since the test binary plays the runners too. It refuses nothing and
// promises nothing: failures end the benchmark.
package relaunchtest
