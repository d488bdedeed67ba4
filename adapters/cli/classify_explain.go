package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/notify"
)

// The marks around what decided, on a terminal and elsewhere.
const (
	markOn, markOff   = "\x1b[1;33m", "\x1b[0m"
	plainOn, plainOff = ">>", "<<"
	// maxShown is how many deciding lines are shown; of more the last ones, which are nearest to the death.
	maxShown = 24
)

// explanationText draws what the classifier says about its verdict: it decides nothing itself.
func explanationText(v caseView, color bool) string {
	e := v.Explanation
	var b strings.Builder
	fmt.Fprintf(&b, "  decided by: %s\n", strings.ReplaceAll(string(e.Decision), "_", " "))
	if v.Skipped > 0 {
		fmt.Fprintf(&b, "  lines count from byte %d of the file, where reading began\n", v.Skipped)
	}
	on, off := plainOn, plainOff
	if color {
		on, off = markOn, markOff
	}
	for _, s := range e.Deciding {
		from, to := bounds(v.text, s)
		// The whole lines, with the marks around what decided in them.
		begin := bytes.LastIndexByte(v.text[:from], '\n') + 1
		end := len(v.text)
		if n := bytes.IndexByte(v.text[to:], '\n'); n >= 0 {
			end = to + n
		}
		first := 1 + bytes.Count(v.text[:begin], []byte("\n"))
		lines := strings.Split(printable(v.text[begin:from])+on+printable(v.text[from:to])+off+printable(v.text[to:end]), "\n")
		if skip := len(lines) - maxShown; skip > 0 {
			fmt.Fprintf(&b, "    ... %d lines\n", skip)
			first, lines = first+skip, lines[skip:]
			lines[0] = on + lines[0]
		}
		for i, l := range lines {
			fmt.Fprintf(&b, "    %5d  %s\n", first+i, l)
		}
	}
	quiet := []string{}
	for _, r := range e.RuledOut {
		if r.Why == classify.NoWord || r.Why == classify.NoFailure {
			quiet = append(quiet, r.Runtime)
			continue
		}
		at := ""
		if len(r.Spans) > 0 {
			from, _ := bounds(v.text, r.Spans[0])
			at = fmt.Sprintf(" at line %d", 1+bytes.Count(v.text[:from], []byte("\n")))
		}
		fmt.Fprintf(&b, "  ruled out: %s%s, %s (%s)\n", cmp.Or(r.Exception, notify.Line(r.Message, 60), "a failure"), at, strings.ReplaceAll(string(r.Why), "_", " "), r.Runtime)
	}
	if len(quiet) > 0 {
		fmt.Fprintf(&b, "  nothing of: %s\n", strings.Join(quiet, ", "))
	}
	return b.String()
}

// bounds are a span's ends within the text.
func bounds(text []byte, s classify.Span) (from, to int) {
	from = min(max(s.From, 0), len(text))
	return from, min(max(s.To, from), len(text))
}

// printable leaves out what would steer the terminal.
func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) {
			return r
		}
		return -1
	}, string(b))
}

// refusalText is the evidence for a provider's refusal in a line.
func refusalText(r *classify.Refusal) string {
	parts := []string{cmp.Or(r.Provider, "a provider")}
	if r.Status != 0 {
		parts = append(parts, fmt.Sprintf("status %d", r.Status))
	}
	if r.Code != "" {
		parts = append(parts, r.Code)
	}
	switch {
	case !r.RetryAt.IsZero():
		parts = append(parts, "come back at "+r.RetryAt.Format("2006-01-02 15:04:05 MST"))
	case r.RetryAfter > 0:
		parts = append(parts, "retry after "+r.RetryAfter.String())
	}
	return strings.Join(parts, ", ")
}
