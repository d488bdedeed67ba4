package python

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// halves are the messages for source that stops, or holds what no source holds. No newer version of the language gives
// them a meaning, so they prove a torn file where a mere "invalid syntax" does not.
var halves = []string{
	"unexpected EOF while parsing", "was never closed", "unterminated string literal", "unterminated triple-quoted string literal",
	"EOL while scanning string literal", "EOF while scanning triple-quoted string literal", "unterminated triple-quoted f-string literal",
	"unterminated f-string literal", "EOF in multi-line statement", "unexpected end of file",
	"source code string cannot contain null bytes", "source code cannot contain null bytes", "invalid non-printable character U+0000",
	"Non-UTF-8 code starting with", "expected an indented block", "unindent does not match any outer indentation level",
	"unexpected indent", "unmatched ')'", "unmatched ']'", "unmatched '}'", "does not match opening parenthesis", "expected 'except' or 'finally' block",
	"Expected one or more names after 'import'", "'utf-8' codec can't decode byte", "'utf8' codec can't decode byte", "invalid character in identifier",
	"encoding problem: utf-8",
}

// syntaxError tells half a file from source that this interpreter merely does not know.
func syntaxError(f *classify.Failure, stopped bool) {
	f.Kind = classify.KindSyntax
	inString := false
	// The compiler names the file in a frame without a function. Where it could not even decode the file it has none,
	// and the import statement tells.
	if n := len(f.Frames); n > 0 && f.Frames[n-1].Function == "" {
		f.File = f.Frames[n-1].File
		if inString = f.File == "<fstring>"; strings.HasPrefix(f.File, "<") {
			f.File = ""
		}
	} else {
		f.File = syntaxFile(f.Message)
	}
	if f.File == "" {
		f.Module, f.Place = sourceTarget(f, true)
	}
	line := ""
	if fr := last(f); fr != nil && fr.Function == "" {
		line = fr.Source
	}
	// Newer versions allow more inside a replacement field than older ones can read.
	if m := f.Message; inString || strings.HasPrefix(m, "f-string: ") || strings.Contains(m, "string literal") && openField(line) {
		return
	}
	for _, h := range halves {
		if strings.Contains(f.Message, h) {
			f.Kind = classify.KindTorn
			return
		}
	}
	if stops(f.Message, line, stopped) {
		f.Kind = classify.KindTorn
	}
}

// openField reports a line that ends inside the replacement field of a formatted string.
func openField(line string) bool {
	for _, open := range [...]string{`f"`, `f'`, `F"`, `F'`} {
		if at := strings.Index(line, open); at >= 0 && strings.LastIndexByte(line, '{') > strings.LastIndexByte(line, '}') && strings.LastIndexByte(line, '{') > at {
			return true
		}
	}
	return false
}

// last is the innermost frame, nil without frames.
func last(f *classify.Failure) *classify.Frame {
	if len(f.Frames) == 0 {
		return nil
	}
	return &f.Frames[len(f.Frames)-1]
}

// stops reports whether the line that does not parse breaks off, or is a mark that a merge left. The compiler prints it
// from the source it read, so this line does not lie. Where the caret stands behind the end of the line, the line itself was
// fine and the rest is missing; new syntax is refused at a word of its own. But a line that ends with a colon may open a
// block that an old interpreter takes for an annotation.
func stops(message, line string, stopped bool) bool {
	for _, mark := range [...]string{"<<<<<<<", "=======", ">>>>>>>", "|||||||"} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	if !strings.HasPrefix(message, "invalid syntax") {
		return false
	}
	if strings.Contains(line, "#") || strings.HasSuffix(line, ":") {
		return false
	}
	return stopped || openEnd(line)
}

// openEnd reports a line that ends where no line of any version can: behind an operator or a keyword that wants more, or
// with a decorator that nothing follows. Older interpreters put the caret on the last character then.
func openEnd(line string) bool {
	for _, end := range [...]string{"=", "+", "-", "*", "/", "%", "&", "<", ">", ".", " import", " and", " or", " not", " in", " is", " if", " else", " from", " as", "@"} {
		if strings.HasSuffix(line, end) && line != end {
			return true
		}
	}
	return strings.HasPrefix(line, "@") && dotted(line[1:])
}

// syntaxFile is the file that a message itself names: "... in file /srv/x.py on line 3", "... (x.py, line 3)".
func syntaxFile(m string) string {
	if at := strings.Index(m, " in file "); at >= 0 {
		rest := m[at+len(" in file "):]
		if end := strings.Index(rest, " on line "); end > 0 {
			return rest[:end]
		}
	}
	if at := strings.LastIndex(m, " ("); at >= 0 && strings.HasSuffix(m, ")") {
		if end := strings.LastIndex(m, ", line "); end > at {
			if p := m[at+2 : end]; strings.ContainsAny(p, `/\`) {
				return p
			}
		}
	}
	return ""
}

// cutMessage reports whether the last line of a text ends inside a message that Python would have finished.
func cutMessage(f *classify.Failure) bool {
	m := f.Message
	switch f.Type {
	// Only messages whose shape is known can be known to be cut.
	case "ImportError", "ModuleNotFoundError", "AttributeError":
	default:
		return false
	}
	for _, whole := range [...]string{"cannot import name ", "No module named ", "module '"} {
		if len(m) < len(whole) && strings.HasPrefix(whole, m) {
			return true
		}
		if strings.HasPrefix(m, whole) {
			// An open quote or an open path.
			return f.Kind == classify.KindMissingName && f.Symbol == "" || strings.Count(m, "'")%2 == 1 || strings.Contains(m, " (") && !strings.Contains(m[strings.Index(m, " ("):], ")") || strings.HasSuffix(m, " from")
		}
	}
	return m == ""
}
