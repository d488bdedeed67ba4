// Package resumetest kills processes. It holds a store of sessions, together with everything above it, to what a crash
// must not do: lose an event that was acknowledged, run a call twice that changes something without the doubt being shown
// first, derive a wrong state, or resume what must not be resumed.
//
// A store's own test needs a few lines:
//
//	func TestCrashes(t *testing.T) {
//		resumetest.Run(t, func(dir string) (resumetest.Process, error) { ... })
//	}
//
// Begin with [Run], first thing in a test that does nothing else: the test binary is started again as the processes that
// are killed, and those arrive in the same call.
//
// A process runs a turn with two calls that change something and two that do not, and kills itself with SIGKILL at one
// step of it; another one is killed from outside at a moment that nobody chose. Then new processes open the same folder,
// look, resume, and where a person has to decide, a person's decision is made. A failure says which promise broke and at
// which step.
package resumetest
