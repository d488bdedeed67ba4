// Package tcl reads the error traces of Tcl programs: packages that are missing or of another version, files that are gone or
// stop in the middle, libraries that do not load. Call [New] and give the result to [classify.New].
//
// It refuses to read a trace without a file at its end: then nothing says whose code it was. It promises that parsing is
// linear in the text it is given.
package tcl

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is the Tcl runtime. It has no state.
type Runtime struct{}

// New returns the Tcl runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime         = Runtime{}
	_ classify.PathUnits       = Runtime{}
	_ classify.Hinter          = Runtime{}
	_ classify.Speaker         = Runtime{}
	_ classify.StatementReader = Runtime{}
)

// Name is "tcl".
func (Runtime) Name() string { return "tcl" }

// Vocabulary implements [classify.Speaker].
func (Runtime) Vocabulary() classify.Vocabulary {
	return classify.Vocabulary{Exact: []string{`(file "`, `couldn't read file "`}}
}

// Hint implements [classify.Hinter].
func (Runtime) Hint(tail []byte) bool {
	return bytes.Contains(tail, []byte(`(file "`)) || bytes.Contains(tail, []byte(`couldn't read file "`))
}

// Module implements [classify.Runtime]: "acme/wire.tcl" is acme::wire.
func (Runtime) Module(path string) string {
	if stem, ok := strings.CutSuffix(path, ".tcl"); ok {
		return strings.ReplaceAll(stem, "/", "::")
	}
	return ""
}

// Package implements [classify.PathUnits]: a folder "name1.7" below a library folder is an installed package.
func (Runtime) Package(path string) string {
	for part := range strings.SplitSeq(path, "/") {
		name := strings.TrimRight(part, "0123456789.")
		if name != "" && name != part && strings.Contains(part[len(name):], ".") && len(part) < len(path) && !strings.HasSuffix(path, part) && name[len(name)-1] != '-' && name != "v" {
			return name
		}
	}
	return ""
}

// origin is what a path says about a file.
func origin(path string) classify.Origin {
	for _, d := range [...]string{"/tcl8", "/tcl9", "/tk8", "/share/tcltk/"} {
		if at := strings.Index(path, d); at >= 0 {
			if d == "/share/tcltk/" && !strings.Contains(path, "/tcl8") && !strings.Contains(path, "/tcl9") {
				return classify.OriginPackage
			}
			return classify.OriginRuntime
		}
	}
	return classify.OriginUnknown
}

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	for i := len(log.Lines) - 1; i >= 0; i-- {
		if log.Ignored(i) {
			continue
		}
		// The interpreter was told to run a file that is not there: a line without a trace.
		if l := log.Lines[i]; strings.HasPrefix(l, `couldn't read file "`) && (i+1 == len(log.Lines) || strings.TrimSpace(log.Lines[i+1]) != "while executing") {
			return &classify.Failure{First: i, Line: i, Last: i, Message: l, Startup: true, Fatal: true, Kind: classify.KindMissingModule, File: between(l, `"`, `"`)}
		}
		if _, ok := place(log.Lines[i]); ok {
			return trace(log, i)
		}
	}
	return nil
}

// Statement implements [classify.StatementReader].
func (Runtime) Statement(line string) *classify.Failure {
	at := strings.Index(line, "can't find package ")
	if at < 0 {
		return nil
	}
	f := &classify.Failure{Message: line[at:]}
	finish(f, "")
	return f
}

// maxLines bounds a trace.
const maxLines = 300

// trace reads the trace whose outermost file is in line end.
func trace(log *text.Log, end int) *classify.Failure {
	f := &classify.Failure{Last: end, Fatal: true}
	start := -1
	for i := end - 1; i >= 0 && i > end-maxLines; i-- {
		if t := strings.TrimSpace(log.Lines[i]); t == "while executing" || t == "while compiling" || t == "while evaluating" {
			start = i
			break
		}
	}
	if start <= 0 {
		return nil
	}
	f.First, f.Line = start-1, end
	f.Message = log.Lines[start-1]
	command := ""
	for i := start + 1; i <= end; i++ {
		if fr, ok := place(log.Lines[i]); ok {
			f.Frames = append([]classify.Frame{fr}, f.Frames...)
		} else if command == "" {
			command = strings.Trim(log.Lines[i], `"`)
		}
	}
	finish(f, command)
	return f
}

// place reads `(file "PATH" line N)`.
func place(l string) (classify.Frame, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(l), `(file "`)
	if !ok {
		return classify.Frame{}, false
	}
	path, rest, ok := strings.Cut(rest, `" line `)
	if !ok || path == "" {
		return classify.Frame{}, false
	}
	line := 0
	for i := 0; i < len(rest) && i < 9 && rest[i] >= '0' && rest[i] <= '9'; i++ {
		line = line*10 + int(rest[i]-'0')
	}
	return classify.Frame{File: path, Line: line, Origin: origin(path)}, true
}

// finish reads what the message says. command is what was being executed.
func finish(f *classify.Failure, command string) {
	m := f.Message
	switch {
	case strings.HasPrefix(m, "can't find package "):
		f.Kind, f.Module = classify.KindMissingModule, word(m[len("can't find package "):])
	case strings.HasPrefix(m, `version conflict for package "`):
		f.Kind, f.Module = classify.KindMissingModule, between(m, `"`, `"`)
	case strings.HasPrefix(m, "attempt to provide package "):
		// The file provides another version than its index says: index and file are of different builds.
		f.Kind, f.Module = classify.KindMissingModule, word(m[len("attempt to provide package "):])
	case strings.HasPrefix(m, `couldn't read file "`):
		f.Kind, f.Code = classify.KindFile, "2"
		if f.File = between(m, `"`, `"`); strings.HasPrefix(command, "source ") && strings.HasSuffix(m, "no such file or directory") {
			f.Kind = classify.KindMissingModule
		}
		if !strings.HasPrefix(f.File, "/") {
			f.File = ""
		}
	case strings.HasPrefix(m, `couldn't load file "`), strings.HasPrefix(m, `couldn't load library "`):
		path := between(m, `"`, `"`)
		_, loader, _ := strings.Cut(m, `": `)
		n, ok := classify.ReadLoader(loader)
		if !ok {
			return
		}
		if f.Kind, f.Object, f.Needs, f.Symbol = n.Kind, path, n.Needs, n.Symbol; f.Needs == path {
			f.Needs = ""
		}
	case strings.HasPrefix(m, "missing close-brace"), m == `missing "`, strings.HasPrefix(m, "missing close-bracket"), strings.HasPrefix(m, "extra characters after close-"):
		// Where a file is sourced the parser's place is the file itself, the innermost.
		if f.Kind = classify.KindTorn; strings.HasPrefix(m, "extra") {
			f.Kind = classify.KindSyntax
		}
		if n := len(f.Frames); n > 0 && strings.HasPrefix(f.Frames[n-1].File, "/") {
			f.File = f.Frames[n-1].File
		}
	case strings.HasPrefix(m, "wrong # args: "):
		f.Kind = classify.KindSignature
	case strings.HasPrefix(m, `unknown method "`), strings.HasPrefix(m, `unknown or ambiguous subcommand "`):
		f.Kind, f.Symbol = classify.KindSignature, between(m, `"`, `"`)
	case strings.HasPrefix(m, `invalid command name "`), strings.HasPrefix(m, `can't read "`):
		f.Kind, f.Symbol = classify.KindUndefined, between(m, `"`, `"`)
	}
}

func word(s string) string {
	s, _, _ = strings.Cut(s, " ")
	return s
}

// between is the text between two marks.
func between(s, from, to string) string {
	_, rest, ok := strings.Cut(s, from)
	if !ok {
		return ""
	}
	v, _, _ := strings.Cut(rest, to)
	return v
}
