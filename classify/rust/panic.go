package rust

import (
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// maxFrames bounds the frames that are read.
const maxFrames = 256

// panicAt parses "thread 'name' (id) panicked at place:" with the message below, or older ones with the message in quotes.
func panicAt(lines []string, i int) *classify.Failure {
	l := lines[i]
	if l == "" || l[0] == ' ' || l[0] == '\t' {
		return nil
	}
	at := strings.Index(l, "thread '")
	if at < 0 {
		return nil
	}
	_, rest, ok := strings.Cut(l, " panicked at ")
	if !ok {
		return nil
	}
	f := &classify.Failure{First: i, Type: "panic"}
	n := i + 1
	if msg, ok := strings.CutPrefix(rest, "'"); ok { // up to 1.72: 'message', src/main.rs:3:5
		if end := strings.LastIndex(msg, "', "); end >= 0 {
			msg = msg[:end]
		}
		f.Message = msg
	} else {
		for n < len(lines) && n < i+40 && !ends(lines[n]) {
			if n > i+1 {
				f.Message += "\n"
			}
			f.Message += lines[n]
			n++
			// A message is one line but where a stack or the note shows that more belongs to it.
			if n == i+2 && !closed(lines, n) {
				break
			}
		}
	}
	f.Line = n - 1
	if n < len(lines) && strings.TrimSpace(lines[n]) == "stack backtrace:" {
		f.Frames, n = stack(lines, n+1)
	}
	for n < len(lines) && strings.HasPrefix(lines[n], "note: ") {
		n++
	}
	f.Last = n - 1
	f.Line = f.Last
	// A thread that is not the first one may die alone.
	f.Fatal = strings.Contains(l, "thread 'main'")
	f.Startup = f.Fatal && len(f.Frames) == 0
	finish(f)
	return f
}

// ends reports a line that belongs to no message any more.
func ends(l string) bool {
	return strings.HasPrefix(l, "note: ") || strings.TrimSpace(l) == "stack backtrace:" || strings.Contains(l, " panicked at ")
}

// closed reports whether the lines from n on end as a panic does.
func closed(lines []string, n int) bool {
	for ; n < len(lines) && n < 40; n++ {
		if ends(lines[n]) {
			return true
		}
	}
	return false
}

// stack reads "  12: crate::module::function" with "at path:line" below, innermost first in the text.
func stack(lines []string, n int) ([]classify.Frame, int) {
	var frames []classify.Frame
	for n < len(lines) && len(frames) < maxFrames {
		t := strings.TrimSpace(lines[n])
		num, name, ok := strings.Cut(t, ": ")
		if _, err := strconv.Atoi(num); !ok || err != nil {
			break
		}
		if addr, after, ok := strings.Cut(name, " - "); ok && strings.HasPrefix(addr, "0x") {
			name = after
		}
		fr := classify.Frame{Function: name, Unit: crate(name)}
		n++
		if n < len(lines) {
			if place, ok := strings.CutPrefix(strings.TrimSpace(lines[n]), "at "); ok {
				fr.File = place
				for range 2 {
					at := strings.LastIndexByte(fr.File, ':')
					if at <= 0 {
						break
					}
					if v, err := strconv.Atoi(fr.File[at+1:]); err == nil {
						fr.File, fr.Line = fr.File[:at], v
					}
				}
				n++
			}
		}
		switch {
		case fr.Unit == "", standard(fr.Unit), strings.HasPrefix(fr.File, "/rustc/"):
			fr.Origin = classify.OriginRuntime
		case strings.Contains(fr.File, "/.cargo/registry/"), strings.Contains(fr.File, "/.cargo/git/"), strings.Contains(fr.File, "/vendor/"):
			fr.Origin = classify.OriginPackage
		}
		// The paths are the building machine's.
		if strings.HasPrefix(fr.File, "/") && !strings.HasPrefix(fr.File, "/home/") {
			fr.File = ""
		}
		frames = append(frames, fr)
	}
	for i, j := 0, len(frames)-1; i < j; i, j = i+1, j-1 {
		frames[i], frames[j] = frames[j], frames[i]
	}
	return frames, n
}

// crate is the path of modules in the name of a function: "a::b::f" is "a::b", "<a::T as b::U>::f" is "a".
func crate(name string) string {
	name = strings.TrimPrefix(name, "<")
	name, _, _ = strings.Cut(name, " as ")
	if at := strings.LastIndex(name, "::h"); at > 0 && len(name)-at == 19 {
		name = name[:at]
	}
	for {
		at := strings.LastIndex(name, "::")
		if at < 0 {
			return ""
		}
		name = name[:at]
		if !strings.HasSuffix(name, "}") && !strings.HasSuffix(name, ">") {
			return name
		}
	}
}

// standard reports the crates that come with the compiler.
func standard(unit string) bool {
	top, _, _ := strings.Cut(unit, "::")
	switch top {
	case "std", "core", "alloc", "rust_begin_unwind", "__rust_begin_short_backtrace", "test", "panic_unwind", "backtrace":
		return true
	}
	return false
}

// returned parses the error that main returned: its debug form behind "Error: ", with the causes below where a common library
// prints it.
func returned(lines []string, i int) *classify.Failure {
	m, ok := strings.CutPrefix(lines[i], "Error: ")
	if !ok || m == "" {
		return nil
	}
	f := &classify.Failure{First: i, Message: m, Startup: true, Fatal: true}
	n := i + 1
	chained := n+1 < len(lines) && strings.TrimSpace(lines[n]) == "" && strings.TrimSpace(lines[n+1]) == "Caused by:"
	switch {
	case chained:
		for n += 2; n < len(lines) && strings.HasPrefix(lines[n], "    ") && n < i+40; n++ {
			t := strings.TrimSpace(lines[n])
			if num, rest, ok := strings.Cut(t, ": "); ok && strings.Trim(num, "0123456789") == "" {
				t = rest
			}
			f.Message += ": " + t
		}
	case debugForm(m):
		// The long form goes on over lines, up to the brace.
		if strings.HasSuffix(m, "{") || strings.HasSuffix(m, "(") {
			for n < len(lines) && n < i+60 && (strings.HasPrefix(lines[n], " ") || strings.HasPrefix(lines[n], "}") || strings.HasPrefix(lines[n], ")")) {
				f.Message += " " + strings.TrimSpace(lines[n])
				n++
			}
		}
	case spoken(f, m):
	default:
		return nil // words alone may be anybody's
	}
	f.Last, f.Line = n-1, n-1
	finish(f)
	return f
}

// exhausted reads what the allocator says when it aborts.
func exhausted(l string, i int) *classify.Failure {
	if !strings.HasPrefix(l, "memory allocation of ") || !strings.HasSuffix(l, " failed") {
		return nil
	}
	return &classify.Failure{Type: "OutOfMemory", Message: l, First: i, Line: i, Last: i, Fatal: true}
}

// debugForm reports the debug form of an error: a name like a type's with fields or a value behind it, or alone.
func debugForm(m string) bool {
	n := 0
	for n < len(m) && (m[n] == '_' || m[n] >= '0' && m[n] <= '9' || m[n] >= 'a' && m[n] <= 'z' || m[n] >= 'A' && m[n] <= 'Z') {
		n++
	}
	if n < 2 || m[0] < 'A' || m[0] > 'Z' {
		return false
	}
	rest := m[n:]
	return rest == "" || strings.HasPrefix(rest, " {") || strings.HasPrefix(rest, "(")
}

// finish reads what the message says.
func finish(f *classify.Failure) {
	m := f.Message
	switch {
	case spoken(f, m):
	case strings.Contains(m, "code: 28, kind: StorageFull"), strings.Contains(m, "kind: StorageFull"):
		f.Code = "ENOSPC"
	case strings.Contains(m, "kind: TimedOut"):
		f.Code = "ETIMEDOUT"
	case strings.Contains(m, "kind: ConnectionRefused"), strings.Contains(m, "kind: ConnectionReset"):
		f.Code = "ECONNREFUSED"
	}
}
