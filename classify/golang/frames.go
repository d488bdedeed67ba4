package golang

import "bytes"

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
	for {
		// Frames stand behind the line of their goroutine up to a blank one. What comes before is searched, not read.
		if !r.inside {
			at := header(r.rest)
			if at < 0 {
				r.rest = nil
				return buf[:n]
			}
			r.id = number(r.rest[at+len(goroutine):])
			r.rest, r.inside = behind(r.rest[at:]), true
		}
		for len(r.rest) > 0 && r.rest[0] != '\n' && r.rest[0] != '\r' {
			end := bytes.IndexByte(r.rest, '\n')
			if end < 0 {
				r.rest = nil // cut off: a call without its place
				return buf[:n]
			}
			call, place := r.rest[:end], r.rest[end+1:]
			if call[len(call)-1] == '\r' {
				call = call[:len(call)-1]
			}
			if len(place) == 0 || place[0] != '\t' || len(call) == 0 || call[len(call)-1] != ')' {
				r.rest = place
				continue
			}
			if n == len(buf) {
				return buf
			}
			if end = bytes.IndexByte(place, '\n'); end < 0 {
				end = len(place)
			}
			if c := &buf[n]; c.read(call, place[1:end]) {
				c.Goroutine = r.id
				n++
			}
			r.rest = place[min(end+1, len(place)):]
		}
		r.inside = false
	}
}

// header is where the next goroutine begins at the start of a line, -1 for nowhere.
func header(log []byte) int {
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
	// Only the last few bytes of a place are its numbers.
	at := len(place) - 1
	for at > 0 && place[at] != ':' {
		at--
	}
	if at <= 0 {
		return false
	}
	// Arguments hold no brackets: structures among them are written in braces.
	n := len(call) - 1
	for n > 0 && call[n] != '(' {
		n--
	}
	c.Function, c.File, c.Line = call[:n], place[:at], number(place[at+1:])
	return true
}

// number is the number at the beginning of b.
func number(b []byte) int {
	n := 0
	for i := 0; i < len(b) && i < 9 && b[i] >= '0' && b[i] <= '9'; i++ {
		n = n*10 + int(b[i]-'0')
	}
	return n
}
