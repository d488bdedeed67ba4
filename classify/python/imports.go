package python

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// statement is an import statement as a traceback prints it: "from ..wire import frame, Reply as R".
type statement struct {
	level  int    // leading dots
	module string // behind the dots
	names  []string
	from   bool
}

// importStatement reads the import in a line of source. The line may go on where it is not printed.
func importStatement(source string) (statement, bool) {
	// A traceback prints the first physical line of a statement: an open parenthesis and a comment are as usual as a
	// semicolon.
	s := strings.TrimSpace(source)
	if at := strings.IndexByte(s, '#'); at >= 0 {
		s = strings.TrimSpace(s[:at])
	}
	// "setup(); from y import z"
	if at := strings.LastIndex(s, "; "); at > 0 && (strings.HasPrefix(s[at:], "; import ") || strings.HasPrefix(s[at:], "; from ")) {
		s = strings.TrimSpace(s[at+1:])
	}
	// "try: import x", "if x: from y import z"
	if at := strings.LastIndex(s, ": "); at > 0 && (strings.Contains(s[at:], " import ") || strings.HasPrefix(s[at:], ": import ")) {
		s = strings.TrimSpace(s[at+1:])
	}
	switch {
	case strings.HasPrefix(s, "from "):
		target, names, ok := strings.Cut(s[5:], " import")
		if !ok {
			return statement{}, false
		}
		target = strings.TrimSpace(target)
		st := statement{from: true}
		st.module = strings.TrimLeft(target, ".")
		st.level = len(target) - len(st.module)
		if st.module != "" && !dotted(st.module) {
			return statement{}, false
		}
		for n := range strings.SplitSeq(strings.Trim(names, " ()\\"), ",") {
			if f := strings.Fields(n); len(f) > 0 {
				st.names = append(st.names, f[0])
			}
		}
		return st, st.module != "" || st.level > 0
	case strings.HasPrefix(s, "import "):
		first, _, _ := strings.Cut(s[7:], ",")
		first, _, _ = strings.Cut(strings.TrimSpace(first), ";")
		f := strings.Fields(first)
		if len(f) == 0 || !dotted(f[0]) {
			return statement{}, false
		}
		return statement{module: f[0]}, true
	}
	return statement{}, false
}

// dynamicImport finds the literal name that a line hands to import_module or __import__.
func dynamicImport(source string) string {
	for _, call := range [...]string{"import_module(", "__import__("} {
		at := strings.Index(source, call)
		if at < 0 {
			continue
		}
		arg := source[at+len(call):]
		if len(arg) > 1 && (arg[0] == '\'' || arg[0] == '"') {
			if end := strings.IndexByte(arg[1:], arg[0]); end > 0 && dotted(arg[1:1+end]) {
				return arg[1 : 1+end]
			}
		}
	}
	return ""
}

// asker is the innermost frame that is neither the interpreter's nor frozen.
func asker(f *classify.Failure) *classify.Frame {
	for i := len(f.Frames) - 1; i >= 0; i-- {
		if f.Frames[i].Origin != classify.OriginRuntime {
			return &f.Frames[i]
		}
	}
	return nil
}

// sourceTarget names what the asker's import statement loads, for failures whose message does not: as a module where the
// statement is absolute, as a place where it is relative. inside asks for the imported submodule and not for the package.
func sourceTarget(f *classify.Failure, inside bool) (module, place string) {
	fr := asker(f)
	if fr == nil || fr.Source == "" {
		return "", ""
	}
	st, ok := importStatement(fr.Source)
	if !ok {
		return dynamicImport(fr.Source), ""
	}
	// "from pkg import part": the package is long loaded where the asker itself lives in it.
	if st.level == 0 {
		if inside && st.from && len(st.names) == 1 && identifier(st.names[0]) && loaded(f, st.module) {
			return st.module + "." + st.names[0], ""
		}
		return st.module, ""
	}
	// A relative import is resolved as a path. The package's dotted name depends on the roots, which are not known here.
	folder := strings.ReplaceAll(fr.File, `\`, "/")
	for range st.level {
		at := strings.LastIndexByte(folder, '/')
		if at < 0 {
			return "", ""
		}
		folder = folder[:at]
	}
	if st.module != "" {
		return "", folder + "/" + strings.ReplaceAll(st.module, ".", "/")
	}
	if inside && len(st.names) == 1 && identifier(st.names[0]) {
		return "", folder + "/" + st.names[0]
	}
	return "", folder + "/__init__"
}

// loaded reports whether a package has begun to load before the failure: a frame lies in its folder.
func loaded(f *classify.Failure, module string) bool {
	folder := "/" + strings.ReplaceAll(module, ".", "/") + "/"
	for i := range f.Frames {
		if strings.Contains(strings.ReplaceAll(f.Frames[i].File, `\`, "/"), folder) {
			return true
		}
	}
	return false
}
