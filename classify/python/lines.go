package python

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// exceptionLine reports a line of the form "pkg.Type: message" or "pkg.Type".
func exceptionLine(l string) bool {
	typ, rest := typeWord(l)
	if typ == "" {
		return false
	}
	if rest != "" && !strings.HasPrefix(rest, ":") {
		return false
	}
	// Types begin with a capital by convention. The few that do not are the standard library's oldest.
	base := lastPart(typ)
	if base == "" {
		return false
	}
	c := base[0]
	switch {
	case c >= 'A' && c <= 'Z' || c == '_':
		return rest == "" || strings.HasPrefix(rest, ": ") || rest == ":"
	case base == "error" || base == "timeout" || base == "gaierror" || base == "herror":
		return true
	}
	// A lower-case type is trusted behind its module only.
	return strings.Contains(typ, ".") && strings.HasPrefix(rest, ": ")
}

// typeWord splits off what may be the dotted name of an exception type.
func typeWord(l string) (typ, rest string) {
	n := 0
	for n < len(l) {
		c := l[n]
		if c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 {
			n++
			continue
		}
		if c == '<' && strings.HasPrefix(l[n:], "<locals>") {
			n += len("<locals>")
			continue
		}
		if c == '(' { // RayTaskError(ImportError)
			end := strings.IndexByte(l[n:], ')')
			if end > 1 && dotted(l[n+1:n+end]) && strings.HasSuffix(l[:n], "Error") {
				n += end + 1
				continue
			}
		}
		break
	}
	if n == 0 || l[0] == '.' || l[0] >= '0' && l[0] <= '9' {
		return "", ""
	}
	return l[:n], l[n:]
}

// lastPart is a dotted name's last component.
func lastPart(s string) string { return s[strings.LastIndexByte(s, '.')+1:] }

// splitException takes "pkg.Type: message" apart.
func splitException(l string) (typ, module, message string) {
	word, rest := typeWord(l)
	typ = lastPart(word)
	module = strings.TrimSuffix(strings.TrimSuffix(word, typ), ".")
	return typ, module, strings.TrimPrefix(strings.TrimPrefix(rest, ":"), " ")
}

// known reports whether an exception line's type is one that Python itself raises, so that the line stands by itself.
func known(l string) bool {
	typ, _, _ := splitException(l)
	switch typ {
	case "ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "NameError", "ValueError", "KeyError", "SyntaxError",
		"RuntimeError", "OSError", "KeyboardInterrupt":
		return true
	}
	return false
}

// loneException reports an exception line without a traceback: only types that nothing but Python prints count.
func loneException(l string) bool {
	if strings.HasPrefix(l, "ImportError while loading conftest") {
		return false
	}
	for _, t := range [...]string{"SyntaxError: ", "ImportError: ", "ModuleNotFoundError: ", "IndentationError: ", "zipimport.ZipImportError: "} {
		if strings.HasPrefix(l, t) {
			return true
		}
	}
	if strings.Contains(l, "RemoteTraceback:") || strings.Contains(l, "ExceptionWithTraceback:") {
		typ, _, _ := splitException(l)
		return exceptionLine(l) && remote(typ)
	}
	return runpyLine(l) != ""
}

// runpyLine is what "python -m" prints when it cannot start a module, without the interpreter's name.
func runpyLine(l string) string {
	at := strings.Index(l, ": ")
	if at < 1 || strings.ContainsAny(l[:at], " \t") {
		return ""
	}
	prog := strings.ToLower(l[strings.LastIndexAny(l[:at], `/\`)+1 : at])
	if !strings.HasPrefix(prog, "python") && !strings.HasPrefix(prog, "pypy") {
		return ""
	}
	rest := l[at+2:]
	for _, w := range [...]string{"No module named ", "Error while finding module specification for ", "can't open file ", "can't find '__main__' module in ", "No code object available for "} {
		if strings.HasPrefix(rest, w) {
			return rest
		}
	}
	return ""
}

// looksLogged reports a line that a logger began: a time or a level stands at its start.
func looksLogged(l string) bool {
	// A date, a clock or a level, bracketed or not.
	t := strings.TrimLeft(l, "[<(")
	if len(t) >= 10 && digits(t[:4]) && (t[4] == '-' || t[4] == '/') && digits(t[5:7]) {
		return true
	}
	if len(t) >= 8 && digits(t[:2]) && t[2] == ':' && digits(t[3:5]) && t[5] == ':' {
		return true
	}
	for _, w := range [...]string{"DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL", "FATAL"} {
		if strings.HasPrefix(t, w) && len(t) > len(w) && (t[len(w)] == ':' || t[len(w)] == ' ' || t[len(w)] == ']') {
			return true
		}
		if lower := strings.ToLower(w); strings.HasPrefix(t, lower+"]") {
			return true
		}
	}
	return strings.HasPrefix(t, "level=") || strings.HasPrefix(t, "time=") || strings.HasPrefix(t, "ts=")
}

// digits reports a text of nothing but digits.
func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// heading reports a line with which Python introduces a traceback that follows.
func heading(l string) bool {
	t := strings.TrimSpace(l)
	return noiseHeading(t) || strings.HasPrefix(t, "Exception in thread ") || strings.HasPrefix(t, "Process ") && strings.HasSuffix(t, ":") ||
		t == "Original exception was:" || strings.HasPrefix(t, "Unhandled exception in thread started by")
}

// noiseHeading reports a line that introduces a traceback which ended nothing.
func noiseHeading(t string) bool {
	for _, w := range [...]string{"Exception ignored ", "Exception ignored:", "Task exception was never retrieved", "Future exception was never retrieved",
		"exception was never retrieved", "Exception in callback ", "--- Logging error ---", "Error in atexit._run_exitfuncs:", "Error in sys.excepthook:",
		"```", "~~~", "Exception ignored in", "Error in sys.exitfunc:", "Exception in default exception handler"} {
		if strings.HasPrefix(t, w) || len(w) > 24 && strings.Contains(t, w) {
			return true
		}
	}
	return false
}

// noiseRest reports what is left of such a line where the head of the text is cut: an object's representation.
func noiseRest(t string) bool {
	return strings.HasSuffix(t, ">") && strings.Contains(t, " at 0x") || strings.Contains(t, " exception=") || strings.HasSuffix(t, "never retrieved")
}

// noise reports whether a failure is one that Python or the program reports and survives. It marks what belongs to it.
func (p *parser) noise(f *classify.Failure) bool {
	if end := p.quotation(f); end >= 0 {
		p.ignore(f.First, end+1)
		return true
	}
	// The heading stands right above the traceback, or above a line or two that describe the object.
	seen := 0
	for i := f.First - 1; i >= 0 && seen < 3; i-- {
		t := strings.TrimSpace(p.lines[i])
		if t == "" {
			if seen > 0 {
				break
			}
			continue
		}
		if fence(t) && p.closed(i) {
			break // what it closes was quoted, and this is not
		}
		if noiseHeading(t) || i == 0 && noiseRest(t) {
			p.ignore(i, f.First)
			if t == "--- Logging error ---" {
				f.Last = p.callStack(f.Last + 1)
			}
			return true
		}
		// The lines between a heading and its traceback describe the task, the handle or the object.
		if !strings.HasPrefix(t, "future: ") && !strings.HasPrefix(t, "handle: ") && !strings.HasPrefix(t, "task: ") && !strings.HasPrefix(t, "transport: ") && !strings.HasPrefix(t, "protocol: ") {
			if seen == 0 {
				// The first line of a text may be what a host calls all of it.
				f.Survived = f.Survived || survivedHeading(p.lines[i], uncaught(f)) || i > 0 && outputHeading(t)
			}
			break
		}
		seen++
	}
	return false
}

// callStack skips what the logging module prints behind its own error.
func (p *parser) callStack(i int) int {
	for i < len(p.lines) {
		t := strings.TrimSpace(p.lines[i])
		if strings.HasPrefix(t, "Arguments: ") {
			p.ignore(i, i+1)
			return i
		}
		if isHeader(p.lines[i]) {
			return i - 1
		}
		p.ignore(i, i+1)
		i++
	}
	return i - 1
}

// survivedHeading reports a log line that introduces a traceback as something handled.
func survivedHeading(l string, uncaught bool) bool {
	// Nobody caught what starts at the program's own first frame, so a line before it that speaks of going on speaks of
	// something else.
	if uncaught && !strings.HasSuffix(l, ":") {
		return false
	}
	// Behind a prompt stands what a tool was called with, and under it what the tool gave back.
	if strings.HasPrefix(l, "$ ") {
		return true
	}
	head := l[:min(len(l), 100)]
	t := strings.ToLower(l)
	for _, w := range [...]string{"WARN", "INFO", "DEBUG", "[info]", "[warn", "[debug]", "level=warn", "level=info", "level=debug"} {
		if strings.Contains(head, w) && !strings.Contains(head, "ERROR") && !strings.Contains(head, "CRITICAL") && troubled(t) {
			return true
		}
	}
	for _, w := range [...]string{"going on without", "continuing", "carrying on", "will retry", "retrying", "trying again", "ignored", "ignoring",
		"skipping", "skipped", "falling back", "fallback", "using default", "optional", "non-fatal", "nonfatal", "not fatal", "without it",
		"tool output", "tool stderr", "output of", "quoted"} {
		if strings.Contains(t, w) {
			return true
		}
	}
	return false
}

// uncaught reports a stack that starts where the program does. One that a logger prints starts where it was caught, and a
// program's main module seldom catches.
func uncaught(f *classify.Failure) bool {
	if f.Headless || len(f.Frames) == 0 {
		return false
	}
	return starts(&f.Frames[0])
}

// starts reports a frame in which a program begins.
func starts(fr *classify.Frame) bool {
	return fr.Function == "<module>" || fr.Function == "_run_module_as_main"
}

// troubled reports a line that speaks of a failure, and so may introduce its traceback. A line about anything else merely
// stands in front of it.
func troubled(t string) bool {
	for _, w := range [...]string{"fail", "error", "exception", "traceback", "could not", "couldn't", "cannot", "can't", "unable", "missing", "broken", "not available", "unavailable"} {
		if strings.Contains(t, w) {
			return true
		}
	}
	return false
}
