package golang

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Call is one frame of a goroutine in a crash report, as parts of the text that was read: nothing is copied, and the parts
// live as long as that text.
type Call struct {
	// Function is the whole name of the function, File the path in the report, Line the line there.
	Function, File []byte
	Line           int
	// Goroutine is the number of the goroutine.
	Goroutine int
}

// goroutine opens the frames of one goroutine: "goroutine 7 [running]:".
var goroutine = []byte("goroutine ")

// Report reads the frames of all goroutines of the crash reports in a text of any length, in one pass and without an
// allocation. The zero value holds none; [NewReport] gives one.
type Report struct {
	rest []byte
	id   int
	// inside says that the rest goes on within a goroutine's frames.
	inside bool
}

// NewReport returns the reader of a text, which it neither copies nor changes.
func NewReport(log []byte) Report { return Report{rest: log} }

// Read fills buf with the next frames, in the order of the text, and returns the part of buf that it filled: an empty one at
// the end. The place that created a goroutine is no frame.
func (r *Report) Read(buf []Call) []Call {
	n := 0
	rest, id, inside := r.rest, r.id, r.inside
frames:
	for {
		// Frames stand behind the line of their goroutine up to a blank one. What comes before is searched, not read.
		if !inside {
			at := header(rest)
			if at < 0 {
				rest = nil
				break
			}
			id = number(rest[at+len(goroutine):])
			rest, inside = behind(rest[at:]), true
		}
		for len(rest) > 0 && rest[0] != '\n' && rest[0] != '\r' {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				rest = nil // cut off: a call without its place
				break frames
			}
			call, place := rest[:end], rest[end+1:]
			if call[end-1] == '\r' {
				call = call[:end-1]
			}
			if len(place) == 0 || place[0] != '\t' || len(call) == 0 || call[len(call)-1] != ')' {
				rest = place
				continue
			}
			if n == len(buf) {
				break frames
			}
			if end = bytes.IndexByte(place, '\n'); end < 0 {
				end = len(place)
			}
			if c := &buf[n]; c.read(call, place[1:end]) {
				c.Goroutine = id
				n++
			}
			rest = place[min(end+1, len(place)):]
		}
		inside = false
	}
	r.rest, r.id, r.inside = rest, id, inside
	return buf[:n]
}

// header is where the next goroutine begins at the start of a line, -1 for nowhere.
func header(log []byte) int {
	// Behind the blank line of one stands the next.
	if len(log) > len(goroutine) && log[0] == '\n' && log[1] == 'g' && bytes.HasPrefix(log[1:], goroutine) {
		return 1
	}
	for from := 0; ; {
		at := bytes.Index(log[from:], goroutine)
		if at < 0 {
			return -1
		}
		from += at
		if from == 0 || log[from-1] == '\n' {
			return from
		}
		from += len(goroutine)
	}
}

// behind is the text from the next line on.
func behind(log []byte) []byte {
	if at := bytes.IndexByte(log, '\n'); at >= 0 {
		return log[at+1:]
	}
	return nil
}

// read takes "path/pkg.F(args)" and "file.go:12 +0x1d" apart; false where the place is none.
func (c *Call) read(call, place []byte) bool {
	at := last(place, ':'*ones)
	if at <= 0 {
		return false
	}
	// Arguments hold no brackets: structures among them are written in braces.
	n := max(last(call, '('*ones), 0)
	c.Function, c.File, c.Line = call[:n], place[:at], number(place[at+1:])
	return true
}

// ones has a 1 in each of eight bytes.
const ones = 0x0101010101010101

// last is where a byte stands last, given in each of eight bytes; -1 for nowhere. It goes back eight bytes at a time.
func last(b []byte, c uint64) int {
	const low = 0x7f * ones
	at := len(b)
	for ; at >= 8; at -= 8 {
		// A byte of x is 0 where it stands, and then the high bit of that byte in hit is set, and no other.
		x := binary.LittleEndian.Uint64(b[at-8:at]) ^ c
		if hit := ^((x&low + low) | x | low); hit != 0 {
			return at - 1 - bits.LeadingZeros64(hit)/8
		}
	}
	for at--; at >= 0 && b[at] != byte(c); at-- {
	}
	return at
}

// number is the number at the beginning of b.
func number(b []byte) int {
	n := 0
	for i := 0; i < len(b) && i < 9 && b[i] >= '0' && b[i] <= '9'; i++ {
		n = n*10 + int(b[i]-'0')
	}
	return n
}
