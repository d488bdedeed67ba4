// Package agentcli reads what agent command lines print last: a provider's refusal with its status, a person's
// cancellation, a sandbox that ended a command. Call [New] and give the result to [classify.New]; [Read] tells a host what
// a single line says, with the provider's status and the time to wait.
//
// It refuses to speak of updates: nothing that it reads is ever skew. It promises that a refusal which the run got over
// does not count, and that a status is only read where the line itself says that it is one.
package agentcli

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime reads agent command lines. It has no state.
type Runtime struct{}

// New returns the runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime = Runtime{}
	_ classify.Hinter  = Runtime{}
	_ classify.Speaker = Runtime{}
)

// Name is "agent".
func (Runtime) Name() string { return "agent" }

// Module implements [classify.Runtime]. A command line names no units, so no file is one.
func (Runtime) Module(string) string { return "" }

// Vocabulary implements [classify.Speaker].
func (Runtime) Vocabulary() classify.Vocabulary {
	v := classify.Vocabulary{Lines: window}
	for _, list := range [...][]string{limits, memories, refusals, persons, unreached, {"error"}} {
		v.Folded = append(v.Folded, list...)
	}
	for _, c := range codes {
		v.Folded = append(v.Folded, c.word, strings.ReplaceAll(c.word, "_", "-"))
	}
	for _, w := range announced {
		for _, c := range " :=([\"'" {
			v.Folded = append(v.Folded, w+string(c))
		}
	}
	// A status in brackets, beside a word of the trade.
	for n := 400; n < 600; n++ {
		v.Exact = append(v.Exact, "("+strconv.Itoa(n)+")")
	}
	return v
}

// Hint implements [classify.Hinter]. It reads from the end as Parse does, in lines that still have their dress, and
// allocates nothing.
func (Runtime) Hint(tail []byte) bool {
	var buf [maxLine]byte
	over := false
	for seen := 0; seen < window && len(tail) > 0; {
		from := bytes.LastIndexByte(tail[:len(tail)-1], '\n') + 1
		line := bytes.TrimSpace(tail[from:])
		tail = tail[:from]
		if len(line) == 0 {
			continue
		}
		seen++
		low := sift(lower(buf[:], line))
		if mayRefuse(&low) {
			return true
		}
		switch tone(&low) {
		case farewell:
			over = true
		case other, atWork:
			// What ends in a bracket or a colon may be dress and nothing else.
			if last := line[len(line)-1]; !over && last != ']' && last != ')' && last != ':' && last != '|' {
				return false
			}
		}
	}
	return false
}

// lower puts the beginning of a line into buf, in lower case as far as letters of ASCII go.
func lower(buf, line []byte) []byte {
	low := buf[:copy(buf, line)]
	for i, c := range low {
		if c >= 'A' && c <= 'Z' {
			low[i] = c + 'a' - 'A'
		}
	}
	return low
}

// mayRefuse is a look at a line in lower case that may be mistaken about a refusal, and misses none.
func mayRefuse(low *sifted) bool {
	for _, list := range [...][]string{limits, memories, persons, unreached} {
		if low.holds(list) {
			return true
		}
	}
	for _, c := range codes {
		if low.hyphened(c.word) {
			return true
		}
	}
	return status(low.text) != 0
}

// window is how many lines from the end may hold the refusal that ended the run.
const window = 16

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	seen := 0
	over := false // a line behind says that nothing more was tried
	end := 0      // the last line that has to do with the refusal
	for i := len(log.Lines) - 1; i >= 0 && seen < window; i-- {
		l := strings.TrimSpace(log.Lines[i])
		if l == "" || log.Ignored(i) {
			continue
		}
		seen++
		if r, _, _ := reasonOf(strings.ToLower(l[:min(len(l), maxLine)])); r != "" {
			return &classify.Failure{Listed: r, Message: l, First: i, Line: i, Last: max(i, end)}
		}
		low := sift([]byte(strings.ToLower(l)))
		switch tone(&low) {
		case farewell:
			over, end = true, max(end, i)
		case retrying:
			if !over && seen > 1 {
				return nil
			}
			end = max(end, i)
		case other:
			if !over {
				return nil // the last word is another one
			}
		case atWork:
			return nil
		}
	}
	return nil
}

// bearing is what a line behind a refusal says about the run.
type bearing uint8

const (
	other    bearing = iota
	farewell         // it gave up
	retrying         // it tried again
	atWork           // it went on
)

// The words by which tone goes.
var (
	farewells = []string{
		"giving up", "gave up", "aborted", "aborting", "fatal", "exiting", "run failed", "stopped", "cannot continue", "not continuing", "beendet",
		"abgebrochen", "abbruch", "abandon", "arrêt", "终止", "中止", "已退出", "放弃", "終了", "中断", "terminado", "cancelado", "abortado", "прерван", "завершен",
	}
	retries = []string{
		"retry", "trying again", "attempt ", "wiederhol", "erneut", "nouvelle tentative", "réessa", "reintent", "重试", "再試行",
	}
	complaints = []string{
		"schema", "written by", "not found", "cannot load", "can't load", "no such file", "protocol", "corrupt", "undefined", "missing",
	}
	works = []string{
		"turn ", "step ", "recovered", "resum", "continu", "phase=", "connected", "loading", "loaded", " done", "ok ", "tool call", "ready",
	}
)

// tone reads a line behind a refusal, in lower case.
func tone(low *sifted) bearing {
	if low.holds(farewells) {
		return farewell
	}
	if low.holds(retries) {
		if lastAttempt(low.text) {
			return farewell
		}
		return retrying
	}
	// A complaint of another kind came later, so the refusal was got over.
	if low.holds(complaints) {
		return atWork
	}
	if low.holds(works) {
		return atWork
	}
	return other
}

// lastAttempt reports "attempt 10 of 10", "retry 3/3".
func lastAttempt(low []byte) bool {
	for _, sep := range [...]string{" of ", "/"} {
		for from := 0; ; {
			at := index(low[from:], sep)
			if at < 0 {
				break
			}
			at += from
			a, b := low[trailing(low[:at]):at], low[at+len(sep):]
			if len(a) > 0 && bytes.HasPrefix(b, a) && !(len(b) > len(a) && b[len(a)] >= '0' && b[len(a)] <= '9') {
				return true
			}
			from = at + len(sep)
		}
	}
	return false
}

// trailing is where the digits at the end of b begin.
func trailing(b []byte) int {
	at := len(b)
	for at > 0 && b[at-1] >= '0' && b[at-1] <= '9' {
		at--
	}
	return at
}

func has(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
