package classify

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify/text"
)

// Most processes say last what they die of. So the end of a tail is read alone first, and as little of it as holds the last
// word that a runtime listens for. A short look counts only where all of the tail would give the same failure.
const (
	// nearBytes is how much of the end is looked at by itself.
	nearBytes = 8 << 10
	// stepBytes is how much of it is heard at once, from the end on, and how much is read in front of the last words at most.
	stepBytes = 2 << 10
	// clearance is how many lines must stand in front of a failure for nothing of it to be cut off.
	clearance = 12
	// leadLines is how many lines are read in front of the last words: a failure may begin a few lines before its first word.
	leadLines = clearance + 6
)

// sighting is a failure that a part of the tail has given.
type sighting struct {
	log   *text.Log
	f     *Failure
	by    Runtime
	asked uint64
	// left are those of asked that did not have to be.
	left uint64
}

// serves reports a failure, and as many lines with it as are read for who ended a run of that exit.
func (s sighting) serves(e Exit) bool {
	return s.f != nil && (len(s.log.Lines) >= killerLines || !byStatus(e))
}

// nearest looks for the failure in the lines round the last words of runtimes, if there are any in the last nearBytes. quiet is
// the byte from which on nothing was heard, the end of the tail where that is not certain.
func (c *Classifier) nearest(tail []byte) (s sighting, quiet int) {
	quiet = len(tail)
	floor := len(tail) - nearBytes
	// What lies dressed in colours or wide characters is for those who read more, and so are runtimes that tell no words.
	if floor < nearBytes || len(c.runtimes) > maxSpeakers || c.ears.always|c.ears.hinters != 0 || bytes.IndexByte(tail[floor:], 0x1b) >= 0 || bytes.IndexByte(tail[floor:], 0) >= 0 {
		return sighting{}, quiet
	}
	for quiet > floor {
		from := lineFrom(tail, max(quiet-stepBytes, floor))
		if from >= quiet {
			break // a line longer than a step
		}
		heard := search{filter: c.ears.whole, text: tail[from:quiet], runtimes: c.runtimes}
		heard.run()
		if heard.found == 0 {
			quiet = from
			continue
		}
		front := lineFrom(tail, from+heard.first-stepBytes)
		for n := bytes.Count(tail[front:from+heard.first], newline); n > leadLines; n-- {
			front = lineFrom(tail, front+1)
		}
		if front < from {
			heard.text = tail[front:from]
			heard.run()
		}
		if heard.found&(1<<ownerDressed) != 0 {
			return sighting{}, quiet
		}
		asked := heard.found | c.ending(ending(tail[front:])).asked
		lines := bytes.Count(tail[front:], newline)
		// What stands behind a failure is undressed by the vote of all lines, so enough of them must be read.
		if quiet == len(tail) && !resumed(tail[front:]) {
			if s := c.sight(tail[front:], lines, asked); s.f == nil || blank(s.log.Lines[s.f.Last+1:]) {
				return s, quiet
			}
		}
		return c.sight(tail[lineFrom(tail, floor):], lines, asked), quiet
	}
	return sighting{}, quiet
}

// lineFrom is where the first line begins that begins at byte at or behind it.
func lineFrom(tail []byte, at int) int {
	if n := bytes.IndexByte(tail[at-1:], '\n'); n >= 0 {
		return at + n
	}
	return len(tail)
}

// resumed reports that a text whose beginning is an ordinary log ends in a line that begins like one of it: the log seems to go
// on behind the failure.
func resumed(b []byte) bool {
	const lead = 10 // bytes are no accident
	trimmed := bytes.TrimRight(b, " \t\r\n")
	last := trimmed[bytes.LastIndexByte(trimmed, '\n')+1:]
	if len(last) < lead {
		return false
	}
	for n := 0; n < clearance; n++ {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			return false
		}
		if begins(b[:end], last[:lead]) {
			return true
		}
		b = b[end+1:]
	}
	return false
}

// blank reports lines with nothing on them.
func blank(lines []string) bool {
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			return false
		}
	}
	return true
}

// near looks for the failure in the last nearBytes, given who is asked.
func (c *Classifier) near(tail []byte, asked uint64) sighting {
	if len(tail) < 2*nearBytes || asked == 0 || asked == all {
		return sighting{}
	}
	end := tail[lineFrom(tail, len(tail)-nearBytes):]
	return c.sight(end, nearBytes, asked)
}

// sight finds the failure in the last lines of a part of the tail that reaches to its end, and finds it only where all of the
// tail would give the same one: its lines carry no dress that others would have a say in, it is not the first thing in them, and
// nothing before it bears on it.
func (c *Classifier) sight(end []byte, lines int, asked uint64) sighting {
	log := text.Read(end, nearBytes)
	log = log.From(len(log.Lines) - lines)
	f, rt, left := c.parse(log, asked)
	if f == nil || f.First < clearance || len(f.Frames) == 0 || !whole(f) || !undressed(end, log, f.First) || !undressed(end, log, f.Line) {
		return sighting{}
	}
	return sighting{log, f, rt, asked, left}
}

// undressed reports that nothing was taken off a line. Lines vote about the prefix that is taken off all of them, and the last few
// KiB may vote otherwise than all of a tail; a line that has none is left as it is either way.
func undressed(end []byte, log *text.Log, i int) bool {
	if i >= len(log.Lines) || log.Lines[i] == "" || log.Source(i) != "" {
		return false
	}
	l := log.Lines[i]
	for from := 0; ; {
		at := bytes.IndexByte(end[from:], l[0])
		if at < 0 {
			return false
		}
		from += at + 1
		if (from == 1 || end[from-2] == '\n') && holds(end[from-1:], l, false) {
			return true
		}
	}
}

// whole reports a failure of which all is in the text, and which no line before it could explain.
func whole(f *Failure) bool {
	for g := f; g != nil; g = g.Cause {
		if g.Survived || g.Cut || g.Headless || g.Kind == KindTorn || g.Context != nil || g.Group != nil {
			return false
		}
	}
	return true
}
