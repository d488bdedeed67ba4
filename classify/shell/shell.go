// Package shell reads what shells (bash, dash, ksh, zsh) print about the script that they were running: a sourced file or
// a program that is gone, a script that was replaced while it was read, a command that nobody has. Call [New] and give the
// result to [classify.New].
//
// It refuses to read a complaint that a line of the host quotes: a shell's own line begins with its name or the script's
// path. It promises that only the complaint which ended the script counts.
package shell

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime reads shells. It has no state.
type Runtime struct{}

// New returns the runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime    = Runtime{}
	_ classify.PathUnits  = Runtime{}
	_ classify.UnitTeller = Runtime{}
	_ classify.Hinter     = Runtime{}
)

// Name is "shell".
func (Runtime) Name() string { return "shell" }

// Module implements [classify.Runtime]: a script has no name but its path.
func (Runtime) Module(string) string { return "" }

// Package implements [classify.PathUnits]: scripts of installed packages lie in folders of other runtimes.
func (Runtime) Package(path string) string {
	for _, d := range [...]string{"node_modules/", "site-packages/", "vendor/"} {
		if at := strings.LastIndex("/"+path, "/"+d); at >= 0 {
			name, _, _ := strings.Cut(path[at+len(d):], "/")
			return name
		}
	}
	return ""
}

// Unit implements [classify.UnitTeller]: a script by its ending, or a program by its folder.
func (Runtime) Unit(path string) bool { return unit(path) }

// Vocabulary implements [classify.Speaker]: what shells complain of, and the names they put in front.
func (Runtime) Vocabulary() classify.Vocabulary {
	v := classify.Vocabulary{Exact: []string{"sh: "}, Folded: []string{"can't open "}}
	for _, c := range "0123456789]" { // behind the number of a line, the line itself in quotes
		v.Exact = append(v.Exact, string(c)+": `")
	}
	seen := map[string]bool{}
	for _, w := range words {
		end := w.end
		// Case is told for letters of ASCII only, and a complaint may begin with a capital.
		if end[0] >= 0x80 {
			_, size := utf8.DecodeRuneInString(end)
			end = end[size:]
		}
		if !seen[end] {
			seen[end] = true
			v.Folded = append(v.Folded, end)
		}
	}
	v.Folded = append(v.Folded, tornWords[:]...)
	v.Folded = append(v.Folded, syntaxWords[:]...)
	return v
}

// Hint implements [classify.Hinter].
func (Runtime) Hint(tail []byte) bool {
	// What each complaint has is a number behind the script's name, or the name of a shell.
	for line := range bytes.Lines(tail) {
		if _, ok := read(strings.TrimRight(string(line), "\r\n")); ok {
			return true
		}
		if at := bytes.Index(line, []byte("sh: ")); at >= 0 {
			return true
		}
		if at := bytes.IndexByte(line, '/'); at > 0 {
			if _, ok := read(strings.TrimRight(string(line[at:]), "\r\n")); ok {
				return true
			}
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
		c, ok := read(log.Lines[i])
		if !ok {
			continue
		}
		f := &classify.Failure{First: i, Line: i, Last: i, Message: c.message, Fatal: c.syntax} // after any other a shell goes on, if nobody told it not to
		f.Frames = []classify.Frame{{File: c.script, Line: c.line, Origin: origin(c.script)}}
		if c.script == "" || c.script == "-c" { // a line that the shell was given with its start
			f.Frames, f.Startup = nil, true
		}
		// The first complaint of a run of them is what the others follow from.
		for i > 0 {
			b, ok := read(log.Lines[i-1])
			if !ok || b.script != c.script || !b.syntax || !c.syntax {
				break
			}
			i, c = i-1, b
			f.First, f.Line, f.Message, f.Frames[0].Line = i, i, c.message, c.line
		}
		if !finish(f, c) {
			return nil
		}
		return f
	}
	return nil
}

// origin is what a script's name says about it.
func origin(script string) classify.Origin {
	switch {
	case strings.HasPrefix(script, "/etc/profile"), strings.HasPrefix(script, "/usr/share/bash-completion/"):
		return classify.OriginRuntime
	case strings.Contains(script, "/node_modules/"), strings.Contains(script, "/site-packages/"):
		return classify.OriginPackage
	}
	return classify.OriginUnknown
}
