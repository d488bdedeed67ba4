package text

import (
	"bytes"
	"strings"
	"unicode/utf16"
)

// Log is the tail of a log, one string per line, without its dress.
type Log struct {
	// Lines are the lines, oldest first, without line ends. They need not be valid UTF-8.
	Lines []string
	// Cut says that more stood before the first line, so that it may be the rest of a longer one.
	Cut bool

	sources []string
	shared  string // of the last line
	ignored []bool
}

// maxLines bounds the lines of a Log. A tail of nothing but line feeds would otherwise cost twenty times its size.
const maxLines = 16384

// Read undresses the last limit bytes of tail. A limit of 0 or less reads nothing.
func Read(tail []byte, limit int) *Log {
	log := &Log{}
	if limit <= 0 || len(tail) == 0 {
		return log
	}
	if len(tail) > limit {
		tail, log.Cut = tail[len(tail)-limit:], true
	}
	raw := string(narrow(tail))
	// The limit may have cut the first line in two. It is kept: a parser can tell a rest from a line, and half a frame
	// is better than none.
	lines := strings.Split(strings.TrimSuffix(raw, "\n"), "\n")
	if len(lines) > maxLines {
		lines, log.Cut = lines[len(lines)-maxLines:], true
	}
	// One search of all for each byte that such a line would hold is quicker than a look at every line.
	dirty := strings.IndexByte(raw, 0x1b) >= 0 || strings.IndexByte(raw, '\r') >= 0 || strings.IndexByte(raw, '#') >= 0 || strings.IndexByte(raw, '^') >= 0
	for i, l := range lines {
		if !dirty {
			break
		}
		if lines[i] = stripANSI(l); !feeds(l) {
			lines[i] = lastReturn(lines[i])
		}
	}
	sources := make([]string, len(lines))
	lines, sources = unwrap(lines, sources)
	lines, sources = unwrap(lines, sources) // a record in a record
	// Dress nests: a container runtime wraps what a journal wrapped. Four layers are more than any collector chain adds.
	for range 4 {
		if !log.undress(&lines, &sources) {
			break
		}
		lines, sources = unwrap(lines, sources)
	}
	log.Lines, log.sources = gather(lines, sources)
	log.ignored = make([]bool, len(log.Lines))
	return log
}

// From is the part of a log from line i on, all of it where i is 0 or less. It shares the marks of [Log.Ignore].
func (log *Log) From(i int) *Log {
	if i = min(i, len(log.Lines)); i <= 0 {
		return log
	}
	return &Log{Lines: log.Lines[i:], Cut: true, sources: log.sources[i:], shared: log.shared, ignored: log.ignored[i:]}
}

// Ignore marks the lines [from, to) as words that decide nothing: noise of a shutdown, or quoted text.
func (log *Log) Ignore(from, to int) {
	for i := max(from, 0); i < to && i < len(log.ignored); i++ {
		log.ignored[i] = true
	}
}

// Ignored reports whether line i is marked by [Log.Ignore].
func (log *Log) Ignored(i int) bool { return i >= 0 && i < len(log.ignored) && log.ignored[i] }

// Source names the service, pod or actor that printed line i; it is empty where the dress names none.
func (log *Log) Source(i int) string {
	if i < 0 || i >= len(log.sources) {
		return ""
	}
	return log.sources[i]
}

// Dress is what was taken off the front of the last line, layer by layer. The name of the program may be in it.
func (log *Log) Dress() string { return log.shared }

// lastReturn drops the carriage return of a line end, and what a terminal would have overwritten before the last one.
func lastReturn(l string) string {
	if strings.IndexByte(l, '\r') < 0 {
		return l
	}
	l = strings.TrimRight(l, "\r")
	if i := strings.LastIndexByte(l, '\r'); i >= 0 {
		return l[i+1:]
	}
	return l
}

// narrow turns UTF-16 text, as some shells redirect it, into UTF-8 and returns everything else as it is.
func narrow(b []byte) []byte {
	sample := b[:min(len(b), 1024)]
	nul := bytes.Count(sample, []byte{0})
	if nul*3 < len(sample) || len(sample) < 4 {
		return b
	}
	even, odd := 0, 0
	for i, c := range sample {
		if c == 0 {
			if i%2 == 0 {
				even++
			} else {
				odd++
			}
		}
	}
	// The high byte of most characters is zero; its place tells the byte order. The cut may have left an odd byte.
	big := even > odd
	units := make([]uint16, 0, len(b)/2)
	for i := 0; i+1 < len(b); i += 2 {
		lo, hi := b[i], b[i+1]
		if big {
			lo, hi = hi, lo
		}
		units = append(units, uint16(lo)|uint16(hi)<<8)
	}
	if len(units) > 0 && units[0] == 0xfeff {
		units = units[1:]
	}
	return []byte(string(utf16.Decode(units)))
}

// alike reports that all lines are of one source, as nearly always.
func alike(sources []string) bool {
	for _, s := range sources {
		if s != sources[0] {
			return false
		}
	}
	return true
}

// gather puts the lines of one source together where several are interleaved, the source that spoke last at the end,
// so that a traceback of one service is not torn by the chatter of another.
func gather(lines, sources []string) ([]string, []string) {
	if alike(sources) {
		return lines, sources
	}
	// More sources than a few are no services, but numbers that were taken for names.
	last := map[string]int{}
	for i, s := range sources {
		last[s] = i
		if len(last) > 32 {
			return lines, sources
		}
	}
	order := make([]string, 0, len(last))
	for s := range last {
		order = append(order, s)
	}
	for i := 1; i < len(order); i++ {
		for j := i; j > 0 && last[order[j]] < last[order[j-1]]; j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	ls, ss := make([]string, 0, len(lines)), make([]string, 0, len(lines))
	for _, want := range order {
		for i, s := range sources {
			if s == want {
				ls, ss = append(ls, lines[i]), append(ss, s)
			}
		}
	}
	return ls, ss
}
