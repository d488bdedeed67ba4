package php

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// engine reads what the engine itself says: it has no exception.
func engine(f *classify.Failure, level string) {
	m := f.Message
	switch {
	case level == "Parse error" || strings.HasPrefix(m, "Unclosed '"):
		syntax(f)
	case strings.HasPrefix(m, "Maximum execution time"):
		f.Listed = classify.Timeout
	case strings.HasPrefix(m, "Allowed memory size"), strings.HasPrefix(m, "Out of memory"):
		f.Listed = classify.OOM
	case strings.HasPrefix(m, "Declaration of "):
		// Two units that no longer fit: "Declaration of A\B::c() must be compatible with X\Y::c()"
		f.Kind = classify.KindMissingName
		f.Module, f.Symbol = member(strings.TrimPrefix(m, "Declaration of "))
	case strings.HasPrefix(m, "Class ") && strings.Contains(m, " abstract method"):
		f.Kind = classify.KindMissingName
		f.Module = firstWord(m[len("Class "):])
		if at := strings.LastIndexByte(m, '('); at > 0 {
			_, f.Symbol = member(strings.TrimRight(firstWord(m[at+1:]), "),"))
		}
	case strings.Contains(m, " cannot extend final class "), strings.Contains(m, " may not inherit from final class "):
		// The class that was closed behind the back of who extends it.
		_, rest, _ := strings.Cut(m, " final class ")
		f.Kind, f.Module = classify.KindMissingName, strings.Trim(firstWord(rest), "()")
	case strings.HasPrefix(m, "Cannot override final method "):
		f.Kind = classify.KindMissingName
		f.Module, f.Symbol = member(m[len("Cannot override final method "):])
	default:
		thrown(f)
	}
}

// thrown reads the messages that the engine throws, and older ones that it prints.
func thrown(f *classify.Failure) {
	m, _, _ := strings.Cut(f.Message, "\n")
	f.Kind = classify.KindOther
	switch {
	case f.Type == "ParseError":
		syntax(f)
	case (strings.HasPrefix(m, "Class ") || strings.HasPrefix(m, "Interface ") || strings.HasPrefix(m, "Trait ") || strings.HasPrefix(m, "Enum ")) && strings.Contains(m, " not found"):
		f.Kind = classify.KindMissingModule
		f.Module = quoted(m)
	case strings.HasPrefix(m, "Attempted to load ") && strings.Contains(m, " from namespace "):
		// Symfony's words for the same.
		_, space, _ := strings.Cut(m, " from namespace ")
		f.Kind, f.Module = classify.KindMissingModule, quoted(space)+`\`+quoted(m)
	case strings.Contains(m, " on an incomplete object. Please ensure that the class definition "):
		_, rest, _ := strings.Cut(m, " class definition ")
		f.Kind, f.Module, f.ByData = classify.KindMissingModule, quoted(rest), true
	case strings.HasPrefix(m, "Call to undefined method "), strings.HasPrefix(m, "Call to undefined static method "):
		f.Kind = classify.KindSignature
		_, f.Symbol = member(m[strings.Index(m, "method ")+len("method "):])
	case strings.HasPrefix(m, "Call to undefined function "):
		f.Kind = classify.KindUndefined
		f.Symbol = strings.TrimSuffix(firstWord(m[len("Call to undefined function "):]), "()")
	case strings.HasPrefix(m, "Undefined constant "), strings.HasPrefix(m, "Undefined class constant "):
		owner, name := member(strings.Trim(firstWord(m[strings.Index(m, "constant ")+len("constant "):]), `"'`))
		if f.Kind, f.Symbol = classify.KindUndefined, name; owner != "" && strings.Contains(m, "::") {
			f.Kind, f.Module = classify.KindMissingName, owner
		}
	case strings.HasPrefix(m, "Too few arguments"), strings.HasPrefix(m, "Too many arguments"), strings.HasPrefix(m, "Unknown named parameter"), f.Type == "TypeError", f.Type == "ArgumentCountError", strings.HasPrefix(m, "Call to private "), strings.HasPrefix(m, "Call to protected "), strings.HasPrefix(m, "Call to a member function "):
		f.Kind = classify.KindSignature
	case strings.HasPrefix(m, "Failed opening required '"), strings.Contains(m, "Failed opening required '"):
		f.Kind, f.Loading = classify.KindMissingModule, true
		path := quoted(m[strings.Index(m, "required "):])
		if f.File = file(path); !strings.HasPrefix(f.File, "/") {
			f.File = "" // relative to a search path that nothing names
		}
	case strings.Contains(m, "internal corruption of phar"), strings.Contains(m, "phar error: "), strings.HasPrefix(f.Type, "Phar") && strings.Contains(m, "corrupt"), f.Type == "PharException", strings.Contains(m, "truncated entry"), strings.Contains(m, "broken signature"):
		phar(f, m)
	}
}

// phar reads complaints about an archive: which is named in quotes, or is the one that the code runs from.
func phar(f *classify.Failure, m string) {
	f.Kind = classify.KindTorn
	for _, q := range [...]string{quoted(m), quoted(m[max(0, strings.Index(m, "phar \"")):])} {
		if strings.HasSuffix(q, ".phar") && strings.HasPrefix(q, "/") {
			f.File = q
		}
	}
	if n := len(f.Frames); f.File == "" && n > 0 {
		f.File = f.Frames[n-1].File
	}
}

// syntax tells a file that stops too early from one that merely does not parse.
func syntax(f *classify.Failure) {
	f.Kind = classify.KindSyntax
	m := f.Message
	if strings.HasPrefix(m, "Unclosed '") || has(m, "unexpected end of file", "unexpected $end", "Unterminated comment", "unterminated", "unexpected token \"<<\"", "unexpected token \"<<<", "'T_SL'", "unexpected character 0x00", "Invalid body indentation level", "unexpected ''") {
		f.Kind = classify.KindTorn
	}
	if n := len(f.Frames); n > 0 {
		f.File = f.Frames[n-1].File
	}
}

// explained gives a fatal error the reason that a warning before it tells.
func (p *parser) explained(f *classify.Failure) {
	inner := f
	for inner.Cause != nil {
		inner = inner.Cause
	}
	for i := f.First - 1; i >= 0 && i >= f.First-40; i-- {
		level, m := p.level(p.log.Lines[i])
		if level != "Warning" && level != "Core warning" {
			continue
		}
		switch {
		// An archive that was overwritten cannot be read, so what was required of it was not found.
		case inner.Kind == classify.KindMissingModule && inner.Loading && has(m, "internal corruption of phar", "phar error: "):
			phar(inner, m)
			return
		case inner.Kind == classify.KindUndefined && !strings.Contains(inner.Symbol, `\`), inner.Kind == classify.KindMissingModule && inner.Module != "" && !strings.Contains(inner.Module, `\`):
			if p.refused(inner, m, i) {
				return
			}
		}
	}
}

// refused reads a warning at startup that an extension does not fit, and makes it the reason of f.
func (p *parser) refused(f *classify.Failure, m string, at int) bool {
	name := ""
	n := classify.Native{Kind: classify.KindBinding}
	switch {
	case strings.HasSuffix(m, ": Unable to initialize module") || strings.Contains(m, ": Unable to initialize module"):
		m = strings.TrimPrefix(m, "PHP Startup: ")
		name, _, _ = strings.Cut(m, ":")
	case strings.Contains(m, "Unable to load dynamic library '"):
		name = quoted(m)
		// The loader's words stand in parentheses behind each path that was tried.
		for _, part := range strings.Split(m, " (") {
			if r, ok := classify.ReadLoader(strings.TrimRight(part, "),")); ok && (n.Symbol == "" || r.Symbol != "") {
				if r.Needs == "" || !strings.Contains(r.Needs, name) {
					n = r
				}
			}
		}
	case strings.Contains(m, ": Unable to load dynamic library") || !strings.Contains(m, "Startup"):
		return false
	}
	if name == "" {
		return false
	}
	stem := name[strings.LastIndexByte(name, '/')+1:]
	stem = strings.TrimSuffix(strings.TrimSuffix(stem, ".so"), ".dll")
	// Only an echo of the refusal follows from it: what is missing is called after the extension.
	if asked := strings.ToLower(f.Symbol + f.Module); !strings.HasPrefix(strings.ReplaceAll(asked, "_", ""), strings.ToLower(strings.ReplaceAll(stem, "_", ""))) {
		return false
	}
	f.Kind, f.Module, f.Object, f.Needs, f.Symbol = n.Kind, "", stem+".so", n.Needs, n.Symbol
	f.First = min(f.First, at)
	return true
}

// member splits "Owner::name(...)".
func member(s string) (owner, name string) {
	if at := strings.IndexByte(s, '('); at >= 0 {
		s = s[:at]
	}
	s = firstWord(s)
	at := strings.LastIndex(s, "::")
	if at < 0 {
		return "", s
	}
	return s[:at], s[at+2:]
}

func firstWord(s string) string {
	if at := strings.IndexAny(s, " \n"); at >= 0 {
		return s[:at]
	}
	return s
}

// quoted is the first text in quotes.
func quoted(s string) string {
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

func has(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
