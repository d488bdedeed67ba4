// Package golang reads the failure texts of Go programs: panics and fatal errors with their stacks, plugins of another build,
// and the chains of words with which a program says why it stops. Call [New] and give the result to [classify.New].
//
// It refuses nothing: text that is no failure of a Go program gives none. It promises that a unit is an import path, since the
// paths of files in a stack are those of the machine that built the program.
package golang

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is the Go runtime. It has no state.
type Runtime struct{}

// New returns the Go runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime         = Runtime{}
	_ classify.Hinter          = Runtime{}
	_ classify.Speaker         = Runtime{}
	_ classify.Placer          = Runtime{}
	_ classify.StatementReader = Runtime{}
)

// Name is "go".
func (Runtime) Name() string { return "go" }

// Module implements [classify.Runtime]: the import path is the folder of a file whose path the build has trimmed.
func (Runtime) Module(path string) string {
	at := strings.LastIndexByte(path, '/')
	if at < 0 || !strings.HasSuffix(path, ".go") {
		return ""
	}
	return withoutVersion(path[:at])
}

// Place implements [classify.Placer]: plugins and helper programs are named by their path.
func (Runtime) Place(path string, _ int) (unit, pkg string) { return path, "" }

// hints are literals of which every text that Parse finds a failure in holds one.
var hints = []string{
	"panic: ", "fatal error: ",
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
		if f := panicAt(log.Lines, i); f != nil {
			return f
		}
	}
	return nil
}

// Statement implements [classify.StatementReader].
func (Runtime) Statement(line string) *classify.Failure {
	f := &classify.Failure{Message: line, Fatal: true}
	if !words(f, line) {
		return nil
	}
	return f
}

// words reads what the libraries of Go say about plugins, programs and objects, and reports whether it was that.
func words(f *classify.Failure, m string) bool {
	switch {
	case strings.Contains(m, "plugin was built with a different version of package "), strings.Contains(m, "plugin.Open("):
		return opened(f, m)
	case strings.Contains(m, "plugin: symbol ") && strings.Contains(m, " not found in plugin "):
		_, rest, _ := strings.Cut(m, "plugin: symbol ")
		symbol, name, ok := strings.Cut(rest, " not found in plugin ")
		if !ok {
			return false
		}
		f.Kind, f.Symbol, f.Module = classify.KindBinding, symbol, word(name)
		if strings.HasPrefix(f.Module, "/") {
			f.Object, f.Module = f.Module, ""
		}
		return true
	}
	if path, why, ok := started(m); ok {
		switch {
		case strings.HasPrefix(why, "no such file or directory"):
			f.Kind, f.File = classify.KindMissingModule, path
		case strings.HasPrefix(why, "exec format error"), strings.HasPrefix(why, "text file busy"):
			f.Kind, f.File = classify.KindTorn, path
		default:
			return false
		}
		f.Startup = true
		return true
	}
	n, ok := classify.FindLoader(m)
	if ok {
		n.Apply(f)
	}
	return ok
}

// opened reads the errors of opening a plugin: "plugin.Open("path"): why".
func opened(f *classify.Failure, m string) bool {
	_, rest, ok := strings.Cut(m, "plugin.Open(")
	if !ok {
		return false
	}
	rest = strings.TrimLeft(rest, `\"`)
	path, why, ok := strings.Cut(rest, `"`)
	if !ok {
		return false
	}
	f.Kind, f.Object = classify.KindBinding, strings.TrimRight(path, `\`)
	switch {
	case strings.Contains(why, "different version of package"), strings.Contains(why, "realpath failed"), strings.Contains(why, "not built with"), strings.Contains(why, "cannot open shared object file"):
		return true
	}
	if n, ok := classify.FindLoader(why); ok {
		n.Apply(f)
		return true
	}
	return false
}

// started finds the program that could not be started: "fork/exec /path: why".
func started(m string) (path, why string, ok bool) {
	for _, mark := range [...]string{"fork/exec ", "exec: \""} {
		_, rest, found := strings.Cut(m, mark)
		if !found || !strings.HasPrefix(rest, "/") {
			continue
		}
		path, why, ok = strings.Cut(rest, ": ")
		path = strings.TrimRight(path, `"`)
		if stat, after, found := strings.Cut(why, ": "); found && strings.HasPrefix(stat, "stat /") {
			why = after
		}
		return path, why, ok
	}
	return "", "", false
}

// word is the first word of s.
func word(s string) string {
	if at := strings.IndexAny(s, " \n,;"); at >= 0 {
		s = s[:at]
	}
	return strings.Trim(s, "\"'`()")
}

// withoutVersion drops the version behind a module's path: "acme.dev/wire@v1.2.0/frame".
func withoutVersion(p string) string {
	at := strings.IndexByte(p, '@')
	if at < 0 {
		return p
	}
	end := strings.IndexByte(p[at:], '/')
	if end < 0 {
		return p[:at]
	}
	return p[:at] + p[at+end:]
}
