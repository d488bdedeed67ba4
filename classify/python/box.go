package python

import (
	"strings"
	"unicode/utf8"

	"github.com/mulligan-dev/mulligan/classify"
)

// isBoxHeader reports the upper edge of a traceback that is drawn as a box, with line characters or with ASCII ones.
func isBoxHeader(t string) bool {
	return strings.Contains(t, "Traceback (most recent call last)") && (strings.HasPrefix(t, "╭─") || strings.HasPrefix(t, "+--") || strings.HasPrefix(t, "┌─"))
}

// box parses a drawn traceback that begins at line i: frames in the box, the exception below it.
func (p *parser) box(i int) (*classify.Failure, int) {
	// Inside are headings with path and line, source with a mark at the failing line, and tables of local values, which
	// are passed over because no heading looks like them.
	f := &classify.Failure{First: i}
	path := ""
	edge := strings.TrimLeft(p.lines[i], " ")
	margin, width := len(p.lines[i])-len(edge), utf8.RuneCountInString(strings.TrimRight(edge, " "))
	i++
	for i < len(p.lines) {
		t := strings.TrimSpace(p.lines[i])
		if strings.HasPrefix(t, "╰") || strings.HasPrefix(t, "└") || strings.HasPrefix(t, "+-") && !strings.HasPrefix(t, "+-+") {
			i++
			break
		}
		in, ok := inside(t)
		if !ok {
			break
		}
		path = boxLine(f, in, path)
		i++
	}
	return p.belowBox(f, i, margin, width)
}

// inside is the text of a line between the edges of a box.
func inside(t string) (string, bool) {
	for _, edge := range [...]string{"│", "|", "┃"} {
		if strings.HasPrefix(t, edge) {
			return strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(t, edge), edge)), true
		}
	}
	return "", false
}

// boxLine reads one line of a box. A path too long for the box goes on in the next line; what is open is returned.
func boxLine(f *classify.Failure, in, open string) string {
	if in == "" {
		return ""
	}
	if strings.HasSuffix(open, " in") {
		in = open + " " + in // the name of the function has found no room
	} else if open != "" {
		in = open + in
	}
	if fr, ok := boxFrame(in); ok {
		f.Frames = append(f.Frames, fr)
		return ""
	}
	if (in[0] == '/' || len(in) > 2 && in[1] == ':' && in[2] == '\\') && len(in) < 1024 && !strings.Contains(in, " = ") {
		return in
	}
	if mark := strings.TrimPrefix(in, "❱"); mark != in && len(f.Frames) > 0 {
		fr := &f.Frames[len(f.Frames)-1]
		mark = strings.TrimLeft(mark, " 0123456789")
		fr.Source = strings.TrimSpace(strings.ReplaceAll(mark, "│", " "))
	}
	return ""
}

// boxFrame parses "/path/file.py:12 in name".
func boxFrame(s string) (classify.Frame, bool) {
	at := strings.LastIndex(s, " in ")
	if at < 0 {
		return classify.Frame{}, false
	}
	path, line, ok := cutLine(s[:at])
	if !ok || !strings.ContainsAny(path, `/\<.`) || strings.ContainsAny(path, "=\"'") {
		return classify.Frame{}, false
	}
	fr := classify.Frame{File: path, Line: line, Function: strings.TrimSpace(s[at+4:])}
	describe(&fr)
	return fr, true
}

// cutLine splits "path:12".
func cutLine(s string) (path string, line int, ok bool) {
	at := strings.LastIndexByte(s, ':')
	if at < 1 || !digits(s[at+1:]) {
		return "", 0, false
	}
	return s[:at], number(s[at+1:]), true
}

// belowBox parses the exception under a box: for a syntax error the place first, then the type and a message that is
// wrapped at the width of the terminal. A box that stands in a column of a table has all of this in the same column.
func (p *parser) belowBox(f *classify.Failure, i, margin, width int) (*classify.Failure, int) {
	if column, lines := p.column(i, margin, width); lines > 0 {
		in := &parser{lines: column, nesting: p.nesting + 1}
		f, _ = in.belowBox(f, 0, 0, width)
		return f, i + lines
	}
	if i < len(p.lines) {
		if path, line, ok := cutLine(strings.TrimSpace(p.lines[i])); ok && strings.ContainsAny(path, `/\`) {
			fr := classify.Frame{File: path, Line: line}
			describe(&fr)
			f.Frames = append(f.Frames, fr)
			for i++; i < len(p.lines) && !exceptionLine(p.lines[i]) && strings.TrimSpace(p.lines[i]) != ""; i++ {
				p.source(f, p.lines[i])
			}
		}
	}
	if i < len(p.lines) && exceptionLine(p.lines[i]) {
		f, i = p.exception(f, i)
		// What looks like lines is one message, wrapped.
		f.Message = strings.ReplaceAll(strings.ReplaceAll(f.Message, " \n", " "), "\n", " ")
		return f, i
	}
	f.Cut = true
	p.finish(f)
	return f, i
}

// column is what the lines from i on have in a column that begins at margin, up to the first line that has something before it,
// and how many lines that are. What was too long for the column is put together.
func (p *parser) column(i, margin, width int) (column []string, lines int) {
	if margin == 0 || p.nesting >= maxNesting {
		return nil, 0
	}
	full := false
	for ; i < len(p.lines) && lines < maxMessage; i++ {
		l := strings.TrimRight(p.lines[i], " ")
		if len(l) <= margin || strings.TrimLeft(l[:margin], " ") != "" {
			break
		}
		lines++
		l = l[margin:]
		switch n := len(column); {
		case full:
			column[n-1] += l
		case n > 0:
			column[n-1] += " " // one blank says that the text goes on
			fallthrough
		default:
			column = append(column, l)
		}
		full = utf8.RuneCountInString(l) == width
	}
	return column, lines
}
