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

// block is how many bytes are passed over or looked at again together.
const block = 8 * stride

// filter finds the words of many runtimes in one pass that looks at one place in three. Each word is known by three of its
// grains, one for each way it can lie between the places. It is filled once and then only read.
type filter struct {
	// maybe has a bit for every grain in either case, so that most places are passed over after one look. A hash of the grain tells
	// in which number the bit is, and its first byte which one it is: more of the hash would have to be shifted down first. factor
	// makes the hash: of several the one that has the least in common with usual text. A table of bytes would take fewer
	// instructions, but a death is judged now and then, when no table is in a cache, and then its size is what counts.
	maybe  [1 << maybeBits]uint32
	factor uint32
	// two is hashedOfTwo: a constant of its size is loaded anew for each use, and what was read once stays in a register.
	two uint64
	// sure has a bit for every grain, by a hash of all its bytes that count. What passes both is nearly always a grain.
	sure [1 << (sureBits - 6)]uint64
	// slots find the grain at a place in a list of all, by a hash of it in lower case; 0 is free, else its number and 1.
	// Their number is a power of two, at least twice that of the grains.
	slots  []uint32
	grains []grainOf
	words  []wordOf
	starts []startOf
}

const (
	maybeBits = 14
	sureBits  = 16
)

// Of the outer bytes of a grain only the lower five bits are hashed, so that one which may be anything costs 32 places of the
// table and not 256, and of the inner ones all but the bit that tells capitals from small letters. The second mask is for two
// grains in a row, which share an outer byte.
const (
	hashed      = 0x1fdfdf1f
	hashedOfTwo = 0x001fdfdf1fdfdf1f
	anyByte     = 32
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

// The masks that take off a byte which is anything.
const (
	noFirst = 0xffffff00
	noLast  = 0x00ffffff
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
// is the usage of usual text; tries is how many factors are tried, many where long texts are searched.
func newFilter(words []wordOf, seen *usage, tries int) *filter {
	f := &filter{two: hashedOfTwo, slots: make([]uint32, 1<<bits.Len(uint(2*stride*len(words)))), grains: make([]grainOf, 0, stride*len(words)), words: make([]wordOf, 0, len(words))}
	marks := make([]uint32, 0, 8*len(words))
	for _, w := range words {
		if len(w.text) < grain {
			continue
		}
		n := len(f.words)
		f.words = append(f.words, w)
		if w.text[0] == '\n' {
			f.starts = append(f.starts, startOf{w.text[1:], n})
		}
		low := lowered(w.text)
		for lie := range stride {
			marks = f.learn(n, low, seen.rarest(low, lie), marks)
		}
	}
	f.settle(marks, tries)
	return f
}

// learn adds the grain that begins at byte at of a word, whose text in lower case is low, and adds what the first look sees of
// it to marks.
func (f *filter) learn(word int, low []byte, at int, marks []uint32) []uint32 {
	from, to := max(at, 0), min(at+grain, len(low))
	// The byte that is anything is left 0: the first one at the lower end of the number, the last one at the upper.
	open, step, looks := grainKey(0), uint32(0), uint32(1)
	switch {
	case at < 0:
		open, step, looks = firstIsAny, 1, anyByte
	case to < at+grain:
		open, step, looks = lastIsAny, 1<<24, anyByte
	}
	var v, c [grain]byte
	copy(v[from-at:], f.words[word].text[from:to])
	if f.words[word].folded {
		// A letter's other case differs in one bit: every choice of these bits is a spelling.
		copy(v[from-at:], low[from:to])
		for i, b := range v {
			if b >= 'a' && b <= 'z' {
				c[i] = 'a' - 'A'
			}
		}
	}
	g, letters := grainAt(v[:], 0), grainAt(c[:], 0)
	known, folded := f.enter(grainOf{key: grainKey(lowerGrain(g)) | open, word: int32(word), at: int32(at)})
	if !known {
		for c := range looks {
			marks = append(marks, g&hashed+c*step)
		}
	}
	if folded {
		return marks // every spelling is there
	}
	for capitals := letters; ; capitals = (capitals - 1) & letters {
		h := sureHash(g ^ capitals)
		f.sure[h>>6] |= 1 << (h & 63)
		if capitals == 0 {
			return marks
		}
	}
}

// enter puts a grain into the list, and reports whether it was there, and whether for a folded word.
func (f *filter) enter(g grainOf) (known, folded bool) {
	at := f.slotOf(g.key)
	for ; f.slots[at] != 0; at = (at + 1) % uint32(len(f.slots)) {
		if same := f.slots[at]; f.grains[same-1].key == g.key {
			g.next = same
			break
		}
	}
	for n := g.next; n != 0 && !folded; n = f.grains[n-1].next {
		folded = f.words[f.grains[n-1].word].folded
	}
	f.grains = append(f.grains, g)
	f.slots[at] = uint32(len(f.grains))
	return g.next != 0, folded
}

// settle chooses the factor and fills the table of the first look.
func (f *filter) settle(marks []uint32, tries int) {
	fewest, best := -1, uint32(0)
	for n := range uint32(tries) {
		f.factor = 2654435761 + n*2*0x9e3779b
		for _, m := range marks {
			f.mark(m)
		}
		hits := 0
		for i := 0; i+grain <= len(usualBytes); i++ {
			if f.has(grainAt(usualBytes, i) & hashed) {
				hits++
			}
		}
		if fewest < 0 || hits < fewest {
			best, fewest = f.factor, hits
		}
		for _, m := range marks { // quicker than to clear all of a table that is nearly empty
			f.maybe[f.hash(m)] = 0
		}
	}
	f.factor = best
	for _, m := range marks {
		f.mark(m)
	}
}

var usualBytes = []byte(usual)

// hash is the place in maybe of what is hashed of a grain.
func (f *filter) hash(g uint32) uint32 { return g * f.factor >> (32 - maybeBits) }

// mark sets the bit in maybe of what is hashed of a grain.
func (f *filter) mark(g uint32) { f.maybe[f.hash(g)] |= 1 << (g & 31) }

// has reports the bit of what is hashed of a grain.
func (f *filter) has(g uint32) bool { return f.maybe[f.hash(g)]&(1<<(g&31)) != 0 }

// sureHash is the place of the bit of a grain, in which a byte that is anything is 0.
func sureHash(g uint32) uint32 { return g * 2246822519 >> (32 - sureBits) }

// grainAt is the grain at a place as a number.
func grainAt(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }

// slotOf is where the search for a grain begins.
func (f *filter) slotOf(k grainKey) uint32 {
	return (uint32(k) ^ uint32(k>>32)<<13) * 2246822519 >> 8 & uint32(len(f.slots)-1)
}

// usage tells how often pairs of bytes and whole grains occur in a text, in lower case. Different ones may share a count: it
// only guides a choice.
type usage struct {
	pairs, grains [1 << usageBits]uint16
}

const usageBits = 14

func newUsage(text string) *usage {
	u := &usage{}
	low := lowered(text)
	for i := 1; i < len(low); i++ {
		u.pairs[pairOf(low, i-1)]++
		if i+grain <= len(low) {
			u.grains[usageOf(grainAt(low, i))]++
		}
	}
	return u
}

// pairOf and usageOf are the places of the counts of a pair of bytes and of a grain.
func pairOf(low []byte, at int) uint32 { return usageOf(uint32(binary.LittleEndian.Uint16(low[at:]))) }

func usageOf(g uint32) uint32 { return g * 2654435761 >> (32 - usageBits) }

// rarest is where the grain of a word, in lower case, begins that is found least often in usual text, of those that a place meets where the
// word lies in one of three ways.
func (u *usage) rarest(low []byte, lie int) int {
	best, at := -1, 0
	for i := lie - 1; i+grain <= len(low)+1; i += stride {
		n := 0
		for k := max(i, 0); k+2 <= min(i+grain, len(low)); k++ {
			n += int(u.pairs[pairOf(low, k)])
		}
		if i >= 0 && i+grain <= len(low) {
			n += int(u.grains[usageOf(grainAt(low, i))]) << 8
		} else {
			n += 1 << 6 // one that has a byte which may be anything is found more often
		}
		if best < 0 || n < best {
			best, at = n, i
		}
	}
	return at
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
	// first is where the first word stands that counts.
	first int
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
	i := s.skip(b, stride-1)
	for ; i+block+grain <= len(b); i = s.skip(b, i+block) {
		for at := i; at < i+block; at += stride {
			if g := grainAt(b, at); s.has(g & hashed) {
				s.look(at, g)
			}
		}
	}
	for ; i < len(b); i += stride {
		s.edge(i)
	}
}

// skip is the first place, counted from i in steps of a block, from which on a block may hold a grain; one with no whole block
// behind it where none does. It calls nothing and keeps nothing, so that all it needs stays in registers.
func (f *filter) skip(b []byte, i int) int {
	two := f.two
	v := b[min(i, len(b)):]
	for len(v) >= block+grain {
		// Eight places at once: none depends on another, so the processor takes them together. Two of them share eight bytes.
		p, q := binary.LittleEndian.Uint64(v[0:])&two, binary.LittleEndian.Uint64(v[2*stride:])&two
		r, t := binary.LittleEndian.Uint64(v[4*stride:])&two, binary.LittleEndian.Uint64(v[6*stride:])&two
		if f.has(uint32(p)) || f.has(uint32(p>>24)) || f.has(uint32(q)) || f.has(uint32(q>>24)) ||
			f.has(uint32(r)) || f.has(uint32(r>>24)) || f.has(uint32(t)) || f.has(uint32(t>>24)) {
			break
		}
		v = v[block:]
	}
	return max(i, len(b)-len(v))
}

// edge looks at a place that may lie in part outside of the text.
func (s *search) edge(i int) {
	var v [grain]byte
	for k := range v {
		if i+k >= 0 && i+k < len(s.text) {
			v[k] = s.text[i+k]
		}
	}
	if g := grainAt(v[:], 0); s.has(g & hashed) {
		s.look(i, g)
	}
}

// look compares the words that may have the grain g, which stands at byte i, if there may be any.
func (s *search) look(i int, g uint32) {
	if s.surely(g) {
		s.among(i, grainKey(lowerGrain(g)))
	}
	if h := g & noFirst; s.surely(h) {
		s.among(i, grainKey(lowerGrain(h))|firstIsAny)
	}
	if h := g & noLast; s.surely(h) {
		s.among(i, grainKey(lowerGrain(h))|lastIsAny)
	}
}

// surely reports whether there may be a grain with these bytes, and is seldom wrong.
func (f *filter) surely(g uint32) bool {
	h := sureHash(g)
	return f.sure[h>>6]&(1<<(h&63)) != 0
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
			if from := i - int(g.at); from >= 0 && from < len(s.text) && (s.found|s.denied)&(1<<w.owner) == 0 && holds(s.text[from:], w.text, w.folded) {
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
	if s.found == 0 || at < s.first {
		s.first = at
	}
	s.found |= 1 << w.owner
}

var newline = []byte{'\n'}
