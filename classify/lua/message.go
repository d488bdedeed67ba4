package lua

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// maxLines bounds a message and its stack.
const maxLines = 400

// read reads the failure whose first line is line i.
func read(log *text.Log, i int, m string) *classify.Failure {
	f := &classify.Failure{First: i, Line: i, Last: i, Fatal: true}
	message := []string{m}
	n := i + 1
	// A message has lines of its own, indented, up to the stack.
	for ; n < len(log.Lines) && n < i+maxLines && strings.HasPrefix(log.Lines[n], "\t"); n++ {
		message = append(message, strings.TrimSpace(log.Lines[n]))
		f.Last = n
	}
	if n < len(log.Lines) && strings.TrimSpace(log.Lines[n]) == "stack traceback:" {
		f.Last = n
		for n++; n < len(log.Lines) && n < i+maxLines && strings.HasPrefix(log.Lines[n], "\t"); n++ {
			if fr, ok := frame(strings.TrimSpace(log.Lines[n])); ok {
				f.Frames = append(f.Frames, fr)
			}
			f.Last = n
		}
	}
	f.Line = f.Last
	for a, b := 0, len(f.Frames)-1; a < b; a, b = a+1, b-1 {
		f.Frames[a], f.Frames[b] = f.Frames[b], f.Frames[a]
	}
	// A position in front of the message is where the error was raised.
	if file, line, rest, ok := position(message[0]); ok {
		message[0] = rest
		if len(f.Frames) == 0 {
			f.Frames = []classify.Frame{{File: file, Line: line, Origin: origin(file)}}
		}
		finish(f, message, file)
		return f
	}
	finish(f, message, "")
	return f
}

// frame reads "FILE:LINE: in what", "[C]: in what".
func frame(s string) (classify.Frame, bool) {
	if strings.HasPrefix(s, "[C]: in ") {
		return classify.Frame{File: "[C]", Function: strings.Trim(s[len("[C]: in "):], "?"), Origin: classify.OriginRuntime}, true
	}
	file, line, rest, ok := position(s)
	if !ok || !strings.HasPrefix(rest, "in ") {
		return classify.Frame{}, false
	}
	return classify.Frame{File: file, Line: line, Function: rest[len("in "):], Origin: origin(file)}, true
}

// position splits "FILE:LINE: rest".
func position(s string) (file string, line int, rest string, ok bool) {
	for from := 0; from < len(s); {
		at := strings.IndexByte(s[from:], ':')
		if at < 0 {
			return "", 0, "", false
		}
		at += from
		width := 0
		for n := at + 1; n < len(s) && width < 9 && s[n] >= '0' && s[n] <= '9'; n++ {
			line, width = line*10+int(s[n]-'0'), width+1
		}
		if end := at + 1 + width; width > 0 && at > 0 && strings.HasPrefix(s[end:], ": ") && !strings.ContainsAny(s[:at], "\t'") {
			return s[:at], line, s[end+2:], true
		}
		line, from = 0, at+1
	}
	return "", 0, "", false
}

// finish reads what the message says. file is where it was raised, empty if that is not said.
func finish(f *classify.Failure, message []string, file string) {
	f.Message = strings.Join(message, "\n")
	m := message[0]
	switch {
	case strings.Contains(m, "module '") && strings.Contains(m, "' not found:"):
		f.Kind, f.Module = classify.KindMissingModule, between(m, "module '", "'")
		// A file on the search path that did not load is told among those that were not there.
	case strings.HasPrefix(m, "error loading module '"):
		loading(f, m, message)
	case strings.HasPrefix(m, "cannot open "), strings.Contains(m, "cannot open file '"):
		path := strings.TrimPrefix(m, "cannot open ")
		if q := between(m, "'", "'"); q != "" {
			path = q
		} else {
			path, _, _ = strings.Cut(path, ": ")
		}
		f.Kind, f.Startup, f.Code = classify.KindFile, len(f.Frames) == 0, "2"
		if f.File = path; strings.HasSuffix(path, ".lua") || f.Startup {
			f.Kind = classify.KindMissingModule
		}
		if !strings.HasPrefix(path, "/") {
			f.File = ""
		}
	case strings.HasPrefix(m, "attempt to call "), strings.HasPrefix(m, "attempt to index "), strings.HasPrefix(m, "attempt to perform arithmetic"), strings.HasPrefix(m, "attempt to concatenate"), strings.HasPrefix(m, "attempt to compare"), strings.HasPrefix(m, "bad argument #"):
		f.Kind, f.Symbol = classify.KindSignature, between(m, " '", "'")
	case strings.HasPrefix(m, "not enough memory"):
		f.Listed = classify.OOM
	case strings.HasPrefix(m, "interrupted!"):
		f.Listed = classify.Killed
	default:
		source(f, m, file)
	}
}

// loading reads "error loading module 'X' from file 'PATH':" and the complaint behind it.
func loading(f *classify.Failure, m string, message []string) {
	f.Loading = true
	path := between(m, "from file '", "'")
	complaint := ""
	if len(message) > 1 {
		complaint = message[1]
	}
	if file, _, rest, ok := position(complaint); ok {
		source(f, rest, file)
		if f.Kind == classify.KindTorn || f.Kind == classify.KindSyntax {
			f.File = path
		}
		return
	}
	name := between(m, "module '", "'")
	switch n, ok := classify.ReadLoader(complaint); {
	case ok:
		if f.Kind, f.Object, f.Needs, f.Symbol = n.Kind, path, n.Needs, n.Symbol; f.Needs == path {
			f.Needs = ""
		}
	case strings.Contains(complaint, "truncated"), strings.Contains(complaint, "bad integer in precompiled chunk"), strings.Contains(complaint, "corrupted"):
		f.Kind, f.File = classify.KindTorn, path
	case strings.Contains(complaint, "version mismatch"), strings.Contains(complaint, "format mismatch"), strings.Contains(complaint, "bad binary format"), strings.Contains(complaint, "incompatible bytecode"):
		f.Kind, f.Module, f.File = classify.KindBinding, name, path
	}
}

// source reads the parser's complaints.
func source(f *classify.Failure, m, file string) {
	switch {
	case strings.HasSuffix(m, "near <eof>"), strings.HasSuffix(m, "near '<eof>'"), strings.HasPrefix(m, "unfinished string"), strings.HasPrefix(m, "unfinished long string"), strings.HasPrefix(m, "unfinished long comment"), strings.Contains(m, "near '<\\0>'"), strings.Contains(m, "near '<<'"):
		f.Kind = classify.KindTorn
	case strings.Contains(m, " near '"), strings.Contains(m, " expected near "):
		f.Kind = classify.KindSyntax
	default:
		// assert(loadfile(path)) puts the position of its own in front.
		if inner, _, rest, ok := position(m); ok {
			source(f, rest, inner)
		}
		return
	}
	if strings.HasPrefix(file, "/") {
		f.File = file
	}
}

// between is the text between two marks.
func between(s, from, to string) string {
	_, rest, ok := strings.Cut(s, from)
	if !ok {
		return ""
	}
	v, _, ok := strings.Cut(rest, to)
	if !ok {
		return ""
	}
	return v
}
