package jvm

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/internal/logline"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// The bounds of one trace: lines of a message, lines of others between two frames, links of a chain, and how far
// into a line a type is looked for.
const (
	maxMessage = 64
	maxStrays  = 8
	maxLinks   = 48
	maxHead    = 2048
)

// parser finds the failures in the lines of a log.
type parser struct {
	log   *text.Log
	lines []string
	// dead are the initialisers whose failure was printed: by class, the trace.
	dead map[string]*classify.Failure
	// lead is what stands in front of every line of the trace that is being read: some containers indent it.
	lead string
}

// link is one exception of a chain as it is printed: frames innermost first, the last more of them shared with the link
// before.
type link struct {
	typ, msg string
	frames   []classify.Frame
	more     int
	line     int
}

// last returns the last failure that was not survived, else the last one that was, else nil. What another thread or a
// shutdown hook reports behind the trace that ended the main thread comes too late to be the death.
func (p *parser) last() *classify.Failure {
	var best *classify.Failure
	main := false
	for i := 0; i < len(p.lines); {
		f, next := p.at(i)
		if f == nil {
			i = max(next, i+1)
			continue
		}
		f.First, f.Last = i, max(next-1, i)
		f.Line = f.Last
		p.introduced(f)
		thread := threadOf(p.lines[i])
		switch {
		case best == nil, best.Survived && !f.Survived:
			best, main = f, thread == "main"
		case f.Survived && !best.Survived:
			p.log.Ignore(f.First, f.Last+1)
		case main && thread != "" && thread != "main":
			best.Last = f.Last
		default:
			best, main = f, thread == "main"
		}
		i = max(next, i+1)
	}
	return best
}

// introduced reads the entry in front of a trace, or the one that the trace begins in.
func (p *parser) introduced(f *classify.Failure) {
	l := p.lines[f.First]
	// A thread that died of it did not survive it, whatever its message says.
	if strings.HasPrefix(l, uncaught) {
		f.Fatal = true
	} else if at := inline(l); at > 0 && logline.Handled(l[:at]) {
		f.Survived = true
	}
	for i, seen := f.First-1, 0; i >= 0 && seen < 3; i-- {
		t := strings.TrimSpace(p.lines[i])
		if t == "" {
			continue
		}
		seen++
		switch {
		case testReport(t):
			f.Listed = classify.TestFailure
			return
		case logline.Quoted(t):
			f.Listed = classify.ToolFailure
			return
		case seen == 1 && !f.Fatal && logline.Introduces(t):
			f.Survived = true
			return
		}
		if _, ok := frame(p.lines[i]); ok || strings.HasPrefix(t, "... ") {
			return
		}
	}
}

// testReport reports a line with which a test runner introduces a trace.
func testReport(l string) bool {
	return strings.Contains(l, "<<< ERROR!") || strings.Contains(l, "<<< FAILURE!") || strings.HasSuffix(l, " FAILED") && strings.Contains(l, " > ") ||
		strings.HasPrefix(l, "There was ") && strings.HasSuffix(l, " failure:") || strings.HasPrefix(l, "There were ") && strings.HasSuffix(l, " failures:") ||
		strings.HasPrefix(l, "JUnit Jupiter:") || strings.HasPrefix(l, "MethodSource [") || strings.HasPrefix(l, "Tests run: ")
}

// uncaught begins what the JVM prints for a thread that died.
const uncaught = "Exception in thread "

// threadOf is the thread that a line reports as dead, empty for none.
func threadOf(l string) string {
	rest, ok := strings.CutPrefix(l, uncaught)
	if !ok || !strings.HasPrefix(rest, `"`) {
		return ""
	}
	// A thread's name may hold quotes; the type behind it holds none.
	if end := strings.Index(rest[1:], `" `); end >= 0 {
		return rest[1 : 1+end]
	}
	return ""
}

// at parses the failure that begins at line i, if one does, and returns the line behind it.
func (p *parser) at(i int) (*classify.Failure, int) {
	l := p.lines[i]
	p.lead = ""
	switch {
	case l == "":
		return nil, i + 1
	case l == springFailed:
		return p.spring(i)
	case strings.HasPrefix(l, uncaught):
		rest := l[len(uncaught):]
		if t := threadOf(l); t != "" {
			rest = rest[len(t)+3:]
		} else if _, after, ok := strings.Cut(rest, " "); ok {
			rest = after
		}
		return p.trace(i, rest)
	case strings.HasPrefix(l, "Error: ") || strings.HasPrefix(l, "Error occurred during ") || strings.HasPrefix(l, "Error opening zip file"):
		return p.startup(i)
	case strings.HasPrefix(l, "# ") || strings.HasPrefix(l, "Exception: "):
		return p.machine(i)
	}
	if _, ok := frame(l); ok {
		// Frames that no line introduces are the rest of a trace whose head is cut, if they are the first lines.
		if i > 0 {
			return nil, i + 1
		}
		return p.headless(i)
	}
	at := inline(l)
	if at < 0 {
		return nil, i + 1
	}
	if strings.TrimLeft(l[:at], " \t") == "" {
		p.lead = l[:at]
	}
	if !p.framed(i + 1) {
		typ, _, _ := exception(l[at:])
		if at > 0 || !platform(typ) || !strings.HasPrefix(l[len(typ):], ":") && l != typ {
			return nil, i + 1
		}
	}
	return p.trace(i, l[at:])
}

// framed reports whether the first line behind a message that starts in front of line i is a frame or a cause.
func (p *parser) framed(i int) bool {
	for n := 0; i < len(p.lines) && n < maxMessage; i, n = i+1, n+1 {
		l := p.lines[i]
		if _, ok := frame(l); ok {
			return true
		}
		if p.causeOf(l) != "" {
			return true
		}
		if strings.HasPrefix(l, uncaught) || inline(l) >= 0 || l != "" && l[0] != ' ' && l[0] != '\t' && logline.Entry(l) {
			return false
		}
	}
	return false
}

// causeOf is what stands behind the words that introduce a cause, empty for any other line.
func causeOf(l string) string {
	for _, w := range [...]string{"Caused by: ", "Wrapped by: "} {
		if rest, ok := strings.CutPrefix(l, w); ok {
			return rest
		}
	}
	return ""
}

// causeOf is the function of that name for a line of the trace that is being read.
func (p *parser) causeOf(l string) string { return causeOf(strings.TrimPrefix(l, p.lead)) }

// headless parses a trace without its first line.
func (p *parser) headless(i int) (*classify.Failure, int) {
	k := link{line: i}
	links, next := p.links(k, i)
	f := chained(links, p.dead)
	f.Headless = false // what is cut is the innermost end
	if len(links) == 1 {
		f.Cut = true
	}
	return f, next
}

// trace parses an exception and all that belongs to it: head is its line from the type on.
func (p *parser) trace(i int, head string) (*classify.Failure, int) {
	typ, msg, ok := exception(head)
	if !ok {
		return nil, i + 1
	}
	k := link{typ: typ, msg: msg, line: i}
	next := i + 1
	if p.framed(next) {
		next = p.message(&k, next)
	}
	links, next := p.links(k, next)
	f := chained(links, p.dead)
	if len(links) == 1 && len(k.frames) == 0 && next >= len(p.lines) && i > 0 && len(links[0].frames) == 0 {
		f.Cut = !strings.HasPrefix(p.lines[i], uncaught)
	}
	p.remember(links, f)
	return f, next
}

// message adds the lines up to the first frame to a message.
func (p *parser) message(k *link, i int) int {
	for n := 0; i < len(p.lines) && n < maxMessage; i, n = i+1, n+1 {
		l := p.lines[i]
		if _, ok := frame(l); ok || p.causeOf(l) != "" || more(l) >= 0 {
			break
		}
		if len(k.msg) < 4096 {
			k.msg += "\n" + l
		}
	}
	return i
}

// links parses frames from line i on, and the causes behind them.
func (p *parser) links(k link, i int) ([]link, int) {
	all := []link{k}
	rootFirst := false
	strays := 0
	for i < len(p.lines) {
		l := p.lines[i]
		cur := &all[len(all)-1]
		if fr, ok := frame(l); ok {
			cur.frames = append(cur.frames, fr)
			i++
			continue
		}
		if n := more(l); n >= 0 {
			cur.more += n
			i++
			continue
		}
		if rest := p.causeOf(l); rest != "" {
			typ, msg, ok := exception(rest)
			if !ok || len(all) >= maxLinks {
				break
			}
			rootFirst = strings.HasPrefix(l, "Wrapped")
			c := link{typ: typ, msg: msg, line: i}
			i++
			if p.framed(i) {
				i = p.message(&c, i)
			}
			all = append(all, c)
			continue
		}
		if suppressed(l) {
			next := p.skip(i)
			p.log.Ignore(i, next)
			i = next
			continue
		}
		// A line of another thread between the frames, or a blank one that a logger has put there.
		if strays < maxStrays && i+1 < len(p.lines) && len(cur.frames) > 0 && inline(l) < 0 && !strings.HasPrefix(l, uncaught) {
			if _, ok := frame(p.lines[i+1]); ok || l == "" && (p.causeOf(p.lines[i+1]) != "" || more(p.lines[i+1]) >= 0) {
				strays++
				i++
				continue
			}
		}
		break
	}
	if rootFirst {
		for a, b := 0, len(all)-1; a < b; a, b = a+1, b-1 {
			all[a], all[b] = all[b], all[a]
		}
	}
	return all, i
}

// suppressed reports the first line of a suppressed exception or of a loop in the chain.
func suppressed(l string) bool {
	t := strings.TrimLeft(l, " \t")
	return strings.HasPrefix(t, "Suppressed: ") || strings.HasPrefix(t, "[CIRCULAR REFERENCE") || strings.HasPrefix(t, "Caused by: [CIRCULAR REFERENCE")
}

// skip passes a suppressed exception: everything that is indented deeper than its first line.
func (p *parser) skip(i int) int {
	depth := indent(p.lines[i])
	for i++; i < len(p.lines); i++ {
		l := p.lines[i]
		if l == "" || indent(l) > depth {
			continue
		}
		if indent(l) == depth && depth > 0 && (strings.HasPrefix(strings.TrimLeft(l, " \t"), "Caused by: ") || suppressed(l)) {
			continue
		}
		break
	}
	return i
}

func indent(l string) int { return len(l) - len(strings.TrimLeft(l, " \t")) }

// more reads "\t... 12 more", -1 for any other line.
func more(l string) int {
	t, ok := strings.CutPrefix(strings.TrimLeft(l, " \t"), "... ")
	if !ok {
		return -1
	}
	n := 0
	for n < len(t) && n < 6 && t[n] >= '0' && t[n] <= '9' {
		n++
	}
	if n == 0 || !strings.HasPrefix(t[n:], " more") && !strings.HasPrefix(t[n:], " common frames omitted") {
		return -1
	}
	v := 0
	for _, c := range []byte(t[:n]) {
		v = v*10 + int(c-'0')
	}
	return v
}

// remember keeps a failure that ended an initialiser. What the JVM says about the class from then on is its echo.
func (p *parser) remember(links []link, f *classify.Failure) {
	for _, k := range links {
		for _, fr := range k.frames {
			if fr.Function == "<clinit>" {
				if p.dead == nil {
					p.dead = map[string]*classify.Failure{}
				}
				p.dead[fr.Unit] = f
			}
		}
	}
}

// thrown reports that a text begins with what names of throwables end in.
func thrown(l string) bool {
	switch l[0] {
	case 'E':
		return strings.HasPrefix(l, "Exception") || strings.HasPrefix(l, "Error")
	case 'T':
		return strings.HasPrefix(l, "Throwable")
	case 'F':
		return strings.HasPrefix(l, "Failure")
	case 'D':
		return strings.HasPrefix(l, "Death")
	}
	return false
}

// inline finds the exception in a line: at its beginning, or behind the words of a log entry. -1 for none.
func inline(l string) int {
	l = l[:min(len(l), maxHead)]
	for from := 0; from < len(l); {
		at := from
		for at < len(l) && (l[at] < 'D' || l[at] > 'T' || !thrown(l[at:])) { // most bytes are none of the capitals
			at++
		}
		if at == len(l) {
			return -1
		}
		end := at
		for end < len(l) && (letter(l[end]) || l[end] == '$' || l[end] == '_') {
			end++
		}
		start := at
		for start > 0 && (letter(l[start-1]) || l[start-1] >= '0' && l[start-1] <= '9' || l[start-1] == '.' || l[start-1] == '$' || l[start-1] == '_') {
			start--
		}
		if _, _, ok := exception(l[start:]); ok && (start == 0 || l[start-1] == ' ' || l[start-1] == '\t') {
			return start
		}
		from = end + 1
	}
	return -1
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 }

// exception splits "java.lang.Error: message". A type has a package in lower case and ends like one.
func exception(s string) (typ, msg string, ok bool) {
	end := strings.IndexAny(s, ": \t")
	typ = s
	if end >= 0 {
		typ = s[:end]
		if s[end] != ':' && strings.TrimSpace(s[end:]) != "" {
			return "", "", false
		}
		msg = strings.TrimPrefix(strings.TrimPrefix(s[end:], ":"), " ")
	}
	if !className(typ) {
		return "", "", false
	}
	at := strings.LastIndexByte(typ, '.')
	if at <= 0 || typ[0] < 'a' || typ[0] > 'z' {
		return "", "", false
	}
	simple := typ[at+1:]
	if simple == "" || simple[0] < 'A' || simple[0] > 'Z' {
		return "", "", false
	}
	return typ, strings.TrimSpace(msg), true
}
