package classify

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestFilterOfManyWords: a filter of more words than all runtimes have finds every one of them.
func TestFilterOfManyWords(t *testing.T) {
	t.Parallel()
	words := make([]wordOf, 30000)
	for i := range words {
		words[i] = wordOf{text: fmt.Sprintf("w%04d", i), owner: i % 50}
	}
	f := newFilter(words, newUsage(usual), 4)
	for i := range words {
		s := search{filter: f, text: []byte("a line with " + words[i].text)}
		want := uint64(1) << words[i].owner
		if i >= 10000 { // the word begins with a shorter one
			want |= 1 << words[i/10].owner
		}
		if s.run(); s.found != want {
			t.Fatalf("%s: owners %b are found, want %b", words[i].text, s.found, want)
		}
	}
	s := search{filter: newFilter(nil, newUsage(usual), 4), text: []byte("a line")}
	if s.run(); s.found != 0 {
		t.Errorf("no words, and %b are found", s.found)
	}
}

// TestFilterFindsWhatIsThere: a filter finds exactly the words that a plain search finds, wherever they lie between the places
// that it looks at, at both ends of a text, whatever bytes stand around them, and in either case where case does not count.
func TestFilterFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	const letters = "aabcdeEoOrR 0:`\n\xc3"
	some := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	seen := newUsage(usual)
	hits := 0
	for range 300 {
		words := make([]wordOf, 1+r.IntN(20))
		for i := range words {
			words[i] = wordOf{text: some(grain + r.IntN(8)), folded: r.IntN(2) == 0, owner: i}
			if words[i].folded {
				words[i].text = strings.ToLower(words[i].text)
			}
		}
		f := newFilter(words, seen, 2)
		for range 40 {
			text := some(r.IntN(90))
			if w := words[r.IntN(len(words))]; r.IntN(4) > 0 {
				at := r.IntN(len(text) + 1)
				put := w.text
				if w.folded && r.IntN(2) == 0 {
					put = string(bytes.ToUpper([]byte(put)))
				}
				text = text[:at] + put + text[at:]
			}
			s := search{filter: f, text: []byte(text)}
			s.run()
			for _, w := range words {
				// What begins with a line feed begins the text too.
				want, in := false, "\n"+text
				if w.text[0] != '\n' {
					in = text
				}
				for i := range len(in) {
					want = want || holds([]byte(in[i:]), w.text, w.folded)
				}
				if got := s.found&(1<<w.owner) != 0; got != want {
					t.Fatalf("%q in %q (either case: %t): %t, want %t", w.text, text, w.folded, got, want)
				} else if got {
					hits++
				}
			}
		}
	}
	if hits < 5000 {
		t.Errorf("%d words found, want more", hits)
	}
}
