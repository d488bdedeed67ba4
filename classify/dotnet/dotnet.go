// Package dotnet reads the failure texts of .NET: CoreCLR, the .NET Framework and Mono, and what their hosts print when
// they cannot start a program. Call [New] and give the result to [classify.New].
//
// It refuses nothing: text without a failure of .NET gives none. It promises that an exception which a log reports as
// handled, or that a tool printed, never counts as a signature, and that parsing is linear.
package dotnet

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is .NET. It has no state.
type Runtime struct{}

// New returns the runtime of .NET.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime         = Runtime{}
	_ classify.Hinter          = Runtime{}
	_ classify.Speaker         = Runtime{}
	_ classify.StatementReader = Runtime{}
)

// Name is "dotnet".
func (Runtime) Name() string { return "dotnet" }

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	p := parser{log: log, lines: log.Lines}
	return p.last()
}

// hints are literals of which every text that Parse finds a failure in holds one.
var hints = []string{
	"Exception", "nhandled exception", "UNHANDLED EXCEPTION", "application to execute does not exist", "dependencies manifest", "Cannot open assembly", "runtimeconfig.json",
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

// Statement implements [classify.StatementReader]: it finds an exception of the runtime in a line that a program printed
// about itself.
func (Runtime) Statement(line string) *classify.Failure {
	at := inline(line)
	if at < 0 {
		return nil
	}
	typ, msg, _ := exception(line[at:])
	if !strings.HasPrefix(typ, "System.") {
		return nil
	}
	f := &classify.Failure{Message: msg}
	f.TypeModule, f.Type = splitName(typ)
	read(f)
	if f.Kind == classify.KindOther {
		return nil
	}
	return f
}

// Module implements [classify.Runtime]: "Acme.Wire.dll" is the assembly "Acme.Wire".
func (Runtime) Module(path string) string {
	path = path[strings.LastIndexAny(path, `/\`)+1:]
	for _, ext := range [...]string{".dll", ".exe"} {
		if stem, ok := strings.CutSuffix(path, ext); ok {
			return stem
		}
	}
	return ""
}

// Files are the files of an assembly, the likeliest first.
func (Runtime) Files(module string) []string {
	return []string{module + ".dll", module + ".exe"}
}
