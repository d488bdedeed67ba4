package e2e

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/witness"
)

// tree is the agents' code: an agent does the steps of its command line, one after the other.
var tree = []string{
	"acme/__init__.py", "",
	"acme/agent.py", agentSource,
	"acme/jobs.py", jobs,
	"acme/wire.py", wireSource,
	"acme/notes.py", "def write():\n    pass\n",
}

const agentSource = `"""An agent: python -m acme.agent NAME STEP..."""
import os
import sys
import time

from acme import jobs

STATE = os.environ["ACME_STATE"]


def do(name, step):
    what, _, arg = step.partition(":")
    if what == "mark":
        with open(os.environ["MULLIGAN_PHASE_FILE"], "a") as f:
            f.write(arg + "\n")
    elif what == "say":
        open(os.path.join(STATE, arg), "w").close()
    elif what == "count":
        with open(os.path.join(STATE, arg), "a") as f:
            f.write(".")
    elif what == "wait":
        open(os.path.join(STATE, name + "-waits-for-" + arg), "w").close()
        while not os.path.exists(os.path.join(STATE, arg)):
            time.sleep(0.005)
    else:
        getattr(jobs, what)()


def main():
    for step in sys.argv[2:]:
        do(sys.argv[1], step)


if __name__ == "__main__":
    main()
`

// jobs are what agents do. Each imports what it needs when it needs it, like so much in a long-lived process.
const jobs = `import os
import signal
import subprocess
import sys


def encode():
    from acme.wire import Frame
    return Frame()


def notes():
    from acme import notes
    notes.write()


def later():
    from acme import later
    later.go()


def mismatch():
    from acme import wire
    wire.send("too", "much")


def undefined():
    from acme import wire
    wire.broken()


def noise():
    sys.stderr.write("WARNING request timed out after 30s, retrying\n")
    sys.stderr.write("Error code: 429 - rate limit, retrying\n")
    sys.stderr.write("TimeoutError: timed out\n")


def bug():
    raise ValueError("the answer is not 42")


def missing_package():
    import a_package_that_nobody_has


def sdk_missing_package():
    import provider
    provider.needs_a_package()


def rate_limit():
    import provider
    provider.rate_limit()


def auth():
    import provider
    provider.auth()


def provider_error():
    import provider
    provider.down()


def timeout():
    raise TimeoutError("timed out")


def disk_full():
    raise OSError(28, "No space left on device")


def sigkill():
    os.kill(os.getpid(), signal.SIGKILL)


def tool():
    subprocess.run(["false"], check=True)


def tests():
    import unittest

    class Red(unittest.TestCase):
        def test_red(self):
            self.assertEqual(1, 2)

    done = unittest.TextTestRunner(stream=sys.stderr).run(unittest.TestLoader().loadTestsFromTestCase(Red))
    sys.exit(not done.wasSuccessful())


def plan():
    with open("plan.py") as f:
        exec(compile(f.read(), os.path.abspath("plan.py"), "exec"), {})
`

const wireSource = `class Frame:
    pass


def send(what):
    pass


def broken():
    return undefined_name
`

// renamed is the update that breaks encode for all who have the old jobs loaded.
var renamed = []string{
	"acme/wire.py", strings.ReplaceAll(wireSource, "Frame", "Packet"),
	"acme/jobs.py", strings.ReplaceAll(jobs, "Frame", "Packet"),
}

// provider is other people's code.
const provider = `class RateLimitError(Exception):
    pass


class AuthenticationError(Exception):
    pass


class APIConnectionError(Exception):
    pass


def rate_limit():
    raise RateLimitError("Error code: 429 - too many requests")


def auth():
    raise AuthenticationError("Error code: 401 - invalid x-api-key")


def down():
    raise APIConnectionError("Connection error.")


def needs_a_package():
    import a_package_that_nobody_has
`

// agent is one run of the cast.
type agent struct {
	w    *world
	name string
	ws   string
	res  managed.Result
	err  error
	done chan struct{}
}

// start runs an agent in its own workspace, as a managed run that marks its phases and has nobody else to show its
// failures.
func (w *world) start(name string, steps ...string) *agent {
	w.t.Helper()
	return w.startAs(name, func(*managed.Spec) {}, steps...)
}

// startAs is start for an agent that is otherwise in some way.
func (w *world) startAs(name string, change func(*managed.Spec), steps ...string) *agent {
	w.t.Helper()
	a := &agent{w: w, name: name, done: make(chan struct{})}
	spec := w.spec(name, steps...)
	change(&spec)
	a.ws = spec.Workspaces[0]
	w.agents.Go(func() {
		defer close(a.done)
		a.res, a.err = w.runs.Exec(w.ctx, spec, managed.IO{})
	})
	return a
}

func (w *world) spec(name string, steps ...string) managed.Spec {
	w.t.Helper()
	ws := filepath.Join(w.dir, "ws-"+name)
	if err := os.MkdirAll(ws, 0o755); err != nil {
		w.t.Fatal(err)
	}
	s := managed.Spec{
		Project: project, Name: name, Roots: []witness.Root{w.root}, Workspaces: []string{ws}, Silenced: true,
		Recipe: run.Recipe{Command: append([]string{w.python, "-m", "acme.agent", name}, steps...), Dir: ws, Env: w.env, Marking: run.Phases},
	}
	var err error
	if s.Runtime, err = process.Runtime(s.Recipe); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// run is the first run of the agent's name that this story started.
func (a *agent) run() run.Run {
	a.w.t.Helper()
	select {
	case <-a.done:
		return a.res.Run
	default:
	}
	r, err := a.w.home.Runs().Holder(a.w.ctx, project, a.name)
	if err != nil {
		a.w.t.Fatal(err)
	}
	return r
}

// dies waits until the agent has ended, and was rung for unless it ended well.
func (a *agent) dies() *agent {
	a.w.t.Helper()
	a.w.until(a.name+" to end", func() bool {
		select {
		case <-a.done:
			return true
		default:
			return false
		}
	})
	if a.err != nil {
		a.w.t.Fatalf("%s: %v", a.name, a.err)
	}
	return a
}

// waits waits until the agent waits for something.
func (a *agent) waits(what string) *agent {
	a.w.t.Helper()
	a.w.until(a.name+" to wait for "+what, func() bool { return a.w.has(a.name + "-waits-for-" + what) })
	return a
}

func (a *agent) text() string {
	select {
	case <-a.done:
		return string(a.res.End.Tail)
	default:
		return "(it lives)"
	}
}

// replacement is the run that was started for the agent's.
func (a *agent) replacement() run.Run {
	a.w.t.Helper()
	rec := a.w.record(a)
	if rec == nil || rec.Launch == nil || rec.Launch.Run == "" {
		a.w.t.Fatalf("%s has no replacement: %s", a.name, a.w.stands(a))
	}
	r, err := a.w.home.Runs().Get(a.w.ctx, rec.Launch.Run)
	if err != nil {
		a.w.t.Fatal(err)
	}
	return r
}

// runsOf is how many runs ever had a name.
func (w *world) runsOf(name string) (n int) {
	w.t.Helper()
	for r, err := range w.home.Runs().List(w.ctx) {
		if err != nil {
			w.t.Fatal(err)
		}
		if r.Name == name {
			n++
		}
	}
	return n
}

// times is how often an agent has done the step count:WHAT.
func (w *world) times(what string) int {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.state, what))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return len(b)
}

// broken is the usual death: an agent that was loaded before the update and does its first step after it.
func (w *world) broken(name string, before ...string) *agent {
	w.t.Helper()
	steps := append(before, "wait:update", "encode", "say:"+name+"-done")
	return w.start(name, steps...).waits("update")
}
