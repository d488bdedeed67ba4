package node

import "strings"

// head is an error's own line.
type head struct {
	typ     string
	code    string
	message string
	at      int  // where in the line it begins
	plain   bool // the line is nothing but the error
}

// headOf reads "Type: message", "Type [CODE]: message" or "Type", also behind words of a logger.
func headOf(l string) (head, bool) {
	if l == "" || len(l) > 1<<14 || l[0] == ' ' || l[0] == '\t' {
		return head{}, false
	}
	for at := 0; at < len(l) && at < 400; {
		end := at
		for end < len(l) && typeByte(l[end]) {
			end++
		}
		if end > at && errorType(l[at:end], at == 0) {
			if h, ok := headAt(l, at, end); ok {
				return h, true
			}
		}
		for end < len(l) && l[end] != ' ' && l[end] != '[' && l[end] != '(' {
			end++
		}
		at = end + 1
	}
	return head{}, false
}

// headAt reads the head whose type stands at l[at:end].
func headAt(l string, at, end int) (head, bool) {
	h := head{typ: l[at:end], at: at}
	// "Uncaught Error: ..." is what a debugger and other engines print in front.
	before := strings.TrimSpace(l[:at])
	h.plain = before == "" || before == "Uncaught" || before == "Uncaught (in promise)" || before == "error: Uncaught" || before == "error: Uncaught (in promise)" || before == "["
	if dot := strings.LastIndexByte(h.typ, '.'); dot >= 0 {
		h.typ = h.typ[dot+1:]
	}
	rest := l[end:]
	if strings.HasPrefix(rest, " [") {
		stop := strings.IndexByte(rest, ']')
		if stop < 0 {
			return head{}, false
		}
		h.code = rest[2:stop]
		rest = rest[stop+1:]
	}
	switch {
	case strings.HasPrefix(rest, ": "):
		h.message = rest[2:]
	case rest == "" || rest == ":" || rest == " {":
		h.message = strings.TrimPrefix(strings.TrimPrefix(rest, ":"), " ")
	default:
		return head{}, false
	}
	if h.typ == "error" && strings.HasPrefix(h.message, "Uncaught") {
		return head{}, false // the error's own type follows
	}
	return h, true
}

func typeByte(c byte) bool {
	return c == '_' || c == '$' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// errorType reports a word that names an error. Types are named after what they are by convention; at the beginning of a
// line any name that is written like a class counts, if a stack follows.
func errorType(w string, first bool) bool {
	// Most words end like none of the types.
	last := byte(0)
	if w != "" {
		last = w[len(w)-1]
	}
	if last == 'r' || last == 'n' || last == 'e' {
		for _, end := range [...]string{"Error", "Exception", "Rejection", "ResolveMessage"} {
			// An event of that name, "uncaughtException", is no type.
			if strings.HasSuffix(w, end) && !event(w) {
				return true
			}
		}
	}
	if !first {
		return false
	}
	base := w[strings.LastIndexByte(w, '.')+1:]
	return base != "" && (base == "error" || len(base) > 3 && base[0] >= 'A' && base[0] <= 'Z' && strings.ToUpper(base) != base)
}

// event reports the names under which Node.js tells a program of its errors, and loggers those of their entries.
func event(w string) bool {
	return w == "uncaughtException" || w == "unhandledRejection" || w == "unhandledException"
}

// telling reports a message that only Node.js prints, so that it needs no stack to be a failure.
func telling(m string) bool {
	for _, w := range [...]string{"Cannot find module '", "Cannot find package '", "The requested module '", "Package subpath '", "Named export '", "Export named '", `Cannot find module "`, `Cannot find package "`} {
		if strings.HasPrefix(m, w) {
			return true
		}
	}
	return false
}

// looksLogged reports a line that a logger began.
func looksLogged(l string) bool {
	t := strings.TrimLeft(l, "[<(")
	if len(t) >= 10 && digits(t[:4]) && (t[4] == '-' || t[4] == '/') && digits(t[5:7]) {
		return true
	}
	if len(t) >= 8 && digits(t[:2]) && t[2] == ':' && digits(t[3:5]) && t[5] == ':' {
		return true
	}
	for _, w := range [...]string{"DEBUG", "INFO", "WARN", "ERROR", "FATAL"} {
		if rest, ok := strings.CutPrefix(t, w); ok && rest != "" && strings.IndexByte(": ]", rest[0]) >= 0 {
			return true
		}
	}
	return strings.HasPrefix(t, "level=") || strings.HasPrefix(t, "time=")
}

// digits reports a text of nothing but digits.
func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// survived reports whether the words around an error's own line say that it was handled.
func (p *parser) survived(i int, h head) bool {
	if h.at > 0 && handled(p.lines[i][:h.at]) {
		return true
	}
	for n := i - 1; n >= 0 && n >= i-2; n-- {
		if strings.TrimSpace(p.lines[n]) != "" {
			return h.plain && handled(p.lines[n])
		}
	}
	return false
}

// handled reports words that introduce an error as something that the program got over.
func handled(l string) bool {
	low := strings.ToLower(l)
	if strings.HasPrefix(low, "```") {
		return true // quoted
	}
	for _, w := range [...]string{"continuing", "carrying on", "will retry", "retrying", "trying again", "ignored", "ignoring", "skipping", "skipped", "falling back", "fallback",
		"using default", "optional", "non-fatal", "nonfatal", "not fatal", "without it", "tool output", "tool stderr", "output of", "going on without", "warning:"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	top := l[:min(len(l), 100)]
	for _, w := range [...]string{"WARN", "INFO", "DEBUG", "[warn", "[info", "[debug", "level=warn", "level=info", "level=debug"} {
		if strings.Contains(top, w) && !strings.Contains(top, "ERROR") && !strings.Contains(top, "FATAL") {
			for _, t := range [...]string{"fail", "error", "could not", "couldn't", "cannot", "can't", "unable", "missing", "unavailable", "not available"} {
				if strings.Contains(low, t) {
					return true
				}
			}
			return strings.HasSuffix(strings.TrimSpace(l), ":")
		}
	}
	return false
}
