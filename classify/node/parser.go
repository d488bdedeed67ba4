package node

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// parser walks over the lines of a log.
type parser struct {
	log     *text.Log // nil where the lines are a part of a failure
	lines   []string
	nesting int
}

const (
	// maxMessage bounds the lines between an error's own line and its stack.
	maxMessage = 40
	// maxNesting bounds the causes in causes. No text that a tail could hold prints a deeper one.
	maxNesting = 16
	// maxGroup bounds the errors of an aggregate.
	maxGroup = 64
)

// last finds the failure that was printed last and not survived, or else the last one at all.
func (p *parser) last() *classify.Failure {
	var best *classify.Failure
	for i := 0; i < len(p.lines); {
		f, next := p.at(i)
		if f == nil {
			i++
			continue
		}
		if !f.Survived || best == nil {
			best = f
		}
		i = max(next, i+1)
	}
	if best != nil {
		p.epilogue(best)
	}
	return best
}

// at parses the failure that begins in line i, nil if none does.
func (p *parser) at(i int) (*classify.Failure, int) {
	l := p.lines[i]
	if strings.HasPrefix(l, "FATAL ERROR: ") {
		return p.fatal(i)
	}
	h, ok := headOf(l)
	if !ok {
		return nil, i
	}
	body := p.body(i)
	if !body.framed && !h.plain {
		return nil, i
	}
	if !body.framed && !body.props && !telling(h.message) && !p.located(i) {
		return nil, i
	}
	return p.failure(i, h, body)
}

// body is where the parts of a failure lie.
type body struct {
	message int  // the line behind the message
	framed  bool // a stack follows
	props   bool // properties follow behind the message
}

// body looks for the stack that belongs to the line i.
func (p *parser) body(i int) body {
	depth := indent(p.lines[i])
	if strings.HasSuffix(p.lines[i], " {") {
		return body{i + 1, false, true}
	}
	for n := i + 1; n < len(p.lines) && n <= i+maxMessage; n++ {
		l := p.lines[n]
		if _, d, ok := frameLine(l); ok && d > depth {
			return body{n, true, false}
		}
		if looksLogged(l) || strings.HasPrefix(l, "Node.js v") || l == "}" {
			break
		}
		if h, ok := headOf(l); ok && h.at == 0 && n > i+1 && !strings.HasPrefix(p.lines[n-1], "    ") && telling(h.message) {
			break
		}
		if strings.HasSuffix(l, " {") && indent(l) == depth && strings.HasPrefix(p.lines[min(n+1, len(p.lines)-1)], "  ") {
			return body{n + 1, false, true}
		}
	}
	// No stack: the message goes on over the list of who required it.
	n := i + 1
	for n < len(p.lines) && (p.lines[n] == "Require stack:" || strings.HasPrefix(p.lines[n], "- ")) {
		n++
	}
	return body{n, false, false}
}

// failure reads the failure whose own line is i.
func (p *parser) failure(i int, h head, b body) (*classify.Failure, int) {
	f := &classify.Failure{Type: h.typ, Message: h.message, First: i, Line: i}
	facts := &facts{code: h.code}
	lines := p.lines[i+1 : b.message]
	if len(lines) > 0 {
		f.Message += "\n" + strings.Join(lines, "\n")
	}
	open := b.props
	n := b.message
	if open {
		f.Message = strings.TrimSuffix(f.Message, " {")
	}
	f.Message = strings.TrimSpace(f.Message)
	depth := indent(p.lines[i])
	var frames []classify.Frame
	for ; n < len(p.lines) && !open; n++ {
		l := p.lines[n]
		fr, d, ok := frameLine(l)
		switch {
		case ok && d > depth:
			frames = append(frames, fr)
		case strings.HasPrefix(strings.TrimSpace(l), "... ") && strings.HasSuffix(strings.TrimRight(l, "{ "), " ..."), strings.HasPrefix(l, "Emitted 'error' event "):
		default:
			goto done
		}
		open = strings.HasSuffix(l, " {")
	}
done:
	if open {
		n = p.properties(f, facts, n, depth)
	}
	f.Frames = reversed(frames)
	f.Last = n - 1
	if b.framed || b.props {
		f.Line = f.Last // what stands in front of a stack is message, whatever it says
	}
	p.place(f, facts)
	if p.log != nil {
		p.trailer(f)
		f.Survived = !f.Fatal && p.survived(i, h) || strings.Contains(p.lines[i], "UnhandledPromiseRejectionWarning")
	}
	finish(f, facts)
	return f, f.Last + 1
}

// place finds the location that Node.js prints above an error that nothing caught.
func (p *parser) place(f *classify.Failure, facts *facts) {
	n := f.First - 1
	blank := func() {
		if n >= 0 && strings.TrimSpace(p.lines[n]) == "" {
			n--
		}
	}
	// The mark under the line may stand behind its end, where nothing but blanks are.
	blank()
	if n >= 0 && strings.Trim(p.lines[n], " \t^~") == "" {
		facts.mark = strings.IndexAny(p.lines[n], "^~")
		n--
	}
	for back := 0; back < 3 && n-back >= 0; back++ {
		file, line, ok := placeLine(p.lines[n-back])
		if !ok {
			continue
		}
		facts.file, facts.line = file, line
		if back > 0 {
			facts.source = p.lines[n-back+1]
		}
		f.First = n - back
		f.Fatal = p.log != nil
		return
	}
}

// located reports whether the line i stands below a printed location.
func (p *parser) located(i int) bool {
	f, facts := &classify.Failure{First: i}, &facts{}
	p.place(f, facts)
	return facts.file != ""
}

// placeLine reads "path:line".
func placeLine(l string) (string, int, bool) {
	if l == "" || l[0] == ' ' || l[0] == '\t' || len(l) > 4096 {
		return "", 0, false
	}
	at := strings.LastIndexByte(l, ':')
	if at <= 0 || at+1 == len(l) || strings.Trim(l[at+1:], "0123456789") != "" {
		return "", 0, false
	}
	file, line := location(l)
	p := strings.ReplaceAll(l, `\`, "/")
	if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "file://") || strings.HasPrefix(p, "node:") || strings.HasPrefix(p, "internal/") || len(p) > 2 && p[1] == ':' && p[2] == '/' ||
		strings.HasSuffix(p[:at], ".js") && !strings.Contains(p, " ") {
		return file, line, true
	}
	return "", 0, false
}

// trailer takes in what Node.js prints behind an error that nothing caught.
func (p *parser) trailer(f *classify.Failure) {
	n := f.Last + 1
	for n < len(p.lines) && n < f.Last+4 && (strings.TrimSpace(p.lines[n]) == "" || strings.HasPrefix(p.lines[n], "(Use `node --trace-")) {
		n++
	}
	if n < len(p.lines) && (strings.HasPrefix(p.lines[n], "Node.js v") || strings.HasPrefix(p.lines[n], "Bun v")) {
		f.Last, f.Fatal = n, true
	}
}

// epilogue marks what package managers say when the script that they ran has ended. It is no word of the program's.
func (p *parser) epilogue(f *classify.Failure) {
	for i := f.Last + 1; i < len(p.lines); i++ {
		l := strings.TrimSpace(p.lines[i])
		for _, w := range [...]string{"npm ERR!", "npm error", "npm notice", "npm warn", "error Command failed with exit code", "info Visit https://yarnpkg.com/", "ELIFECYCLE", "error: script ", "[nodemon] app crashed"} {
			if strings.HasPrefix(strings.TrimLeft(l, "\u2009 "), w) {
				p.log.Ignore(i, i+1)
			}
		}
	}
}

// fatal reads what the engine prints when it gives up.
func (p *parser) fatal(i int) (*classify.Failure, int) {
	f := &classify.Failure{Type: "FatalError", Message: p.lines[i][len("FATAL ERROR: "):], First: i, Line: i, Fatal: true, Kind: classify.KindCrash}
	if strings.Contains(f.Message, "out of memory") || strings.Contains(f.Message, "heap limit") || strings.Contains(f.Message, "Allocation failed") {
		f.Type, f.Kind = "OutOfMemory", classify.KindOther
	}
	n := i + 1
	for ; n < len(p.lines); n++ {
		l := strings.TrimSpace(p.lines[n])
		if l != "" && !strings.HasPrefix(l, "-----") && !strings.Contains(l, ": 0x") && !strings.HasPrefix(l, "0x") {
			break
		}
	}
	f.Last = n - 1
	return f, n
}

// indent counts the blanks in front of a line.
func indent(l string) int { return len(l) - len(strings.TrimLeft(l, " ")) }
