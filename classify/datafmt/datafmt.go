// Package datafmt reads the one-line statements with which programs refuse stored data and peers: a schema that is newer than
// the program, a protocol that the other side does not speak, and the same words from tools, which mean nothing. Call [New]
// and give the result to [classify.New].
//
// It refuses to blame the product for what a tool or a repository says of its own versions. It promises that only a line that
// a program wrote under its own name counts, and that a line which says which side is newer is read by its numbers.
package datafmt

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime reads refusals of data. It has no state.
type Runtime struct{}

// New returns the runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime = Runtime{}
	_ classify.Hinter  = Runtime{}
	_ classify.Speaker = Runtime{}
)

// Name is "data".
func (Runtime) Name() string { return "data" }

// Module implements [classify.Runtime]. Programs are named by themselves, no file is one.
func (Runtime) Module(string) string { return "" }

// Vocabulary implements [classify.Speaker].
func (Runtime) Vocabulary() classify.Vocabulary {
	return classify.Vocabulary{Lines: window, Folded: append([]string{"expected git repo version", "repository extension", "api version", "client version"}, known...)}
}

// Hint implements [classify.Hinter].
func (Runtime) Hint(tail []byte) bool {
	low := string(bytes.ToLower(tail))
	return has(low, known...) && has(low, talk...) || has(low, "repo version", "repository extension", "api version", "client version")
}

// window is how many lines from the end may hold the refusal.
const window = 12

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	var found *classify.Failure
	seen := 0
	for i := len(log.Lines) - 1; i >= 0 && seen < window; i-- {
		l := strings.TrimSpace(log.Lines[i])
		if l == "" || log.Ignored(i) {
			continue
		}
		seen++
		f := read(l, log.Dress())
		if f == nil {
			if found != nil || works(l) {
				break
			}
			continue
		}
		f.First, f.Line, f.Last = i, i, i
		if found != nil {
			f.Last = found.Last
		}
		found = f
	}
	return found
}

// works reports a line of ordinary work: what stands before it was got over.
func works(l string) bool {
	l = strings.ToLower(l)
	return has(l, "retry", "continu", "recovered", "step ", "turn ", "phase=", "migrated", "done", "ready", "loaded", "connected", "rebuilding", "falling back", "ignored", "ignoring", "skipp")
}

// read reads one line, whose program may be named in the dress that was taken off it.
func read(l, dress string) *classify.Failure {
	low := strings.ToLower(l)
	if has(low, "info ", "debug ", "warn ", "warning", "optional", "ignored", "skipp", "retrying", "falling back", "[info]", "[warn]", "deprecated") {
		return nil
	}
	if r := foreign(low); r != "" {
		return &classify.Failure{Listed: r, Message: l}
	}
	author, said, ok := statement(l)
	if name := program(dress); name != "" {
		author, said, ok = name, l, true
	}
	if !ok {
		return nil
	}
	k := peers(strings.ToLower(said))
	if k == classify.KindOther {
		return nil
	}
	return &classify.Failure{Kind: k, TypeModule: author, Message: said, Fatal: true}
}

// program is the name of a program at the end of the dress: "host kestrel[77]: ", "ERROR kestrel: ".
func program(dress string) string {
	words := strings.Fields(dress)
	if len(words) == 0 || !strings.HasSuffix(words[len(words)-1], ":") && !strings.HasSuffix(words[len(words)-1], "]") {
		return ""
	}
	name := strings.Trim(words[len(words)-1], "[]():")
	if at := strings.IndexByte(name, '['); at > 0 {
		name = name[:at]
	}
	if strings.Trim(name, "0123456789-:.TZ") == "" {
		return ""
	}
	return name
}

// foreign reads tools' words about versions of their own.
func foreign(l string) classify.Reason {
	switch {
	case strings.Contains(l, "expected git repo version <= "), strings.Contains(l, "unknown repository extension"):
		return classify.WorkspaceError
	case has(l, "client api version", "client version", "api version") && has(l, "is too new", "is too old", "newer than server", "maximum supported", "minimum supported", "(maximum "):
		return classify.ToolFailure
	}
	return ""
}

// statement splits "program: message" off the front of a line, behind a level. A program may name a part of itself.
func statement(l string) (author, said string, ok bool) {
	for _, level := range [...]string{"ERROR ", "FATAL ", "CRITICAL ", "error: ", "fatal: ", "[ERROR] ", "[FATAL] ", "level=error ", "level=fatal "} {
		if at := strings.Index(l, level); at >= 0 && at < 48 {
			l = strings.TrimSpace(l[at+len(level):])
			break
		}
	}
	at := strings.Index(l, ": ")
	if at <= 0 {
		return "", "", false
	}
	author = strings.Trim(l[:at], "[]")
	if pid := strings.IndexByte(author, '['); pid > 0 {
		author = author[:pid]
	}
	if author == "" || strings.ContainsAny(author, " \t\"'=()") || len(author) > 80 {
		return "", "", false
	}
	return author, strings.TrimSpace(l[at+2:]), true
}

func has(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
