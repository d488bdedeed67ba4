// Package pack makes a runtime out of signatures that a host declares in YAML, so that failures only the host prints are
// judged by the same rules as everybody's. Call [Read] with a file's bytes and give the result to [classify.New], beside the
// runtimes of other packages.
//
// It refuses a file in which anything is wrong, with every mistake at once: line, field and what is allowed, in an [Error].
// It promises that a pack cannot claim code: a signature says what failed, and the roots of the host say whose it is, so a
// line that names no managed unit is never skew. A pattern is linear in the line, and is only tried on lines that hold its
// literal.
package pack

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/internal/logline"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// maxLine is how much of a line is matched.
const maxLine = 4096

// Pack is a runtime made of signatures. It has no state that changes: several goroutines may use it at once.
type Pack struct {
	name       string
	signatures []signature
}

// signature is one failure.
type signature struct {
	id        string
	family    classify.Family
	never     classify.Reason
	literal   string
	pattern   *regexp.Regexp
	exception string
	// groups are the places of the named groups in the pattern, -1 for none.
	module, symbol, file, by int
}

var (
	_ classify.Runtime   = (*Pack)(nil)
	_ classify.Hinter    = (*Pack)(nil)
	_ classify.Speaker   = (*Pack)(nil)
	_ classify.PathUnits = (*Pack)(nil)
)

// Name implements [classify.Runtime]: it is the pack's own.
func (p *Pack) Name() string { return p.name }

// Module implements [classify.Runtime]. A pack names units by what its patterns find, and files by their paths.
func (p *Pack) Module(string) string { return "" }

// Package implements [classify.PathUnits].
func (p *Pack) Package(string) string { return "" }

// Vocabulary implements [classify.Speaker]: the literals.
func (p *Pack) Vocabulary() classify.Vocabulary {
	v := classify.Vocabulary{}
	for _, s := range p.signatures {
		v.Exact = append(v.Exact, s.literal)
	}
	return v
}

// Hint implements [classify.Hinter].
func (p *Pack) Hint(tail []byte) bool {
	for _, s := range p.signatures {
		if bytes.Contains(tail, []byte(s.literal)) {
			return true
		}
	}
	return false
}

// Parse implements [classify.Runtime]: of the lines that a signature matches the last one counts, and of several signatures
// of one line the first in the file.
func (p *Pack) Parse(log *text.Log) *classify.Failure {
	for i := len(log.Lines) - 1; i >= 0; i-- {
		if log.Ignored(i) {
			continue
		}
		l := log.Lines[i][:min(len(log.Lines[i]), maxLine)]
		for n := range p.signatures {
			s := &p.signatures[n]
			if !strings.Contains(l, s.literal) {
				continue
			}
			if at := s.pattern.FindStringSubmatchIndex(l); at != nil {
				f := s.failure(l, at)
				f.First, f.Line, f.Last = i, i, i
				f.Survived = logline.Handled(l)
				return f
			}
		}
	}
	return nil
}

// failure is what a signature says about a line, in the words that all runtimes share.
func (s *signature) failure(line string, at []int) *classify.Failure {
	group := func(n int) string {
		if n < 0 || at[2*n] < 0 {
			return ""
		}
		return line[at[2*n]:at[2*n+1]]
	}
	f := &classify.Failure{Type: s.exception, Message: line, Module: group(s.module), Symbol: group(s.symbol), File: group(s.file), Listed: s.never, Fatal: true}
	if by := group(s.by); by != "" {
		f.Frames = []classify.Frame{{Unit: by, Built: true}}
	} else {
		f.Startup = true // the line is the program's own word about itself
	}
	switch s.family {
	case classify.TornImport:
		if f.Kind = classify.KindMissingModule; f.Symbol != "" {
			f.Kind = classify.KindMissingName
		}
		f.FileIsUnit = f.Module == "" && f.File != ""
	case classify.StaleBinding:
		f.Kind = classify.KindBinding
	case classify.TornFile:
		f.Kind = classify.KindTorn
		f.FileIsUnit = f.Module == "" && f.File != ""
	case classify.WireSchema:
		f.Kind, f.TypeModule = classify.KindWire, f.Module
	case classify.DataFormat:
		f.Kind = classify.KindNewerData
	}
	return f
}
