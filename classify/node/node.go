// Package node reads the failure texts of Node.js processes, CommonJS and ES modules, native addons and the errors of the
// clients that run in them. Call [New] and give the result to [classify.New].
//
// It refuses nothing: text that is no failure of Node.js gives none. It promises that an error which a log reports as
// handled never counts as the death, that a unit is the path of a file or a package specifier as printed, and that parsing
// is linear in the text it is given.
package node

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is the Node.js runtime. It has no state.
type Runtime struct{}

// New returns the Node.js runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime         = Runtime{}
	_ classify.Hinter          = Runtime{}
	_ classify.Speaker         = Runtime{}
	_ classify.Placer          = Runtime{}
	_ classify.StatementReader = Runtime{}
)

// Name is "node".
func (Runtime) Name() string { return "node" }

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	p := parser{log: log, lines: log.Lines}
	return p.last()
}

// hints are literals of which every text that Parse finds a failure in holds one.
var hints = []string{
	"Error", "Exception", "Rejection", "Cannot find ", "ResolveMessage", "FATAL ERROR: ", "    at ",
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

// Module implements [classify.Runtime]. Node.js prints whole paths, so a path that begins in the middle is no unit.
func (Runtime) Module(string) string { return "" }

// Place implements [classify.Placer]: a file is its own unit, and belongs to the package whose folder in node_modules is
// the nearest above it.
func (Runtime) Place(path string, inside int) (unit, pkg string) {
	name, end := packageOf(path)
	// A root that is the folder of a package, or lies in it, was declared as just that.
	if name != "" && end > inside {
		pkg = name
	}
	return path, pkg
}

// packageOf is the package that a path with forward slashes is installed as, and where in the path its folder ends.
func packageOf(path string) (string, int) {
	const folder = "/node_modules/"
	at := strings.LastIndex(path, folder)
	if at < 0 {
		return "", 0
	}
	at += len(folder)
	end := at
	for parts := 1; ; parts++ {
		next := strings.IndexByte(path[end:], '/')
		if next < 0 {
			end = len(path)
			break
		}
		end += next
		if path[at] != '@' || parts == 2 {
			break
		}
		end++
	}
	return path[at:end], end
}

// Statement implements [classify.StatementReader]: programs that catch what kills them print its message alone.
func (Runtime) Statement(line string) *classify.Failure {
	for _, start := range [...]string{"Cannot find module '", "Cannot find package '", "The requested module '", "Package subpath '"} {
		at := strings.Index(line, start)
		if at < 0 {
			continue
		}
		f := &classify.Failure{Type: "Error", Message: line[at:]}
		finish(f, &facts{})
		if f.Kind == classify.KindOther {
			return nil
		}
		return f
	}
	return nil
}
