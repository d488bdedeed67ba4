package python

import "strings"

// firstWord is s up to its first blank.
func firstWord(s string) string {
	s = strings.TrimLeft(s, " ")
	if at := strings.IndexAny(s, " \n"); at >= 0 {
		return s[:at]
	}
	return s
}

// quotedName is the first text between single or double quotes.
func quotedName(s string) string {
	at := strings.IndexAny(s, `'"`)
	if at < 0 {
		return ""
	}
	end := strings.IndexByte(s[at+1:], s[at])
	if end < 0 {
		return ""
	}
	return s[at+1 : at+1+end]
}

// lastQuoted is the last text between quotes.
func lastQuoted(s string) string {
	end := strings.LastIndexAny(s, `'"`)
	if end <= 0 {
		return ""
	}
	at := strings.LastIndexByte(s[:end], s[end])
	if at < 0 {
		return ""
	}
	return s[at+1 : end]
}

// attributeName is the name behind "has no attribute".
func attributeName(m string) string {
	at := strings.Index(m, "has no attribute ")
	if at < 0 {
		return ""
	}
	return quotedName(m[at:])
}

// topLevel is the first component of a dotted name.
func topLevel(module string) string {
	top, _, _ := strings.Cut(module, ".")
	return top
}

// parentName is a dotted name without its last part.
func parentName(s string) string {
	if at := strings.LastIndexByte(s, '.'); at > 0 {
		return s[:at]
	}
	return ""
}
