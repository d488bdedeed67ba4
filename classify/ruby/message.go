package ruby

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// finish reads what the type and the message say.
func finish(f *classify.Failure) {
	line, _, _ := strings.Cut(f.Message, "\n")
	f.Loading = len(f.Frames) > 0 && strings.Contains(f.Frames[len(f.Frames)-1].Function, "require")
	switch f.Type {
	case "LoadError", "Gem::LoadError", "Gem::MissingSpecError", "Gem::MissingSpecVersionError", "Gem::ConflictError", "Bundler::GemNotFound", "Bundler::GemRequireError", "Gem::GemNotFoundException":
		loadError(f, line)
	case "NameError", "Zeitwerk::NameError", "NoMethodError":
		nameError(f, line)
	case "SyntaxError":
		syntaxError(f)
	case "ArgumentError", "TypeError":
		argument(f, line)
	case "SystemStackError", "FrozenError":
		f.Kind = classify.KindSignature
	case "NoMemoryError":
		f.Listed = classify.OOM
	case "Interrupt", "SignalException", "SystemExit":
		f.Listed = classify.Killed
	case "Zlib::GzipFile::Error", "Zlib::DataError", "Zlib::BufError":
		f.Kind = classify.KindTorn
	default:
		if code, ok := strings.CutPrefix(f.Type, "Errno::"); ok {
			errno(f, code, line)
		}
	}
}

// loadError reads features, extensions and gems that could not be loaded.
func loadError(f *classify.Failure, line string) {
	switch {
	case strings.Contains(line, "cannot load such file -- "), strings.Contains(line, "No such file or directory -- "), strings.Contains(line, "no such file to load -- "):
		f.Kind = classify.KindMissingModule
		name := strings.TrimSpace(line[strings.LastIndex(line, " -- ")+4:])
		if absolute(name) {
			f.File = name
			return
		}
		f.Module = strings.TrimSuffix(strings.TrimSuffix(name, ".rb"), ".so")
		if f.Startup {
			f.Place, f.Module = name, ""
		}
		return
	case strings.Contains(line, "already activated "), strings.HasPrefix(line, "Could not find "), strings.HasPrefix(line, "Unable to activate "), strings.HasPrefix(line, "can't find gem "), strings.HasPrefix(line, "Could not load "):
		f.Kind = classify.KindMissingModule
		f.Module = gemIn(line)
		return
	}
	// An extension: the loader's words, and the file behind a dash.
	body, file := line, ""
	if at := strings.LastIndex(line, " - "); at > 0 {
		body, file = line[:at], strings.TrimSpace(line[at+3:])
	}
	if strings.Contains(body, "incompatible library version") || strings.Contains(body, "linked to incompatible ") {
		f.Kind, f.Object = classify.KindBinding, file
		return
	}
	n, ok := classify.ReadLoader(body)
	if !ok {
		return
	}
	f.Kind, f.Object, f.Needs, f.Symbol = n.Kind, n.Object, n.Needs, n.Symbol
	if f.Object == "" || !absolute(f.Object) {
		f.Object = file
	}
	if f.Needs == f.Object {
		f.Needs = ""
	}
}

// gemIn is the gem that a message of RubyGems or Bundler is about.
func gemIn(line string) string {
	rest := line
	for _, start := range [...]string{"Could not find gem ", "Could not find ", "Unable to activate ", "can't find gem ", "can't activate ", "You have already activated ", "Could not load "} {
		if r, ok := strings.CutPrefix(line, start); ok {
			rest = r
			break
		}
	}
	rest = strings.TrimLeft(rest, "'`\"")
	if end := strings.IndexAny(rest, " ,'\"("); end > 0 {
		rest = rest[:end]
	}
	return gemName(rest)
}

// nameError reads constants, methods and locals that are not there.
func nameError(f *classify.Failure, line string) {
	switch {
	case strings.HasPrefix(line, "uninitialized constant "):
		constantMissing(f, firstWord(line[len("uninitialized constant "):]))
	case strings.HasPrefix(line, "expected file ") && strings.Contains(line, " to define constant "):
		constantMissing(f, strings.TrimSuffix(firstWord(line[strings.Index(line, " to define constant ")+len(" to define constant "):]), ","))
	case strings.HasPrefix(line, "undefined method "), strings.HasPrefix(line, "private method "), strings.HasPrefix(line, "protected method "), strings.HasPrefix(line, "super: no superclass method "):
		f.Kind = classify.KindSignature
		f.Symbol = quoted(line)
	default:
		f.Kind = classify.KindUndefined
		f.Symbol = quoted(line)
	}
}

// constantMissing splits a constant at its owner. Without one it is a name like any other.
func constantMissing(f *classify.Failure, name string) {
	at := strings.LastIndex(name, "::")
	if at <= 0 || !constant(name) {
		f.Kind, f.Symbol = classify.KindUndefined, name
		return
	}
	f.Kind, f.Module, f.Symbol = classify.KindMissingName, name[:at], name[at+2:]
}

// argument reads calls that do not fit, and stored objects of classes that are gone.
func argument(f *classify.Failure, line string) {
	switch {
	case strings.HasPrefix(line, "undefined class/module "):
		constantMissing(f, strings.TrimSuffix(firstWord(line[len("undefined class/module "):]), "::"))
		f.ByData = true
	case strings.HasPrefix(line, "superclass mismatch for class "):
		// Two generations of one file, or two files that disagree.
		f.Kind = classify.KindSignature
	case strings.HasPrefix(line, "wrong number of arguments"), strings.HasPrefix(line, "missing keyword"), strings.HasPrefix(line, "unknown keyword"), strings.HasPrefix(line, "no keywords accepted"):
		f.Kind = classify.KindSignature
	case f.Type == "TypeError" && !strings.Contains(line, "marshal"):
		f.Kind = classify.KindSignature
	}
}

// torn are the words for source that stops too early or holds what no person typed.
var torn = [...]string{"unexpected end-of-input", "unexpected end of file", "unexpected end-of-file", "meets end of file", "unterminated", "invalid multibyte char", "Invalid char `", "Invalid char '", "unexpected null",
	"end of file", "expected a matching", "expected an `end`", "unexpected `<<'", "unexpected <<", "`<<<<<<<", "unclosed", "invalid multibyte"}

// syntaxError tells torn source from source that merely does not parse.
func syntaxError(f *classify.Failure) {
	f.Kind = classify.KindSyntax
	for _, w := range torn {
		if strings.Contains(f.Message, w) {
			f.Kind = classify.KindTorn
			break
		}
	}
	// The file stands in front of the first complaint. The main script's stands in front of everything.
	for l := range strings.Lines(f.Message) {
		l = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(l), "--> "), "# ")
		if fr, _, ok := place(l); ok {
			f.File = fr.File
			return
		}
	}
	if n := len(f.Frames); n > 0 && (f.Startup || f.Frames[n-1].Function == "") {
		f.File = f.Frames[len(f.Frames)-1].File
	}
}

// errno reads system errors: "No such file or directory @ rb_sysopen - path".
func errno(f *classify.Failure, code, line string) {
	f.Code = code
	switch code {
	case "ENOENT", "EACCES", "EPERM", "ESTALE", "EISDIR", "ENOTDIR":
		f.Kind = classify.KindFile
		f.Code = map[string]string{"ENOENT": "2", "EACCES": "13", "EPERM": "1", "ESTALE": "116"}[code]
		if at := strings.LastIndex(line, " - "); at > 0 {
			f.File = strings.TrimSpace(line[at+3:])
		}
	case "ENOEXEC":
		f.Kind = classify.KindTorn
		if at := strings.LastIndex(line, " - "); at > 0 {
			f.File = strings.TrimSpace(line[at+3:])
		}
	case "EPIPE":
		f.Listed = classify.Killed
	}
}

func firstWord(s string) string {
	if at := strings.IndexAny(s, " \t\n"); at >= 0 {
		return s[:at]
	}
	return s
}

// quoted is the first name between a back quote or a quote and a quote.
func quoted(s string) string {
	at := strings.IndexAny(s, "`'")
	if at < 0 {
		return ""
	}
	end := strings.IndexByte(s[at+1:], '\'')
	if end < 0 {
		return ""
	}
	return s[at+1 : at+1+end]
}

// absolute reports a path from the root of a file system.
func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && (p[2] == '/' || p[2] == '\\')
}
