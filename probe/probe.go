// Package probe is the question whether the current tree is healthy: can a fresh interpreter, set up as the dead run's
// was, load the modules that the run died in? It holds the question ([Plan]), the answer ([Result]), and the rules by
// which one answer serves many deaths; running a probe is an adapter's part ([Prober]).
//
// Call [Group] with what each death needs, ask the [Memo] what is known already, run the rest with a [Prober], pass
// each result through [Confirm] and remember it with [Memo.Remember]. Package freshimport makes the plans for Python.
//
// It refuses a plan without modules ([Plan.Validate]): a probe of nothing proves nothing. A tree of unknown identity
// ([Need] without Tree) shares no result with any other.
//
// What is promised: a result answers a need only if the tree, the interpreter, its flags, search path and environment
// are the same and every module of the need was loaded; the tree must have had the same identity before and after; a
// failure of a union says nothing of its parts, and no failure is kept past a change of the tree.
//
// How failure shows: as an [Outcome] with the end of what the interpreter said. Only Healthy ever allows a relaunch.
//
// The package is pure: it starts nothing, reads no clock and keeps no state of its own.
package probe

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
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

// Validate reports everything that is wrong with a plan of modules, naming the fields.
func (p Plan) Validate() error {
	var errs []error
	if !path.IsAbs(p.Interpreter) {
		errs = append(errs, fmt.Errorf("interpreter: %q, want an absolute path", p.Interpreter))
	}
	for _, d := range p.Path {
		if !path.IsAbs(d) {
			// A relative folder would be looked up in the probe's own working folder, which is empty.
			errs = append(errs, fmt.Errorf("path: %q, want absolute folders", d))
		}
	}
	if len(p.Modules) == 0 {
		errs = append(errs, errors.New("modules: none, and a probe of nothing proves nothing"))
	}
	for _, m := range p.Modules {
		if m == "" || strings.ContainsRune(m, 0) {
			errs = append(errs, fmt.Errorf("modules: %q is no module", m))
		}
	}
	if p.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout: %v, want 0 for the default or more", p.Timeout))
	}
	return errors.Join(errs...)
}

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

// Confirm is the result if the tree kept its identity while it was probed: before and after are its identity keys.
// Otherwise it is Unknown, for nobody knows what was loaded. An empty key is an unknown identity and equals nothing.
func Confirm(r Result, before, after string) Result {
	if before != "" && before == after {
		return r
	}
	why := "the tree changed while it was probed"
	if before == "" || after == "" {
		why = "the tree's identity could not be read around the probe"
	}
	return Result{Outcome: Unknown, Detail: why, Took: r.Took}
}
