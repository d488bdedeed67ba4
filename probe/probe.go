package probe

import (
	"context"
	"time"
)

// Outcome is what a probe says of the current tree.
type Outcome string

// The outcomes. Only Healthy allows a relaunch.
const (
	Healthy Outcome = "healthy"
	Broken  Outcome = "broken"
	Unknown Outcome = "unknown" // the probe could not be run or did not come to an end
)

// Plan is one probe: load these modules of the current tree in a fresh, isolated interpreter.
type Plan struct {
	// Interpreter, Args and Path are the run's own, from its boot record. A program that is probed by itself has its
	// path as Interpreter and no modules.
	Interpreter string
	Args        []string
	// Path is the search path before the interpreter's own, workspaces already left out.
	Path []string
	// Modules are what is loaded, in this order. A plan without modules is no probe.
	Modules []string
	// Env is the allow-listed environment.
	Env []string
	// Timeout bounds the whole probe; zero means DefaultTimeout.
	Timeout time.Duration
	// NoWrite forbids even the caches that loading writes (a dry run).
	NoWrite bool
}

// DefaultTimeout bounds a probe that names no bound of its own.
const DefaultTimeout = 30 * time.Second

// Result is the outcome of one probe.
type Result struct {
	Outcome Outcome
	// Failed is the module that did not load, where that is known.
	Failed string
	// Detail is the end of what the interpreter said, bounded.
	Detail string
	Took   time.Duration
}

// Prober runs probes for one runtime. A probe that cannot be run is a Result with Unknown; the error is for a context
// that ended.
type Prober interface {
	Probe(ctx context.Context, p Plan) (Result, error)
}
