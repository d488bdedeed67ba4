// Package ruby reads the failure texts of Ruby processes, MRI 2.5 to 3.4 with RubyGems and Bundler, and knows which files
// are whose in a tree of gems. Call [New] and give the result to [classify.New].
//
// It refuses nothing: text that is no Ruby failure gives none. It promises that a message that a program caught and
// printed is no death, and that parsing is linear in the text it is given.
package ruby

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is the Ruby runtime. It has no state.
type Runtime struct{}

// New returns the Ruby runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime         = Runtime{}
	_ classify.PathUnits       = Runtime{}
	_ classify.Hinter          = Runtime{}
	_ classify.Speaker         = Runtime{}
	_ classify.StatementReader = Runtime{}
)

// Name is "ruby".
func (Runtime) Name() string { return "ruby" }

// Vocabulary implements [classify.Speaker].
func (Runtime) Vocabulary() classify.Vocabulary { return classify.Vocabulary{Exact: hints[:]} }

// hints are literals of which every text that Parse finds a failure in holds one.
var hints = [...]string{":in `", ":in '", "Error)", "(Gem::", "(Bundler::", "ruby: ", ".rb:", " syntax error"}

// Hint implements [classify.Hinter]. Every death has a type in parentheses, a frame or the interpreter's own name.
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
	p := parser{log: log}
	return p.last()
}

// Statement implements [classify.StatementReader].
func (Runtime) Statement(line string) *classify.Failure {
	at := strings.Index(line, "cannot load such file -- ")
	if at < 0 {
		return nil
	}
	f := &classify.Failure{Type: "LoadError", Message: line[at:]}
	finish(f)
	return f
}

// Module implements [classify.Runtime]: "acme/wire.rb" is the feature "acme/wire".
func (Runtime) Module(path string) string {
	for _, e := range [...]string{".rb", ".so", ".bundle", ".rbc"} {
		if stem, ok := strings.CutSuffix(path, e); ok {
			return stem
		}
	}
	return ""
}

// Package implements [classify.PathUnits]: a file below gems/NAME-VERSION belongs to the gem NAME.
func (Runtime) Package(path string) string { return gemOf(path) }

// gemOf is the name of the gem that a path runs through, empty for none. The innermost counts.
func gemOf(path string) string {
	path = "/" + strings.ReplaceAll(path, `\`, "/")
	for _, folder := range [...]string{"/gems/", "/bundler/gems/"} {
		for end := len(path); ; {
			at := strings.LastIndex(path[:end], folder)
			if at < 0 {
				break
			}
			name, _, deeper := strings.Cut(path[at+len(folder):], "/")
			if g := gemName(name); deeper && g != name {
				return g
			}
			end = at + 1
		}
	}
	return ""
}

// gemName drops the version behind a gem's name: "acme-wire-1.5.1", "acme-wire-1.5.1-x86_64-linux", a commit.
func gemName(s string) string {
	for i := 1; i+1 < len(s); i++ {
		if s[i] == '-' && s[i+1] >= '0' && s[i+1] <= '9' && strings.Contains(s[i+1:], ".") {
			return s[:i]
		}
	}
	if at := strings.LastIndexByte(s, '-'); at > 0 && len(s)-at == 13 && strings.Trim(s[at+1:], "0123456789abcdef") == "" {
		return s[:at] // a gem from a git checkout
	}
	return s
}

// transparent are gems that load what others ask for: for the question who asked they are not there.
var transparent = map[string]bool{"bootsnap": true, "zeitwerk": true, "bundler": true, "rubygems-update": true, "did_you_mean": true, "error_highlight": true, "polyglot": true, "require_all": true}

// origin is what a path says about a file.
func origin(path string) classify.Origin {
	p := strings.ReplaceAll(path, `\`, "/")
	switch {
	case strings.HasPrefix(p, "<internal:"), strings.Contains(p, "/rubygems/core_ext/"), strings.Contains(p, "/vendor_ruby/rubygems/"):
		return classify.OriginRuntime
	case p == "-e" || p == "-":
		return classify.OriginLauncher
	case strings.HasPrefix(p, "(eval") || strings.HasPrefix(p, "(irb)") || strings.HasPrefix(p, "(pry)"):
		return classify.OriginUser
	}
	if g := gemOf(p); g != "" {
		if transparent[g] {
			return classify.OriginRuntime
		}
		return classify.OriginPackage
	}
	for _, d := range [...]string{"/lib/ruby/", "/lib64/ruby/", "/ruby/vendor_ruby/", "/share/ruby/"} {
		if strings.Contains(p, d) {
			return classify.OriginRuntime
		}
	}
	return classify.OriginUnknown
}
