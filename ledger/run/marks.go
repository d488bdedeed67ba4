package run

import "strings"

// MarksHead is the first line of every file in which a program marks its phases. A file without it was overwritten
// instead of appended to, so that earlier marks may be lost.
const MarksHead = "# append one phase a line; the highest counts"

// MarksLimit bounds such a file, in bytes; a program that marks more often marks in a loop.
const MarksLimit = 1 << 20

// ReadMarks is the high-water mark of the text of such a file; unknown when it is longer than MarksLimit, was
// overwritten, or holds a line that is no phase.
func ReadMarks(text []byte) Phase {
	if len(text) > MarksLimit {
		return UnknownPhase
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) < 2 || lines[0] != MarksHead {
		return UnknownPhase
	}
	high := Booting
	for _, l := range lines[1:] {
		l = strings.TrimSpace(l)
		if l == "" {
			continue
		}
		p, err := ParsePhase(l)
		if err != nil {
			return UnknownPhase
		}
		high = High(high, p)
	}
	return high
}
