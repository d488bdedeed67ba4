package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/witness"
)

// PythonPlanner makes the probe of one death from the run's boot record and the tree as it is now.
type PythonPlanner struct {
	// Modules knows where a module may lie; package classify/python is one.
	Modules witness.Modules
}

var _ interface {
	restart.Planner
	restart.Refuser
} = PythonPlanner{}

// Refuses implements restart.Refuser.
func (PythonPlanner) Refuses(r run.Run) string { return unknownInterpreter(r, freshimport.Name) }

// unknownInterpreter says why nothing can ever be tried for a run that has no interpreter of a runtime on record: it is
// known at the run's boot or never. It is empty for the others.
func unknownInterpreter(r run.Run, runtime string) string {
	if r.Runtime != nil && r.Runtime.Name == runtime {
		return ""
	}
	command := ""
	if _, inner, ok := freshimport.Unwrap(r.Recipe.Command); ok {
		command = " (" + filepath.Base(inner[0]) + ")"
	}
	return fmt.Sprintf("its command%s does not say which %s it runs. Start the interpreter itself, or a script that names it after \"#!\".",
		command, runtime)
}

// Plan implements restart.Planner.
func (p PythonPlanner) Plan(r run.Run, v classify.Verdict) (probe.Plan, bool) {
	if r.Runtime == nil || r.Runtime.Name != freshimport.Name {
		return probe.Plan{}, false
	}
	r, v = current(r, v)
	d := freshimport.Death{Verdict: v, Dir: r.Recipe.Dir, Exists: func(m string) bool { return p.exists(r, m) }}
	if prog, err := Resolve(r.Recipe); err == nil && prog != nil {
		d.Entry = prog.Entry
	}
	rt, modules := r.Runtime, freshimport.Modules(d)
	return freshimport.Plan(freshimport.Setting{
		Runtime: freshimport.Runtime{Interpreter: rt.Interpreter, Args: rt.Args, Path: p.reach(r, modules)},
		Env:     r.Recipe.Env, Roots: rootsOf(r), Workspaces: r.Workspaces, Real: real,
	}, modules)
}

// exists reports whether the current tree has a module: in a folder of a root, or on the run's search path. What ends
// up in none of them (a module of the interpreter's own packages, say) is for the probe to find.
func (p PythonPlanner) exists(r run.Run, module string) bool {
	if strings.Contains(module, "/") {
		_, err := os.Stat(module)
		return err == nil
	}
	return p.in(append(places(r, module), r.Runtime.Path...), module)
}

// reach is the run's search path, and behind it the folders of the roots that have modules which it does not lead to: the
// stack shows that the run had them. Its program put the folder there, as servers and task runners do with the working
// folder, or the tree is installed in development mode; neither stands on a command line.
func (p PythonPlanner) reach(r run.Run, modules []string) []string {
	path := slices.Clone(r.Runtime.Path)
	for _, m := range modules {
		m, _ = freshimport.IsMain(m)
		if strings.Contains(m, "/") || p.in(path, m) {
			continue
		}
		for _, d := range places(r, m) {
			// The interpreter's own packages come behind its library, where it finds them itself.
			if own := filepath.Base(d); own != "site-packages" && own != "dist-packages" && p.in([]string{d}, m) {
				path = append(path, d)
				break
			}
		}
	}
	return path
}

// places are the folders of the roots that a search path may name to lead to a module: where a checkout has its code, and
// what lies above a root that is itself the package.
func places(r run.Run, module string) (dirs []string) {
	top, _, _ := strings.Cut(module, ".")
	for _, root := range r.Roots {
		for _, d := range root.Dirs {
			dirs = append(dirs, d, filepath.Join(d, "src"), filepath.Join(d, "lib"))
			if filepath.Base(d) == top {
				dirs = append(dirs, filepath.Dir(d))
			}
		}
	}
	return dirs
}

// in reports whether one of the folders has a module.
func (p PythonPlanner) in(dirs []string, module string) bool {
	for _, f := range p.Modules.Files(module) {
		for _, d := range dirs {
			if _, err := os.Stat(filepath.Join(d, f)); err == nil {
				return true
			}
		}
	}
	return native(dirs, module)
}

// native finds an extension module, whose file carries the interpreter's tag.
func native(dirs []string, module string) bool {
	for _, d := range dirs {
		found, err := filepath.Glob(filepath.Join(d, strings.ReplaceAll(module, ".", "/")) + ".*.so")
		if err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

func real(dir string) string {
	if r, err := filepath.EvalSymlinks(dir); err == nil {
		return r
	}
	return dir
}
