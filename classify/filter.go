package classify

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// grain is how many bytes of a text are looked at together; no word is shorter.
const grain = 4

// stride is how far apart the places are that the filter looks at. Wherever a word of grain bytes stands, one of them meets
// all of it but one byte at most.
const stride = 3

// filter finds the words of many runtimes in one pass that looks at one place in three. Each word is known by three of its
// grains, one for each way it can lie between the places. It is filled once and then only read.
type filter struct {
	// maybe has a bit for a hash of every grain, so that most places are passed over after one look. factor makes the hash:
	// of several the one with the fewest bits in common with usual text.
	maybe  [1 << (maybeBits - 6)]uint64
	factor uint32
	// sure is the same for whole grains, with a hash of its own. What passes both is nearly always a grain.
	sure [1 << (sureBits - 6)]uint64
	// slots find the grain at a place in a list of all, by a hash of it in lower case; 0 is free, else its number and 1.
	// Their number is a power of two, at least twice that of the grains.
	slots  []uint32
	grains []grainOf
	words  []wordOf
	starts []startOf
}

const (
	maybeBits = 19
	sureBits  = 18
	factors   = 32 // that are tried
)

// Of the outer bytes of a grain only the lower half is hashed, so that one which may be anything costs 16 bits and not 256.
// The second mask is for two grains in a row, which share such a byte.
const (
	outer      = 0x0fffff0f
	outerOfTwo = 0x000fffff0fffff0f
)

// grainOf is a grain of a word, in lower case, and where in the word it begins: one byte before it, or with its last byte
// behind it, where the word is short. The byte outside is anything.
type grainOf struct {
	key  grainKey
	word int32
	at   int32
	// next is the number of another word with the same grain, and 1; 0 for none.
	next uint32
}

// grainKey is a grain as a number, its first byte the lowest, with a mark above for a byte that is anything and written as 0.
type grainKey uint64

// The marks of a [grainKey].
const (
	firstIsAny grainKey = 1 << 32
	lastIsAny  grainKey = 2 << 32
)

// wordOf is a word, and who looks for it.
type wordOf struct {
	text   string
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

// newFilter makes a filter of words. Folded words are found in either case of their letters. It does not keep the list. seen
// is the usage of usual text.
func newFilter(words []wordOf, seen *usage) *filter {
	f := &filter{slots: make([]uint32, 1<<bits.Len(uint(2*stride*len(words))))}
	var marks []uint32
	for _, w := range words {
		if len(w.text) < grain {
			continue
		}
		n := len(f.words)
		f.words = append(f.words, w)
		if w.text[0] == '\n' {
			f.starts = append(f.starts, startOf{w.text[1:], n})
		}
		for lie := range stride {
			f.learn(n, seen.rarest(w.text, lie), &marks)
		}
	}
	f.settle(marks)
	return f
}

// learn adds the grain of a word that begins at byte at of it, and puts all that it may look like into marks.
func (f *filter) learn(word, at int, marks *[]uint32) {
	w := &f.words[word]
	from, to := max(at, 0), min(at+grain, len(w.text))
	// The byte that is anything is left 0: the first one at the lower end of the number, the last one at the upper.
	var open grainKey
	step, kinds := uint32(0), uint32(1)
	switch {
	case at < 0:
		open, step, kinds = firstIsAny, 1, 256
	case to < at+grain:
		open, step, kinds = lastIsAny, 1<<24, 256
	}
	number := func(s string) uint32 {
		var v [grain]byte
		copy(v[from-at:], s)
		return grainAt(v[:], 0)
	}
	for _, spelling := range spellings(w.text[from:to], w.folded) {
		g := number(spelling)
		for c := range kinds {
			h := sureHash(g + c*step)
			f.sure[h>>6] |= 1 << (h & 63)
			if c < 16 {
				*marks = append(*marks, (g+c*step)&outer)
			}
		}
	}
	key := grainKey(number(string(lowered(w.text[from:to])))) | open
	f.grains = append(f.grains, grainOf{key: key, word: int32(word), at: int32(at)})
	n := uint32(len(f.grains))
	for at := f.slotOf(key); ; at = (at + 1) % uint32(len(f.slots)) {
		switch taken := f.slots[at]; {
		case taken == 0:
		case f.grains[taken-1].key == key:
			f.grains[n-1].next = taken
		default:
			continue
		}
		f.slots[at] = n
		return
	}
}

// settle fills the bits.
func (f *filter) settle(marks []uint32) {
	best, fewest := uint32(0), -1
	for n := range uint32(factors) {
		f.factor = 2654435761 + n*2*0x9e3779b
		clear(f.maybe[:])
		for _, m := range marks {
			f.set(f.hash(m))
		}
		hits := 0
		for i := 0; i+grain <= len(usualBytes); i++ {
			if f.has(f.hash(grainAt(usualBytes, i) & outer)) {
				hits++
			}
		}
		if fewest < 0 || hits < fewest {
			best, fewest = f.factor, hits
		}
	}
	f.factor = best
	clear(f.maybe[:])
	for _, m := range marks {
		f.set(f.hash(m))
	}
}

var usualBytes = []byte(usual)

// hash is the place of the bit of a grain whose outer bytes have lost their upper half.
func (f *filter) hash(g uint32) uint32 { return g * f.factor >> (32 - maybeBits) }

// set sets the bit of a hash, and has reports it.
func (f *filter) set(h uint32)      { f.maybe[h>>6] |= 1 << (h & 63) }
func (f *filter) has(h uint32) bool { return f.maybe[h>>6]&(1<<(h&63)) != 0 }

// sureHash is the place of a whole grain's bit.
func sureHash(g uint32) uint32 { return g * 2246822519 >> (32 - sureBits) }

// grainAt is the grain at a place as a number.
func grainAt(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }

// slotOf is where the search for a grain begins.
func (f *filter) slotOf(k grainKey) uint32 {
	return (uint32(k) ^ uint32(k>>32)<<13) * 2246822519 >> 8 & uint32(len(f.slots)-1)
}

// usage tells how often pairs of bytes and whole grains occur in a text, in lower case.
type usage struct {
	pairs  [1 << 16]uint16
	grains map[uint32]uint16
}

func newUsage(text string) *usage {
	u := &usage{grains: map[uint32]uint16{}}
	low := lowered(text)
	for i := 1; i < len(low); i++ {
		u.pairs[binary.LittleEndian.Uint16(low[i-1:])]++
		if i+grain <= len(low) {
			u.grains[grainAt(low, i)]++
		}
	}
	return u
}

// rarest is where the grain of a word begins that is found least often in usual text, of those that a place meets where the
// word lies in one of three ways.
func (u *usage) rarest(w string, lie int) int {
	best, at := -1, 0
	low := lowered(w)
	for i := lie - 1; i+grain <= len(w)+1; i += stride {
		n := 0
		for k := max(i, 0); k+2 <= min(i+grain, len(w)); k++ {
			n += int(u.pairs[binary.LittleEndian.Uint16(low[k:])])
		}
		if i >= 0 && i+grain <= len(w) {
			n += int(u.grains[grainAt(low, i)]) << 8
		} else {
			n += 1 << 6 // one that has a byte which may be anything is found more often
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

// run looks through the text.
func (s *search) run() {
	b := s.text
	for _, w := range s.starts {
		if len(b) >= len(w.text) && string(b[:len(w.text)]) == w.text {
			s.count(&s.words[w.word], 0)
		}
	}
	// The first place is one byte before the text, for words that begin with it.
	s.edge(-1)
	i := stride - 1
	f, k := s.filter, s.factor
	const down = 32 - maybeBits
	for ; i+14 <= len(b); i += 4 * stride {
		// Four places at once: none depends on another, so the processor takes them together.
		v := b[i : i+14]
		p, q := binary.LittleEndian.Uint64(v)&outerOfTwo, binary.LittleEndian.Uint64(v[6:])&outerOfTwo
		h0, h1, h2, h3 := uint32(p)*k>>down, uint32(p>>24)*k>>down, uint32(q)*k>>down, uint32(q>>24)*k>>down
		if f.has(h0) || f.has(h1) || f.has(h2) || f.has(h3) {
			s.look(i)
			s.look(i + stride)
			s.look(i + 2*stride)
			s.look(i + 3*stride)
		}
	}
	for ; i < len(b); i += stride {
		s.edge(i)
	}
}

// look compares the words that may have a grain at byte i, if there may be any.
func (s *search) look(i int) {
	g := grainAt(s.text, i)
	if h := sureHash(g); s.sure[h>>6]&(1<<(h&63)) != 0 {
		s.compare(i, g)
	}
}

// edge looks at a place that may lie in part outside of the text.
func (s *search) edge(i int) {
	var v [grain]byte
	for k := range v {
		if i+k >= 0 && i+k < len(s.text) {
			v[k] = s.text[i+k]
		}
	}
	s.compare(i, grainAt(v[:], 0))
}

// compare compares the words that may have a grain at byte i.
func (s *search) compare(i int, g uint32) {
	g = lowerGrain(g)
	s.among(i, grainKey(g))
	s.among(i, grainKey(g&^0xff)|firstIsAny)
	s.among(i, grainKey(g&^0xff000000)|lastIsAny)
}

// lowerGrain turns the capitals of a grain into small letters.
func lowerGrain(g uint32) uint32 {
	for at := 0; at < 8*grain; at += 8 {
		if c := byte(g >> at); c >= 'A' && c <= 'Z' {
			g |= 0x20 << at
		}
	}
	return g
}

// among compares the words of one grain.
func (s *search) among(i int, key grainKey) {
	for at := s.slotOf(key); ; at = (at + 1) & uint32(len(s.slots)-1) {
		n := s.slots[at]
		if n == 0 {
			return
		}
		if s.grains[n-1].key != key {
			continue
		}
		for ; n != 0; n = s.grains[n-1].next {
			g := &s.grains[n-1]
			w := &s.words[g.word]
			if from := i - int(g.at); from >= 0 && from < len(s.text) && s.found&(1<<w.owner) == 0 && holds(s.text[from:], w.text, w.folded) {
				s.count(w, from)
			}
		}
		return
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
