package classify

import "strings"

// holder says whose code something is.
type holder uint8

const (
	nobody    holder = iota // no folder and no pattern claims it
	managed                 // the host's own
	workspace               // user code
	packaged                // third party
	runtime                 // the runtime's own, transparent
	launcher                // a script that starts the program
)

// scope answers ownership questions for one input. It keeps the declared folders cleaned, so that a comparison is one
// prefix test.
type scope struct {
	roots  []Root
	dirs   []dir
	module func(path string) string
	place  func(path string, inside int) (unit, pkg string) // nil where units have names of their own
	// tells is set where paths inside of a root tell units from data, see [UnitTeller].
	tells UnitTeller
	// pack is set where units are named by their paths, see [PathUnits].
	pack func(path string) string
}

// dir is one declared folder.
type dir struct {
	path string
	root int // index of the root, -1 for a workspace
}

// newScope cleans the declared folders once for all questions about one input. Folders that come out empty are left out:
// they would own everything.
func newScope(in Input, rt Runtime) *scope {
	s := &scope{roots: in.Roots}
	s.read(rt)
	for i, r := range in.Roots {
		for _, d := range r.Dirs {
			if c := cleanPath(d); c != "" {
				s.dirs = append(s.dirs, dir{c, i})
			}
		}
	}
	for _, w := range in.Workspaces {
		if c := cleanPath(w); c != "" {
			s.dirs = append(s.dirs, dir{c, -1})
		}
	}
	return s
}

// read makes the scope name files as a runtime does. Without one no file has a name.
func (s *scope) read(rt Runtime) {
	s.module, s.place, s.pack, s.tells = func(string) string { return "" }, nil, nil, nil
	if rt == nil {
		return
	}
	s.module = rt.Module
	if p, ok := rt.(Placer); ok {
		s.place = p.Place
	}
	if p, ok := rt.(PathUnits); ok {
		s.pack = p.Package
	}
	s.tells, _ = rt.(UnitTeller)
}

// cleanPath gives a path forward slashes, no trailing and no double ones, and resolves "." and "..". Windows paths
// are compared in lower case. An empty result is no folder: "/" alone would own everything.
func cleanPath(p string) string {
	p = strings.TrimPrefix(p, `\\?\`)
	windows := len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') || strings.HasPrefix(p, `\\`)
	if windows {
		p = strings.ToLower(strings.ReplaceAll(p, `\`, "/"))
	}
	if !strings.Contains(p, "//") && !strings.Contains(p, "/.") && !strings.HasSuffix(p, "/") {
		return p
	}
	var parts []string
	for part := range strings.SplitSeq(p, "/") {
		switch part {
		case "", ".":
		case "..":
			if len(parts) > 0 && parts[len(parts)-1] != ".." {
				parts = parts[:len(parts)-1]
			} else if !strings.HasPrefix(p, "/") {
				parts = append(parts, part)
			}
		default:
			parts = append(parts, part)
		}
	}
	clean := strings.Join(parts, "/")
	if strings.HasPrefix(p, "/") && clean != "" {
		clean = "/" + clean
	}
	return clean
}

// absolute reports whether a cleaned path starts at a root of the file system.
func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && p[2] == '/'
}

// within reports whether path is d or lies below it, in whole components.
func within(path, d string) bool {
	return strings.HasPrefix(path, d) && (len(path) == len(d) || path[len(d)] == '/')
}

// claim finds the folder that owns a path: the longest, and at equal length the workspace.
func (s *scope) claim(path string) (dir, bool) {
	best, found := dir{}, false
	for _, d := range s.dirs {
		if within(path, d.path) && (!found || len(d.path) > len(best.path) || len(d.path) == len(best.path) && d.root < 0) {
			best, found = d, true
		}
	}
	return best, found
}

// file says whose a file is, and if it is managed which module of which root it holds.
func (s *scope) file(path string) (h holder, module string, root int) {
	h, module, root = s.filePlain(path)
	if h == nobody {
		// An ASCII locale prints other bytes as escapes.
		if un := unescape(path); un != path {
			return s.filePlain(un)
		}
	}
	return h, module, root
}

// filePlain answers for a path as it is printed.
func (s *scope) filePlain(path string) (holder, string, int) {
	p := cleanPath(path)
	if !absolute(p) {
		if s.pack != nil {
			return nobody, "", -1 // scripts print what they were called by, and every folder may hold a file of that name
		}
		// Frozen and compiled code prints paths that start at the package.
		if m := s.module(p); m != "" {
			if r, _ := s.pattern(m); r >= 0 {
				return managed, m, r
			}
		}
		return nobody, "", -1
	}
	d, ok := s.claim(p)
	if !ok {
		return nobody, "", -1
	}
	if d.root < 0 {
		return workspace, "", -1
	}
	if s.pack != nil {
		if pkg := s.pack(strings.TrimPrefix(p[len(d.path):], "/")); pkg != "" && !owns(s.roots[d.root].Modules, pkg) {
			return packaged, "", -1
		}
		if p[1] == ':' {
			p = path
		}
		return managed, p, d.root
	}
	if windows := p[1] == ':'; windows { // module names keep their case
		p = strings.ReplaceAll(path, `\`, "/")
		p = p[max(0, len(p)-len(cleanPath(path))):]
	}
	if s.place != nil {
		unit, pkg := s.place(p, len(d.path))
		if unit == "" || pkg != "" && !owns(s.roots[d.root].Modules, pkg) {
			return nobody, "", -1
		}
		if strings.Contains(path, `\`) {
			unit = strings.ReplaceAll(unit, "/", `\`)
		}
		return managed, unit, d.root
	}
	if m := s.moduleAt(p, len(d.path), s.roots[d.root].Modules); m != "" {
		return managed, m, d.root
	}
	return nobody, "", -1
}

// moduleAt names the module of a file: the path behind the root's folder or behind any folder deeper down, and where
// the root's folder is itself a package, further up.
func (s *scope) moduleAt(p string, behind int, patterns []string) string {
	// Below the root every folder may be one that the runtime searches: "src", "lib", a zip file, a release. The first
	// that makes the name a managed one is it.
	for at := behind; at >= 0 && at < len(p); {
		if m := s.module(strings.TrimPrefix(p[at:], "/")); m != "" && owns(patterns, m) {
			return m
		}
		next := strings.IndexByte(p[at+1:], '/')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	// Or the root was declared as the package itself, and its name lies above the root's end.
	for at := strings.LastIndexByte(p[:behind], '/'); at >= 0; at = strings.LastIndexByte(p[:at], '/') {
		m := s.module(p[at+1:])
		for _, pattern := range patterns {
			// Only what the pattern itself names may lie above: the root is that package, or below it.
			if m != "" && strings.Count(p[at+1:behind], "/") <= components(pattern) && owns([]string{pattern}, m) {
				return m
			}
		}
	}
	return ""
}

// components counts the separators in a module name.
func components(module string) int {
	n := 0
	for i := range len(module) {
		if separator(module[i]) {
			n++
		}
	}
	return n
}

// owns reports whether a module equals one of the patterns or lies below it.
func owns(patterns []string, module string) bool {
	for _, p := range patterns {
		if p != "" && strings.HasPrefix(module, p) && (len(module) == len(p) || separator(module[len(p)])) {
			return true
		}
	}
	return false
}

// separator reports whether c ends a component of a module name in any of the runtimes.
func separator(c byte) bool {
	return c == '.' || c == '/' || c == ':' || c == '\\' || c == '#' || c == '$'
}

// pattern finds the root whose patterns own a module. more says that another root owns it as well.
func (s *scope) pattern(module string) (root int, more bool) {
	root = -1
	for i, r := range s.roots {
		if owns(r.Modules, module) {
			if root >= 0 {
				return root, true
			}
			root = i
		}
	}
	return root, false
}

// binding finds the declared binding that a name or a path of a native object stands for.
func (s *scope) binding(name string) (string, int) {
	if name == "" {
		return "", -1
	}
	for i, r := range s.roots {
		for _, b := range r.Bindings {
			if b == name || bindingStem(name) == bindingStem(b) {
				return b, i
			}
		}
	}
	// A dotted binding may be printed as a path or by its last part.
	for i, r := range s.roots {
		for _, b := range r.Bindings {
			if at := strings.LastIndexByte(b, '.'); at > 0 && !strings.HasSuffix(b, ".so") && strings.ContainsAny(name, `/\`) {
				path := strings.ReplaceAll(b, ".", "/")
				dirs := strings.ReplaceAll(strings.TrimSuffix(name, baseName(name)), `\`, "/")
				if strings.HasSuffix(dirs+bindingStem(name), "/"+path) {
					return b, i
				}
			}
		}
	}
	return "", -1
}

// bindingStem is the name of a native object without folder, extension, build tag and soname number.
func bindingStem(name string) string {
	name = baseName(name)
	for _, mark := range [...]string{".cpython-", ".pypy", ".abi3.", ".cp3", ".cp2", ".so", ".dylib", ".pyd", ".dll", ".node", ".bundle", ".jnilib"} {
		if i := strings.Index(name, mark); i > 0 {
			name = name[:i]
		}
	}
	// "libcore.2.dylib" carries the number before its ending.
	for {
		at := strings.LastIndexByte(name, '.')
		if at <= 0 || strings.Trim(name[at+1:], "0123456789") != "" {
			return name
		}
		name = name[:at]
	}
}

// baseName is the last component of a path with either slash.
func baseName(p string) string {
	return p[strings.LastIndexAny(p, `/\`)+1:]
}

// unescape undoes the escapes that Python prints for what its locale cannot: "\udcc3" for a stray byte, "\xfc" and
// "\u20ac" for characters.
func unescape(p string) string {
	if !strings.Contains(p, `\u`) && !strings.Contains(p, `\x`) {
		return p
	}
	var b strings.Builder
	for i := 0; i < len(p); {
		if p[i] == '\\' && i+1 < len(p) {
			width := 0
			switch p[i+1] {
			case 'x':
				width = 2
			case 'u':
				width = 4
			case 'U':
				width = 8
			}
			if v, ok := hex(p, i+2, width); ok {
				if v >= 0xdc80 && v <= 0xdcff {
					b.WriteByte(byte(v - 0xdc00))
				} else {
					b.WriteRune(rune(v))
				}
				i += 2 + width
				continue
			}
		}
		b.WriteByte(p[i])
		i++
	}
	return b.String()
}

// hex reads width hexadecimal digits of s.
func hex(s string, at, width int) (int, bool) {
	if width == 0 || at+width > len(s) {
		return 0, false
	}
	v := 0
	for _, c := range []byte(s[at : at+width]) {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | int(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | int(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
