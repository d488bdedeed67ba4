package text

import "strings"

// stamp is the length of "2026-11-30T12:54:15.123Z" and its kin at the start of s, 0 for none. A weekday may precede it.
func stamp(s string) int {
	at := 0
	if len(s) > 4 && s[3] == ' ' && strings.Contains("Mon Tue Wed Thu Fri Sat Sun", s[:3]) {
		at = 4
	}
	n := shape(s[at:], "dddd-dd-dd")
	if n == 0 {
		n = shape(s[at:], "dddd/dd/dd")
	}
	if n == 0 {
		return 0
	}
	at += n
	for at < len(s) && (s[at] == ',' || s[at] == 'T' || s[at] == ' ') && at < n+6 {
		at++
	}
	m := clock(s[at:])
	if m == 0 {
		return 0
	}
	return at + m
}

// clock is the length of "12:54:15,123 UTC" at the start of s, with fraction and zone if there are.
func clock(s string) int {
	// Fraction and zone are optional and come in every combination that loggers know.
	n := shape(s, "dd:dd:dd")
	if n == 0 {
		return 0
	}
	if n < len(s) && (s[n] == '.' || s[n] == ',') && n+1 < len(s) && digit(s[n+1]) {
		n++
		for n < len(s) && digit(s[n]) {
			n++
		}
	}
	switch {
	case n < len(s) && s[n] == 'Z':
		return n + 1
	case strings.HasPrefix(s[n:], " UTC"):
		return n + 4
	}
	z := n
	if z < len(s) && s[z] == ' ' {
		z++
	}
	if z < len(s) && (s[z] == '+' || s[z] == '-') {
		if m := shape(s[z+1:], "dd:dd"); m > 0 {
			return z + 1 + m
		}
		if m := shape(s[z+1:], "dddd"); m > 0 {
			return z + 1 + m
		}
	}
	return n
}

// bsdStamp is the length of "Nov 30 12:54:15" at the start of s.
func bsdStamp(s string) int {
	if len(s) < 15 || s[3] != ' ' || !strings.Contains("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", s[:3]) {
		return 0
	}
	day := s[4:6]
	if s[6] != ' ' || !(digit(day[0]) || day[0] == ' ') || !digit(day[1]) {
		return 0
	}
	n := clock(s[7:])
	if n == 0 {
		return 0
	}
	return 7 + n
}

// uptime is the length of "[12345.678901]" at the start of s.
func uptime(s string) int {
	if len(s) < 4 || s[0] != '[' {
		return 0
	}
	n := 1
	for n < len(s) && s[n] == ' ' {
		n++
	}
	m := epoch(s[n:])
	if m == 0 || n+m >= len(s) || s[n+m] != ']' {
		return 0
	}
	return n + m + 1
}

// epoch is the length of "1796043386.344" at the start of s.
func epoch(s string) int {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	if n == 0 || n+1 >= len(s) || s[n] != '.' || !digit(s[n+1]) {
		return 0
	}
	n++
	for n < len(s) && digit(s[n]) {
		n++
	}
	return n
}

// shape is the length of pattern if s begins with it, where d stands for a digit.
func shape(s, pattern string) int {
	if len(s) < len(pattern) {
		return 0
	}
	for i := range len(pattern) {
		if pattern[i] == 'd' {
			if !digit(s[i]) {
				return 0
			}
		} else if s[i] != pattern[i] {
			return 0
		}
	}
	return len(pattern)
}

// digit reports an ASCII digit.
func digit(c byte) bool { return c >= '0' && c <= '9' }

// nameByte reports a character of a service's, pod's or file's name.
func nameByte(c byte) bool {
	return digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_' || c == '.' || c == '/'
}
