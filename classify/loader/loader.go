// Package loader reads what the dynamic linker and the kernel say about a program that cannot even start, or about an object
// that a program without a runtime of its own loads. Call [New] and give the result to [classify.New].
//
// It refuses nothing: text that is no such complaint gives none. It promises that the program that asks and the object that is
// asked for are kept apart, and that the object which lacks something is the one that is named.
package loader

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime reads the dynamic linkers of Linux (glibc and musl) and macOS. It has no state.
type Runtime struct{}

// New returns the runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime         = Runtime{}
	_ classify.Hinter          = Runtime{}
	_ classify.Speaker         = Runtime{}
	_ classify.Placer          = Runtime{}
	_ classify.StatementReader = Runtime{}
)

// Name is "loader".
func (Runtime) Name() string { return "loader" }

// Module implements [classify.Runtime]: a program that was started by its name is its own unit.
func (Runtime) Module(path string) string {
	if strings.ContainsAny(path, `/\ `) {
		return ""
	}
	return path
}

// Place implements [classify.Placer]: programs and objects are named by their path.
func (Runtime) Place(path string, _ int) (unit, pkg string) { return path, "" }

// hints are literals of which every text that Parse finds a failure in holds one.
var hints = []string{
	"error while loading shared libraries: ", "symbol lookup error: ", "relocation error: ", "' not found (required by ", "xec format error", "Text file busy",
	"text file busy", "Error loading shared library ", "Error relocating ", "dyld", "Inconsistency detected by ld.so",
}

// Vocabulary implements [classify.Speaker].
func (Runtime) Vocabulary() classify.Vocabulary { return classify.Vocabulary{Exact: hints} }

// Hint implements [classify.Hinter].
func (Runtime) Hint(tail []byte) bool {
	for _, h := range hints {
		if bytes.Contains(tail, []byte(h)) {
			return true
		}
	}
	return false
}

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	for i := len(log.Lines) - 1; i >= 0; i-- {
		if log.Ignored(i) {
			continue
		}
		if f := read(log.Lines, i); f != nil {
			f.First, f.Line, f.Fatal = i, i, true
			f.Last = max(f.Last, i)
			f.Survived = handled(log.Lines[i])
			// Several complaints of one start stand together, and the first of them is what the others follow from.
			for i > 0 && !f.Survived {
				g := read(log.Lines, i-1)
				if g == nil || len(g.Frames) == 0 || len(f.Frames) == 0 || g.Frames[0].File != f.Frames[0].File {
					break
				}
				g.First, g.Line, g.Last, g.Fatal = i-1, f.Last, f.Last, true
				f, i = g, i-1
			}
			return f
		}
	}
	return nil
}

// Statement implements [classify.StatementReader]: a program says in its last line which object it could not load.
func (Runtime) Statement(line string) *classify.Failure {
	n, ok := classify.FindLoader(line)
	if !ok {
		return nil
	}
	f := &classify.Failure{Message: line, Fatal: true}
	n.Apply(f)
	return f
}

// handled reports a complaint that a program repeats as something it got over.
func handled(l string) bool {
	low := strings.ToLower(l)
	for _, w := range [...]string{"falling back", "fallback", "ignored", "ignoring", "skipping", "continuing", "optional", "warn", "disabled", "using ", "retry", "tool output", "output of", "stderr of"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}
