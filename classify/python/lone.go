package python

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// lone parses an exception line that no traceback precedes, and what "python -m" prints instead of one.
func (p *parser) lone(i int) (*classify.Failure, int) {
	f := &classify.Failure{First: i}
	if rest := runpyLine(p.lines[i]); rest != "" {
		runpyFailure(f, rest)
		return f, i + 1
	}
	if i+1 < len(p.lines) && isHeader(p.lines[i+1]) {
		// A hook that prints the exception first and the traceback after it.
		return nil, i + 1
	}
	f, next := p.exception(f, i)
	return f, next
}

// runpyFailure reads what the interpreter prints when it cannot start a program.
func runpyFailure(f *classify.Failure, rest string) {
	f.Message, f.Startup = rest, true
	switch {
	case strings.HasPrefix(rest, "No module named "):
		f.Kind = classify.KindMissingModule
		name := strings.TrimPrefix(rest, "No module named ")
		name, _, _ = strings.Cut(name, ";")
		f.Module = strings.Trim(strings.TrimSpace(name), "'\"")
		f.Standard = standard[topLevel(f.Module)]
	case strings.HasPrefix(rest, "Error while finding module specification for "):
		// "... for 'pkg.mod' (ModuleNotFoundError: No module named 'pkg')"
		_, inner, ok := strings.Cut(rest, " (")
		if ok && exceptionLine(inner) {
			var g classify.Failure
			g.Type, _, g.Message = splitException(strings.TrimSuffix(inner, ")"))
			if g.Type == "ImportError" || g.Type == "ModuleNotFoundError" {
				importError(&g)
				g.First, g.Message, g.Startup = f.First, rest, true
				*f = g
			}
		}
	case strings.HasPrefix(rest, "can't open file "):
		f.Kind = classify.KindMissingModule
		f.File = quotedName(rest[len("can't open file "):])
		if !strings.Contains(rest, "[Errno 2]") {
			f.Kind = classify.KindFile
			f.Code = "13"
		}
	case strings.HasPrefix(rest, "can't find '__main__' module in "):
		f.Kind = classify.KindMissingModule
		f.File = lastQuoted(rest)
	}
}

// fatal parses what faulthandler prints when the interpreter dies: the stack is innermost first.
func (p *parser) fatal(i int) (*classify.Failure, int) {
	f := &classify.Failure{First: i, Message: strings.TrimPrefix(p.lines[i], "Fatal Python error: "), Kind: classify.KindCrash}
	if dumpAfterTimeout(p.lines[i]) {
		f.Kind, f.Type = classify.KindOther, "Timeout"
	}
	// Only the stack of the thread that crashed counts. Others stand beside it.
	i++
	stack := false
	for i < len(p.lines) {
		l := p.lines[i]
		t := strings.TrimSpace(l)
		fr, ok := frame(strings.Replace(l, " in ", ", in ", 1))
		switch {
		case strings.HasPrefix(t, "Current thread "):
			stack = true
		case strings.HasPrefix(t, "Thread 0x"):
			// A dump on a timeout has no current thread; its last one is the main thread.
			if stack = f.Type != ""; stack {
				f.Frames = nil
			}
		case ok:
			if stack {
				f.Frames = append(f.Frames, fr)
			}
		case t == "" || strings.HasPrefix(t, "Python runtime state:") || strings.HasPrefix(t, "Extension modules:") || strings.HasPrefix(t, "..."):
		case isHeader(l):
			// The interpreter could not start and says why.
			return nil, i
		default:
			return reversed(f), i
		}
		i++
	}
	return reversed(f), i
}

// dumpAfterTimeout reports the line with which faulthandler's own watchdog begins: "Timeout (0:00:30)!".
func dumpAfterTimeout(l string) bool {
	return strings.HasPrefix(l, "Timeout (") && strings.HasSuffix(l, ")!")
}

// reversed puts the outermost frame first, as everywhere else.
func reversed(f *classify.Failure) *classify.Failure {
	for a, b := 0, len(f.Frames)-1; a < b; a, b = a+1, b-1 {
		f.Frames[a], f.Frames[b] = f.Frames[b], f.Frames[a]
	}
	return f
}
