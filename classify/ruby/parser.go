package ruby

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// parser finds the failures in one log.
type parser struct {
	log *text.Log
}

// maxMessage bounds how many lines a message may have in front of its frames.
const maxMessage = 60

// last is the last failure that is not a cause of the one before it.
func (p *parser) last() *classify.Failure {
	var chain []*classify.Failure
	for i := 0; i < len(p.log.Lines); {
		f := p.at(i)
		if f == nil {
			i++
			continue
		}
		// A cause is printed right behind what it caused.
		if n := len(chain); n == 0 || chain[n-1].Last+1 != f.First || !chain[n-1].Fatal {
			chain = chain[:0]
		}
		chain = append(chain, f)
		i = f.Last + 1
	}
	if len(chain) == 0 {
		return nil
	}
	for _, f := range chain {
		finish(f)
	}
	for i := len(chain) - 1; i > 0; i-- {
		outer, inner := chain[i-1], chain[i]
		if inner.Line == inner.Last {
			outer.Line = inner.Last
		}
		outer.Last = inner.Last
		// Ruby remembers what was being handled without being told. A deliberate wrapper keeps it as its cause; a slip or
		// something else that came up meanwhile is a failure of its own.
		if deliberate(outer) {
			outer.Cause = inner
		} else {
			outer.Context = inner
		}
	}
	return chain[0]
}

// deliberate reports a failure that code raised on purpose to wrap another.
func deliberate(f *classify.Failure) bool {
	switch f.Type {
	case "NameError", "NoMethodError", "TypeError", "ArgumentError", "ZeroDivisionError", "FrozenError", "IndexError", "KeyError", "Interrupt", "SignalException", "SystemExit", "NoMemoryError":
		return false
	}
	m := strings.ToLower(f.Message + " " + f.Type)
	for _, w := range [...]string{"timeout", "timed out", "rate limit", "429", "401", "403", "auth", "overload", "cancel", "interrupt", "kill", "disk", "memory", "space left", "quota"} {
		if strings.Contains(m, w) {
			return false
		}
	}
	return true
}

// at reads a failure that begins at line i, nil if none does.
func (p *parser) at(i int) *classify.Failure {
	l := p.log.Lines[i]
	// The old order of a terminal: the frames first, numbered from the outermost.
	if strings.HasPrefix(l, "Traceback (most recent call last)") {
		return p.reversed(i)
	}
	if m, ok := strings.CutPrefix(l, "ruby: "); ok {
		return p.startup(i, m)
	}
	if fr, rest, ok := place(l); ok {
		// "syntax error" without a type is how the interpreter refuses the script it was told to run.
		if typeAt(rest) != "" || fr.Function == "" && (strings.HasPrefix(rest, "syntax error") || strings.HasPrefix(rest, "unterminated ") || strings.HasPrefix(rest, "embedded document")) {
			return p.block(i, fr, rest)
		}
		return nil
	}
	return p.logged(i)
}

// typeAt is the type in parentheses at the end of a line.
func typeAt(l string) string {
	l = strings.TrimRight(l, " ")
	if !strings.HasSuffix(l, ")") {
		return ""
	}
	at := strings.LastIndexByte(l, '(')
	if at < 0 || at > 0 && l[at-1] != ' ' {
		return ""
	}
	if t := l[at+1 : len(l)-1]; constant(t) {
		return t
	}
	return ""
}

// block reads "FILE:LINE:in `f': message (Type)", the rest of the message and its frames.
func (p *parser) block(i int, fr classify.Frame, rest string) *classify.Failure {
	f := &classify.Failure{First: i, Line: i, Last: i, Type: typeAt(rest), Fatal: true}
	if f.Type == "" {
		f.Type, f.Startup = "SyntaxError", true
	} else {
		rest = strings.TrimSpace(rest[:strings.LastIndexByte(rest, '(')])
	}
	if i > 0 && strings.HasPrefix(p.log.Lines[i-1], "#<Thread:") && strings.Contains(p.log.Lines[i-1], "terminated with exception") {
		f.First, f.Fatal = i-1, false // one thread died; the process need not have noticed
	}
	var message []string
	message = append(message, rest)
	frames := []classify.Frame{fr}
	end := i
	for n := i + 1; n < len(p.log.Lines) && n <= i+maxMessage+len(frames); n++ {
		l := p.log.Lines[n]
		if from, ok := fromFrame(l); ok {
			frames = append(frames, from)
			end = n
			continue
		}
		if elided(l) {
			end = n
			continue
		}
		if len(frames) > 1 {
			break
		}
		// Without a frame behind them the next lines may be anybody's.
		if _, r, ok := place(l); ok && typeAt(r) != "" {
			break
		}
		message = append(message, l)
	}
	if end > i {
		f.Last, f.Line = end, end
	}
	if f.Last > i || f.Startup {
		f.Message = strings.Join(trimmed(message), "\n")
		if f.Startup {
			f.Last = i + len(message) - 1
		}
	} else {
		f.Message = rest
		f.Last = i + hint(p.log.Lines[i+1:])
	}
	for a, b := 0, len(frames)-1; a < b; a, b = a+1, b-1 {
		frames[a], frames[b] = frames[b], frames[a]
	}
	f.Frames = frames
	return f
}

// hint counts the lines with which the interpreter marks the place in the source, behind a failure without frames.
func hint(next []string) int {
	last := 0
	for n, l := range next[:min(len(next), 8)] {
		switch t := strings.TrimSpace(l); {
		case t == "":
		case strings.Trim(t, "^~") == "", strings.HasPrefix(t, "Did you mean?"):
			last = n + 1
		}
	}
	return last
}

// trimmed drops empty lines at the end.
func trimmed(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// elided reports the line for frames that are not printed.
func elided(l string) bool {
	t := strings.TrimSpace(l)
	return strings.HasPrefix(t, "...") && strings.HasSuffix(t, "levels...")
}

// reversed reads the order in which terminals were given backtraces: the failure itself is the last line.
func (p *parser) reversed(i int) *classify.Failure {
	var frames []classify.Frame
	n := i + 1
	for ; n < len(p.log.Lines); n++ {
		_, rest, ok := strings.Cut(strings.TrimSpace(p.log.Lines[n]), ": from ")
		if !ok {
			break
		}
		fr, _, ok := place(rest)
		if !ok {
			break
		}
		frames = append(frames, fr)
	}
	if len(frames) == 0 || n >= len(p.log.Lines) {
		return nil
	}
	fr, rest, ok := place(p.log.Lines[n])
	if !ok || typeAt(rest) == "" {
		return nil
	}
	f := p.block(n, fr, rest)
	f.First, f.Frames = i, append(frames, f.Frames...)
	return f
}

// startup reads what the interpreter says of a program that it cannot begin.
func (p *parser) startup(i int, m string) *classify.Failure {
	t := typeAt(m)
	if t == "" {
		return nil
	}
	m = strings.TrimSpace(m[:strings.LastIndexByte(m, '(')])
	return &classify.Failure{First: i, Line: i, Last: i, Type: t, Message: m, Startup: true, Fatal: true}
}

// logged reads what loggers and launchers print: "Type: message" or "message (Type)", and bare frames behind it.
func (p *parser) logged(i int) *classify.Failure {
	if i+1 >= len(p.log.Lines) {
		return nil
	}
	var frames []classify.Frame
	n := i + 1
	for ; n < len(p.log.Lines); n++ {
		l := strings.TrimSpace(p.log.Lines[n])
		fr, rest, ok := place(strings.TrimPrefix(l, "from "))
		if !ok || rest != "" || fr.Function == "" {
			break
		}
		frames = append(frames, fr)
	}
	if len(frames) == 0 {
		return nil
	}
	l := p.log.Lines[i]
	f := &classify.Failure{First: i, Line: n - 1, Last: n - 1}
	if f.Type = typeAt(l); f.Type != "" {
		f.Message = strings.TrimSpace(l[:strings.LastIndexByte(l, '(')])
	} else {
		f.Type, f.Message = leadingType(l)
	}
	if f.Type == "" {
		return nil
	}
	for a, b := 0, len(frames)-1; a < b; a, b = a+1, b-1 {
		frames[a], frames[b] = frames[b], frames[a]
	}
	f.Frames = frames
	return f
}

// leadingType finds "Type: message" in a line: the first word that is a constant and looks like an exception.
func leadingType(l string) (typ, message string) {
	for from := 0; from < len(l); {
		at := strings.Index(l[from:], ": ")
		if at < 0 {
			return "", ""
		}
		at += from
		word := l[strings.LastIndexAny(l[:at], " \t[(")+1 : at]
		if constant(word) && (strings.Contains(word, "Error") || strings.Contains(word, "Exception") || strings.Contains(word, "::")) {
			return word, l[at+2:]
		}
		from = at + 2
	}
	return "", ""
}

// fromFrame reads a "from" line.
func fromFrame(l string) (classify.Frame, bool) {
	t := strings.TrimLeft(l, " \t")
	if len(t) == len(l) || !strings.HasPrefix(t, "from ") {
		return classify.Frame{}, false
	}
	fr, rest, ok := place(t[len("from "):])
	return fr, ok && rest == ""
}

// place reads "FILE:LINE:in `function': rest" or "FILE:LINE: rest". Without a function the file must look like Ruby.
func place(l string) (classify.Frame, string, bool) {
	var fr classify.Frame
	for from := 0; from < len(l); {
		at := strings.IndexByte(l[from:], ':')
		if at < 0 {
			return fr, "", false
		}
		at += from
		line, width := number(l[at+1:])
		if width == 0 || at == 0 {
			from = at + 1
			continue
		}
		fr.File, fr.Line = l[:at], line
		rest := l[at+1+width:]
		if strings.ContainsAny(fr.File, "\t\"") || strings.HasPrefix(fr.File, " ") {
			return fr, "", false
		}
		if in, ok := strings.CutPrefix(rest, ":in "); ok && in != "" && (in[0] == '`' || in[0] == '\'') {
			end := strings.Index(in[1:], "': ")
			if end < 0 {
				end = strings.LastIndexByte(in[1:], '\'')
			}
			if end < 0 {
				return fr, "", false
			}
			fr.Function = in[1 : 1+end]
			fr.Origin = origin(fr.File)
			return fr, strings.TrimPrefix(strings.TrimPrefix(in[2+end:], ":"), " "), true
		}
		if r, ok := strings.CutPrefix(rest, ": "); ok && strings.HasSuffix(fr.File, ".rb") {
			fr.Origin = origin(fr.File)
			return fr, r, true
		}
		from = at + 1
	}
	return fr, "", false
}

// number reads a line number and its width.
func number(s string) (n, width int) {
	for width < len(s) && width < 9 && s[width] >= '0' && s[width] <= '9' {
		n = n*10 + int(s[width]-'0')
		width++
	}
	return n, width
}

// constant reports a constant's name, with its namespace.
func constant(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	fresh := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case fresh:
			if c < 'A' || c > 'Z' {
				return false
			}
			fresh = false
		case c == ':':
			if i+1 >= len(s) || s[i+1] != ':' {
				return false
			}
			i++
			fresh = true
		case c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		default:
			return false
		}
	}
	return !fresh
}
