package jvm

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// springFailed is the heading under which Spring Boot tells in its own words, without a trace, why a program did not start.
const springFailed = "APPLICATION FAILED TO START"

// maxReport bounds the lines of such a report.
const maxReport = 64

// spring parses the report about a method that is not there: who called it, and its signature, each on a line of its own behind
// the words for it. What other reports say is about the program's configuration.
func (p *parser) spring(i int) (*classify.Failure, int) {
	f := &classify.Failure{Startup: true, Fatal: true}
	f.TypeModule, f.Type = "java.lang", "NoSuchMethodError"
	n := i + 1
	for ; n < len(p.lines) && n < i+maxReport && p.lines[n] != "Action:"; n++ {
		l := p.lines[n]
		switch {
		case strings.HasSuffix(l, "was made from the following location:"):
			if fr, ok := frame("at " + p.below(n)); ok {
				f.Frames = append(f.Frames, fr)
			}
		case strings.HasPrefix(l, "The following method did not exist:"):
			f.Message = p.below(n)
			read(f)
		}
	}
	if f.Kind == classify.KindOther {
		return nil, i + 1
	}
	// The advice behind the report is a heading and a sentence.
	for end := n + 4; n < len(p.lines) && n < end && (n == end-4 || p.lines[n] == "" || strings.HasPrefix(p.lines[n], "Correct the classpath")); n++ {
	}
	return f, n
}

// below is the next line behind n that is not empty.
func (p *parser) below(n int) string {
	for n++; n < len(p.lines); n++ {
		if t := strings.TrimSpace(p.lines[n]); t != "" {
			return t
		}
	}
	return ""
}
