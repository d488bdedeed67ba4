package classify

import "strings"

// The owners of the words that are looked for in single lines.
const (
	ownerDown    = iota // the process goes down
	ownerWork           // it is still at work
	ownerTrouble        // a program may speak of its own end
)

// lineWords are the words that decide what a line says about the process that prints it, and those that a statement holds.
func lineWords() []wordOf {
	out := terminalWords()
	for _, w := range downs {
		if len(w) >= grain {
			out = append(out, wordOf{text: w, folded: true, owner: ownerDown})
		}
	}
	for _, w := range works {
		out = append(out, wordOf{text: w, folded: true, owner: ownerWork})
	}
	for _, w := range troubles {
		out = append(out, wordOf{text: w, folded: true, owner: ownerTrouble})
	}
	return out
}

// lineEar hears in one pass what a line may say of an end and of work, so that the many words for it are not looked for one
// by one. It is for one goroutine.
type lineEar struct {
	*filter
	room []byte
}

// said is what was heard in a line: an owner's bit where one of its words is there. sure is false where that is no answer.
type said struct {
	heard uint64
	sure  bool
}

// longestLine is how long a line may be for its words to be looked for together.
const longestLine = 1 << 10

// hear looks for the words.
func (e *lineEar) hear(line string) said {
	if len(line) > longestLine {
		return said{}
	}
	e.room = append(e.room[:0], line...)
	for _, c := range e.room {
		if c >= 0x80 { // letters of other alphabets have capitals too, and some stand for ours
			return said{}
		}
	}
	s := search{filter: e.filter, text: e.room}
	s.run()
	if holdsAnywhere(e.room, "bye") { // shorter than what a filter finds
		s.found |= 1 << ownerDown
	}
	return said{heard: s.found, sure: true}
}

// terminalReason is [terminalReason] of the line that was heard.
func (s said) terminalReason(line string) Reason {
	if s.sure && s.heard&(1<<ownerTerminal) == 0 {
		return ""
	}
	return terminalReason(line)
}

// active is [active] of the line that was heard.
func (s said) active(line string) bearing {
	switch {
	case !s.sure || strings.HasPrefix(line, "# "):
		return active(line)
	case s.heard&(1<<ownerDown) != 0:
		return neutral
	case s.heard&(1<<ownerWork) != 0:
		if subordinate(strings.ToLower(line)) {
			return neutral
		}
		return working
	case leveled(line):
		return talking
	}
	return neutral
}
