package classify

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify/text"
)

// quoted reports that a failure stands in words that the log repeats: the output of a tool under its label, a block of a
// document, a record of data, a quotation. Who printed it first may have died of it; the process whose log this is did not.
func quoted(log *text.Log, f *Failure) bool {
	if f.First < 0 || f.First >= len(log.Lines) {
		return false
	}
	return labelled(log, f) || fenced(log, f) || below(log, f.First) || repeated(log.Lines[f.First])
}

// repeated reports a line that is no program's own: data in a record that no log holds, a quotation, a line of a patch.
func repeated(l string) bool {
	l = strings.TrimSpace(l)
	switch {
	case strings.HasPrefix(l, `{"`):
		_, rest, ok := strings.Cut(l[2:], `"`)
		return ok && strings.HasPrefix(strings.TrimLeft(rest, " "), ":") && strings.HasSuffix(l, "}")
	case strings.HasPrefix(l, "+"): // a frame of a box begins so too, and what a shell runs stands behind a blank
		return len(l) > 1 && strings.IndexByte(" -+=", l[1]) < 0
	}
	return strings.HasPrefix(l, "> ")
}

// toolLabels are what hosts put in front of lines that a tool printed: "tool| line".
var toolLabels = [...]string{"tool", "tools", "exec", "bash", "sh", "shell", "cmd", "command", "hook"}

// labelled reports a failure under the label of a tool, in a log in which others speak as well.
func labelled(log *text.Log, f *Failure) bool {
	src := log.Source(f.First)
	if src == "" {
		return false
	}
	tool := false
	for _, w := range toolLabels {
		tool = tool || w == src
	}
	if !tool {
		return false
	}
	for i := range log.Lines {
		if log.Source(i) != src {
			return true
		}
	}
	return false
}

// fence begins and ends a block of a document.
const fence = "```"

// fenced reports a failure inside of such a block. A process that died closes none, so the end of the block proves that it
// lived. A log that is one block as a whole was only dressed so.
func fenced(log *text.Log, f *Failure) bool {
	open, first := -1, -1
	for i, l := range log.Lines[:f.First] {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		if first < 0 {
			first = i
		}
		if strings.HasPrefix(l, fence) {
			open = i
		}
	}
	if open < 0 && !log.Cut {
		return false
	}
	for i := f.Last + 1; i < len(log.Lines); i++ {
		if strings.TrimSpace(log.Lines[i]) != fence {
			continue
		}
		if open < 0 || open != first {
			return true
		}
		for _, l := range log.Lines[i+1:] {
			if strings.TrimSpace(l) != "" {
				return true
			}
		}
	}
	return false
}

// outputMark is what agent command lines draw in front of a tool's output, whose other lines are indented below it.
const outputMark = "\u23bf"

// maxOutput bounds how far above a line the mark is looked for.
const maxOutput = 400

// ran reports the line above the output of a command: "exec bash -lc 'x' in /dir exited 1 in 42ms:".
func ran(l string) bool {
	return strings.HasPrefix(l, "exec ") && strings.Contains(l, " exited ") && strings.HasSuffix(l, ":")
}

// below reports a line in the output of a tool.
func below(log *text.Log, i int) bool {
	for n := i; n >= 0 && n > i-maxOutput; n-- {
		l := log.Lines[n]
		t := strings.TrimLeft(l, " \t")
		if strings.HasPrefix(t, outputMark) {
			return true
		}
		if n < i && ran(l) {
			return true
		}
		if t != "" && len(l)-len(t) < 2 && (n < i || n == 0 || !ran(log.Lines[n-1])) {
			return false
		}
	}
	return false
}
