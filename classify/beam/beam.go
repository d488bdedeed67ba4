// Package beam reads the failure texts of the Erlang virtual machine: what Erlang's loggers, init and escript print, and
// Elixir's exceptions. Call [New] and give the result to [classify.New].
//
// It refuses nothing: text without a failure of the BEAM gives none. It promises that an exception which a log reports as
// handled, or that a tool printed, never counts as a signature, and that parsing is linear.
package beam

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is the BEAM. It has no state.
type Runtime struct{}

// New returns the runtime of Erlang and Elixir.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime = Runtime{}
	_ classify.Hinter  = Runtime{}
	_ classify.Speaker = Runtime{}
)

// Name is "beam".
func (Runtime) Name() string { return "beam" }

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	p := parser{log: log, lines: log.Lines}
	return p.last()
}

// hints are literals of which every text that Parse finds a failure in holds one.
var hints = []string{
	"** (", "terminating", "terminated (", "exception error: ", "_alloc: Cannot allocate ", "Error loading module ", "on_load function for module ", " failed: badfile",
	"exit value", "{undef,[",
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

// Module implements [classify.Runtime]: "ebin/Elixir.Acme.Wire.beam" is "Acme.Wire".
func (Runtime) Module(path string) string {
	base := path[strings.LastIndexAny(path, `/\`)+1:]
	for _, ext := range [...]string{".beam", ".erl"} {
		if stem, ok := strings.CutSuffix(base, ext); ok {
			return moduleName(stem)
		}
	}
	return ""
}

// Files are the files of a module, the likeliest first.
func (Runtime) Files(module string) []string {
	if module != "" && module[0] >= 'A' && module[0] <= 'Z' {
		return []string{"Elixir." + module + ".beam"}
	}
	return []string{module + ".beam", module + ".erl"}
}

// moduleName is a module's name as people write it: atoms lose their quotes, Elixir's modules their prefix.
func moduleName(s string) string {
	s = strings.Trim(strings.TrimSpace(s), "'")
	s = strings.TrimPrefix(s, ":")
	return strings.TrimPrefix(strings.Trim(s, `"`), "Elixir.")
}
