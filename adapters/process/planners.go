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
	r, v = current(r, v)
	d := freshimport.Death{Verdict: v, Dir: r.Recipe.Dir, Exists: func(m string) bool { return unitFile(r, m) != "" }}
	if prog, err := Resolve(r.Recipe); err == nil && prog != nil {
		d.Entry = prog.Entry
	}
	rt, modules := r.Runtime, freshimport.Modules(d)
	return p.Dialect.Plan(freshimport.Setting{
		Runtime: freshimport.Runtime{Interpreter: rt.Interpreter, Args: rt.Args, Path: p.reach(r, v, modules)},
		Env:     r.Recipe.Env, Roots: rootsOf(r), Workspaces: r.Workspaces, Real: real,
	}, p.units(r, modules))
}

// reach is the run's search path, and behind it what no command line says. A program in Ruby puts its folder on the load
// path by itself, one in PHP has an autoloader of its own: the stack shows where the run had its units, and one that was
// asked for by its name that it was looked for there. A JVM's module path has modules in folders of their own, which a
// class path does not look into.
func (p InterpreterPlanner) reach(r run.Run, v classify.Verdict, modules []string) []string {
	path := slices.Clone(r.Runtime.Path)
	var more []string
	switch p.Dialect.Name {
	case freshimport.JVM.Name:
		more = explodedModules(path)
	case freshimport.Ruby.Name, freshimport.PHP.Name:
		if strings.HasPrefix(v.Module, "/") {
			return path // by its file: no search path was asked
		}
		for _, m := range modules {
			if _, main := freshimport.IsMain(m); !main {
				more = append(more, p.above(r, m)...)
			}
		}
	}
	for _, d := range more {
		if !slices.Contains(path, d) {
			path = append(path, d)
		}
	}
	return path
}

// above are the folders of the roots from which a unit may have been found. For Ruby it is the one that holds the folder
// or file named like a module of the root. Which part of a namespace a folder of PHP stands for is not known: then it may
// be any of those between the unit and the root.
func (p InterpreterPlanner) above(r run.Run, unit string) (dirs []string) {
	file := unit
	if !strings.HasPrefix(unit, "/") {
		if file, _ = unitIn(unitDirs(r), unit); file == "" {
			return nil
		}
	}
	s := freshimport.Setting{Roots: rootsOf(r), Workspaces: r.Workspaces}
	for _, root := range r.Roots {
		var names []string
		for _, m := range root.Modules {
			for _, f := range (freshimport.Names{}).Files(m) {
				top, _, _ := strings.Cut(f, "/")
				names = append(names, strings.TrimSuffix(top, ".rb"))
			}
		}
		for at := file; at != "/" && s.Managed(at) && holdsPath(root.Dirs, at); at = filepath.Dir(at) {
			base := strings.TrimSuffix(filepath.Base(at), ".rb")
			switch {
			case p.Dialect.Name == freshimport.PHP.Name && at != file:
				dirs = append(dirs, at)
			case p.Dialect.Name == freshimport.Ruby.Name && slices.Contains(names, base):
				return append(dirs, filepath.Dir(at))
			}
		}
	}
	return dirs
}

// holdsPath reports whether a path is one of the folders or lies in one.
func holdsPath(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return path == d || strings.HasPrefix(path, strings.TrimSuffix(d, "/")+"/") })
}

// explodedModules are the folders with a module each below the folders of modules of a search path.
func explodedModules(path []string) (dirs []string) {
	for _, entry := range path {
		if filepath.Base(entry) != "*" {
			continue
		}
		found, err := filepath.Glob(filepath.Join(filepath.Dir(entry), "*", "module-info.class"))
		if err != nil {
			continue // no folder has such a name
		}
		for _, f := range found {
			dirs = append(dirs, filepath.Dir(f))
		}
	}
	return dirs
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
			m = unitFile(r, m)
			if filepath.Base(m) == "package.json" {
				m = filepath.Dir(m) // a package of Node.js, whose own manifest says what is loaded
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
	r, v = current(r, v)
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
	r, v = current(r, v)
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
	if f, _ := unitIn(dirs, unit); f != "" {
		return f
	}
	for _, d := range dirs {
		// A shared object is often there under its name with a number behind it.
		if found, err := filepath.Glob(filepath.Join(d, unit) + ".[0-9]*"); err == nil && len(found) > 0 && strings.Contains(unit, ".so") {
			return found[0]
		}
	}
	return inArchives(r, freshimport.Names{}.Files(unit))
}

// unitIn is the file of a unit in the first of the folders that has one, and that folder.
func unitIn(dirs []string, unit string) (file, dir string) {
	for _, f := range (freshimport.Names{}).Files(unit) {
		for _, d := range dirs {
			p := filepath.Join(d, f)
			if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
				return p, d
			}
		}
	}
	return "", ""
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
		if r.Runtime.Name == freshimport.JVM.Name {
			dirs = append(dirs, explodedModules(r.Runtime.Path)...)
		}
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
