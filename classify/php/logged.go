package php

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/internal/logline"
)

// attached begins the exception that Monolog, the logger of the frameworks, puts behind its message.
const attached = `{"exception":"[object] (`

// logged reads an entry that carries an exception: "[object] (TYPE(code: 0): MESSAGE at FILE:LINE)" in a JSON string, and the
// stack in the lines below. It was caught where it was logged, so what comes behind may still be the death.
func (p *parser) logged(i int) *classify.Failure {
	l := p.log.Lines[i]
	at := strings.Index(l, attached)
	if at < 0 {
		return nil
	}
	s := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\/`, `/`).Replace(l[at+len(attached):])
	typ, rest, ok := strings.Cut(s, "(code: ")
	_, body, found := strings.Cut(rest, "): ")
	if !ok || !found || !class(typ) {
		return nil
	}
	from := strings.LastIndex(body, " at ")
	if from < 0 {
		return nil
	}
	path, number, ok := cutLast(strings.TrimRight(body[from+len(" at "):], `)"}] `), ':')
	if !ok {
		return nil
	}
	f := &classify.Failure{First: i, Line: i, Last: i, Type: typ, Message: body[:from], Survived: logline.Handled(l[:at])}
	f.Frames = []classify.Frame{{File: file(path), Line: number, Origin: origin(path)}}
	if n := i + 1; n < len(p.log.Lines) && p.log.Lines[n] == "[stacktrace]" {
		f.Last = p.trace(f, n+1)
		if n = f.Last + 1; n < len(p.log.Lines) && strings.TrimSpace(p.log.Lines[n]) == `"}` {
			f.Last = n
		}
		f.Line = f.Last
	}
	thrown(f)
	return f
}

// printed reads an exception that a program prints as a string: "TYPE: message in FILE:LINE" above its stack.
func (p *parser) printed(i int) *classify.Failure {
	if i+1 >= len(p.log.Lines) || p.log.Lines[i+1] != "Stack trace:" {
		return nil
	}
	f, n := p.exception(i, strings.TrimSpace(p.log.Lines[i]))
	if f == nil {
		return nil
	}
	f.Last = n - 1
	f.Line = f.Last
	f.Survived = i > 0 && logline.Introduces(p.log.Lines[i-1])
	return f
}

// cutLast splits "FILE:LINE".
func cutLast(s string, sep byte) (before string, n int, ok bool) {
	at := strings.LastIndexByte(s, sep)
	if at < 0 {
		return "", 0, false
	}
	n, width := number(s[at+1:])
	return s[:at], n, width > 0
}
