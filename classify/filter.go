package classify

import (
	"bytes"
	"encoding/binary"
)

// grain is how many bytes of a word the filter looks for; no word is shorter.
const grain = 4

// filter finds the words of many runtimes in one pass. A pair of bytes tells how far the next word can be at the earliest,
// so that most bytes are never looked at. It is filled once and then only read.
type filter struct {
	// shift says for the last two bytes of a place how far the search may go on; 0 where a word may end its grain there.
	shift [1 << 16]uint8
	// maybe has a bit for a hash of every grain, so that a place which only ends like one is passed over.
	maybe [1 << 10]uint64
	// first and grains are the grains that end with a pair, as runs of one list.
	first  [1 << 16]uint32
	grains []grainOf
	words  []wordOf
	starts []startOf
}

// grainOf is one spelling of a word's grain. The last of a run has last set.
type grainOf struct {
	key  uint32
	word int
	last bool
}

// wordOf is a word with the place of its grain in it, and who looks for it.
type wordOf struct {
	text   string
	at     int
	folded bool
	owner  int
	// with must stand in the same line, in lower case; empty for a word that counts alone.
	with string
	// lines is how far from the end the word counts, in line feeds; 0 is anywhere.
	lines int
}

// startOf is a word that counts at the very beginning of a text.
type startOf struct {
	text string
	word int
}

// usual is what lines of a log are mostly made of. Grains are chosen so that their ends are rare in it.
const usual = `2026-11-30T12:53:48.752Z INFO worker.step id=48 took=12ms queue=0 retries=0 DEBUG http.client GET /v1/sessions/1234/events?after=567 200 in 12ms [main] loaded module core.plan rev 3 in 45 us | agent-1 | tool call read_file ok, 4567 bytes {"ts":"2026-01-01T10:11:12.130Z","level":"info","msg":"turn finished","turn":12,"tokens":900} checkpoint written, event started and stopped with the session at line for the connection to host from that this is not one of its other requests received response status sent message data user name time value size error `

// newFilter makes a filter of words. Folded words are found in either case of their letters. It does not keep the list.
func newFilter(words []wordOf) *filter {
	f := &filter{}
	for i := range f.shift {
		f.shift[i] = grain - 1
	}
	var seen [1 << 16]uint16
	for i := 1; i < len(usual); i++ {
		seen[pairOf(lowerByte(usual[i-1]), lowerByte(usual[i]))]++
	}
	byPair := map[uint16][]grainOf{}
	for _, w := range words {
		if len(w.text) < grain {
			continue
		}
		w.at = rarest(w.text, &seen)
		f.words = append(f.words, w)
		if w.text[0] == '\n' {
			f.starts = append(f.starts, startOf{w.text[1:], len(f.words) - 1})
		}
		for _, spelling := range spellings(w.text[w.at:w.at+grain], w.folded) {
			for q := 1; q < grain-1; q++ {
				k := pairOf(spelling[q-1], spelling[q])
				f.shift[k] = min(f.shift[k], uint8(grain-1-q))
			}
			k := pairOf(spelling[grain-2], spelling[grain-1])
			f.shift[k] = 0
			key := binary.LittleEndian.Uint32([]byte(spelling))
			f.maybe[hashOf(key)>>6] |= 1 << (hashOf(key) & 63)
			byPair[k] = append(byPair[k], grainOf{key: key, word: len(f.words) - 1})
		}
	}
	for k, list := range byPair {
		f.first[k] = uint32(len(f.grains))
		list[len(list)-1].last = true
		f.grains = append(f.grains, list...)
	}
	return f
}

func pairOf(a, b byte) uint16 { return uint16(a) | uint16(b)<<8 }

// hashOf is the place of a grain's bit.
func hashOf(key uint32) uint32 { return key * 2654435761 >> 16 }

// rarest is where the grain of a word begins that stops the search least often in usual text: by its last two bytes most,
// by the ones before them less.
func rarest(w string, seen *[1 << 16]uint16) int {
	best, at := -1, 0
	for i := 0; i+grain <= len(w); i++ {
		n := 0
		for q := 1; q < grain; q++ {
			n += q * q * int(seen[pairOf(lowerByte(w[i+q-1]), lowerByte(w[i+q]))])
		}
		if best < 0 || n < best {
			best, at = n, i
		}
	}
	return at
}

// spellings are all ways to write s, which is short, in upper and lower case; s alone where case counts.
func spellings(s string, folded bool) []string {
	out := []string{s}
	if !folded {
		return out
	}
	out[0] = string(lowered(s))
	for i := range len(s) {
		if c := lowerByte(s[i]); c >= 'a' && c <= 'z' {
			for _, o := range out {
				out = append(out, o[:i]+string(c-'a'+'A')+o[i+1:])
			}
		}
	}
	return out
}

func lowered(s string) []byte {
	b := []byte(s)
	for i := range b {
		b[i] = lowerByte(b[i])
	}
	return b
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// search is one run of a filter over a text.
type search struct {
	*filter
	text []byte
	// runtimes are those whose place in the list is an owner's number. They are asked whether a word counts.
	runtimes []Runtime
	// found are the owners whose words were found, a bit each; denied those that want the last lines no more.
	found, denied uint64
}

// run looks through the text from byte from on.
func (s *search) run(from int) {
	b := s.text
	for _, w := range s.starts {
		if from == 0 && len(b) >= len(w.text) && string(b[:len(w.text)]) == w.text {
			s.count(&s.words[w.word], 0)
		}
	}
	// The next place depends on what stands at the last one, so one search waits for memory all the time. Four of them,
	// each in its own quarter, wait together.
	from = max(from, grain-1)
	if n := (len(b) - from) / 4; n > 64 {
		e0, e1, e2, e3 := from+n, from+2*n, from+3*n, len(b)
		i0, i1, i2, i3 := from, e0, e1, e2
		for i0 < e0 && i1 < e1 && i2 < e2 && i3 < e3 {
			d0, d1 := int(s.shift[pairOf(b[i0-1], b[i0])]), int(s.shift[pairOf(b[i1-1], b[i1])])
			d2, d3 := int(s.shift[pairOf(b[i2-1], b[i2])]), int(s.shift[pairOf(b[i3-1], b[i3])])
			if d0 == 0 {
				d0 = s.look(i0)
			}
			if d1 == 0 {
				d1 = s.look(i1)
			}
			if d2 == 0 {
				d2 = s.look(i2)
			}
			if d3 == 0 {
				d3 = s.look(i3)
			}
			i0, i1, i2, i3 = i0+d0, i1+d1, i2+d2, i3+d3
		}
		s.alone(i0, e0)
		s.alone(i1, e1)
		s.alone(i2, e2)
		from = i3
	}
	s.alone(from, len(b))
}

// alone searches the places from i up to end.
func (s *search) alone(i, end int) {
	b := s.text
	for i < end {
		d := int(s.shift[pairOf(b[i-1], b[i])])
		if d == 0 {
			d = s.look(i)
		}
		i += d
	}
}

// look compares the words whose grain may end at byte i, and returns how far the search goes on.
func (s *search) look(i int) int {
	b := s.text
	key := binary.LittleEndian.Uint32(b[i-grain+1 : i+1])
	if h := hashOf(key); s.maybe[h>>6]&(1<<(h&63)) == 0 {
		return 1
	}
	return s.compare(i, key)
}

// compare is look for a place that has the hash of a grain.
func (s *search) compare(i int, key uint32) int {
	b := s.text
	for n := int(s.first[uint16(key>>16)]); ; n++ {
		g := &s.grains[n]
		if g.key == key {
			w := &s.words[g.word]
			if at := i - grain + 1 - w.at; at >= 0 && s.found&(1<<w.owner) == 0 && holds(b[at:], w.text, w.folded) {
				s.count(w, at)
			}
		}
		if g.last {
			return 1
		}
	}
}

// holds reports whether b begins with a word.
func holds(b []byte, w string, folded bool) bool {
	if len(b) < len(w) {
		return false
	}
	if !folded {
		return string(b[:len(w)]) == w
	}
	for i := range len(w) {
		if lowerByte(b[i]) != lowerByte(w[i]) {
			return false
		}
	}
	return true
}

// holdsAnywhere reports whether a lower-case word stands in b, in either case.
func holdsAnywhere(b []byte, w string) bool {
	for i := 0; i+len(w) <= len(b); i++ {
		if lowerByte(b[i]) == w[0] && holds(b[i:], w, true) {
			return true
		}
	}
	return false
}

// count notes the owner of a word that begins at byte at, if it counts there.
func (s *search) count(w *wordOf, at int) {
	if (s.found|s.denied)&(1<<w.owner) != 0 {
		return
	}
	for at < len(s.text) && s.text[at] == '\n' {
		at++ // the word begins with the line feed in front of its line
	}
	if w.lines > 0 && bytes.Count(s.text[at:], newline) > w.lines {
		return
	}
	begin := bytes.LastIndexByte(s.text[:at], '\n') + 1
	end := len(s.text)
	if n := bytes.IndexByte(s.text[at:], '\n'); n >= 0 {
		end = at + n
	}
	line := s.text[begin:end]
	if w.with != "" && !holdsAnywhere(line, w.with) {
		return
	}
	if w.owner < len(s.runtimes) {
		if w.lines > 0 {
			line = s.text // one answer holds for all the words
		}
		if h, ok := s.runtimes[w.owner].(Hinter); ok && !h.Hint(line) {
			if w.lines > 0 {
				s.denied |= 1 << w.owner
			}
			return
		}
	}
	s.found |= 1 << w.owner
}

var newline = []byte{'\n'}
