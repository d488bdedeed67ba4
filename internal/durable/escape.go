package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// escapeLimit bounds an escaped name, so that a suffix such as ".json" still fits into the 255 bytes of a file name.
	escapeLimit = 200
	digits      = "0123456789ABCDEF"
)

// Escape makes one file name of one or more texts. No two different lists of texts have the same name.
//
// ASCII letters, digits, '-' and a '.' that does not lead stay as they are; every other byte, '_' among them, is '_' and
// two upper-case hex digits; texts are joined by "__", which nothing else makes. An empty text is "_-". A name over 200
// bytes is cut and ends with '~', which nothing else makes either, and the SHA-256 of the whole.
func Escape(texts ...string) string {
	var b strings.Builder
	for i, s := range texts {
		if i > 0 {
			b.WriteString("__")
		}
		if s == "" {
			b.WriteString("_-")
		}
		for j := range len(s) {
			c := s[j]
			if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' && b.Len() > 0 {
				b.WriteByte(c)
			} else {
				b.WriteByte('_')
				b.WriteByte(digits[c>>4])
				b.WriteByte(digits[c&15])
			}
		}
	}
	name := b.String()
	if len(name) <= escapeLimit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:escapeLimit-1-2*len(sum)] + "~" + hex.EncodeToString(sum[:])
}
