// Package python reads the failure texts of Python processes, CPython 2.7 to 3.13 and what draws tracebacks for it, and
// knows which files a module name stands for. Call [New] and give the result to [classify.New].
//
// It refuses nothing: text that is no Python failure gives none. It promises that a traceback which a log reports as
// handled, ignored or quoted never counts as the death, and that parsing is linear in the text it is given.
package python

import (
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
	p := parser{log: log, lines: log.Lines}
	return p.last()
}

// Module implements [classify.Runtime]: "acme/wire/__init__.py" is "acme.wire".
func (Runtime) Module(path string) string { return Module(path) }
