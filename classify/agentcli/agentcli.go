// Package agentcli reads what agent command lines print last: a provider's refusal with its status, a person's
// cancellation, a sandbox that ended a command. Call [New] and give the result to [classify.New]; [Read] tells a host what
// a single line says, with the provider's status and the time to wait.
//
// It refuses to speak of updates: nothing that it reads is ever skew. It promises that a refusal which the run got over
// does not count, and that a status is only read where the line itself says that it is one.
package agentcli

import (
	"bytes"
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
)

// Name is "agent".
func (Runtime) Name() string { return "agent" }

// Module implements [classify.Runtime]. A command line names no units, so no file is one.
func (Runtime) Module(string) string { return "" }

// Hint implements [classify.Hinter]: refusals stand at the end, where a look at every line is cheap. Lines that are too long
// for that are read whole.
func (Runtime) Hint(tail []byte) bool {
	from := len(tail)
	for range window + 1 { // the last line ends with a line feed of its own
		if from = bytes.LastIndexByte(tail[:from], '\n'); from < 0 {
			from = 0
			break
		}
	}
	end := tail[from:]
	if len(end) > window*256 {
		return true
	}
	for line := range bytes.Lines(end) {
		if _, ok := Read(string(line)); ok {
			return true
		}
	}
	return false
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
		if r, ok := Read(l); ok {
			return &classify.Failure{Listed: r.Reason, Message: l, First: i, Line: i, Last: max(i, end)}
		}
		switch tone(l) {
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

// tone reads a line behind a refusal.
func tone(line string) bearing {
	l := strings.ToLower(line)
	if has(l, "giving up", "gave up", "aborted", "aborting", "fatal", "exiting", "run failed", "stopped", "cannot continue", "not continuing", "beendet", "abgebrochen", "abbruch", "abandon", "arrêt", "终止", "中止", "已退出", "放弃", "終了", "中断",
		"terminado", "cancelado", "abortado", "прерван", "завершен") {
		return farewell
	}
	if has(l, "retry", "trying again", "attempt ", "wiederhol", "erneut", "nouvelle tentative", "réessa", "reintent", "重试", "再試行") {
		if lastAttempt(l) {
			return farewell
		}
		return retrying
	}
	// A complaint of another kind came later, so the refusal was got over.
	if has(l, "schema", "written by", "not found", "cannot load", "can't load", "no such file", "protocol", "corrupt", "undefined", "missing") {
		return atWork
	}
	if has(l, "turn ", "step ", "recovered", "resum", "continu", "phase=", "connected", "loading", "loaded", " done", "ok ", "tool call", "ready") {
		return atWork
	}
	return other
}

// lastAttempt reports "attempt 10 of 10", "retry 3/3".
func lastAttempt(l string) bool {
	for _, sep := range [...]string{" of ", "/"} {
		for from := 0; ; {
			at := strings.Index(l[from:], sep)
			if at < 0 {
				break
			}
			at += from
			a, b := trailing(l[:at]), leading(l[at+len(sep):])
			if a != "" && a == b {
				return true
			}
			from = at + len(sep)
		}
	}
	return false
}

// trailing are the digits at the end of s, leading those at its beginning.
func trailing(s string) string {
	at := len(s)
	for at > 0 && s[at-1] >= '0' && s[at-1] <= '9' {
		at--
	}
	return s[at:]
}

func leading(s string) string {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	return s[:end]
}

func has(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
