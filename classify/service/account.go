package service

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// start reads a keeper that could not start the program at all.
func start(l string) *classify.Failure {
	path, why := program(l)
	if path == "" {
		return nil
	}
	f := &classify.Failure{Message: l, Startup: true, Fatal: true, File: path}
	low := strings.ToLower(why)
	switch {
	case has(low, "no such file or directory", "not found", "does not exist", "no such file"):
		if !strings.HasPrefix(path, "/") {
			return nil // looked for on a search path: the image is another one, and whose the program was to be is not said
		}
		f.Kind = classify.KindMissingModule
	case has(low, "exec format error", "text file busy"):
		f.Kind = classify.KindTorn
	case has(low, "permission denied"):
		f.Kind, f.Code = classify.KindFile, "13"
	case has(low, "is a directory", "input/output error", "stale file handle"):
		f.Kind = classify.KindFile
	default:
		return nil
	}
	return f
}

// program finds the program that a keeper could not start, and why.
func program(l string) (path, why string) {
	// systemd names the step; only EXEC is about the program. The others are settings of the unit, though they name it too.
	if _, rest, ok := strings.Cut(l, "Failed at step "); ok {
		step, rest, ok := strings.Cut(rest, " spawning ")
		if !ok || step != "EXEC" {
			return "", ""
		}
		return split(rest)
	}
	for _, start := range [...]string{"Failed to locate executable ", "Unable to locate executable ", "Failed to execute command ", "Failed to execute "} {
		if _, rest, ok := strings.Cut(l, start); ok {
			return split(rest)
		}
	}
	// An OCI runtime: exec: "/path": stat /path: no such file or directory
	for _, start := range [...]string{`exec: \"`, `exec: "`} {
		_, rest, ok := strings.Cut(l, start)
		if !ok || !has(l, "container", "OCI", "runc", "crun", "shim") {
			continue
		}
		end := strings.IndexAny(rest, `"\`)
		if end <= 0 {
			return "", ""
		}
		return rest[:end], strings.TrimLeft(rest[end:], `\": `)
	}
	// crun: executable file `/path` not found; an entry point's exec: "exec /path: no such file or directory"
	if _, rest, ok := strings.Cut(l, "executable file `"); ok {
		if p, why, ok := strings.Cut(rest, "`"); ok {
			return p, why
		}
	}
	for _, start := range [...]string{"exec user process caused: exec ", "exec "} {
		if rest, ok := strings.CutPrefix(l, start); ok && strings.HasPrefix(rest, "/") {
			return split(rest)
		}
		if start != "exec " {
			if _, rest, ok := strings.Cut(l, start); ok {
				return split(rest)
			}
		}
	}
	// supervisord: can't find command '/path'
	if _, rest, ok := strings.Cut(l, "can't find command '"); ok {
		if p, _, ok := strings.Cut(rest, "'"); ok {
			return p, "not found"
		}
	}
	return "", ""
}

// split takes "PATH: why" apart.
func split(s string) (path, why string) {
	path, why, ok := strings.Cut(s, ": ")
	if !ok || strings.ContainsAny(path, "\"'") {
		return "", ""
	}
	return strings.TrimSuffix(path, " failed"), why // tini: "exec /path failed: No such file or directory"
}

// end reads a keeper's or the kernel's word on why a process ended; empty for none.
func end(l string) classify.Reason {
	low := strings.ToLower(l)
	switch {
	case has(low, "oomkilled", "oom killer", "oom-kill", "out of memory: killed process", "memory cgroup out of memory", "oom_kill", "systemd-oomd killed", "due to memory pressure", "reason: oom", "low on resource: memory", "code=killed, status=9/kill (oom"):
		return classify.OOM
	case has(low, "low on resource: ephemeral-storage", "ephemeral local storage usage exceeds", "ephemeral-storage limit"):
		return classify.DiskFull
	case has(low, "deadlineexceeded", "was active longer than specified deadline", "failed with result 'timeout'", "start operation timed out", "runtime-max", "reached runtime time limit", "failed with result 'watchdog'", "watchdog timeout", "due to time limit", "timelimitexceeded"):
		return classify.Timeout
	case has(low, "failed liveness probe", "failed startup probe", "stopping container", "killing container", "reason=evicted", "preempted", "preempting", "code=killed, status=9/", "code=killed, status=15/", "code=killed, status=2/", "due to preemption", "drained", "received sigterm", "received signal 15", "taintmanagereviction"),
		strings.HasPrefix(l, "Stopping ") && strings.HasSuffix(l, "..."):
		return classify.Killed
	}
	return ""
}

func has(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
