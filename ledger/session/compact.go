package session

import "unicode/utf8"

// deepest is how many arrays and objects within each other compacted goes into.
const deepest = 32

// compacted reports that b is one JSON value in UTF-8 with no white space to take out. A payload is read through for
// this once, while others wait for the session's log, so it is a plain loop. False means that encoding/json has to say
// what it is: a value that is not compact, one that is nested deeply, or none.
func compacted(b []byte) bool {
	s := scan{b: b}
	return s.value(0) && s.i == len(b) && (!s.wide || utf8.Valid(b))
}

// scan goes forward through JSON. Each method reads one thing and reports whether it is there.
type scan struct {
	b    []byte
	i    int
	wide bool // there are bytes beyond ASCII
}

// next is the byte that stands next, 0 at the end.
func (s *scan) next() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scan) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.i++
	return true
}

func (s *scan) value(depth int) bool {
	switch s.next() {
	case '"':
		return s.text()
	case '{':
		return depth < deepest && s.list('}', func() bool { return s.text() && s.take(':') && s.value(depth+1) })
	case '[':
		return depth < deepest && s.list(']', func() bool { return s.value(depth + 1) })
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

// list reads what stands between brackets, the first of which is next.
func (s *scan) list(end byte, one func() bool) bool {
	s.i++
	if s.take(end) {
		return true
	}
	for one() {
		if s.take(end) {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
	return false
}

func (s *scan) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

func (s *scan) text() bool {
	if !s.take('"') {
		return false
	}
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch {
		case c == '"':
			return true
		case c == '\\':
			if !s.escape() {
				return false
			}
		case c < ' ':
			return false
		case c >= utf8.RuneSelf:
			s.wide = true
		}
	}
	return false
}

func (s *scan) escape() bool {
	c := s.next()
	s.i++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			switch c := s.next(); {
			case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
				s.i++
			default:
				return false
			}
		}
		return true
	}
	return false
}

func (s *scan) digits() bool {
	from := s.i
	for c := s.next(); '0' <= c && c <= '9'; c = s.next() {
		s.i++
	}
	return s.i > from
}

func (s *scan) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if c := s.next(); c == 'e' || c == 'E' {
		s.i++
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}
