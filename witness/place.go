package witness

import (
	"path"
	"strings"

	"github.com/mulligan-dev/mulligan/witness/journal"
)

// SameTree reports whether a journal row's root is this root, or a tree around or inside it: the kinds are equal and
// the folders equal or nested; for packages the distribution as well. A name alone says nothing, because every host
// names its roots itself.
func (r Root) SameTree(j journal.Root) bool {
	if r.Kind != j.Kind {
		return false
	}
	// A release that was switched in between has another folder and the same declared path.
	mine, other := everywhere(r.Dirs, r.Declared), everywhere(j.Dirs, j.Declared)
	if r.Package != "" || j.Package != "" {
		if normalPackage(r.Package) != normalPackage(j.Package) {
			return false
		}
		// The same distribution in another environment is another tree; without folders the package is all there is.
		return len(r.Dirs) == 0 || len(j.Dirs) == 0 || nested(mine, other)
	}
	return nested(mine, other)
}

// nested reports that a folder of one list is, contains or lies in a folder of the other.
func nested(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if inside(x, y) || inside(y, x) {
				return true
			}
		}
	}
	return false
}

// inside reports that file is dir or lies below it, in whole components.
func inside(file, dir string) bool {
	file, dir = slashed(file), slashed(dir)
	if file == dir {
		return true
	}
	if dir != "/" {
		dir += "/"
	}
	return strings.HasPrefix(file, dir)
}

// slashed is a path with one kind of slash and nothing superfluous. Paths of another system are compared as they were
// printed: the host that declared the root printed them too.
func slashed(p string) string { return path.Clean(strings.ReplaceAll(p, `\`, "/")) }

// normalPackage is a distribution name as package indexes compare it: case and the kind of separator do not count.
func normalPackage(name string) string {
	var b strings.Builder
	sep := false
	for _, c := range strings.ToLower(name) {
		if c == '-' || c == '_' || c == '.' {
			sep = true
			continue
		}
		if sep && b.Len() > 0 {
			b.WriteByte('-')
		}
		sep = false
		b.WriteRune(c)
	}
	return b.String()
}

// within is an absolute path as a path relative to the root's first folder, when it lies in one of the root's folders.
func (r Root) within(abs string) (string, bool) {
	abs = slashed(abs)
	for _, d := range r.Dirs {
		if inside(abs, d) {
			return relative(slashed(r.Dirs[0]), abs), true
		}
	}
	return "", false
}

// relative is the slash path that leads from one absolute folder to an absolute path.
func relative(from, to string) string {
	if from == to {
		return "."
	}
	f, t := split(from), split(to)
	n := 0
	for n < len(f) && n < len(t) && f[n] == t[n] {
		n++
	}
	up := strings.Repeat("../", len(f)-n)
	return strings.TrimSuffix(up+strings.Join(t[n:], "/"), "/")
}

// split is a path in components, none for the top.
func split(p string) []string {
	p = strings.Trim(p, "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

// moduleFiles are the paths inside the root at which a module can live, relative to its first folder. Where the failing
// stack shows from which folder the root's modules are imported, that folder is used; else the root's folders, the
// usual source folders in them, and, where a folder is itself the package, the folder above.
func (q *Request) moduleFiles(r Root, m Modules, module string) []string {
	if len(r.Dirs) == 0 || module == "" {
		return nil
	}
	candidates := m.Files(module)
	bases := q.shownBases(r, m, module)
	if _, ok := r.within(module); ok {
		bases = []string{"/"} // the unit is named by its path, so no search path is in between
	}
	if len(bases) == 0 {
		bases = r.usualBases(candidates)
	}
	var out []string
	seen := map[string]bool{}
	for _, b := range bases {
		for _, c := range candidates {
			rel, ok := r.within(path.Join(b, c))
			if !ok || rel == "." || seen[rel] {
				continue
			}
			seen[rel] = true
			out = append(out, rel)
		}
	}
	return out
}

// usualBases are the search path entries that a root's folders suggest. A candidate below one that is not inside the
// root is dropped by the caller.
func (r Root) usualBases(candidates []string) []string {
	depth := 0
	for _, c := range candidates {
		depth = max(depth, strings.Count(c, "/"))
	}
	var out []string
	for _, d := range r.Dirs {
		d = slashed(d)
		out = append(out, d, d+"/src", d+"/lib")
		// The folder may be the package itself, or one inside it.
		for up, i := path.Dir(d), 0; i < depth; up, i = path.Dir(up), i+1 {
			out = append(out, up)
		}
	}
	return out
}

// shownBases are the search path entries that the frames of the root prove, for modules of the same top-level package.
func (q *Request) shownBases(r Root, m Modules, module string) []string {
	var out []string
	seen := map[string]bool{}
	for _, f := range q.Verdict.Frames {
		if f.Root != r.Name || f.Module == "" || top(f.Module) != top(module) {
			continue
		}
		file := slashed(f.File)
		if _, ok := r.within(file); !ok {
			continue // printed through a link, or from another copy: it proves nothing here
		}
		for _, c := range m.Files(f.Module) {
			base, ok := strings.CutSuffix(file, "/"+c)
			if ok && base != "" && !seen[base] {
				seen[base] = true
				out = append(out, base)
			}
		}
	}
	return out
}

// top is the first component of a module name, whatever its runtime separates components with.
func top(module string) string {
	if i := strings.IndexAny(module, `.:/\`); i > 0 {
		return module[:i]
	}
	return module
}
