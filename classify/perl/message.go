package perl

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/internal/logline"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// What Perl says of an object that another build of it compiled, and of a base class that no file defines.
const (
	mismatched = "loadable library and perl binaries are mismatched"
	emptyBase  = "Base class package \""
)

// maxBlock bounds the lines of one failure.
const maxBlock = 400

// block reads a failure that begins at line i, with the lines that repeat it on its way out.
func block(log *text.Log, i int) *classify.Failure {
	l := log.Lines[i]
	if rest, ok := strings.CutPrefix(strings.TrimSpace(l), "Can't open perl script "); ok {
		return &classify.Failure{First: i, Line: i, Last: i, Message: l, Startup: true, Fatal: true, Kind: classify.KindMissingModule, File: quoted(rest)}
	}
	if name, _, ok := strings.Cut(strings.TrimSpace(l), ".c: "+mismatched); ok && !strings.Contains(name, " ") {
		// The interpreter itself refuses, and ends without a place. The name is that of the source the object was built from.
		return &classify.Failure{First: i, Line: i, Last: i, Message: l, Startup: true, Fatal: true, Kind: classify.KindBinding, Object: name + ".so"}
	}
	m, fr, ok := place(l)
	head := i
	if !ok && strings.HasPrefix(l, emptyBase) {
		// The advice goes on over some lines, and the place ends it.
		for n := i + 1; n < len(log.Lines) && n < i+6 && !ok; n++ {
			if _, fr, ok = place(log.Lines[n]); ok {
				m, i = l, n
			}
		}
	}
	if !ok && strings.Contains(l, " is not exported by the ") && i+1 < len(log.Lines) {
		// The list of names that were not found, and the place behind it.
		for n := i + 1; n < len(log.Lines) && n < i+20 && !ok; n++ {
			if strings.Contains(log.Lines[n], "import errors at ") {
				_, fr, ok = place(log.Lines[n])
				m, i = l, n
			}
		}
	}
	if !ok || warning(m) || echo(m) || strings.HasPrefix(l, "\t") {
		return nil
	}
	f := &classify.Failure{First: head, Line: i, Last: i, Message: m}
	inner := []classify.Frame{fr}
	proved := read(f, m, fr)
	if said, again, ok := strings.Cut(m, ": Can't locate "); ok && !proved && strings.Contains(again, " in @INC ") {
		// What a program says in front of it may be that it got over it, and a warning has the same shape.
		read(f, "Can't locate "+again, fr)
		f.Survived = logline.Handled(said)
	}
	// The places that asked, innermost first.
	for n := i + 1; n < len(log.Lines) && n < i+maxBlock; n++ {
		l := log.Lines[n]
		m, fr, ok := place(l)
		if !ok {
			break
		}
		called := strings.HasPrefix(l, "\t") && strings.HasSuffix(m, " called")
		switch {
		case echo(m), called, strings.TrimSpace(m) == "":
			if called || inner[len(inner)-1].File != fr.File {
				inner = append(inner, fr)
			}
			f.Fatal = f.Fatal || echo(m)
		// The parser goes on for a while and complains again: torn source is torn even if the first complaint was another.
		case f.Kind == classify.KindSyntax || f.Kind == classify.KindTorn:
			var more classify.Failure
			if !read(&more, m, fr) || more.Kind != classify.KindTorn && more.Kind != classify.KindSyntax {
				return frames(f, inner)
			}
			if more.Kind == classify.KindTorn {
				f.Kind = classify.KindTorn
			}
		default:
			n = len(log.Lines)
			continue
		}
		f.Last = n
	}
	if !proved && !f.Fatal && !final(log, f.Last) {
		return nil // a warning has the same shape as a death
	}
	f.Fatal = f.Fatal || proved
	return frames(f, inner)
}

// final reports that line i is the last of the log but for lines without a place.
func final(log *text.Log, i int) bool {
	for n := i + 1; n < len(log.Lines); n++ {
		if _, _, ok := place(log.Lines[n]); ok {
			return false
		}
	}
	return true
}

// frames puts the places in order, outermost first.
func frames(f *classify.Failure, inner []classify.Frame) *classify.Failure {
	f.Line = f.Last
	f.Frames = make([]classify.Frame, 0, len(inner))
	for i := len(inner) - 1; i >= 0; i-- {
		f.Frames = append(f.Frames, inner[i])
	}
	return f
}

// place splits "message at FILE line N." and its forms; the message keeps nothing of the place.
func place(l string) (string, classify.Frame, bool) {
	var fr classify.Frame
	if !strings.Contains(l, " line ") {
		return "", fr, false // to look from the end costs ten times as much
	}
	end := len(l)
	for {
		at := strings.LastIndex(l[:end], " line ")
		if at < 0 {
			return "", fr, false
		}
		n, width := number(l[at+len(" line "):])
		from := strings.LastIndex(l[:at], " at ")
		if width > 0 && from >= 0 {
			path := l[from+4 : at]
			rest := l[at+len(" line ")+width:]
			// Behind the number a sentence ends, or tells what was being read or parsed.
			if plausible(path) && (rest == "" || rest[0] == '.' || rest[0] == ',' || rest[0] == '\t') {
				fr.File, fr.Line, fr.Origin = path, n, origin(path)
				m := l[:from]
				if rest = strings.TrimLeft(rest, ",. "); strings.HasPrefix(rest, "at ") || strings.HasPrefix(rest, "near ") {
					m += " " + rest
				}
				return m, fr, true
			}
		}
		end = at
	}
}

// plausible reports a path as Perl prints it.
func plausible(p string) bool {
	if p == "" || strings.ContainsAny(p, "\t\"'") {
		return false
	}
	if strings.HasPrefix(p, "(eval ") || p == "-e" || p == "-" {
		return true
	}
	return strings.HasPrefix(p, "/") || !strings.Contains(p, " ") && strings.ContainsAny(p, "./\\")
}

// echo reports a line with which Perl repeats a failure.
func echo(m string) bool {
	m = strings.TrimSpace(m)
	return strings.HasPrefix(m, "Compilation failed in require") || strings.HasPrefix(m, "BEGIN failed--compilation aborted") || strings.HasPrefix(m, "Can't continue after import errors") || strings.HasPrefix(m, "INIT failed") || strings.HasPrefix(m, "UNITCHECK failed") || strings.HasPrefix(m, "CHECK failed") || m == "eval {...} called"
}

// warning reports messages that Perl only warns with.
func warning(m string) bool {
	for _, w := range [...]string{"Use of uninitialized", "Useless use of", "Odd number of elements", "Deep recursion", "Wide character", "Unquoted string", "Scalar value @", "Reference found where", "Possible ", "Statement unlikely", "Found = in conditional", "Name \"", "Unescaped", "Given is", "Smartmatch is", "when is", "splice() offset", "substr outside", "Exiting ", "Unsuccessful ", "readline() on", "print() on", "close() on", "Negative repeat", "Can't exec \""} {
		if strings.HasPrefix(m, w) {
			return true
		}
	}
	for _, w := range [...]string{" redefined", "isn't numeric in", "masks earlier declaration", "is deprecated", "is experimental", "used only once", "interpreted as function", "will never be executed", "Prototype mismatch"} {
		if strings.Contains(m, w) {
			return true
		}
	}
	return false
}

// read tells what a message is about, in f; false where it is none of Perl's own.
func read(f *classify.Failure, m string, fr classify.Frame) bool {
	switch {
	case strings.HasPrefix(m, "Can't locate object method "), strings.HasPrefix(m, "Can't call method "):
		f.Kind, f.Symbol = classify.KindSignature, quoted(m)
	case strings.HasPrefix(m, "Can't locate loadable object for module "):
		f.Kind, f.Module = classify.KindBinding, firstWord(m[len("Can't locate loadable object for module "):])
	case strings.HasPrefix(m, "Can't locate "):
		located(f, firstWord(m[len("Can't locate "):]))
	case strings.Contains(m, " version ") && strings.Contains(m, " required--this is only "):
		f.Kind, f.Module = classify.KindMissingModule, firstWord(m)
		f.Standard = f.Module == "Perl"
	case strings.Contains(m, " does not define $") && strings.Contains(m, "version check failed"), strings.Contains(m, " defines neither package nor VERSION--"):
		f.Kind, f.Module = classify.KindMissingModule, firstWord(m)
	case strings.HasPrefix(m, "Perl v") && strings.Contains(m, " required--this is only"):
		f.Kind, f.Module, f.Standard = classify.KindMissingModule, "Perl", true
	case strings.Contains(m, " object version ") && strings.Contains(m, " does not match "):
		f.Kind, f.Module = classify.KindBinding, firstWord(m)
	case strings.HasPrefix(m, "Perl API version ") && strings.Contains(m, " does not match "):
		_, rest, _ := strings.Cut(m, " of ")
		f.Kind, f.Module = classify.KindBinding, firstWord(rest)
	case strings.Contains(m, mismatched):
		f.Kind, f.Object = classify.KindBinding, strings.TrimSuffix(strings.TrimSuffix(firstWord(m), ":"), ".c")
	case strings.HasPrefix(m, emptyBase):
		f.Kind, f.Module = classify.KindMissingModule, quoted(m)
	case strings.HasPrefix(m, "Can't load '"):
		object(f, m)
	case strings.Contains(m, " is not exported by the ") && strings.Contains(m, " module"):
		_, rest, _ := strings.Cut(m, " is not exported by the ")
		f.Kind, f.Symbol, f.Module = classify.KindMissingName, strings.TrimLeft(quoted(m), "&$@%"), firstWord(rest)
	case strings.HasSuffix(m, " did not return a true value"):
		f.Kind = classify.KindTorn
		located(f, firstWord(m))
		f.Kind = classify.KindTorn
	case strings.HasPrefix(m, "Undefined subroutine "):
		f.Kind, f.Symbol = classify.KindUndefined, strings.TrimPrefix(firstWord(m[len("Undefined subroutine "):]), "&")
	case strings.HasPrefix(m, "Global symbol "), strings.HasPrefix(m, "Bareword \""):
		f.Kind, f.Symbol = classify.KindUndefined, strings.TrimLeft(quoted(m), "$@%")
	case strings.HasPrefix(m, "Too many arguments for "), strings.HasPrefix(m, "Too few arguments for "), strings.HasPrefix(m, "Not enough arguments for "), strings.HasPrefix(m, "Odd name/value argument for "), strings.HasPrefix(m, "Missing required parameter"), strings.HasPrefix(m, "Unrecognized named parameter"),
		strings.HasPrefix(m, "Not a CODE reference"), strings.HasPrefix(m, "Not an ARRAY reference"), strings.HasPrefix(m, "Not a HASH reference"), strings.HasPrefix(m, "Can't use "):
		f.Kind = classify.KindSignature
	default:
		return source(f, m, fr)
	}
	return true
}

// located reads the path behind "Can't locate": relative to a search folder it is a module.
func located(f *classify.Failure, path string) {
	f.Kind = classify.KindMissingModule
	if strings.HasPrefix(path, "/") {
		f.File = path
		return
	}
	f.Module = strings.ReplaceAll(strings.TrimSuffix(path, ".pm"), "/", "::")
}

// object reads "Can't load 'PATH' for module NAME: what the loader says".
func object(f *classify.Failure, m string) {
	path := quoted(m)
	_, rest, ok := strings.Cut(m, " for module ")
	if !ok {
		return
	}
	name, loader, _ := strings.Cut(rest, ": ")
	n, ok := classify.ReadLoader(loader)
	if !ok {
		f.Module = name
		return
	}
	f.Kind, f.Module, f.Needs, f.Symbol = n.Kind, name, n.Needs, n.Symbol
	switch {
	case n.Kind == classify.KindTorn:
		f.Module, f.File = "", path
	case n.Needs == path:
		f.Needs = ""
	}
}

// source reads what the parser says of a file.
func source(f *classify.Failure, m string, fr classify.Frame) bool {
	switch {
	case strings.HasPrefix(m, "syntax error") && strings.Contains(m, "at EOF"), strings.HasPrefix(m, "Missing right curly"), strings.Contains(m, " anywhere before EOF"), strings.HasPrefix(m, "Unrecognized character \\x0"), strings.HasPrefix(m, "Unrecognized character \\x{0}"), strings.HasPrefix(m, "Search pattern not terminated"), strings.HasPrefix(m, "Substitution replacement not terminated"), strings.HasPrefix(m, "Substitution pattern not terminated"), strings.HasPrefix(m, "Transliteration replacement not terminated"), strings.HasPrefix(m, "Unterminated <> operator"), strings.HasPrefix(m, "Malformed UTF-8 character"):
		f.Kind = classify.KindTorn
	case strings.HasPrefix(m, "syntax error"), strings.HasPrefix(m, "Unmatched right "), strings.HasPrefix(m, "Unrecognized character "):
		f.Kind = classify.KindSyntax
	default:
		return false
	}
	f.File = fr.File
	return true
}

func firstWord(s string) string {
	if at := strings.IndexAny(s, " \n,"); at >= 0 {
		return s[:at]
	}
	return s
}

// quoted is the first text in quotes. The apostrophe of "Can't" is none.
func quoted(s string) string {
	s = strings.TrimPrefix(s, "Can't")
	at := strings.IndexAny(s, `"'`)
	if at < 0 {
		return ""
	}
	end := strings.IndexByte(s[at+1:], s[at])
	if end < 0 {
		return ""
	}
	return s[at+1 : at+1+end]
}

func number(s string) (n, width int) {
	for width < len(s) && width < 9 && s[width] >= '0' && s[width] <= '9' {
		n = n*10 + int(s[width]-'0')
		width++
	}
	return n, width
}
