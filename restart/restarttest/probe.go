package restarttest

import (
	"context"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
)

// runtimeName is the runtime of every root: texts are Python's.
const runtimeName = "python"

// loads plans and makes probes: a module loads when the tree has it and no update broke it.
type loads struct{ w *World }

// Plan implements restart.Planner, with the planner that real hosts use.
func (l loads) Plan(r run.Run, v classify.Verdict) (probe.Plan, bool) {
	exists := func(module string) bool {
		there, _ := l.module(module)
		return there
	}
	roots := make([]classify.Root, len(r.Roots))
	for i, root := range r.Roots {
		roots[i] = root.Root
	}
	return freshimport.Plan(freshimport.Setting{Runtime: freshimport.Runtime{Interpreter: r.Runtime.Interpreter, Path: r.Runtime.Path},
		Roots: roots, Workspaces: r.Workspaces}, freshimport.Modules(freshimport.Death{Verdict: v, Dir: r.Recipe.Dir, Exists: exists}))
}

// Probe implements probe.Prober.
func (l loads) Probe(ctx context.Context, p probe.Plan) (probe.Result, error) {
	if err := ctx.Err(); err != nil {
		return probe.Result{}, err
	}
	l.w.mu.Lock()
	l.w.probes++
	l.w.mu.Unlock()
	for _, m := range p.Modules {
		target, _ := freshimport.IsMain(m)
		if _, ok := l.module(target); !ok {
			return probe.Result{Outcome: probe.Broken, Failed: target}, nil
		}
	}
	return probe.Result{Outcome: probe.Healthy}, nil
}

func (l loads) module(name string) (there, ok bool) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	root, _, _ := strings.Cut(name, ".")
	if t := l.w.trees[root]; t != nil {
		return t.has(name)
	}
	return false, false
}
