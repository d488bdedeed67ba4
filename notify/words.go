package notify

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes foreign text fit to stand in one line before a person: redacted, on one line, without control or
// direction-changing characters, at most limit characters long (0 for no limit), the cut marked by "…".
func Line(s string, limit int) string {
	// Redacted before it is cut: half a token has lost the shape that gives it away.
	s = Redact(s)
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = b.Len() > 0
			continue
		}
		// Format characters reorder or hide what a person reads; U+FFFD stands for bytes that are no text.
		if unicode.Is(unicode.Cf, r) && r != '\u200d' {
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return cut(b.String(), limit)
}

// Exact makes a path or a command safe to show without shortening it or touching its spaces: half a command is none.
// Characters that would act on a terminal become "�", so that such a command is seen not to be the real one.
func Exact(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return utf8.RuneError
		}
		return r
	}, Redact(s))
}

func cut(s string, limit int) string {
	if limit <= 0 || utf8.RuneCountInString(s) <= limit {
		return s
	}
	n := 0
	for i := range s {
		if n == limit-1 {
			return strings.TrimRight(s[:i], " ") + "…"
		}
		n++
	}
	return s
}

// calm reports whether a text may stand in a title. The two words are looked for in any case, and with whatever is not
// a letter taken out of each word, so that "fa-il" in a name does not pass either.
func calm(s string) bool {
	for _, word := range strings.Fields(s) {
		letters := strings.Map(func(r rune) rune {
			if !unicode.IsLetter(r) {
				return -1
			}
			return unicode.ToLower(r)
		}, word)
		if strings.Contains(letters, "fail") || strings.Contains(letters, "error") {
			return false
		}
	}
	return true
}

// firstCalm is the first text that may stand in a title; callers put one without foreign words last.
func firstCalm(texts ...string) string {
	for _, t := range texts {
		if t = Line(t, titleLimit); t != "" && calm(t) {
			return t
		}
	}
	return Line(texts[len(texts)-1], titleLimit)
}

// Bounds of what stands in a row, in characters.
const (
	titleLimit = 120
	nameLimit  = 40
	noteLimit  = 400
)

// count is "1 agent" or "5 agents".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Shell quotes an argument so that a person can paste the command it stands in.
func Shell(arg string) string {
	safe := arg != "" && strings.IndexFunc(arg, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r))
	}) < 0
	if safe {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// part escapes what is joined into a key, so that two stories never share one.
func part(s string) string {
	return strings.NewReplacer("%", "%25", "/", "%2F", ":", "%3A").Replace(s)
}

// lowerFirst fits a title into the middle of a sentence.
func lowerFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[n:]
}
