package classify

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mulligan-dev/mulligan/classify/text"
)

// The owners of words that are no runtime's. Runtimes have the numbers below them.
const (
	ownerDressed  = 63 // the text must be undressed before words can be looked for
	ownerTerminal = 62 // a line may state why the run ended
	maxSpeakers   = 62
)

// endLines is how many lines from the end are searched for what only counts in the last ones: more than any runtime reads,
// since lines of others may stand among them. They are looked for in endBytes.
const (
	endLines = 64
	endBytes = 16 << 10
)

// ending is the part of a tail that holds its last lines, and not many more.
func ending(tail []byte) []byte {
	end := tail[max(0, len(tail)-endBytes):]
	for n := endBytes / 4; n < len(end); n *= 2 {
		last := end[len(end)-n:]
		lines := bytes.Count(last, newline)
		if lines <= endLines {
			continue
		}
		for ; lines > endLines; lines-- {
			last = last[bytes.IndexByte(last, '\n')+1:]
		}
		return last
	}
	return end
}

// ears is what a classifier listens for before it reads a text.
type ears struct {
	// whole is looked for in all of a tail, end in its end, lines in single lines.
	whole, end, lines *filter
	// always are the runtimes that give no hint, hinters those that have to be shown the whole tail.
	always, hinters uint64
}

// newEars collects the words of all runtimes.
func newEars(runtimes []Runtime) (*ears, error) {
	e := &ears{}
	var whole, end []wordOf
	var bad []string
	for i, r := range runtimes {
		sp, ok := r.(Speaker)
		_, hinter := r.(Hinter)
		switch {
		case i >= maxSpeakers: // the masks have no room for it
			continue
		case !ok && hinter:
			e.hinters |= 1 << i
			continue
		case !ok:
			e.always |= 1 << i
			continue
		}
		v := sp.Vocabulary()
		list := &whole
		if v.Lines > 0 {
			list = &end
		}
		add := func(text string, folded bool) {
			if len(text) < grain {
				bad = append(bad, fmt.Sprintf("runtime %s: the word %q has less than %d bytes", r.Name(), text, grain))
				return
			}
			for _, w := range escapings(text) {
				*list = append(*list, wordOf{text: w, folded: folded, owner: i, lines: 2 * v.Lines})
			}
		}
		for _, w := range v.Exact {
			add(w, false)
		}
		for _, w := range v.Folded {
			add(w, true)
		}
		for _, w := range v.Starts {
			// What stands in front of a line: the end of the one before, as it is or as JSON and syslog relays write it, or
			// the last byte of a collector's prefix.
			for _, c := range "\n\r \t\"nt2|:]" {
				add(string(c)+w, false)
			}
		}
		if len(v.Exact)+len(v.Folded)+len(v.Starts) == 0 {
			bad = append(bad, fmt.Sprintf("runtime %s: its vocabulary is empty", r.Name()))
		}
	}
	if len(bad) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(bad, "; "))
	}
	for _, w := range dressedWords {
		whole = append(whole, wordOf{text: w, owner: ownerDressed})
	}
	seen := newUsage(usual)
	e.whole, e.end = newFilter(whole, seen, 16), newFilter(append(end, terminalWords()...), seen, 4)
	e.lines = newFilter(lineWords(), seen, 1)
	return e, nil
}

// escapings are a word and how it looks inside of JSON.
func escapings(w string) []string {
	if !strings.ContainsAny(w, "\"\t\\") {
		return []string{w}
	}
	return []string{w, escapes.Replace(w)}
}

var escapes = strings.NewReplacer(`"`, `\"`, "\t", `\t`, `\`, `\\`)

// dressedWords tell that words may be broken up: colours that a relay has spelled out, characters as escapes, records of a
// container runtime that hold a part of a line.
var dressedWords = []string{"#033[", `\u00`, "stderr P ", "stdout P ", `{"log":"`, "^[[0", "^[[1", "^[[2", "^[[3", "^[[4", "^[[9", "^[[m", "^[[K", "^[[J", "^[[H"}

// all is the mask of every runtime.
const all = ^uint64(0)

// hearing is what was heard in a tail: the runtimes that may find a failure in it, and whether its last lines may state why
// the run ended.
type hearing struct {
	asked  uint64
	stated bool
}

// listen hears the end of a tail, of which nothing is to be heard from byte quiet on but in its last lines.
func (c *Classifier) listen(tail []byte, quiet int) hearing {
	h := c.ending(ending(tail))
	c.further(&h, tail[max(0, len(tail)-nearBytes):max(quiet, len(tail)-nearBytes, 0)])
	return h
}

// ending hears the last lines of a tail.
func (c *Classifier) ending(end []byte) hearing {
	e := search{filter: c.ears.end, text: end, runtimes: c.runtimes}
	coloured := bytes.IndexByte(e.text, 0x1b) >= 0
	if coloured {
		var room [endBytes]byte
		e.text = text.Plain(room[:0], e.text)
	}
	e.run()
	return hearing{asked: e.found &^ (1 << ownerTerminal), stated: coloured || e.found&(1<<ownerTerminal) != 0}
}

// further adds what is heard in a part of a tail.
func (c *Classifier) further(h *hearing, part []byte) {
	// Wide characters and partial records may lie inside the words that are searched for, and colours too.
	if h.asked == all || bytes.IndexByte(part[:min(len(part), 1024)], 0) >= 0 {
		h.asked = all
		return
	}
	if bytes.IndexByte(part, 0x1b) >= 0 {
		var room [TailLimit]byte
		part = text.Plain(room[:0], part)
	}
	s := search{filter: c.ears.whole, text: part, runtimes: c.runtimes}
	s.run()
	if s.found&(1<<ownerDressed) != 0 {
		h.asked = all
		return
	}
	h.asked |= s.found | c.ears.always
	for i, r := range c.runtimes {
		if i < maxSpeakers && c.ears.hinters&(1<<i) != 0 && r.(Hinter).Hint(part) {
			h.asked |= 1 << i
		}
	}
	if len(c.runtimes) > maxSpeakers {
		h.asked |= 1 << ownerDressed // more than the mask has bits for: they are always asked
	}
}

// before is the part of a tail that [Classifier.listen] has not heard, with as much more as the longest line that a word may
// stand in.
func before(tail []byte) []byte {
	return tail[:max(0, len(tail)-nearBytes+1024)]
}

// asks reports whether a mask holds the runtime at a place in the list.
func asks(mask uint64, i int) bool { return i >= maxSpeakers || mask&(1<<i) != 0 }

// statedLines is how many lines from the end may hold the run's last statement, dress and blank lines apart. One is
// read; more are looked at because the last may be a collector's own.
const statedLines = 4

// quiet reports that a tail which no runtime wants to see holds no statement either, so that it is judged without being
// read. It allocates nothing. What it is not sure of it leaves to those who read.
func (c *Classifier) quiet(in Input, tail []byte) bool {
	if in.Exit.Signal != "" || crashSignal(in.Exit) {
		return false
	}
	switch in.Exit.Code {
	case 124, 129, 130, 137, 143:
		return false
	}
	// The last lines that are not blank.
	end := tail[max(0, len(tail)-statementBytes):]
	from, full, worded := len(end), 0, false
	var last []byte
	for from > 0 && full < statedLines {
		at := bytes.LastIndexByte(end[:from-1], '\n') + 1
		if l := bytes.TrimSpace(end[at:from]); len(l) > 0 {
			// Something is left of a last line with words under any dress, but where it is the dress of the line before.
			// Then no other line counts.
			if full == 1 && worded && !begins(l, last) {
				return true
			}
			full++
			worded = worded || spoken(l)
			if c.states(in, l) {
				return false
			}
			last = l
		}
		from = at
	}
	return worded // else there may be nothing under the dress
}

// begins reports whether a line begins with another one, one digit being as good as another.
func begins(l, with []byte) bool {
	if len(l) < len(with) {
		return false
	}
	for i, c := range with {
		if l[i] != c && !(c >= '0' && c <= '9' && l[i] >= '0' && l[i] <= '9') {
			return false
		}
	}
	return true
}

// states reports a line that may be a statement of the product about its end, or be about a file of the user's.
func (c *Classifier) states(in Input, line []byte) bool {
	for _, w := range in.Workspaces {
		if w == "" || occurs(line, cleanPath(w)) {
			return true
		}
	}
	if !names(line, in.Roots) {
		return false
	}
	s := search{filter: c.ears.lines, text: line}
	s.run()
	return s.found&(1<<ownerTrouble) != 0
}

// spoken reports a line that is more than dress: it ends in a word, and words of small letters are in it.
func spoken(l []byte) bool {
	if bytes.IndexByte(closings, l[len(l)-1]) >= 0 {
		return false
	}
	if l[0] == '{' { // a record: its message counts
		at := bytes.Index(l, msgKey)
		if at < 0 {
			at = bytes.Index(l, messageKey)
		}
		if at < 0 {
			return false
		}
		l = l[at+len(msgKey):]
	}
	small := 0
	for _, c := range l {
		if small++; c < 'a' || c > 'z' {
			small = 0
		}
		if small == 4 {
			return true
		}
	}
	return false
}

var (
	closings   = []byte("]):|FP>")
	msgKey     = []byte(`"msg":"`)
	messageKey = []byte(`"message":"`)
)

// names reports whether a module of a root stands in b, hyphens being as good as underscores.
func names(b []byte, roots []Root) bool {
	for i := range roots {
		for _, m := range roots[i].Modules {
			if m != "" && occurs(b, m) {
				return true
			}
		}
	}
	return false
}

// occurs is a search that takes hyphens and underscores for the same.
func occurs(b []byte, w string) bool {
	for i := 0; i+len(w) <= len(b); i++ {
		n := 0
		for n < len(w) && (b[i+n] == w[n] || b[i+n] == '-' && w[n] == '_' || b[i+n] == '_' && w[n] == '-') {
			n++
		}
		if n == len(w) {
			return true
		}
	}
	return false
}

// terminalWords are what a line must hold for [terminalReason] to find a reason in it, or for the statement of a program to
// be about its arguments.
func terminalWords() []wordOf {
	var out []wordOf
	add := func(with string, words ...string) {
		for _, w := range words {
			out = append(out, wordOf{text: w, folded: true, owner: ownerTerminal, with: with})
		}
	}
	add("", "killed", "terminated")
	for _, p := range phrases {
		add("", p.words...)
	}
	add("", "interrupted: ", "short test summary info", "importerror while loading conftest", "failed (errors=", "failed (failures=", "failed (unexpected successes=",
		"***test failed***", "internalerror>", "no tests ran in ", "evaluation failed :(", "failed!  - failed:", "--- fail:", "test result: failed", "fail\t", "# fail ", "\u2139 fail ")
	add("", sums[:]...)
	add("failed", "nox > session")
	add(" test", "ran ")
	add(" in ", " failed", " error")
	add("", "failed with exit", "tool call failed", "executable file not found in $path", "exited with", "exit status", "exit code", "tool failed", "tool step failed", "returned non-zero", " exited ", "result: fail")
	add("fail", testPrograms[:]...) // or " exited "
	add("", misuses[:]...)
	return out
}

// troubles are stems of which every sentence holds one that a program of the product says about its own end, or that of
// something of its own.
var troubles = [...]string{
	"version", "schema", "newer", "mismatch", "expect", "support", "protocol", "compatible", "unknown", "unrecog", "differ", "disagree", "older", "too old", "too new",
	"validation", "missing", "variant", "field", "future", "recent", "ahead", "exist", "column", "table", "relation", "revision", "parent node", "plugin", "module", "import", "format", "layout",
	".so:", ".so.", ".dll", ".dylib", ".node", ".pyd", "shared", "symbol", "build", "built", "compiled", "install", "stale", "outdated", "out of date", " abi", "requir", "match", " speaks ", "later",
	"space", "quota", "memory", "allocate", "paging", "limit", "too many", "error", "code", "status", "api key", "api_key", "api-key", "exit", "directive", "overload", "fetch", "hang up", "unavailable", "refus",
	"reset", "closed", "not known", "resolution", "unreachable", "signal", "premature", "abrupt", "timed out", "deadline", "fatal", "critical", "cannot", "could not", "can't", "unable", "fail", "giving up", "abort",
	"exception", "exec", "load", "find", "undefined", "corrupt", "invalid", "truncat", "unauthor", "denied",
}
