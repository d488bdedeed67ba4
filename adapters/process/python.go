package process

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
)

// pythonProgram is what the probed interpreter runs.
//
//go:embed program.py
var pythonProgram string

// DefaultOutputLimit bounds what is kept of a probed interpreter's output.
const DefaultOutputLimit = 16 << 10

// PythonConfig configures a [Python] prober. The zero value is ready to use.
type PythonConfig struct {
	// TempDir is where each probe gets its empty working folder; empty means the system's temporary folder.
	TempDir string
	// OutputLimit bounds the interpreter's output that is kept, in bytes from its end; zero means DefaultOutputLimit.
	OutputLimit int
}

// Python probes trees of Python code, from Python 2.7 on. It is safe for concurrent use.
//
// The interpreter is started with the run's own flags in an empty folder, in a session of its own, with nothing on
// stdin and an environment of [freshimport.Env]. Only the plan's search path comes before the interpreter's own; the
// working folder and PYTHONPATH never do. After the probe the whole group is killed, whatever the outcome.
type Python struct{ loader loader }

var _ probe.Prober = (*Python)(nil)

// NewPython makes a prober.
func NewPython(c PythonConfig) (*Python, error) {
	l := loader{temp: c.TempDir, limit: c.OutputLimit, check: freshimport.CheckFlags, command: pythonCommand}
	if err := l.validate(); err != nil {
		return nil, fmt.Errorf("new python prober: %w", err)
	}
	return &Python{loader: l}, nil
}

// Probe imports the plan's modules. Broken means that the interpreter came up and a module failed, ended the process or
// crashed it; Unknown, that there was no proof either way: no such interpreter, a timeout, a signal from outside. A
// module named "main:..." (see [freshimport.Main]) or "x.__main__" is compiled and what it imports is imported; it is
// never run.
func (p *Python) Probe(ctx context.Context, plan probe.Plan) (probe.Result, error) {
	return p.loader.probe(ctx, plan)
}

func pythonCommand(plan probe.Plan, at site) (argv, env []string, err error) {
	argv = append([]string{plan.Interpreter}, plan.Args...)
	env = append(freshimport.Env(plan.Env), "TMPDIR="+at.work)
	if plan.NoWrite {
		argv = append(argv, "-B")
		env = append(env, "PYTHONDONTWRITEBYTECODE=1") // also for what a module starts
	}
	return append(argv, "-c", pythonProgram), env, nil
}
