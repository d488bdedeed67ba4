// Package logline reads what the log entry in front of a failure says about it: that it was handled, that a tool printed
// it, that it stands in a test report. Runtimes call it for the lines that introduce a stack; it decides nothing itself.
package logline

import "strings"

// level finds the level in the head of an entry: "" where there is none.
func level(line string) string {
	head := line[:min(len(line), 96)]
	for w := range strings.FieldsFuncSeq(head, func(r rune) bool {
		return r == ' ' || r == '\t' || r == '[' || r == ']' || r == '|' || r == ':' || r == '=' || r == '('
	}) {
		switch w {
		case "INFO", "info", "Info", "INF", "DEBUG", "debug", "Debug", "DBG", "dbug", "TRACE", "trace", "trce", "notice", "NOTICE", "FINE", "CONFIG", "Information":
			return "low"
		case "WARN", "warn", "WARNING", "warning", "Warning", "WRN":
			return "warn"
		case "ERROR", "error", "FATAL", "fatal", "SEVERE", "CRITICAL", "critical", "crit", "fail", "ERR", "FTL", "Error", "Critical":
			return "high"
		}
	}
	return ""
}

// Entry reports a line that begins a log entry of any level.
func Entry(line string) bool { return level(line) != "" }

// Handled reports a line that says that what it reports was survived: by its level or by its words.
func Handled(line string) bool {
	if v := level(line); v == "low" || v == "warn" {
		return true
	}
	l := strings.ToLower(line)
	for _, w := range [...]string{"going on without", "continuing", "carrying on", "will retry", "retrying", "trying again", "try again", "ignored", "ignoring", "skipping",
		"skipped", "falling back", "fallback", "using default", "optional", "non-fatal", "nonfatal", "not fatal", "degraded", "without it", "disabled", "survived", "recovered", "handled:"} {
		if strings.Contains(l, w) && !strings.Contains(l, "not "+w) {
			return true
		}
	}
	return false
}

// Quoted reports a line that announces the output of a tool: "tool `x` exited 1:", "stderr of hook:".
func Quoted(line string) bool {
	l := strings.ToLower(strings.TrimSpace(line))
	if !strings.HasSuffix(l, ":") {
		return false
	}
	for _, w := range [...]string{"tool", "command", "hook", "subprocess", "step `", "child"} {
		if strings.Contains(l, w) {
			for _, did := range [...]string{"exit", "fail", "stderr", "stdout", "output", "printed", "returned", "said", "wrote"} {
				if strings.Contains(l, did) {
					return true
				}
			}
		}
	}
	return strings.HasPrefix(l, "stderr") || strings.HasPrefix(l, "stdout") || strings.HasPrefix(l, "$ ")
}

// Introduces reports an entry which says that the failure in the lines below it was survived. A warning in front of a stack
// is about it; a line of ordinary work may stand there by chance, unless it speaks of a failure.
func Introduces(line string) bool {
	if !Entry(line) || !Handled(line) {
		return false
	}
	if level(line) == "warn" {
		return true
	}
	l := strings.ToLower(line)
	for _, w := range [...]string{"fail", "error", "exception", "could not", "cannot", "can't", "unable", "skip", "missing", "without", "unavailable", "ignor", "retry",
		"optional", "fall", "problem", "caught", "not load", "not start", "disabled", "lost"} {
		if strings.Contains(l, w) {
			return true
		}
	}
	return false
}
