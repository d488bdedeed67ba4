package golang

import (
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// maxFrames bounds the frames of one goroutine that are read.
const maxFrames = 256

// panicAt parses the panic or fatal error whose own line is i.
func panicAt(lines []string, i int) *classify.Failure {
	l := lines[i]
	f := &classify.Failure{First: i, Line: i, Last: i, Fatal: true}
	switch {
	case strings.HasPrefix(l, "panic: "):
		f.Message = l[len("panic: "):]
	case strings.HasPrefix(l, "fatal error: "):
		f.Message = l[len("fatal error: "):]
	default:
		return nil
	}
	// The message may go on over several lines. A blank one ends it, and behind it stands the stack.
	n := i + 1
	for ; n < len(lines) && n < i+64; n++ {
		if lines[n] == "" || strings.HasPrefix(lines[n], "goroutine ") {
			break
		}
		if m, ok := strings.CutPrefix(strings.TrimLeft(lines[n], "\t "), "panic: "); ok && lines[n] != "" && (lines[n][0] == '\t' || lines[n][0] == ' ') {
			f.Message = m // raised while the first one unwound; it is the one that ended the program
		}
	}
	for n < len(lines) && lines[n] == "" {
		n++
	}
	if n < len(lines) && (strings.HasPrefix(lines[n], "goroutine ") || strings.HasPrefix(lines[n], "runtime stack:")) {
		f.Frames, n = stack(lines, n+1)
		// Other goroutines follow, and registers, and the exit status that a parent prints.
		for n < len(lines) && rest(lines[n]) {
			n++
		}
	} else {
		if len(lines) > i+1 && n == i+1 && n < len(lines) {
			return nil // a word at the beginning of a line, and no panic
		}
		f.Headless = true
	}
	f.Last = max(i, n-1)
	f.Line = f.Last
	f.Message = strings.TrimSuffix(strings.TrimSuffix(f.Message, " [recovered]"), " [recovered, repanicked]")
	finish(f)
	return f
}

// rest reports a line that belongs to the report of a crash.
func rest(l string) bool {
	return l == "" || l[0] == '\t' || strings.HasPrefix(l, "goroutine ") || strings.HasPrefix(l, "created by ") || strings.HasPrefix(l, "exit status 2") ||
		strings.HasPrefix(l, "...") && strings.Contains(l, "frames elided") || strings.HasSuffix(l, ")") && strings.Contains(l, "(") && strings.Contains(l, ".") && !strings.Contains(l, ": ") ||
		len(l) > 8 && l[0] == 'r' && strings.Contains(l, "    0x")
}

// stack reads the frames of one goroutine, innermost first in the text, and returns them in the order of calls.
func stack(lines []string, n int) ([]classify.Frame, int) {
	var frames []classify.Frame
	for n+1 < len(lines) && len(frames) < maxFrames {
		l := lines[n]
		if l == "" || strings.HasPrefix(l, "goroutine ") || strings.HasPrefix(l, "created by ") {
			break
		}
		if !strings.HasPrefix(lines[n+1], "\t") && !strings.HasPrefix(lines[n+1], "    ") {
			break
		}
		frames = append(frames, frame(l, strings.TrimSpace(lines[n+1])))
		n += 2
	}
	for i, j := 0, len(frames)-1; i < j; i, j = i+1, j-1 {
		frames[i], frames[j] = frames[j], frames[i]
	}
	return frames, n
}

// frame reads "path/pkg.(*Type).Method(args)" and "file.go:12 +0x1d".
func frame(call, place string) classify.Frame {
	fr := classify.Frame{Function: call}
	if at := strings.LastIndexByte(call, '('); at > 0 && strings.HasSuffix(call, ")") {
		fr.Function = call[:at]
	}
	place, _, _ = strings.Cut(place, " +0x")
	if at := strings.LastIndexByte(place, ':'); at > 0 {
		fr.Line, _ = strconv.Atoi(place[at+1:])
		place = place[:at]
	}
	fr.File = place
	fr.Unit = unit(fr.Function)
	if fr.Unit == "main" {
		fr.Unit = ""
	}
	switch first, _, _ := strings.Cut(fr.Unit, "/"); {
	case fr.Function == "panic", fr.Unit == "runtime", strings.HasPrefix(fr.Unit, "runtime/"), strings.HasPrefix(fr.Unit, "internal/"):
		fr.Origin = classify.OriginRuntime
	case fr.Unit == "":
		// The program itself; a trimmed path tells which.
		if strings.HasPrefix(place, "/") || strings.Contains(place, ":") {
			fr.Origin = classify.OriginLauncher
		}
	case !strings.Contains(first, "."):
		// The standard library, or a module of no host, which a workspace may have.
	default:
		fr.Origin = classify.OriginPackage
	}
	// The paths of files are the building machine's. Who owns the code is told by the import path.
	if fr.Unit != "" && !strings.HasPrefix(place, "/home/") && strings.HasPrefix(place, "/") {
		fr.File = fr.Unit + place[strings.LastIndexByte(place, '/'):]
	}
	return fr
}

// unit is the import path in the name of a function: "a.dev/x/pkg.(*T).M" is "a.dev/x/pkg".
func unit(function string) string {
	slash := strings.LastIndexByte(function, '/')
	dot := strings.IndexByte(function[slash+1:], '.')
	if dot < 0 {
		return ""
	}
	return strings.ReplaceAll(withoutVersion(function[:slash+1+dot]), "%2e", ".")
}

// finish reads what the message says.
func finish(f *classify.Failure) {
	m := f.Message
	switch {
	case strings.Contains(m, "out of memory"), strings.Contains(m, "cannot allocate memory"):
		f.Type = "OutOfMemory"
	case strings.HasPrefix(m, "test timed out after "):
		f.Type = "UsageError"
	case strings.HasPrefix(m, "interface conversion: "):
		f.Kind = classify.KindSignature
		if _, rest, ok := strings.Cut(m, "missing method "); ok {
			f.Symbol = word(rest)
		}
	case words(f, m):
	}
}
