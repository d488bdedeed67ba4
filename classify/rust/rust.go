// Package rust reads the failure texts of Rust programs: panics, and the error that main returned. Call [New] and give the
// result to [classify.New].
//
// It refuses nothing: text that is no failure of a Rust program gives none. It promises that what a panic carries from another
// layer, the dynamic linker or a decoder, is read as that layer's word.
package rust

import (
	"bytes"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is the Rust runtime. It has no state.
type Runtime struct{}

// New returns the Rust runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime         = Runtime{}
	_ classify.Hinter          = Runtime{}
	_ classify.Speaker         = Runtime{}
	_ classify.Placer          = Runtime{}
	_ classify.StatementReader = Runtime{}
)

// Name is "rust".
func (Runtime) Name() string { return "rust" }

// Module implements [classify.Runtime]. The paths of source files are the building machine's and name no unit.
func (Runtime) Module(string) string { return "" }

// Place implements [classify.Placer]: objects and programs are named by their path.
func (Runtime) Place(path string, _ int) (unit, pkg string) { return path, "" }

// hints are literals of which every text that Parse finds a failure in holds one.
var hints = []string{
	"' panicked at ", ") panicked at ", "Error: ", "memory allocation of ",
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
	var survived *classify.Failure
	for i := len(log.Lines) - 1; i >= 0; i-- {
		f := panicAt(log.Lines, i)
		if f == nil {
			f = returned(log.Lines, i)
		}
		if f == nil {
			f = exhausted(log.Lines[i], i)
		}
		if f == nil {
			continue
		}
		if !f.Survived {
			return f
		}
		survived = f
	}
	return survived
}

// Statement implements [classify.StatementReader]: programs that catch their errors print the linker's word in a line.
func (Runtime) Statement(line string) *classify.Failure {
	f := &classify.Failure{Message: line, Fatal: true}
	if !spoken(f, line) {
		return nil
	}
	return f
}

// spoken reads what another layer says inside a message.
func spoken(f *classify.Failure, m string) bool {
	n, ok := classify.FindLoader(m)
	if ok {
		n.Apply(f)
	}
	return ok
}
