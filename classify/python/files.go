package python

import "strings"

// The endings of files that hold a module, source first. A tag between name and ending ("lane.cpython-311-darwin.so")
// belongs to a native module.
var endings = []string{".py", ".pyc", ".pyo", ".pyw", ".pyx", ".so", ".pyd", ".dylib", ".pyz", ".zip"}

// natives are the endings that [Files] offers for native modules. The interpreter's tag is not known here, so a caller
// that lists a folder should compare with [Module] instead.
var natives = []string{".so", ".abi3.so", ".pyd"}

// Files are the paths, relative to a search folder, at which the module of a dotted name may live, the likeliest first.
// An empty or malformed name has none.
func Files(module string) []string {
	if module == "" || !dotted(module) {
		return nil
	}
	stem := strings.ReplaceAll(module, ".", "/")
	files := []string{stem + ".py", stem + "/__init__.py"}
	for _, n := range natives {
		files = append(files, stem+n)
	}
	return append(files, stem+".pyc", stem+"/__init__.pyc")
}

// Module is the dotted name of the module in a file, given its path relative to a search folder; empty if the path can
// be no module. Both slashes separate, bytecode in __pycache__ is its source's module, and a path without an ending
// stands for a module of that stem.
func Module(path string) string {
	path = strings.Trim(strings.ReplaceAll(path, `\`, "/"), "/")
	// The ending says what kind of file it is. Nothing else may follow the name but the tag of a native module.
	folder, base := "", path
	if at := strings.LastIndexByte(path, '/'); at >= 0 {
		folder, base = path[:at], path[at+1:]
	}
	stem := base
	for _, e := range endings {
		if strings.HasSuffix(base, e) {
			stem = strings.TrimSuffix(base, e)
			break
		}
	}
	if at := strings.IndexByte(stem, '.'); at > 0 {
		tag := stem[at+1:]
		if !strings.HasPrefix(tag, "cpython-") && !strings.HasPrefix(tag, "pypy") && !strings.HasPrefix(tag, "cp3") && tag != "abi3" {
			return ""
		}
		stem = stem[:at]
	}
	if folder == "__pycache__" || strings.HasSuffix(folder, "/__pycache__") {
		folder = strings.TrimSuffix(strings.TrimSuffix(folder, "__pycache__"), "/")
	}
	if stem == "__init__" {
		stem, folder = folder, ""
	}
	name := stem
	if folder != "" {
		name = folder + "/" + stem
	}
	name = strings.ReplaceAll(name, "/", ".")
	if name == "" || !dotted(name) {
		return ""
	}
	return name
}

// dotted reports whether s is identifiers joined by dots.
func dotted(s string) bool {
	fresh := true
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.':
			if fresh {
				return false
			}
			fresh = true
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
			fresh = false
		case c >= '0' && c <= '9':
			if fresh {
				return false
			}
		default:
			return false
		}
	}
	return !fresh && s != ""
}

// identifier reports a single name.
func identifier(s string) bool { return s != "" && !strings.Contains(s, ".") && dotted(s) }
