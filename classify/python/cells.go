package python

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// isCellHeader reports IPython's first line: the type, then "Traceback (most recent call last)" at the right margin.
func isCellHeader(t string) bool {
	const tail = "Traceback (most recent call last)"
	if !strings.HasSuffix(t, tail) {
		return false
	}
	lead := strings.TrimSpace(strings.TrimSuffix(t, tail))
	return lead != "" && dotted(lead)
}

// cells parses IPython's rendering from line i on: a heading per frame, source with an arrow, the exception last.
func (p *parser) cells(i int) (*classify.Failure, int) {
	// The type stands in the first line and again before the message, so the end is known from the start.
	f := &classify.Failure{First: i}
	want, _, _ := strings.Cut(strings.TrimSpace(p.lines[i]), " ")
	for i++; i < len(p.lines); i++ {
		l := p.lines[i]
		if strings.HasPrefix(l, want+":") || l == want {
			return p.exception(f, i)
		}
		if fr, ok := cellFrame(l); ok {
			f.Frames = append(f.Frames, fr)
			continue
		}
		if t := strings.TrimLeft(l, " "); strings.HasPrefix(t, "--") && strings.Contains(t, "> ") && len(f.Frames) > 0 {
			fr := &f.Frames[len(f.Frames)-1]
			_, src, _ := strings.Cut(t, "> ")
			fr.Source = strings.TrimSpace(strings.TrimLeft(src, "0123456789"))
		}
		if isHeader(l) {
			break
		}
	}
	f.Cut = true
	p.finish(f)
	return f, i
}

// cellFrame parses the headings of IPython's frames.
func cellFrame(l string) (classify.Frame, bool) {
	switch {
	// A cell is typed by a person or an agent, in every version of the heading.
	case strings.HasPrefix(l, "Cell In"), strings.HasPrefix(l, "Input In"), strings.HasPrefix(l, "<ipython-input"):
		return classify.Frame{File: "<cell>", Function: "<module>", Origin: classify.OriginUser}, true
	case strings.HasPrefix(l, "File "):
		rest := l[len("File "):]
		path, function, _ := strings.Cut(rest, ", in ")
		file, line, ok := cutLine(strings.TrimSpace(path))
		if !ok {
			return classify.Frame{}, false
		}
		fr := classify.Frame{File: file, Line: line, Function: function}
		if fr.Function == "" {
			fr.Function = "<module>"
		}
		describe(&fr)
		return fr, true
	}
	// "/path/file.py in name(args)"
	if len(l) > 1 && (l[0] == '/' || l[0] == '~') {
		if path, function, ok := strings.Cut(l, " in "); ok && (strings.HasSuffix(path, ".py") || strings.HasSuffix(path, ".pyx")) {
			fr := classify.Frame{File: path, Function: function}
			describe(&fr)
			return fr, true
		}
	}
	return classify.Frame{}, false
}
