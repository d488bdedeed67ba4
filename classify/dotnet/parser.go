package dotnet

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/internal/logline"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// The bounds of one text: lines of a message, links of a chain, and how far into a line a type is looked for.
const (
	maxMessage = 48
	maxLinks   = 32
	maxHead    = 2048
)

// parser finds the failures in the lines of a log.
type parser struct {
	log   *text.Log
	lines []string
}

// link is one exception as it is printed, frames innermost first.
type link struct {
	typ, msg string
	frames   []classify.Frame
	line     int
}

// last returns the last failure that was not survived, else the last one that was, else nil.
func (p *parser) last() *classify.Failure {
	var best *classify.Failure
	for i := 0; i < len(p.lines); {
		f, next := p.at(i)
		if f == nil {
			i = max(next, i+1)
			continue
		}
		f.First, f.Last = i, max(next-1, i)
		f.Line = f.Last
		p.introduced(f)
		switch {
		case best == nil, best.Survived, !f.Survived:
			best = f
		default:
			p.log.Ignore(f.First, f.Last+1)
		}
		i = max(next, i+1)
	}
	return best
}

// The words with which the runtimes print what nothing has caught.
var unhandled = []string{"Unhandled exception. ", "Unhandled Exception: ", "Unhandled exception: ", "[ERROR] FATAL UNHANDLED EXCEPTION: ", "FATAL UNHANDLED EXCEPTION: "}

// death is what stands behind those words in a line, empty for any other.
func death(l string) string {
	for _, w := range unhandled {
		if rest, ok := strings.CutPrefix(l, w); ok {
			return rest
		}
	}
	return ""
}

// introduced reads the entry that a failure stands in, or the one in front of it.
func (p *parser) introduced(f *classify.Failure) {
	l := p.lines[f.First]
	if at := inline(l); at > 0 && !f.Fatal && logline.Handled(l[:at]) {
		f.Survived = true
	}
	for i, seen := f.First-1, 0; i >= 0 && seen < 3; i-- {
		t := strings.TrimSpace(p.lines[i])
		if t == "" {
			continue
		}
		seen++
		if logline.Quoted(t) {
			f.Listed = classify.ToolFailure
			return
		}
		if t == "Error Message:" || t == "Stack Trace:" || strings.HasPrefix(t, "[xUnit.net ") {
			f.Listed = classify.TestFailure
			return
		}
		if _, ok := frame(p.lines[i]); ok {
			return
		}
		// The console logger prints level and category in one line, and what it has to say indented below.
		if !f.Fatal && logline.Entry(t) {
			f.Survived = f.Survived || logline.Handled(t) && l[0] == ' ' || logline.Introduces(t) && seen == 1
			return
		}
	}
}

// at parses the failure that begins at line i, if one does, and returns the line behind it.
func (p *parser) at(i int) (*classify.Failure, int) {
	l := p.lines[i]
	if l == "" {
		return nil, i + 1
	}
	if rest := death(l); rest != "" {
		f, next := p.exceptionAt(i, rest)
		if f != nil {
			f.Fatal = true
		}
		return f, next
	}
	if strings.TrimSpace(l) == "Unhandled Exception:" && i+1 < len(p.lines) {
		f, next := p.exceptionAt(i+1, p.lines[i+1])
		if f != nil {
			f.Fatal = true
		}
		return f, next
	}
	if f, next := p.host(i); f != nil {
		return f, next
	}
	at := inline(l)
	if at < 0 || !p.framed(i+1) {
		return nil, i + 1
	}
	return p.exceptionAt(i, l[at:])
}

// framed reports whether frames follow at line i, behind what else may belong to a message.
func (p *parser) framed(i int) bool {
	for n := 0; i < len(p.lines) && n < maxMessage; i, n = i+1, n+1 {
		l := p.lines[i]
		if _, ok := frame(l); ok {
			return true
		}
		if inline(l) >= 0 && !strings.HasPrefix(strings.TrimSpace(l), "---> ") || l != "" && l[0] != ' ' && logline.Entry(l) {
			return false
		}
	}
	return false
}

// exceptionAt parses an exception with what it was raised from: head is line i from the type on.
func (p *parser) exceptionAt(i int, head string) (*classify.Failure, int) {
	head = strings.TrimSpace(head)
	var all []link
	push := func(s string) bool {
		// The older runtimes print the whole chain in one line, the newer ones a line each.
		for part := range strings.SplitSeq(s, " ---> ") {
			typ, msg, ok := exception(part)
			if !ok || len(all) >= maxLinks {
				return len(all) > 0
			}
			all = append(all, link{typ: typ, msg: msg, line: i})
		}
		return true
	}
	if !push(head) {
		return nil, i + 1
	}
	var leaves []*classify.Failure
	cur := len(all) - 1
	framed := p.framed(i + 1)
	first := i
	for i++; i < len(p.lines); i++ {
		l := p.lines[i]
		t := strings.TrimSpace(l)
		if fr, ok := frame(l); ok {
			all[cur].frames = append(all[cur].frames, fr)
			continue
		}
		switch {
		case strings.HasPrefix(t, "--- End of inner exception stack trace"):
			cur = max(cur-1, 0)
			continue
		case strings.HasPrefix(t, "--- End of"), strings.HasPrefix(t, "File name: "):
			continue
		case strings.HasPrefix(t, innerMark):
			var leaf *classify.Failure
			if leaf, i = p.leafAt(i, t[len(innerMark):]); leaf != nil && len(leaves) < maxLinks {
				leaves = append(leaves, leaf)
			}
			continue
		case strings.HasPrefix(t, "---> "):
			n := len(all)
			push(t[len("---> "):])
			if len(all) > n {
				cur = len(all) - 1
			}
			continue
		}
		if death(l) != "" || t == "" && len(all[cur].frames) > 0 {
			break
		}
		if len(all[cur].frames) == 0 && (framed && i-first < maxMessage || continues(l)) && (inline(l) != 0 || l[0] == ' ') {
			if t != "" && len(all[cur].msg) < 4096 {
				all[cur].msg += "\n" + t
			}
			continue
		}
		// A line of somebody else between the frames.
		if i+1 < len(p.lines) && len(all[cur].frames) > 0 && inline(l) < 0 {
			if _, ok := frame(p.lines[i+1]); ok {
				continue
			}
		}
		break
	}
	return chained(all, leaves), i
}

// innerMark begins what an aggregate prints behind its own stack: "---> (Inner Exception #1) System.Exception: message", up to
// "<---".
const innerMark = "---> (Inner Exception #"

// leafAt parses one more exception of an aggregate, whose number begins rest, and returns its last line. The first one it gives
// as its cause already, so number 0 is nothing new.
func (p *parser) leafAt(i int, rest string) (*classify.Failure, int) {
	end := i
	for end+1 < len(p.lines) && !strings.HasSuffix(strings.TrimSpace(p.lines[end]), "<---") {
		end++
	}
	number, head, ok := strings.Cut(rest, ") ")
	if !ok || number == "0" {
		return nil, end
	}
	cut := func(s string) string { return strings.TrimSuffix(strings.TrimRight(s, " \t"), "<---") }
	if end == i {
		head = cut(head)
	}
	own := &parser{log: p.log, lines: append(p.lines[:end:end], cut(p.lines[end]))}
	f, _ := own.exceptionAt(i, head)
	return f, end
}

// continues reports a line that belongs to a message although no frame follows: the attempts of a loader.
func continues(l string) bool {
	return strings.Contains(l, "cannot open shared object file") || strings.Contains(l, "undefined symbol: ")
}

// chained builds the failure of a chain, the outermost exception first. leaves are what the aggregate in it holds beside its
// cause.
func chained(all []link, leaves []*classify.Failure) *classify.Failure {
	made := make([]*classify.Failure, len(all))
	var lead []classify.Frame
	for i, k := range all {
		// An inner exception prints the frames up to where it was caught; those of the outer ones lead there.
		st := append(make([]classify.Frame, 0, len(lead)+len(k.frames)), lead...)
		for j := len(k.frames) - 1; j >= 0; j-- {
			st = append(st, k.frames[j])
		}
		f := &classify.Failure{Message: k.msg, Frames: st, First: k.line, Line: k.line, Last: k.line}
		f.TypeModule, f.Type = splitName(k.typ)
		read(f)
		made[i], lead = f, st
	}
	group := len(made)
	for i, f := range made {
		if len(leaves) > 0 && f.Type == "AggregateException" && i+1 < len(made) {
			group = i
			break
		}
	}
	for i := range made[:len(made)-1] {
		made[i].Cause = made[i+1]
	}
	if group < len(made) {
		// What is below the aggregate is one leaf of several.
		made[group].Group = append([]*classify.Failure{below(made[group+1:])}, leaves...)
		made[group].Cause = nil
		made = made[:group+1]
	}
	return below(made)
}

// below is the first failure of a chain that is no envelope of the ones under it.
func below(made []*classify.Failure) *classify.Failure {
	at := 0
	for at+1 < len(made) && envelope(made, at) {
		at++
	}
	return made[at]
}

// envelope reports whether the exception at i says nothing that the one below it does not say better.
func envelope(all []*classify.Failure, i int) bool {
	f := all[i]
	if f.Listed != "" {
		return false
	}
	switch f.Type {
	case "TargetInvocationException", "AggregateException", "TypeInitializationException":
		return true
	}
	if f.Message == "" {
		return true
	}
	for _, c := range all[i+1:] {
		switch c.Kind {
		// What the loader says no wrapper outweighs; of two such words the inner one is the reason.
		case classify.KindTorn, classify.KindBinding, classify.KindMissingModule, classify.KindMissingName:
			return true
		}
	}
	return false
}

// inline finds the exception in a line: at its beginning, or behind the words of a log entry. -1 for none.
func inline(l string) int {
	l = l[:min(len(l), maxHead)]
	for from := 0; ; {
		at := strings.Index(l[from:], "Exception")
		if at < 0 {
			return -1
		}
		at += from
		start := at
		for start > 0 && nameByte(l[start-1]) {
			start--
		}
		if _, _, ok := exception(l[start:]); ok && (start == 0 || l[start-1] == ' ' || l[start-1] == '\t') {
			return start
		}
		from = at + len("Exception")
	}
}

func nameByte(c byte) bool {
	return c == '.' || c == '_' || c == '+' || c == '`' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// exception splits "System.IO.IOException: message".
func exception(s string) (typ, msg string, ok bool) {
	s = strings.TrimSpace(s)
	end := 0
	for end < len(s) && nameByte(s[end]) {
		end++
	}
	typ, rest := s[:end], s[end:]
	if strings.HasPrefix(rest, "[") { // type arguments
		if at := strings.Index(rest, "]: "); at > 0 {
			rest = rest[at+1:]
		}
	}
	if i := strings.IndexByte(typ, '`'); i > 0 {
		typ = typ[:i]
	}
	// "System.Net.Sockets.SocketException (111): Connection refused"
	code := ""
	if strings.HasPrefix(rest, " (") {
		if at := strings.Index(rest, "): "); at > 0 && at < 16 {
			code, rest = rest[1:at+1]+" ", rest[at+1:]
		}
	}
	if !strings.HasSuffix(typ, "Exception") || typ[0] == '.' || !strings.Contains(typ, ".") || rest != "" && rest[0] != ':' {
		return "", "", false
	}
	return typ, code + strings.TrimSpace(strings.TrimPrefix(rest, ":")), true
}

// splitName cuts a type into namespace and simple name; of a nested type the class around it takes the namespace's place.
func splitName(typ string) (space, name string) {
	at := strings.LastIndexAny(typ, ".+")
	if at < 0 {
		return "", typ
	}
	return typ[:at], typ[at+1:]
}
