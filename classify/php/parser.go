package php

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// parser finds the last fatal error in a log, with the warnings that explain it.
type parser struct {
	log   *text.Log
	plain *strings.Replacer
}

// maxMessage bounds the lines of one error.
const maxMessage = 400

func (p *parser) last() *classify.Failure {
	p.plain = strings.NewReplacer("<b>", "", "</b>", "", "<br />", "")
	var found *classify.Failure
	for i := 0; i < len(p.log.Lines); {
		if f := p.fatal(i); f != nil {
			found = f
			i = f.Last + 1
			continue
		}
		i++
	}
	if found == nil {
		return nil
	}
	p.explained(found)
	return found
}

// level splits "PHP Fatal error:  message" and "Fatal error: message".
func (p *parser) level(l string) (level, message string) {
	if strings.HasPrefix(l, "<") {
		l = p.plain.Replace(l)
	}
	l = strings.TrimPrefix(strings.TrimSpace(l), "PHP ")
	for _, s := range [...]string{"Fatal error", "Parse error", "Recoverable fatal error", "Catchable fatal error", "Core error", "Compile error", "Warning", "Notice", "Core warning"} {
		if rest, ok := strings.CutPrefix(l, s+": "); ok {
			return s, strings.TrimSpace(rest)
		}
		if rest, ok := strings.CutPrefix(l, s+":"); ok && strings.HasPrefix(rest, " ") {
			return s, strings.TrimSpace(rest)
		}
	}
	return "", ""
}

// fatal reads an error that begins at line i.
func (p *parser) fatal(i int) *classify.Failure {
	if m, ok := strings.CutPrefix(strings.TrimSpace(p.log.Lines[i]), "Could not open input file: "); ok {
		return &classify.Failure{First: i, Line: i, Last: i, Startup: true, Fatal: true, Kind: classify.KindMissingModule, File: file(m), Message: p.log.Lines[i]}
	}
	level, m := p.level(p.log.Lines[i])
	switch level {
	case "":
		if f := p.logged(i); f != nil {
			return f
		}
		return p.printed(i)
	case "Warning", "Notice", "Core warning":
		return nil
	}
	if rest, ok := strings.CutPrefix(m, "Uncaught "); ok {
		return p.uncaught(i, rest)
	}
	f := &classify.Failure{First: i, Line: i, Last: i, Fatal: true}
	// A message may hold line feeds; its place ends it.
	for n := i; n < len(p.log.Lines) && n < i+6; n++ {
		if n > i {
			if l, _ := p.level(p.log.Lines[n]); l != "" {
				break
			}
			m += "\n" + p.log.Lines[n]
		}
		if body, path, line, ok := onLine(m); ok {
			f.Message, f.Last = body, n
			f.Frames = []classify.Frame{{File: file(path), Line: line, Origin: origin(path)}}
			break
		}
	}
	if f.Frames == nil {
		return nil
	}
	f.Last = p.trace(f, f.Last+1) // an extension may print a stack of its own
	f.Line = f.Last
	engine(f, level)
	return f
}

// onLine splits "message in FILE on line N".
func onLine(m string) (body, path string, line int, ok bool) {
	at := strings.LastIndex(m, " on line ")
	if at < 0 {
		return "", "", 0, false
	}
	n, width := number(m[at+len(" on line "):])
	in := strings.LastIndex(m[:at], " in ")
	if width == 0 || in < 0 {
		return "", "", 0, false
	}
	return strings.TrimSpace(m[:in]), m[in+4 : at], n, true
}

// uncaught reads an exception with its chain: the innermost comes first, each "Next" wraps what stands before it.
func (p *parser) uncaught(i int, first string) *classify.Failure {
	var f *classify.Failure
	n := i
	head := first
	for {
		e, end := p.exception(n, head)
		if e == nil {
			break
		}
		e.First, e.Fatal = i, true
		if f != nil {
			e.Cause = f
		}
		f, n = e, end
		if n >= len(p.log.Lines) || n > i+maxMessage {
			break
		}
		// "Next Type: message" behind an empty line
		k := n
		for k < len(p.log.Lines) && k < n+2 && strings.TrimSpace(p.log.Lines[k]) == "" {
			k++
		}
		if k >= len(p.log.Lines) {
			break
		}
		next, ok := strings.CutPrefix(p.log.Lines[k], "Next ")
		if !ok {
			break
		}
		n, head = k, next
	}
	if f == nil {
		return nil
	}
	f.Last = max(i, n-1)
	if n < len(p.log.Lines) && strings.HasPrefix(strings.TrimSpace(p.log.Lines[n]), "thrown in ") {
		f.Last = n
	}
	for e := f; e != nil; e = e.Cause {
		e.Line, e.Last = f.Last, f.Last
	}
	return f
}

// exception reads one exception of a chain whose head is at line i, and the line behind its stack.
func (p *parser) exception(i int, head string) (*classify.Failure, int) {
	f := &classify.Failure{First: i, Line: i}
	m := head
	n := i
	for ; n < len(p.log.Lines) && n < i+maxMessage; n++ {
		if n > i {
			l := strings.TrimSpace(p.log.Lines[n])
			if l == "Stack trace:" || strings.HasPrefix(l, "thrown in ") {
				break
			}
			if level, _ := p.level(l); level != "" {
				break
			}
			m += "\n" + p.log.Lines[n]
		}
	}
	// "message in FILE:LINE"
	colon := strings.LastIndexByte(m, ':')
	in := strings.LastIndex(m, " in ")
	if colon < 0 || in < 0 || in > colon {
		return nil, i
	}
	line, width := number(m[colon+1:])
	if width == 0 {
		return nil, i
	}
	path := m[in+4 : colon]
	typ, body, _ := strings.Cut(m[:in], ": ")
	if !class(typ) {
		typ, body = m[:in], "" // an exception without a message
		if !class(typ) {
			return nil, i
		}
	}
	f.Type, f.Message = typ, body
	f.Frames = []classify.Frame{{File: file(path), Line: line, Origin: origin(path)}}
	if n < len(p.log.Lines) && strings.TrimSpace(p.log.Lines[n]) == "Stack trace:" {
		n = p.trace(f, n+1) + 1
	}
	thrown(f)
	return f, n
}

// trace reads "#0 FILE(LINE): call" lines from n on, puts their frames outside of f's own, and returns the last line.
func (p *parser) trace(f *classify.Failure, n int) int {
	var outer []classify.Frame
	for ; n < len(p.log.Lines); n++ {
		l := strings.TrimPrefix(strings.TrimSpace(p.log.Lines[n]), "PHP ")
		l = strings.TrimSpace(l)
		if l == "Stack trace:" && len(outer) == 0 {
			continue
		}
		if l == "" || l[0] != '#' {
			break
		}
		_, width := number(l[1:])
		if width == 0 || len(l) < width+2 {
			break
		}
		fr, ok := frame(l[width+2:])
		if ok {
			outer = append(outer, fr)
		}
	}
	frames := make([]classify.Frame, 0, len(outer)+len(f.Frames))
	for i := len(outer) - 1; i >= 0; i-- {
		frames = append(frames, outer[i])
	}
	f.Frames = append(frames, f.Frames...)
	return n - 1
}

// frame reads "FILE(LINE): call"; false for what the engine called itself.
func frame(s string) (classify.Frame, bool) {
	at := strings.Index(s, "): ")
	if at < 0 {
		return classify.Frame{}, false
	}
	open := strings.LastIndexByte(s[:at], '(')
	if open <= 0 {
		return classify.Frame{}, false
	}
	line, width := number(s[open+1:])
	if width == 0 {
		return classify.Frame{}, false
	}
	call := s[at+3:]
	if end := strings.IndexByte(call, '('); end > 0 {
		call = call[:end]
	}
	path := s[:open]
	return classify.Frame{File: file(path), Line: line, Function: call, Origin: origin(path)}, true
}

// class reports a class name with its namespace.
func class(s string) bool {
	if s == "" || len(s) > 200 || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for _, c := range []byte(s) {
		if c != '_' && c != '\\' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c < 0x80 {
			return false
		}
	}
	return true
}

func number(s string) (n, width int) {
	for width < len(s) && width < 9 && s[width] >= '0' && s[width] <= '9' {
		n = n*10 + int(s[width]-'0')
		width++
	}
	return n, width
}
