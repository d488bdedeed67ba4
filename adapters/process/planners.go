package process

import (
	"archive/zip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"github.com/mulligan-dev/mulligan/restart"
)

// InterpreterPlanner makes the probe of one death for an [Interpreter], from the run's boot record and the tree as it is
// now. A run of another runtime has no plan and is refused.
type InterpreterPlanner struct {
	// Dialect is the runtime: freshimport.Node, Ruby, PHP or JVM.
	Dialect freshimport.Dialect
}

var _ interface {
	restart.Planner
	restart.Refuser
} = InterpreterPlanner{}

// Refuses implements restart.Refuser.
func (p InterpreterPlanner) Refuses(r run.Run) string { return unknownInterpreter(r, p.Dialect.Name) }

// Plan implements restart.Planner.
func (p InterpreterPlanner) Plan(r run.Run, v classify.Verdict) (probe.Plan, bool) {
	if r.Runtime == nil || r.Runtime.Name != p.Dialect.Name {
		return probe.Plan{}, false
	}
	d := freshimport.Death{Verdict: v, Dir: r.Recipe.Dir, Exists: func(m string) bool { return unitFile(r, m) != "" }}
	if prog, err := Resolve(r.Recipe); err == nil && prog != nil {
		d.Entry = prog.Entry
	}
	rt := r.Runtime
	return p.Dialect.Plan(freshimport.Setting{
		Runtime: freshimport.Runtime{Interpreter: rt.Interpreter, Args: rt.Args, Path: rt.Path},
		Env:     r.Recipe.Env, Roots: rootsOf(r), Workspaces: r.Workspaces, Real: real,
	}, p.units(r, freshimport.Modules(d)))
}

// units are the names as the interpreter is asked for them: where a name is not one of its own, the file that has it. A
// constant of Ruby is no feature, and a class of PHP that no autoloader knows still has its file. Classes stay classes.
func (p InterpreterPlanner) units(r run.Run, modules []string) []string {
	if p.Dialect.Name == freshimport.JVM.Name {
		return modules
	}
	var out []string
	for _, m := range modules {
		if _, main := freshimport.IsMain(m); !main && !strings.HasPrefix(m, "/") {
			if f := unitFile(r, m); filepath.Base(f) != "package.json" {
				m = f
			}
		}
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// CommandPlanner makes the probe of one death for a [Command]: the files of the managed code on the failing stack that
// are still there, each as an argument of its own.
type CommandPlanner struct {
	// Command is what the host declares, its first word found in the run's PATH. It gets a file of the tree as its last
	// argument, and says with exit status 0 that the file loads.
	Command []string
}

var _ restart.Planner = CommandPlanner{}

// Plan implements restart.Planner.
func (p CommandPlanner) Plan(r run.Run, v classify.Verdict) (probe.Plan, bool) {
	program, ok := commandPath(p.Command, r.Recipe.Dir, r.Recipe.Env)
	files := unitFiles(r, v)
	if !ok || len(files) == 0 {
		return probe.Plan{}, false
	}
	plan := probe.Plan{Interpreter: program, Args: p.Command[1:], Modules: files, Env: r.Recipe.Env}
	for _, d := range unitDirs(r) {
		if filepath.IsAbs(d) {
			plan.Path = append(plan.Path, d)
		}
	}
	return plan, true
}

// ELFPlanner makes the probe of one death for an [ELF] prober: the objects on the failing stack that are still there, in
// the scope of the run's program.
type ELFPlanner struct{}

var _ restart.Planner = ELFPlanner{}

// Plan implements restart.Planner.
func (ELFPlanner) Plan(r run.Run, v classify.Verdict) (probe.Plan, bool) {
	program := ""
	if r.Runtime != nil {
		program = r.Runtime.Interpreter
	} else if found, ok := commandPath(r.Recipe.Command, r.Recipe.Dir, r.Recipe.Env); ok {
		program = found
	}
	var files []string
	for _, f := range unitFiles(r, v) {
		if isELF(f) {
			files = append(files, f)
		}
	}
	if program == "" || len(files) == 0 {
		return probe.Plan{}, false
	}
	list, _ := getenv(r.Recipe.Env, "LD_LIBRARY_PATH")
	s := freshimport.Setting{Runtime: freshimport.Runtime{Interpreter: program}, Roots: rootsOf(r), Workspaces: r.Workspaces, Real: real}
	for _, d := range strings.FieldsFunc(list, func(c rune) bool { return c == ':' || c == ';' }) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(r.Recipe.Dir, d)
		}
		s.Runtime.Path = append(s.Runtime.Path, d)
	}
	return freshimport.Plan(s, files)
}

func rootsOf(r run.Run) []classify.Root {
	roots := make([]classify.Root, len(r.Roots))
	for i, root := range r.Roots {
		roots[i] = root.Root
	}
	return roots
}

// unitFiles are the files of the managed units of a verdict that are there now, each once. Where none is, what asked for
// the one that is gone was the program itself, if that is managed code.
func unitFiles(r run.Run, v classify.Verdict) (out []string) {
	for _, m := range append(slices.Clone(v.ManagedModules), v.Module) {
		if f := unitFile(r, m); f != "" && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	if found, ok := commandPath(r.Recipe.Command, r.Recipe.Dir, r.Recipe.Env); ok && len(out) == 0 && v.Module != "" && owned(r, found) {
		out = append(out, found)
	}
	return out
}

// owned reports whether a file lies in a root, and in no workspace that is nearer.
func owned(r run.Run, file string) bool {
	s := freshimport.Setting{Roots: rootsOf(r), Workspaces: r.Workspaces}
	return s.Managed(file) || s.Managed(real(file))
}

// unitFile is the file of the current tree that has a unit, empty when there is none: the unit itself where it is a path,
// else a file of that name by the conventions of [freshimport.Names], or a class in an archive of the search path.
func unitFile(r run.Run, unit string) string {
	if unit == "" {
		return ""
	}
	if strings.HasPrefix(unit, "/") {
		if st, err := os.Stat(unit); err == nil && !st.IsDir() {
			return unit
		}
		return ""
	}
	dirs := unitDirs(r)
	files := freshimport.Names{}.Files(unit)
	for _, f := range files {
		for _, d := range dirs {
			p := filepath.Join(d, f)
			if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
				return p
			}
		}
	}
	for _, d := range dirs {
		// A shared object is often there under its name with a number behind it.
		if found, err := filepath.Glob(filepath.Join(d, unit) + ".[0-9]*"); err == nil && len(found) > 0 && strings.Contains(unit, ".so") {
			return found[0]
		}
	}
	return inArchives(r, files)
}

// unitDirs are the folders in which a unit may lie: those of the roots, the usual ones in them, and the run's search path.
func unitDirs(r run.Run) (dirs []string) {
	for _, root := range r.Roots {
		for _, d := range root.Dirs {
			dirs = append(dirs, d, filepath.Join(d, "lib"), filepath.Join(d, "src"), filepath.Join(d, "lib64"))
		}
	}
	if r.Runtime != nil {
		dirs = append(dirs, r.Runtime.Path...)
	}
	return dirs
}

// inArchives looks for a class in the archives of the run's class path, and returns the archive.
func inArchives(r run.Run, files []string) string {
	if r.Runtime == nil || r.Runtime.Name != freshimport.JVM.Name {
		return ""
	}
	for _, entry := range r.Runtime.Path {
		archives := []string{entry}
		if filepath.Base(entry) == "*" {
			found, err := filepath.Glob(entry + ".jar")
			if err != nil {
				continue
			}
			archives = found
		}
		for _, a := range archives {
			z, err := zip.OpenReader(a)
			if err != nil {
				continue // a folder, or an archive that is torn: then the probe of what asked for it says so
			}
			has := slices.ContainsFunc(z.File, func(f *zip.File) bool { return slices.Contains(files, f.Name) })
			z.Close()
			if has {
				return a
			}
		}
	}
	return ""
}

// isELF reports whether a file begins as a native object does, or is too short to tell: that is torn, and a probe says so.
func isELF(file string) bool {
	head, err := readHead(file)
	return err == nil && (len(head) < 4 || string(head[:4]) == "\x7fELF")
}
