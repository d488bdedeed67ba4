package node

import (
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// facts is what stands around an error: its properties and the place that Node.js prints above it.
type facts struct {
	code    string
	path    string
	syscall string
	status  int
	stack   []string // who required, innermost first

	file   string // the printed place
	line   int
	source string
	mark   int // the column of the mark under the source
}

// properties reads the properties behind a stack, up to the brace that closes them, and returns the line behind it. depth is
// how far the error itself is indented.
func (p *parser) properties(f *classify.Failure, facts *facts, n, depth int) int {
	for n < len(p.lines) {
		l := p.lines[n]
		in := indent(l)
		t := strings.TrimSpace(l)
		switch {
		case in <= depth && strings.HasPrefix(t, "}"):
			return n + 1
		case in < depth || in == depth && t != "" && looksLogged(l):
			return n // cut
		case in > depth+2 || t == "":
			n++
			continue
		}
		key, value, ok := strings.Cut(t, ": ")
		if !ok {
			n++
			continue
		}
		switch strings.Trim(key, "'\"") {
		case "code":
			if c := quoted(value); c != "" {
				facts.code = c
			}
		case "path":
			facts.path = quoted(value)
		case "syscall":
			facts.syscall = quoted(value)
		case "status", "statusCode", "httpStatusCode":
			facts.status, _ = strconv.Atoi(strings.TrimRight(value, ", "))
		case "'$metadata'", "$metadata":
			if _, rest, ok := strings.Cut(value, "httpStatusCode: "); ok {
				facts.status, _ = strconv.Atoi(leadingDigits(rest))
			}
		case "requireStack":
			n = p.required(facts, n, value, in)
			continue
		case "[cause]", "cause":
			if g, next := p.nested(n, len(l)-len(strings.TrimLeft(l, " "))+len(key)+2, in); g != nil {
				f.Cause = g
				n = next
				continue
			}
		case "[errors]":
			n = p.group(f, n, in)
			continue
		}
		n++
	}
	return n
}

// quoted is a value without its quotes, empty for anything but a text.
func quoted(v string) string {
	v = strings.TrimRight(v, ", ")
	if len(v) < 2 || v[0] != '\'' && v[0] != '"' && v[0] != '`' || v[len(v)-1] != v[0] {
		return ""
	}
	// Only the backslash is escaped in a path.
	return strings.ReplaceAll(v[1:len(v)-1], `\\`, `\`)
}

// leadingDigits is the number that a text begins with.
func leadingDigits(s string) string {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}

// required reads the list of who required what is missing.
func (p *parser) required(facts *facts, n int, value string, in int) int {
	if rest, ok := strings.CutPrefix(value, "["); ok && strings.Contains(value, "]") {
		for part := range strings.SplitSeq(strings.TrimRight(rest, "], "), ", ") {
			if q := quoted(strings.TrimSpace(part)); q != "" {
				facts.stack = append(facts.stack, q)
			}
		}
		return n + 1
	}
	for n++; n < len(p.lines) && indent(p.lines[n]) > in; n++ {
		if q := quoted(strings.TrimSpace(p.lines[n])); q != "" {
			facts.stack = append(facts.stack, q)
		}
	}
	return n + 1
}

// nested parses the error that is the value of a property: its own line begins at column col of line n, and the lines below
// are indented like the property.
func (p *parser) nested(n, col, in int) (*classify.Failure, int) {
	if p.nesting >= maxNesting || col > len(p.lines[n]) {
		return nil, n
	}
	end, framed := n+1, false
	for ; end < len(p.lines); end++ {
		l := p.lines[end]
		_, _, ok := frameLine(l)
		framed = framed || ok
		if strings.TrimSpace(l) == "" || indent(l) > in {
			continue
		}
		if indent(l) == in && strings.HasPrefix(l[in:], "}") {
			end++
			break
		}
		// Behind the stack, the next property or error. In front of it lines of the message look like anything.
		if indent(l) < in || framed || property(l[in:]) {
			break
		}
	}
	lines := make([]string, 0, end-n)
	lines = append(lines, p.lines[n][col:])
	for _, l := range p.lines[n+1 : end] {
		lines = append(lines, l[min(in, indent(l)):])
	}
	inner := parser{lines: lines, nesting: p.nesting + 1}
	h, ok := headOf(lines[0])
	if !ok {
		return nil, n
	}
	f, _ := inner.failure(0, h, inner.body(0))
	return f, end
}

// property reports a line that begins a property: "name: value", "[cause]: value".
func property(l string) bool {
	key, _, ok := strings.Cut(l, ": ")
	if !ok || key == "" || strings.HasPrefix(l, "- ") {
		return false
	}
	if h, isHead := headOf(l); isHead && h.at == 0 {
		return false
	}
	return !strings.ContainsAny(strings.Trim(key, "'\"[]$"), " /\\")
}

// group reads the errors of an aggregate.
func (p *parser) group(f *classify.Failure, n, in int) int {
	for n++; n < len(p.lines) && indent(p.lines[n]) > in; {
		if h, ok := headOf(strings.TrimLeft(p.lines[n], " ")); ok && h.at == 0 && len(f.Group) < maxGroup && p.nesting < maxNesting {
			if g, next := p.nested(n, indent(p.lines[n]), indent(p.lines[n])); g != nil {
				f.Group = append(f.Group, g)
				n = max(next, n+1)
				continue
			}
		}
		n++
	}
	return n + 1
}
