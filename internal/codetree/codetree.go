// Package codetree is what the sources of witness share about files on disk: which of them are code of a root, what a
// file held, when it last changed, and what a declared native library looks like.
//
// Call [NewMatcher] for the first question and [Digest], [ChangeTime] and [Bindings] for the others. A source that knows
// only what the disk holds now is [Observe] around its own reading, mostly of a [Content]. Nothing here
// follows a symbolic link out of a tree or writes anything; a file that cannot be read is an error, except that a
// missing binding is a fact of its own.
package codetree

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/witness"
)

// suffixes are the names of files that a runtime loads as code. A log, a cache or a data file beside them is none.
var suffixes = map[string]bool{
	".py": true, ".pyw": true, ".pyx": true, ".pyd": true, ".so": true, ".dylib": true, ".dll": true, ".pth": true,
	".js": true, ".mjs": true, ".cjs": true, ".ts": true, ".mts": true, ".cts": true, ".jsx": true, ".tsx": true, ".node": true, ".wasm": true,
	".rb": true, ".pl": true, ".pm": true, ".php": true, ".phar": true, ".lua": true, ".tcl": true, ".tm": true, ".sh": true, ".bash": true,
	".ex": true, ".exs": true, ".erl": true, ".hrl": true, ".beam": true, ".app": true,
	".java": true, ".class": true, ".jar": true, ".war": true, ".kt": true, ".kts": true, ".scala": true, ".groovy": true, ".clj": true,
	".go": true, ".rs": true, ".c": true, ".h": true, ".cc": true, ".cpp": true, ".hpp": true, ".cs": true, ".fs": true, ".vb": true,
	".proto": true, ".graphql": true, ".sql": true,
}

// IsCode reports whether a file name is that of code. A versioned shared library (libacme.so.1.2) is.
func IsCode(name string) bool {
	base := path.Base(name)
	return suffixes[strings.ToLower(path.Ext(base))] || strings.Contains(base, ".so.")
}

// unitsAreFiles are the runtimes of roots in which the name of a module does not say where it lies.
var unitsAreFiles = map[string]bool{"node": true, "ruby": true, "php": true, "command": true, "elf": true}

// installed are folders of packages of others.
var installed = map[string]bool{"node_modules": true, "vendor": true, "site-packages": true}

// Matcher tells the files of a root's modules from others beside them.
type Matcher struct {
	any      bool       // the root names no module: all code is its own
	archives bool       // archives count, whatever they are called
	files    bool       // the runtime's units are files: all code is its own but what was installed into the root
	patterns [][]string // components of module names
}

// NewMatcher reads the module patterns of a root. dir is the folder that paths will be relative to. Where that folder
// is itself a module (its path ends in the pattern, and it does not hold a folder of that name, as it would if it
// were the checkout), everything below it belongs to the module.
//
// Where a module lies is told by its name in Python and on a JVM. In other runtimes a root's patterns name packages and
// namespaces that no folder has to be called after, and whatever file of the root is on a failing stack is its own: so is
// its code here, except for packages that were installed into it. What an archive of a JVM holds its name does not say.
func NewMatcher(r witness.Root, dir string, exists func(path string) bool) *Matcher {
	m := &Matcher{any: len(r.Modules) == 0, files: unitsAreFiles[r.Runtime], archives: r.Runtime == "jvm"}
	for _, module := range r.Modules {
		parts := components(module)
		if len(parts) == 0 {
			continue
		}
		m.patterns = append(m.patterns, parts)
		if rest, ok := below(dir, parts); ok && !holds(dir, parts, exists) {
			if len(rest) == 0 {
				m.any = true
			} else {
				m.patterns = append(m.patterns, rest)
			}
		}
	}
	return m
}

// Match reports whether a path, with slashes and relative to the matcher's folder, is code of the root's modules.
func (m *Matcher) Match(rel string) bool {
	if !IsCode(rel) {
		return false
	}
	if m.any {
		return true
	}
	if ext := path.Ext(rel); m.archives && (ext == ".jar" || ext == ".war") {
		return true
	}
	parts := strings.Split(rel, "/")
	if m.files && !slices.ContainsFunc(parts, func(s string) bool { return installed[s] }) {
		return true
	}
	// The last component may be the module's own file: acme.py, acme.cpython-312-x86_64-linux-gnu.so.
	base := parts[len(parts)-1]
	stem, _, _ := strings.Cut(base, ".")
	for _, p := range m.patterns {
		for at := 0; at+len(p) <= len(parts); at++ {
			if matchAt(parts, at, p, stem) {
				return true
			}
		}
	}
	return false
}

func matchAt(parts []string, at int, pattern []string, stem string) bool {
	for i, want := range pattern {
		have := parts[at+i]
		if at+i == len(parts)-1 {
			have = stem
		}
		if have != want {
			return false
		}
	}
	return true
}

// components splits a module name by the separators of all runtimes: acme.wire, Acme::Wire, @acme/wire.
func components(module string) []string {
	return strings.FieldsFunc(module, func(c rune) bool { return c == '.' || c == ':' || c == '/' || c == '\\' })
}

// below reports that the folder lies on the pattern's own path: its last components are the pattern's first. The rest
// of the pattern is what paths below the folder still have to match.
func below(dir string, pattern []string) (rest []string, ok bool) {
	parts := strings.Split(filepath.ToSlash(dir), "/")
	for n := len(pattern); n > 0; n-- {
		if n <= len(parts) && equal(parts[len(parts)-n:], pattern[:n]) {
			return pattern[n:], true
		}
	}
	return nil, false
}

// holds reports that the folder contains the pattern's first component where a checkout would have it.
func holds(dir string, pattern []string, exists func(string) bool) bool {
	for _, in := range []string{"", "src", "lib"} {
		at := filepath.Join(dir, in, pattern[0])
		if exists(at) || exists(at+".py") {
			return true
		}
	}
	return false
}

func equal(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
