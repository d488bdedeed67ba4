package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/witness"
)

// rootUsage is the syntax of --root, as help and errors show it.
const rootUsage = "NAME=DIR[,kind=git|pypackage|folder|npm|gem|jar|image|binary][,modules=A+B][,bindings=A+B][,runtime=python|node|ruby|php|jvm|elf|command][,package=P][,third_party]"

// declaredRoots are the roots of the flags, or those of the config when there is no flag.
func (s *shared) declaredRoots(flags []string, c config.Config) ([]witness.Root, error) {
	if len(flags) == 0 {
		return c.Roots, nil
	}
	var out []witness.Root
	for _, f := range flags {
		r, err := s.parseRoot(f)
		if err != nil {
			return nil, usage("--root %s: %w (the syntax is %s)", f, err, rootUsage)
		}
		if slices.ContainsFunc(out, func(o witness.Root) bool { return o.Name == r.Name }) {
			return nil, usage("--root %s: the name %q is taken by another root", f, r.Name)
		}
		out = append(out, r)
	}
	return out, nil
}

// parseRoot reads one --root. What it leaves out is found on disk, now: the kind as config.DetectKind does, the
// modules by what a Python interpreter would import from it.
func (s *shared) parseRoot(flag string) (witness.Root, error) {
	name, rest, ok := strings.Cut(flag, "=")
	if !ok || name == "" {
		return witness.Root{}, fmt.Errorf("it does not begin with NAME=DIR")
	}
	parts := strings.Split(rest, ",")
	base, err := s.env.dir()
	if err != nil {
		return witness.Root{}, err
	}
	dir, err := config.Folder(base, parts[0])
	if err != nil {
		return witness.Root{}, err
	}
	if dir == "/" {
		return witness.Root{}, fmt.Errorf("%q is the whole file system, want a folder below it", parts[0])
	}
	r := witness.Root{Root: classify.Root{Name: name, Dirs: []string{dir}}, Declared: config.Declared(base, parts[:1], []string{dir})}
	for _, p := range parts[1:] {
		if err := setRoot(&r, p, s.env.Config); err != nil {
			return r, err
		}
	}
	if r.Kind == "" {
		r.Kind = config.DetectKind(dir, r.Package)
	}
	switch want := config.NeedsPackage(r.Kind); {
	case want != "" && r.Package == "":
		return r, fmt.Errorf("a root of kind %s needs package=P, %s", r.Kind, want)
	case r.Package != "" && !config.TakesPackage(r.Kind):
		return r, fmt.Errorf("a root of kind %s has no package, only one of the kinds %s", r.Kind, config.PackageKinds())
	}
	if len(r.Modules) == 0 && len(r.Bindings) == 0 {
		if r.Modules = pythonModules(dir); len(r.Modules) == 0 {
			return r, fmt.Errorf("%s holds no Python module: say with modules=A+B which modules are the host's own", dir)
		}
	}
	return r, nil
}

// setRoot reads one part behind the folder. Every key is checked, and a value that nobody knows is an error: a kind or a
// runtime that is misspelt would otherwise show only when a run is not put back.
func setRoot(r *witness.Root, part string, o config.Options) error {
	key, value, has := strings.Cut(part, "=")
	if key == "third_party" && !has {
		r.ThirdParty = true
		return nil
	}
	if !has || value == "" {
		return fmt.Errorf("%q has no value", part)
	}
	switch key {
	case "kind":
		kinds := append(config.Kinds(), o.Kinds...)
		if !slices.Contains(kinds, value) {
			return fmt.Errorf("kind %q is not known: use one of %s", value, strings.Join(kinds, ", "))
		}
		r.Kind = value
	case "modules":
		r.Modules = names(value)
	case "bindings":
		r.Bindings = names(value)
	case "runtime":
		runtimes := append(config.Runtimes(), o.Runtimes...)
		if !slices.Contains(runtimes, value) {
			return fmt.Errorf("runtime %q is not known: use one of %s", value, strings.Join(runtimes, ", "))
		}
		r.Runtime = value
	case "package":
		r.Package = value
	default:
		return fmt.Errorf("%q is not known", key)
	}
	return nil
}

// names splits A+B; a comma ends the part already.
func names(list string) []string {
	return slices.DeleteFunc(strings.Split(list, "+"), func(s string) bool { return s == "" })
}

// pythonModules are the top-level modules that a folder offers: packages and single files, of the folder itself and of
// a src folder in it. Where the folder is a package, it is that package.
func pythonModules(dir string) []string {
	if isFile(filepath.Join(dir, "__init__.py")) {
		return []string{filepath.Base(dir)}
	}
	var out []string
	for _, d := range []string{dir, filepath.Join(dir, "src")} {
		entries, err := os.ReadDir(d)
		if err != nil {
			continue // no src folder; that dir itself is there was seen before
		}
		for _, e := range entries {
			if m, ok := moduleName(d, e); ok && !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	slices.Sort(out)
	return out
}

func moduleName(dir string, e fs.DirEntry) (string, bool) {
	name := e.Name()
	if e.IsDir() {
		return name, isFile(filepath.Join(dir, name, "__init__.py"))
	}
	m, ok := strings.CutSuffix(name, ".py")
	// A dot or a dash in the name makes a script, not a module; setup.py and conftest.py belong to tools.
	return m, ok && !strings.ContainsAny(m, ".-") && m != "setup" && m != "conftest"
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// workspaces are the folders of --workspace, or those of the config when there is no flag. A folder that is not there
// yet is taken as it is.
func (s *shared) workspaces(flags []string, c config.Config) ([]string, error) {
	if len(flags) == 0 {
		return c.Workspaces, nil
	}
	var out []string
	for _, f := range flags {
		abs, err := s.env.path(f)
		if err != nil {
			return nil, err
		}
		if dir, err := filepath.EvalSymlinks(abs); err == nil {
			abs = dir
		}
		out = append(out, abs)
	}
	return out, nil
}
