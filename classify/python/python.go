// Package python reads the failure texts of Python processes, CPython 2.7 to 3.13 and what draws tracebacks for it, and
// knows which files a module name stands for. Call [New] and give the result to [classify.New].
//
// It refuses nothing: text that is no Python failure gives none. It promises that a traceback which a log reports as
// handled, ignored or quoted never counts as the death, and that parsing is linear in the text it is given.
package python

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is the Python runtime. It has no state.
type Runtime struct{}

// New returns the Python runtime.
func New() Runtime { return Runtime{} }

var _ classify.Runtime = Runtime{}

// Name is "python".
func (Runtime) Name() string { return "python" }

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	p := parser{log: log, lines: dedent(log.Lines)}
	return p.last()
}

// hints are literals of which every text that Parse finds a failure in holds one.
var hints = []string{
	"Traceback (most recent", "Error: ", `", line `, "No module named ", "Fatal Python error", "Timeout (", "can't open file ", "find '__main__' module",
	"No code object available", "RemoteTraceback", "exc_type", "ExceptionWithTraceback", `\", line `,
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

// Statement implements [classify.StatementReader]: it finds the message of an import that failed in a line.
func (Runtime) Statement(line string) *classify.Failure {
	for _, m := range [...]struct{ start, typ string }{
		{"cannot import name '", "ImportError"}, {"No module named '", "ModuleNotFoundError"}, {"module '", "AttributeError"},
	} {
		at := strings.Index(line, m.start)
		if at < 0 || m.typ == "AttributeError" && !strings.Contains(line, "' has no attribute '") {
			continue
		}
		f := &classify.Failure{Message: strings.TrimRight(line[at:], `")`)}
		if strings.Contains(f.Message, " (") {
			f.Message = line[at:]
		}
		if m.typ == "AttributeError" {
			attributeError(f)
		} else {
			importError(f)
		}
		return f
	}
	return nil
}

// dedent takes the tab off tracebacks that a logger has indented as a whole. Without one it returns the lines themselves.
func dedent(lines []string) []string {
	out := lines
	for i := 0; i < len(lines); i++ {
		if lines[i] != "\t"+header {
			continue
		}
		if &out[0] == &lines[0] {
			out = append([]string(nil), lines...)
		}
		for ; i < len(lines) && strings.HasPrefix(lines[i], "\t"); i++ {
			out[i] = lines[i][1:]
		}
	}
	return out
}

// Module implements [classify.Runtime]: "acme/wire/__init__.py" is "acme.wire".
func (Runtime) Module(path string) string { return Module(path) }

// Files is the function of the same name: a Runtime tells everything about Python modules that the search for a missing
// name needs.
func (Runtime) Files(module string) []string { return Files(module) }

// Binds is the function of the same name.
func (Runtime) Binds(src []byte, name string) bool { return Binds(src, name) }
