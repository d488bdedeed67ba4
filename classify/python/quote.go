package python

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// Agents print what their tools gave back between marks of their own: Markdown fences, or a tag on both sides. A traceback in
// there ended the tool, whatever code it ran.

// mark is a line that opens or closes a quotation.
type mark struct {
	line int
	tag  string // empty for a fence
	// opens and closes say what the mark does. A bare fence may do either.
	opens, closes bool
}

// maxMarks bounds how many tags are looked at behind one failure.
const maxMarks = 64

// readMarks finds the marks of all lines.
func (p *parser) readMarks() {
	p.marked = true
	for i, l := range p.lines {
		l = strings.TrimSpace(l)
		switch {
		case fence(l):
			p.marks = append(p.marks, mark{line: i, opens: true, closes: strings.Trim(l, "`~") == ""})
		case strings.HasPrefix(l, "<") || strings.HasSuffix(l, ">"):
			if m, ok := tagMark(l); ok {
				m.line = i
				p.marks = append(p.marks, m)
			}
		}
	}
}

// fence reports a line, without blanks around it, that begins or ends a block of Markdown.
func fence(t string) bool { return strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~") }

// outputHeading reports a line that says of what stands under it that it is the output of something: "stderr:", "--- output ---".
func outputHeading(t string) bool {
	if len(t) > 40 || strings.Contains(t, "/") {
		return false // a path, or what ends it
	}
	word := strings.ToLower(strings.TrimFunc(t, func(r rune) bool { return (r|0x20 < 'a' || r|0x20 > 'z') && r < 0x80 || r >= 0x2500 && r < 0x2600 }))
	if word == t || strings.HasPrefix(word, "end ") {
		return false // a heading has marks, and one that ends the output is none of it
	}
	return word == "output" || word == "stdout" || word == "stderr" || strings.HasSuffix(word, " output") || strings.HasSuffix(word, " stderr") || strings.HasSuffix(word, " stdout")
}

// tagMark reads "<stderr>", "<result id=3>" or "</stderr>". A closing tag may stand behind the last line of what it closes.
func tagMark(l string) (mark, bool) {
	if len(l) < 3 || !strings.HasSuffix(l, ">") {
		return mark{}, false
	}
	if at := strings.LastIndex(l, "</"); at >= 0 {
		name := l[at+2 : len(l)-1]
		// One that was opened on the same line closes that.
		return mark{tag: name, closes: true}, tagName(name) && !strings.Contains(l[:at], "<"+name)
	}
	name, _, _ := strings.Cut(l[1:len(l)-1], " ")
	return mark{tag: name, opens: true}, l[0] == '<' && tagName(name)
}

// tagName reports the name of a tag.
func tagName(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (i == 0 || s[i] != '_' && s[i] != '-' && s[i] != ':' && (s[i] < '0' || s[i] > '9')) {
			return false
		}
	}
	return s != ""
}

// quotation returns the line that ends the quotation which a failure stands in, -1 for none.
func (p *parser) quotation(f *classify.Failure) int {
	if p.log == nil {
		return -1 // a part of a line or of a message, which has no marks of its own
	}
	if !p.marked {
		p.readMarks()
	}
	behind := len(p.marks)
	for behind > 0 && p.marks[behind-1].line > f.First {
		behind--
	}
	if end := p.fenced(f, behind); end >= 0 {
		return end
	}
	// What is behind a failure tells more than what is before it: the text may begin inside of the quotation.
	var open [maxMarks]string
	n := 0
next:
	for _, m := range p.marks[behind:min(behind+maxMarks, len(p.marks))] {
		switch {
		case m.tag == "":
		case m.opens:
			open[n] = m.tag
			n++
		default:
			for i := n - 1; i >= 0; i-- {
				if open[i] == m.tag {
					n = i
					continue next
				}
			}
			return m.line
		}
	}
	return -1
}

// fenced returns the line of the fence that closes the one which a failure stands in, -1 for none. The marks from behind on
// come after the failure's beginning.
func (p *parser) fenced(f *classify.Failure, behind int) int {
	first, odd, named := -1, false, false
	for _, m := range p.marks[behind:] {
		switch {
		case m.tag != "":
		case !m.closes: // it opens one, with the language behind it, and the next bare fence closes that
			if first < 0 {
				return -1
			}
			named = true
		case named:
			named = false
		default:
			if odd = !odd; first < 0 {
				first = m.line
			}
		}
	}
	if !odd {
		return -1
	}
	return first
}

// closed reports that the fence at line i closes a quotation, as far as all of the text is there.
func (p *parser) closed(i int) bool {
	if p.log == nil || p.log.Cut {
		return false
	}
	open := false
	for _, m := range p.marks {
		if m.line > i {
			break
		}
		if m.tag == "" {
			open = !m.closes || !open
		}
	}
	return !open
}
