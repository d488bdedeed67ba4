package text

import (
	"bytes"
	"strings"
)

// stripANSI removes terminal control sequences, also where a syslog daemon has written the escape as "#033" or a pager
// as "^[".
func stripANSI(l string) string {
	if strings.IndexByte(l, '#') >= 0 && strings.Contains(l, "#033[") {
		l = strings.ReplaceAll(l, "#033[", "\x1b[")
	}
	if strings.IndexByte(l, '^') >= 0 && strings.Contains(l, "^[[") {
		l = strings.ReplaceAll(l, "^[[", "\x1b[")
	}
	// The usual line has no escape and costs three searches for a byte.
	at := strings.IndexByte(l, 0x1b)
	if at < 0 {
		return l
	}
	var b strings.Builder
	b.Grow(len(l))
	for at >= 0 {
		b.WriteString(l[:at])
		l = l[at+sequence(l[at:]):]
		at = strings.IndexByte(l, 0x1b)
	}
	b.WriteString(l)
	return b.String()
}

// Plain appends a text without its terminal control sequences to dst, which a caller may keep on its stack: it allocates
// only where dst is too short. It is for those who look for words in a text before they read it.
func Plain(dst, src []byte) []byte {
	for {
		at := bytes.IndexByte(src, 0x1b)
		if at < 0 {
			return append(dst, src...)
		}
		dst = append(dst, src[:at]...)
		src = src[at+sequence(src[at:]):]
	}
}

// sequence is the length of the control sequence that s begins with.
func sequence[T string | []byte](s T) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[': // CSI: parameters, then one final byte
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
		}
		return len(s)
	case ']': // OSC, hyperlinks among them: up to BEL or ESC backslash
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
		return len(s)
	case '(', ')', '#', '%':
		return min(3, len(s))
	}
	return 2
}
