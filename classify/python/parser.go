package python

import (
	"strings"
	"unicode/utf8"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

const header = "Traceback (most recent call last):"

// The lines between two links of a chain.
const (
	causeLine   = "The above exception was the direct cause of the following exception:"
	contextLine = "During handling of the above exception, another exception occurred:"
)

// maxNesting bounds tracebacks within tracebacks.
const maxNesting = 16

// parser finds the failures in the lines of a log. lines are usually those of log; for the inside of a box or of a quoted
// remote traceback they are that part alone, and log is nil.
type parser struct {
	log     *text.Log
	lines   []string
	nesting int
	// stopped says that the caret under the last line of source points behind its end: the compiler wanted more.
	stopped bool
	// width is where that line of source ends.
	width int
	// marks open and close quotations, once marked says that they have been looked for.
	marks  []mark
	marked bool
}

// last returns the last failure that was not survived, else the last one that was, else nil. What a thread reports behind the
// traceback that ended the main thread comes too late to be the death.
func (p *parser) last() *classify.Failure {
	var best *classify.Failure
	for _, f := range p.all() {
		switch {
		case best == nil, best.Survived:
			best = f
		case f.Survived:
		case p.inThread(f) && uncaught(best) && !p.inThread(best):
			best.Last = f.Last
		default:
			best = f
		}
	}
	return best
}

// inThread reports a traceback that the threading module introduces.
func (p *parser) inThread(f *classify.Failure) bool {
	return f.First > 0 && strings.HasPrefix(p.lines[f.First-1], "Exception in thread ")
}

// all returns the failures of the lines in order, each with its chain.
func (p *parser) all() []*classify.Failure {
	// Forwards, because a chain is printed from its first link to its last and only the lines between two links say how
	// they hang together.
	var found []*classify.Failure
	pending := chainNone
	for i := 0; i < len(p.lines); {
		f, next := p.at(i)
		if f == nil {
			switch link := chainLink(p.lines[i]); {
			case link != chainNone:
				pending = link
			case strings.TrimSpace(p.lines[i]) != "":
				pending = chainNone
			}
			i = max(next, i+1)
			continue
		}
		// A link without a failure before it belongs to a head that is cut off.
		if pending != chainNone && len(found) > 0 {
			earlier := found[len(found)-1]
			found = found[:len(found)-1]
			f = linked(f, earlier, pending)
		}
		pending = chainNone
		if p.noise(f) {
			p.ignore(f.First, next)
		} else {
			found = append(found, f)
		}
		i = max(next, i+1)
	}
	return found
}

// at parses the failure that begins at line i, if one does, and returns the line behind it.
func (p *parser) at(i int) (*classify.Failure, int) {
	l := p.lines[i]
	t := strings.TrimSpace(l)
	if t == "" {
		return nil, i + 1
	}
	// The cheap tests first; most lines of a log are none of these.
	var f *classify.Failure
	next := i + 1
	switch {
	case isGroupHeader(l):
		f, next = p.groupAt(i)
	case isHeader(l) || p.runOn(i):
		f, next = p.traceback(i+1, false)
	case isBoxHeader(t):
		f, next = p.box(i)
	case isCellHeader(t):
		f, next = p.cells(i)
	case strings.HasPrefix(l, "Fatal Python error: ") || dumpAfterTimeout(l):
		f, next = p.fatal(i)
	case p.headless(i):
		f, next = p.traceback(i, true)
		if i > 0 && f.Kind != classify.KindTorn && f.Kind != classify.KindSyntax {
			f = nil // frames in the middle of a log that no header opens are not a death
		}
	case loneException(l):
		f, next = p.lone(i)
	}
	if f != nil {
		f.First, f.Last, f.Fatal = min(f.First, i), next-1, uncaught(f)
		if f.Line < i || f.Line > f.Last {
			f.Line = f.Last // what stands in a box or in quotes is no line of the log
		}
		if f.First == 0 {
			f.First = i
		}
	}
	return f, next
}

// chain is how a failure hangs on the one before it.
type chain uint8

const (
	chainNone chain = iota
	chainCause
	chainContext
)

// chainLink reads a line that joins two tracebacks, also within a margin.
func chainLink(l string) chain {
	t := strings.Trim(l, " |│")
	switch t {
	case causeLine:
		return chainCause
	case contextLine:
		return chainContext
	}
	return chainNone
}

// linked hangs the earlier failure on the later one. The text of a remote process that a pool passes on as a cause is the
// inner part of the failure itself.
func linked(f, earlier *classify.Failure, link chain) *classify.Failure {
	if remote(earlier.Type) {
		return merged(f, earlier)
	}
	root := f
	for root.Cause != nil || root.Context != nil {
		if root.Cause != nil {
			root = root.Cause
		} else {
			root = root.Context
		}
	}
	if link == chainCause {
		root.Cause = earlier
	} else {
		root.Context = earlier
	}
	f.First = min(f.First, earlier.First)
	return f
}

// ignore marks lines of the log as deciding nothing.
func (p *parser) ignore(from, to int) {
	// Lines of a box or of a quoted part have no place in the log.
	if p.log != nil {
		p.log.Ignore(from, to)
	}
}

// isHeader reports the first line of a traceback, at the left margin or behind nothing but a level or a logger.
func isHeader(l string) bool {
	if !strings.HasSuffix(l, header) {
		return false
	}
	lead := l[:len(l)-len(header)]
	if lead == "" {
		return true
	}
	// What is indented or marked is quoted by somebody, or belongs to a message.
	if !strings.HasSuffix(lead, " ") || marked(lead) {
		return false
	}
	for _, w := range [...]string{"ERROR", "CRITICAL", "FATAL", "[error]", "[critical]", "[fatal]"} {
		if strings.Contains(lead, w) {
			return true
		}
	}
	return false
}

// marked reports what stands before the header of a traceback that is indented or quoted.
func marked(lead string) bool {
	if len(lead) > 120 || lead[0] == ' ' || lead[0] == '\t' {
		return true
	}
	for _, w := range [...]string{"tool", "output", "stdout", "quoted", "|", ">", "$", "\""} {
		if strings.Contains(lead, w) {
			return true
		}
	}
	return false
}

// runOn reports a header behind what the program had printed without ending the line, as before something that takes its time.
// Nobody reports a traceback that way: it starts where the program does.
func (p *parser) runOn(i int) bool {
	lead, ok := strings.CutSuffix(p.lines[i], header)
	if !ok || lead == "" || i+1 >= len(p.lines) || marked(lead) || strings.HasSuffix(strings.TrimRight(lead, " "), ":") {
		return false
	}
	fr, ok := frame(p.lines[i+1])
	return ok && starts(&fr)
}

// traceback parses frames from line i on, up to the exception and its message.
func (p *parser) traceback(i int, headless bool) (*classify.Failure, int) {
	f := &classify.Failure{Headless: headless, First: i}
	if !headless {
		f.First = i - 1
	}
	p.stopped = false
	strays := 0
	for i < len(p.lines) {
		l := p.lines[i]
		if fr, ok := frame(l); ok {
			f.Frames = append(f.Frames, fr)
			i++
			continue
		}
		if headless && len(f.Frames) == 0 {
			if fr, ok := openFrame(l); ok {
				f.Frames = append(f.Frames, fr)
			}
			i++
			continue
		}
		if l == "" || strings.TrimSpace(l) == "" {
			// Some loggers put blank lines between frames.
			j := i
			for j < len(p.lines) && strings.TrimSpace(p.lines[j]) == "" {
				j++
			}
			if j == i+1 && j < len(p.lines) && isCaret(p.lines[j]) {
				p.source(f, " ") // the place of the error is the end of the file
				i = j
				continue
			}
			if j < len(p.lines) && j-i <= 2 {
				if _, ok := frame(p.lines[j]); ok || len(f.Frames) > 0 && exceptionLine(p.lines[j]) {
					i = j
					continue
				}
			}
			break
		}
		if l[0] == ' ' || l[0] == '\t' {
			p.source(f, l)
			i++
			continue
		}
		if len(f.Frames) > 0 && strays < maxStrays && p.goesOn(i+1) {
			strays++ // a line of somebody else between the frames
			i++
			continue
		}
		break
	}
	if i < len(p.lines) && exceptionLine(p.lines[i]) {
		return p.exception(f, i)
	}
	// The frames end without an exception: the tail is cut.
	f.Cut = true
	if i >= len(p.lines) || strings.TrimSpace(p.lines[i]) == "" {
		p.finish(f)
		return f, i
	}
	// The exception's own line is cut: "ImportEr", or not there at all.
	if word := p.lines[i]; i == len(p.lines)-1 && identifier(strings.ReplaceAll(strings.TrimSpace(word), ".", "_")) {
		f.Type = lastPart(strings.TrimSpace(word))
		p.finish(f)
		return f, i + 1
	}
	p.finish(f)
	return f, i
}

// maxStrays bounds the lines of others inside one traceback.
const maxStrays = 8

// goesOn reports whether line i is a frame, so that the line before it cannot have ended the traceback.
func (p *parser) goesOn(i int) bool {
	if i >= len(p.lines) {
		return false
	}
	_, ok := frame(p.lines[i])
	return ok && !isHeader(p.lines[i-1]) && chainLink(p.lines[i-1]) == chainNone
}

// source keeps the first line of source under a frame. Lines of carets and drawn values are none.
func (p *parser) source(f *classify.Failure, l string) {
	if len(f.Frames) == 0 {
		return
	}
	fr := &f.Frames[len(f.Frames)-1]
	t := strings.TrimSpace(l)
	switch {
	case fr.Source == "" && l == " ":
		fr.Source, p.stopped = l, true
	case isCaret(l):
		if fr.Function == "" && fr.Source != "" {
			p.stopped = p.stopped || strings.IndexByte(l, '^') >= p.width
		}
	case fr.Source == "" && t != "" && !strings.HasPrefix(t, "[Previous line repeated"):
		fr.Source, p.width, p.stopped = t, utf8.RuneCountInString(strings.TrimRight(l, " ")), false
	}
}

// isCaret reports a line of marks under a line of source.
func isCaret(l string) bool {
	t := strings.TrimSpace(l)
	return t != "" && strings.Trim(t, "^~ ") == ""
}

// exception parses the line "Type: message" at line i and what belongs to the message.
func (p *parser) exception(f *classify.Failure, i int) (*classify.Failure, int) {
	f.Type, f.TypeModule, f.Message = splitException(p.lines[i])
	if f.Line = i; p.nesting > 0 {
		f.Line = -1
	}
	last := i == len(p.lines)-1
	i++
	if wrapped := remote(f.Type) || i < len(p.lines) && strings.TrimSpace(p.lines[i]) == `"""`; wrapped {
		return p.remoteAt(f, i)
	}
	if strings.HasPrefix(f.Type, "RayTaskError") {
		return p.ray(f, i)
	}
	i = p.message(f, i)
	p.finish(f)
	if last && p.nesting == 0 && cutMessage(f) {
		f.Cut = true
	}
	return f, i
}

// maxMessage bounds the lines that are kept of a message.
const maxMessage = 40

// message collects the lines of a message behind its first one. A traceback inside it is quoted.
func (p *parser) message(f *classify.Failure, i int) int {
	kept := 0
	before := f.Message
	short := oneLine(f.Type)
	for i < len(p.lines) {
		l := p.lines[i]
		t := strings.TrimSpace(l)
		switch {
		// Two tracebacks in a row are two failures. A message that ends with a colon announces what it quotes, unless it
		// is Python that announces the next traceback.
		case isHeader(l) || isGroupHeader(l):
			if announces(before) || f.Type != "CalledProcessError" && toolEnded(before) {
				return p.quoted(i)
			}
			return i
		case chainLink(l) != chainNone, looksLogged(l), isBoxHeader(t), p.log != nil && heading(t), exceptionLine(l) && known(l):
			return i
		case t == "":
			// A blank line ends a message, unless quoted output follows.
			if !p.quoteFollows(i, before) {
				return i
			}
		case short && l[0] != ' ' && !open(f.Message):
			return i
		default:
			if kept < maxMessage && len(f.Message) < 4096 {
				f.Message += "\n" + l
			}
			kept++
			before = l
		}
		i++
	}
	return i
}

// announces reports a line of a message behind which stands what it quotes.
func announces(l string) bool { return strings.HasSuffix(strings.TrimSpace(l), ":") && !heading(l) }

// toolEnded reports a line of a message that says with which status a program ended; its output follows. The standard library's
// own exception for that brings no output with it.
func toolEnded(l string) bool {
	l = strings.ToLower(l)
	for _, w := range [...]string{"exit code", "exit status", "exited with", "non-zero", "return code"} {
		if strings.Contains(l, w) {
			return true
		}
	}
	return false
}

// oneLine reports the types whose messages Python writes in one line. What stands behind it says something else.
func oneLine(typ string) bool {
	switch typ {
	case "ImportError", "ModuleNotFoundError", "AttributeError", "NameError", "UnboundLocalError", "TypeError", "KeyError", "IndexError",
		"SyntaxError", "IndentationError", "TabError", "EOFError", "MemoryError", "KeyboardInterrupt", "OSError", "IOError", "FileNotFoundError",
		"PermissionError", "NotADirectoryError", "ZeroDivisionError", "RecursionError", "ZipImportError", "CancelledError":
		return true
	}
	return false
}

// open reports a message that a renderer has wrapped: a quote or a blank is open at its end, or a path is still to come.
func open(m string) bool {
	return strings.HasSuffix(m, " ") || strings.Count(m, "'")%2 == 1 || strings.HasSuffix(m, " from")
}

// quoteFollows reports whether behind the blank lines at i a message goes on to quote output: "stderr:", then a traceback.
func (p *parser) quoteFollows(i int, before string) bool {
	for i < len(p.lines) && strings.TrimSpace(p.lines[i]) == "" {
		i++
	}
	if i >= len(p.lines) {
		return false
	}
	l := strings.ToLower(strings.TrimSpace(p.lines[i]))
	if isHeader(p.lines[i]) {
		return announces(before)
	}
	return strings.HasSuffix(l, ":") && (strings.Contains(l, "stderr") || strings.Contains(l, "stdout") || strings.Contains(l, "output"))
}

// quoted skips a traceback that a message quotes, and all that follows it up to the next log line.
func (p *parser) quoted(i int) int {
	from := i
	for i < len(p.lines) && !looksLogged(p.lines[i]) {
		i++
	}
	p.ignore(from, i)
	return i
}
