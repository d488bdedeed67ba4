package pack

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/mulligan-dev/mulligan/classify"
)

// The limits of a pack. They keep a verdict cheap whatever a file holds.
const (
	maxSignatures = 256
	maxPattern    = 1024
	minLiteral    = 4
)

// Problem is one mistake in a file.
type Problem struct {
	// File is the file as it was named, Line where it happens; zero for the whole file.
	File string
	Line int
	// Field is the full name of the field, "signatures[2].family", empty for none.
	Field string
	// Text says what is wrong and what is allowed.
	Text string
}

func (p Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at += fmt.Sprintf(":%d", p.Line)
	}
	if p.Field != "" {
		at += ": " + p.Field
	}
	return at + ": " + p.Text
}

// Error is everything that is wrong with a file, a line for each mistake.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "read signature pack:\n" + strings.Join(lines, "\n")
}

// reader walks the node tree, which knows its lines, and goes on after a mistake.
type reader struct {
	file     string
	problems []Problem
}

// Read makes a pack of a file's bytes; file is its name in errors. The file is a mapping:
//
//	name: acme                  # of the runtime, in verdicts
//	signatures:
//	  - id: frames              # of the signature, in errors
//	    family: wire_schema     # torn_import, stale_binding, wire_schema, data_format or torn_file; or
//	    never: rate_limit       # an entry of the never list
//	    literal: "frame 0x"     # stands in every line that the pattern matches, four bytes or more
//	    pattern: 'frame 0x\w+ of (?P<module>[\w.]+)'
//	    exception: FrameError   # the type to show; may be left out
//
// The named groups of a pattern are module (the unit that fails), symbol (what it lacks), file (its path) and by (the unit
// that asked for it). A family needs a module or a file.
func Read(file string, data []byte) (*Pack, error) {
	r := &reader{file: file}
	p := r.pack(data)
	if len(r.problems) > 0 {
		return nil, &Error{Problems: r.problems}
	}
	return p, nil
}

func (r *reader) problem(line int, field, format string, args ...any) {
	r.problems = append(r.problems, Problem{r.file, line, field, fmt.Sprintf(format, args...)})
}

func (r *reader) pack(data []byte) *Pack {
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		line := 0
		var one *yaml.LoadError
		var many *yaml.LoadErrors
		if errors.As(err, &many) && len(many.Errors) > 0 {
			one = many.Errors[0]
		}
		if one != nil || errors.As(err, &one) {
			line = one.Mark.Line
		}
		r.problem(line, "", "not YAML: %s", strings.TrimPrefix(strings.TrimSpace(err.Error()), "yaml: "))
		return nil
	}
	top := &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		top = doc.Content[0]
	}
	fields := r.fields(top, "", "name", "signatures")
	if fields == nil {
		return nil
	}
	p := &Pack{name: r.word(fields["name"], top, "name", true)}
	list := fields["signatures"]
	switch {
	case list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0:
		r.problem(lineOf(list, top), "signatures", "missing or empty, want a list of signatures")
		return p
	case len(list.Content) > maxSignatures:
		r.problem(list.Line, "signatures", "%d of them, want %d at most", len(list.Content), maxSignatures)
		return p
	}
	seen := map[string]int{}
	for i, n := range list.Content {
		at := fmt.Sprintf("signatures[%d].", i)
		s, ok := r.signature(n, at)
		if !ok {
			continue
		}
		if first, dup := seen[s.id]; dup {
			r.problem(n.Line, at+"id", "%q is the id of signatures[%d] as well", s.id, first)
		}
		seen[s.id] = i
		p.signatures = append(p.signatures, s)
	}
	return p
}

// signature reads one signature and reports all that is wrong with it.
func (r *reader) signature(n *yaml.Node, at string) (signature, bool) {
	before := len(r.problems)
	f := r.fields(n, at, "id", "family", "never", "literal", "pattern", "exception")
	if f == nil {
		return signature{}, false
	}
	s := signature{id: r.word(f["id"], n, at+"id", true), exception: r.word(f["exception"], n, at+"exception", false)}
	switch {
	case (f["family"] == nil) == (f["never"] == nil):
		r.problem(n.Line, at+"family", "want either family or never, and not both")
	case f["family"] != nil:
		s.family = classify.Family(r.oneOf(f["family"], at+"family", families()))
	default:
		s.never = classify.Reason(r.oneOf(f["never"], at+"never", reasons()))
	}
	s.literal = r.word(f["literal"], n, at+"literal", true)
	if len(s.literal) < minLiteral && f["literal"] != nil {
		r.problem(f["literal"].Line, at+"literal", "%q is too short, want %d bytes or more", s.literal, minLiteral)
	}
	if strings.ContainsAny(s.literal, "\n\r\x00") {
		r.problem(f["literal"].Line, at+"literal", "it has a line end, want a part of one line")
	}
	if expr := r.word(f["pattern"], n, at+"pattern", true); expr != "" {
		r.pattern(&s, f["pattern"].Line, at+"pattern", expr, f["never"] == nil)
	}
	return s, len(r.problems) == before
}

// pattern compiles an expression and finds its groups. unit says that one of them must name what failed.
func (r *reader) pattern(s *signature, line int, field, expr string, unit bool) {
	if len(expr) > maxPattern {
		r.problem(line, field, "%d bytes, want %d at most", len(expr), maxPattern)
		return
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		var bad *syntax.Error
		if errors.As(err, &bad) {
			r.problem(line, field, "not an expression: %s in %q; it has RE2's syntax", bad.Code, bad.Expr)
		} else {
			r.problem(line, field, "not an expression: %v", err)
		}
		return
	}
	s.pattern = re
	s.module, s.symbol, s.file, s.by = -1, -1, -1, -1
	groups := map[string]*int{"module": &s.module, "symbol": &s.symbol, "file": &s.file, "by": &s.by}
	for i, name := range re.SubexpNames() {
		if name == "" {
			continue
		}
		g, ok := groups[name]
		switch {
		case !ok:
			r.problem(line, field, "the group %q means nothing, want module, symbol, file or by", name)
		case *g >= 0:
			r.problem(line, field, "the group %q is there twice", name)
		default:
			*g = i
		}
	}
	if unit && s.module < 0 && s.file < 0 {
		r.problem(line, field, "want a group module or file: without a unit a failure cannot be the product's")
	}
	if tree, err := syntax.Parse(expr, syntax.Perl); err == nil && s.literal != "" && !needs(tree, s.literal) {
		r.problem(line, field, "it matches lines without the literal %q, want the literal in it as it is, outside of choices and repetitions", s.literal)
	}
}

// needs reports whether every text that an expression matches holds a literal.
func needs(re *syntax.Regexp, literal string) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return re.Flags&syntax.FoldCase == 0 && strings.Contains(string(re.Rune), literal)
	case syntax.OpCapture, syntax.OpPlus:
		return needs(re.Sub[0], literal)
	case syntax.OpConcat:
		return slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return needs(sub, literal) })
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !needs(sub, literal) })
	}
	return false
}

// fields takes a mapping apart; nil where it is none.
func (r *reader) fields(n *yaml.Node, at string, allowed ...string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		r.problem(n.Line, strings.TrimSuffix(at, "."), "want a mapping with the fields %s", strings.Join(allowed, ", "))
		return nil
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case !slices.Contains(allowed, key.Value):
			r.problem(key.Line, at+key.Value, "unknown field, want one of %s", strings.Join(allowed, ", "))
		case out[key.Value] != nil:
			r.problem(key.Line, at+key.Value, "it is there twice")
		default:
			out[key.Value] = n.Content[i+1]
		}
	}
	return out
}

// word reads a text of one line.
func (r *reader) word(n, parent *yaml.Node, field string, needed bool) string {
	switch {
	case n == nil && needed:
		r.problem(parent.Line, field, "missing, want a text")
	case n == nil:
	case n.Kind != yaml.ScalarNode:
		r.problem(n.Line, field, "want a text")
	case n.Value == "":
		r.problem(n.Line, field, "empty, want a text")
	default:
		return n.Value
	}
	return ""
}

// oneOf reads one of some words.
func (r *reader) oneOf(n *yaml.Node, field string, allowed []string) string {
	if n.Kind != yaml.ScalarNode || !slices.Contains(allowed, n.Value) {
		r.problem(n.Line, field, "%q, want one of %s", n.Value, strings.Join(allowed, ", "))
		return ""
	}
	return n.Value
}

func lineOf(n, parent *yaml.Node) int {
	if n != nil {
		return n.Line
	}
	return parent.Line
}

func families() []string {
	var out []string
	for _, f := range [...]classify.Family{classify.TornImport, classify.StaleBinding, classify.WireSchema, classify.DataFormat, classify.TornFile} {
		out = append(out, string(f))
	}
	return out
}

func reasons() []string {
	var out []string
	for _, n := range [...]classify.Reason{classify.ProviderError, classify.RateLimit, classify.Auth, classify.Killed, classify.OOM, classify.Timeout, classify.DiskFull, classify.DirectiveError, classify.ToolFailure,
		classify.TestFailure, classify.ThirdPartyImport, classify.WorkspaceImport, classify.WorkspaceError} {
		out = append(out, string(n))
	}
	return out
}
