// Package service reads what keepers print about the processes they keep: systemd's unit lines, container engines, an OCI
// runtime that cannot start its program, a cluster's account of a pod. Call [New] and give the result to [classify.New].
//
// It refuses to take a keeper's account for more than it is: that a program could not be found is skew only where the
// program is managed, and a setting of the unit never is. It promises that an earlier start that went well is not held
// against a later death.
package service

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime reads keepers. It has no state.
type Runtime struct{}

// New returns the runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime   = Runtime{}
	_ classify.PathUnits = Runtime{}
	_ classify.Hinter    = Runtime{}
	_ classify.Speaker   = Runtime{}
)

// Name is "service".
func (Runtime) Name() string { return "service" }

// Module implements [classify.Runtime]: a program has no name but its path.
func (Runtime) Module(string) string { return "" }

// Package implements [classify.PathUnits]: keepers start programs, and whatever lies below a root is the root's.
func (Runtime) Package(string) string { return "" }

// Vocabulary implements [classify.Speaker].
func (Runtime) Vocabulary() classify.Vocabulary {
	return classify.Vocabulary{Lines: window, Exact: starts, Folded: ends}
}

// Of every account that Parse reads, a line holds one of these: starts where the program could not be started, ends, in
// lower case, where it was ended.
var (
	starts = []string{
		"Failed at step ", "Failed to locate executable ", "Unable to locate executable ", "Failed to execute ", `exec: "`, "exec user process", "exec /", "executable file `", "can't find command '", "Stopping ",
	}
	ends = []string{
		"oomkilled", "oom killer", "oom-kill", "out of memory: killed", "memory cgroup out of memory", "oom_kill", "systemd-oomd killed", "due to memory pressure", "reason: oom", "low on resource: ", "(oom",
		"ephemeral local storage usage exceeds", "ephemeral-storage limit", "deadlineexceeded", "active longer than specified deadline", "failed with result '", "start operation timed out", "runtime-max",
		"runtime time limit", "watchdog timeout", "due to time limit", "timelimitexceeded", "liveness probe", "startup probe", "stopping container", "killing container", "reason=evicted", "preempted", "preempting",
		"code=killed, status=", "due to preemption", "drained", "received sigterm", "received signal 15", "taintmanagereviction",
	}
)

// Hint implements [classify.Hinter].
func (Runtime) Hint(tail []byte) bool {
	return has(string(tail), starts...) || has(string(bytes.ToLower(tail)), ends...)
}

// window is how many lines from the end may hold the keeper's account of the death.
const window = 32

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	seen := 0
	started := false // a line behind says that the program did start
	var found *classify.Failure
	for i := len(log.Lines) - 1; i >= 0 && seen < window; i-- {
		l := strings.TrimSpace(log.Lines[i])
		if l == "" || log.Ignored(i) {
			continue
		}
		seen++
		started = started || ranInto(l)
		if f := start(l); f != nil && !started {
			f.First, f.Line, f.Last = i, i, max(i, last(log, i))
			return f
		}
		// A kill is told in several lines, and the one that says why may be any of them.
		if r := end(l); r != "" && (found == nil || found.Listed == classify.Killed && r != classify.Killed) {
			line := i
			if found != nil {
				line = found.Last
			}
			found = &classify.Failure{Listed: r, Message: l, First: i, Line: i, Last: line}
		}
		if began(l) {
			break // what stands before this belongs to the run before
		}
	}
	return found
}

// last is the last line, behind i, of the same account.
func last(log *text.Log, i int) int {
	for n := i + 1; n < len(log.Lines) && n < i+8; n++ {
		if l := log.Lines[n]; strings.Contains(l, "Failed with result '") || strings.Contains(l, "Main process exited, code=exited, status=2") || strings.Contains(l, "Control process exited") || start(l) != nil {
			i = n
		}
	}
	return i
}

// ranInto reports that the unit's main process ended with a status of its own: what could not be started was another one.
func ranInto(l string) bool {
	_, status, ok := strings.Cut(l, ": Main process exited, code=exited, status=")
	return ok && !strings.HasPrefix(status, "203/")
}

// began reports that a keeper started the process anew.
func began(l string) bool {
	return strings.Contains(l, ": Scheduled restart job, restart counter is at ") || strings.Contains(l, ".service: Main process exited, code=exited, status=0/SUCCESS")
}
