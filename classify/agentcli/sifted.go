package agentcli

import "bytes"

// sifted is a line in lower case and which pairs of neighbouring bytes stand in it. Nearly every word that a line does not hold
// has a pair that is not in it either, and is ruled out without a search.
type sifted struct {
	text  []byte
	pairs [1 << (pairBits - 6)]uint64
}

// pairBits makes a set that a line of usual length leaves nearly empty.
const pairBits = 10

// sift returns a value and no pointer: a hint allocates nothing.
func sift(low []byte) sifted {
	l := sifted{text: low}
	for i := 1; i < len(low); i++ {
		a, b := low[i-1], low[i]
		l.add(a, b)
		if a == '-' || b == '-' { // they are as good as underscores
			l.add(underscored(a), underscored(b))
		}
	}
	return l
}

func (l *sifted) add(a, b byte) {
	at := pair(a, b)
	l.pairs[at>>6] |= 1 << (at & 63)
}

func underscored(c byte) byte {
	if c == '-' {
		return '_'
	}
	return c
}

// pair is the place of two bytes in the set.
func pair(a, b byte) uint { return (uint(a)*29 + uint(b)) % (1 << pairBits) }

// may reports whether a word of two bytes or more may stand in the line, with hyphens or underscores: its ends are there.
func (l *sifted) may(w string) bool {
	first, last := pair(w[0], w[1]), pair(w[len(w)-2], w[len(w)-1])
	return l.pairs[first>>6]&(1<<(first&63)) != 0 && l.pairs[last>>6]&(1<<(last&63)) != 0
}

// holds reports whether one of the words stands in the line.
func (l *sifted) holds(words []string) bool {
	for _, w := range words {
		if l.may(w) && index(l.text, w) >= 0 {
			return true
		}
	}
	return false
}

// hyphened reports a word that is written with hyphens in place of its underscores.
func (l *sifted) hyphened(w string) bool {
	if !l.may(w) {
		return false
	}
	for b := l.text; len(b) >= len(w); b = b[1:] {
		n := 0
		for n < len(w) && (b[n] == w[n] || w[n] == '_' && b[n] == '-') {
			n++
		}
		if n == len(w) {
			return true
		}
	}
	return false
}

// index is where a word stands in b, -1 for nowhere.
func index(b []byte, w string) int { return bytes.Index(b, []byte(w)) }
