package classify

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify/text"
)

// fate is what the lines behind a failure say about it.
type fate uint8

const (
	stands         fate = iota // nothing speaks against the failure
	endedOtherwise             // a later statement says what ended the process
	wentOn                     // the process worked on
)

// statementWindow is how many lines from the end may hold the run's last statement.
const statementWindow = 16

// phrases maps what a run or its keeper says last to an entry of the never list. They are looked for in lower case, and
// each must be a statement by itself: a word that a healthy line could hold is no phrase.
var phrases = []struct {
	reason Reason
	words  []string
}{
	{OOM, []string{"out of memory", "outofmemoryerror", "oom-kill", "oomkilled", "oom killer", "result 'oom", "cannot allocate memory", "std::bad_alloc", "memory limit exceeded", "low on resource: memory", "failed to allocate memory", "systemd-oomd killed", "due to memory pressure"}},
	{DiskFull, []string{"no space left on device", "disk quota exceeded", "disk is full", "enospc", "low on resource: ephemeral-storage"}},
	{Timeout, []string{"time limit", "timed out", "deadline exceeded", "deadlineexceeded", "result 'timeout'", "walltime", "killed after ", "wall clock limit", "exceeded its budget of", "took too long", "exceeded its deadline", "deadline reached", "watchdog timeout", "worker timeout", "timeout exceeded", "timeout reached", "timeout expired"}},
	{Killed, []string{"cancelled by", "canceled by", "dismissed", "terminated by", "stopped by user", "interrupted by", "aborted by user", "killed by", "received sigterm", "received sigint", "received sigkill", "signal 15", "signal 9", "sigkill", "code=killed", "signal: killed", "signal: terminated", "shutdown requested", "stop requested", "stopped on request", "user requested", "terminating on request", "keyboardinterrupt", " killed  ", " terminated  ", "evicted"}},
	{RateLimit, []string{"rate limit", "rate_limit", "ratelimit", "too many requests", "error code: 429", "http 429", "status 429", "insufficient_quota", "quota exceeded", "usage limit", "throttl", "api error: 429", "(429)"}},
	{Auth, []string{"invalid api key", "invalid x-api-key", "api_key is not set", "api key is not set", "api key not set", "no api key", "missing api key", "authentication_error", "authentication failed", "unauthorized", "error code: 401", "api error: 401", "api error: 403", "(401)", "http 401", "status 401", "error code: 403", "token expired", "token has expired", "not logged in", "credentials have expired", "permission_error"}},
	{ProviderError, []string{"overloaded", "api error: 4", "api error: 5", "error code: 5", "http 500", "http 502", "http 503", "http 529", "status 503", "service unavailable", "bad gateway", "internal server error", "context_length_exceeded", "prompt is too long", "context window", "maximum context length", "model is overloaded", "stream disconnected before", "api error: connection"}},
	{DirectiveError, []string{"unknown directive", "invalid directive", "template error"}},
}

// terminalReason is the never reason that a line states, empty for none.
func terminalReason(line string) Reason {
	// A shell prints these two words alone when its child was killed.
	l := strings.ToLower(line)
	if strings.TrimSpace(l) == "killed" || strings.TrimSpace(l) == "terminated" || strings.HasPrefix(l, "terminated:") {
		return Killed
	}
	for _, p := range phrases {
		for _, w := range p.words {
			if strings.Contains(l, w) {
				return p.reason
			}
		}
	}
	switch {
	case testSummary(l), testCommand(l) && !says(l, "tool", "command", "hook", "step"):
		return TestFailure
	case toolStatement(l):
		return ToolFailure
	case testCommand(l):
		return TestFailure
	}
	return ""
}

// testSummary reports a line with which a test runner ends.
func testSummary(l string) bool {
	t := strings.Trim(l, "=! ")
	switch {
	case strings.HasPrefix(t, "interrupted: ") && strings.Contains(t, " during collection"):
		return true
	case strings.HasPrefix(t, "short test summary info"), strings.HasPrefix(t, "importerror while loading conftest"):
		return true
	case strings.HasPrefix(t, "failed (errors="), strings.HasPrefix(t, "failed (failures="), strings.HasPrefix(t, "failed (unexpected successes="):
		return true
	case strings.HasPrefix(t, "ran ") && strings.Contains(t, " test") && strings.Contains(t, " in "):
		return true
	case strings.HasPrefix(t, "***test failed***"), strings.HasPrefix(t, "internalerror>"), strings.HasPrefix(t, "nox > session") && strings.Contains(t, "failed"):
		return true
	case strings.HasPrefix(t, "no tests ran in "), strings.HasPrefix(t, "evaluation failed :("):
		return true
	case strings.HasPrefix(t, "failed!  - failed:"), t == "result: fail":
		return true
	case strings.HasPrefix(t, "--- fail:"), strings.HasPrefix(t, "test result: failed"), strings.HasPrefix(t, "fail\t"):
		return true
	}
	if word, n, ok := counted(t); ok && word == "fail" && n != "0" {
		return true
	}
	if summed(t) {
		return true
	}
	// "1 failed, 3 passed in 0.37s", "2 errors in 1.20s (0:00:01)"
	if at := strings.LastIndex(t, " in "); at > 0 && t[0] >= '0' && t[0] <= '9' {
		count := t[:at]
		if strings.Contains(count, " failed") || strings.Contains(count, " error") {
			return strings.Contains(t[at:], "s")
		}
	}
	return false
}

// sums are words of the lines in which test runners sum up, in lower case.
var sums = [...]string{" assertions", " example, ", " examples, ", "tests completed, ", " successes / ", " failing"}

// summed reports such a line that counts a failure: "1 runs, 0 assertions, 0 failures, 1 errors, 0 skips".
func summed(t string) bool {
	if !says(t, sums[:]...) || t[0] != 't' && (t[0] < '0' || t[0] > '9') {
		return false
	}
	for part := range strings.FieldsFuncSeq(t, func(r rune) bool { return r == ',' || r == '/' }) {
		if says(part, "fail", "error") && strings.ContainsAny(part, "123456789") {
			return true
		}
	}
	return false
}

// counted reads one of the counts that a test runner prints, in lower case: "# fail 1".
func counted(t string) (word, n string, ok bool) {
	for _, mark := range [...]string{"# ", "\u2139 "} {
		rest, found := strings.CutPrefix(t, mark)
		if !found {
			continue
		}
		word, n, ok = strings.Cut(rest, " ")
		return word, n, ok && strings.Trim(n, "0123456789.") == "" && n != ""
	}
	return "", "", false
}

// toolStatement reports a line that says that a tool ended badly.
func toolStatement(l string) bool {
	if strings.Contains(l, "failed with exit code") || strings.Contains(l, "tool call failed") || strings.Contains(l, "executable file not found in $path") {
		return true
	}
	if !strings.Contains(l, "tool") && !strings.Contains(l, "command") && !strings.Contains(l, "hook") {
		return false
	}
	return strings.Contains(l, "exited with") || strings.Contains(l, "failed with exit") || strings.Contains(l, "exit status") ||
		strings.Contains(l, "exit code") || strings.Contains(l, "tool failed") || strings.Contains(l, "returned non-zero") || exited(l) ||
		strings.Contains(l, "tool step failed")
}

// exited reports "exited 127": the word, and a status right behind it.
func exited(l string) bool {
	_, rest, ok := strings.Cut(l, " exited ")
	return ok && rest != "" && rest[0] >= '1' && rest[0] <= '9'
}

// testPrograms are the commands by which tests are run.
var testPrograms = [...]string{"node --test", "npm test", "npm run test", "yarn test", "pnpm test", "go test", "cargo test", "pytest", "vitest", "jest ", "jest`", "mocha ", "mocha`",
	"mvn test", "gradle test", "gradlew test", "rspec", "phpunit", "mix test", "dotnet test", "prove -", "bun test", "deno test", "ctest", "rails test", "rake test", "make test", "make check"}

// testCommand reports a line that says that the run of a test program failed.
func testCommand(l string) bool {
	if !strings.Contains(l, "fail") && !exited(l) {
		return false
	}
	for _, w := range testPrograms {
		if strings.Contains(l, w) {
			return true
		}
	}
	return false
}

// after reads the lines behind a failure, and says which of them stated another end.
func (c *Classifier) after(log *text.Log, from int, fatal bool) (fate, Reason, int) {
	result := stands
	ear := lineEar{filter: c.ears.lines}
	entries := 0
	// Backwards, since the last word counts: a run that timed out after it had reported a failure died of the time-out.
	for i := len(log.Lines) - 1; i >= from; i-- {
		l := strings.TrimSpace(log.Lines[i])
		// Another service in the same log goes on living; that says nothing about this one.
		if l == "" || log.Ignored(i) || log.Source(i) != log.Source(from-1) {
			continue
		}
		said := ear.hear(l)
		if i >= len(log.Lines)-statementWindow {
			if r := said.terminalReason(l); r != "" {
				return endedOtherwise, r, i
			}
		}
		switch said.active(l) {
		case working:
			result = wentOn
		case talking:
			// Behind a failure that nothing caught one or two entries are a farewell, more are a log that goes on.
			if entries++; entries > 2 || !fatal {
				result = wentOn
			}
		}
	}
	return result, "", 0
}

// bearing is what a line says about the process that prints it.
type bearing uint8

const (
	neutral bearing = iota // nothing, or that it goes down
	talking                // an entry of a level at which no process dies
	working                // that it is still at work
)

// active reads what a line says about the process that prints it.
func active(line string) bearing {
	l := strings.ToLower(line)
	for _, w := range downs {
		if strings.Contains(l, w) {
			return neutral
		}
	}
	if _, _, ok := counted(l); ok {
		return neutral
	}
	for _, w := range works {
		if !strings.Contains(l, w) {
			continue
		}
		if subordinate(l) {
			return neutral
		}
		return working
	}
	if leveled(line) {
		return talking
	}
	return neutral
}

// subordinate reports a line, in lower case, that is no sentence by itself but tells what the failure above it came into, as
// notes on an exception do: "while preparing slot 4". It does not say that the work went on.
func subordinate(l string) bool {
	word, _, _ := strings.Cut(l, " ")
	return (word == "while" || word == "when" || word == "during" || word == "raised") && !survivedWords(l)
}

var (
	// downs are words of an end. They come first: "INFO worker exiting" is an entry of a level at which no process dies, and
	// one dies all the same.
	downs = []string{"exit", "shut", "stop", "terminat", "fail", "died", "dead", "abort", "crash", "giving up",
		"gave up", "clos", "clean", "bye", "finish", "ended", "unclean", "fatal", "critical", "leaked", "reason:", "kill",
		"sentry", "restart", "downstream tasks", ".service", "container", "waiting up to", "press ctrl", "uncaught", "unhandled", "not expected", "consumed ", "error"}
	// works are words of work that goes on.
	works = []string{"continuing", "carrying on", "going on", "resum", "retry", "trying again", "again in", "turn ",
		"waiting", "processing", "ready", "listening", "connected", "received", "using ", "loaded", "fallback", "falling back",
		"skipp", "recovered", "still ", "phase=", "slot acquired", "queued", "heartbeat", "step ", "preparing", "starting", "started",
		"running", "polling", "sleeping", "sending", "next ", "stage ", " done", "completed"}
)

// leveled reports a log line of a level at which no process dies.
func leveled(line string) bool {
	head := line[:min(len(line), 80)]
	for _, w := range [...]string{"INFO", "DEBUG", "WARN", "[info]", "[debug]", "[warn", "level=info", "level=debug", "level=warn"} {
		if strings.Contains(head, w) {
			return true
		}
	}
	return false
}

// terminal judges a log without a deciding exception: by the run's last statement, else not at all.
func (c *Classifier) terminal(in Input, t *course, s *scope, survived bool) Verdict {
	log := t.log
	t.settle(ByNothing, 0, 0)
	v := Verdict{Disposition: Unknown, Family: NoFamily, Reason: NoUpdateSignature}
	seen, at := 0, 0
	last, dress := "", ""
	ear := lineEar{filter: c.ears.lines}
	// Keepers add lines of their own behind the run's last one, so lines that only say that something ended are passed
	// over. A line of ordinary work ends the search: what stands before it was not the end.
	for i := len(log.Lines) - 1; i >= 0 && seen < statementWindow; i-- {
		l := strings.TrimSpace(log.Lines[i])
		if l == "" || log.Ignored(i) {
			continue
		}
		seen++
		said := ear.hear(l)
		if r := said.terminalReason(l); r != "" {
			v.Disposition, v.Reason = Never, r
			t.settle(ByStatement, i, i+1)
			return v
		}
		if last == "" {
			at = i
			if last = l; i == len(log.Lines)-1 {
				dress = log.Dress()
			}
		}
		if seen > 1 && said.active(l) != neutral {
			break
		}
	}
	switch {
	case crashSignal(in.Exit):
		v.Reason, v.Family = CrashSignal, StaleBinding
		t.settle(ByExit, 0, 0)
		return v
	case last == "":
		v.Reason = NoText
		return v
	case survived:
		v.Reason = SurvivedFailure
		return v
	}
	if below(log, at) {
		return v
	}
	got := c.statement(last, dress, s, v)
	if got.Reason != NoUpdateSignature {
		t.settle(ByStatement, at, at+1)
	}
	return got
}

// crashSignal reports an exit by a signal that the process itself raised.
func crashSignal(e Exit) bool {
	switch strings.ToUpper(e.Signal) {
	case "SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS":
		return true
	}
	switch e.Code {
	case 139, 138, 135, 134, 132, 136:
		return e.Signal == ""
	}
	return false
}

// misuses are how programs refuse their arguments.
var misuses = [...]string{"unrecognized arguments", "unrecognised arguments", "no such option", "unknown option", "unrecognized option", "invalid choice", "unknown command", "the following arguments are required"}

// statement judges the one line with which a program ended itself: "prog: error: why". The name may have been taken off as
// dress, if the log is all the program's.
func (c *Classifier) statement(line, dress string, s *scope, v Verdict) Verdict {
	if repeated(line) {
		return v
	}
	l := strings.ToLower(line)
	for _, w := range misuses {
		if strings.Contains(l, w) {
			v.Reason = CLIMismatch
			return v
		}
	}
	// Only the product itself can say that its data or its wire does not fit. The same words from a tool are the tool's
	// business.
	prog, rest, ok := speaker(line, s)
	// A document of the user's that somebody could not read: who says so does not matter.
	if !ok && s.foreignData(line) && says(l, "error in ", "error: ", "invalid ", "cannot parse", "cannot read", "failed to parse", "parse error", "syntax error") && parsed(l) {
		return never(v, WorkspaceError)
	}
	if !ok {
		prog, rest, ok = dressed(dress, line, s)
	}
	if !ok || leveled(line) || survivedWords(l) {
		return v
	}
	root, more := s.pattern(prog)
	if root < 0 || more {
		return v
	}
	// A lock file is a package manager's, whoever reports that its versions differ.
	if says(l, "lockfile", "lock file", "package-lock") {
		return v
	}
	if s.foreignData(rest) {
		r := WorkspaceError
		if says(l, "plugin", "import", "module", "extension") {
			r = WorkspaceImport
		}
		return never(v, r)
	}
	j := &judge{scope: s, log: &evidence{}}
	if j.foreignPlugin(rest) {
		return never(v, ThirdPartyImport)
	}
	if got, ok := c.quoted(rest, s, true); ok {
		return got
	}
	f := &Failure{Message: rest}
	kind, module, broot := j.wording(f, seat{managed, prog, root, -1})
	switch kind {
	case KindBinding:
		return j.skew(v, StaleBinding, module, broot, "")
	case KindWire:
		return j.skew(v, WireSchema, prog, root, "")
	case KindNewerData:
		return j.skew(v, DataFormat, prog, root, "")
	case KindUnclearData:
		v.Module = prog
		return unknown(v, DataFormat, SchemaDriftDirectionUnclear)
	case KindUnclearWire:
		v.Module = prog
		return unknown(v, WireSchema, SchemaDriftDirectionUnclear)
	}
	if r := neverByMessage(f, s); r != "" {
		return never(v, r)
	}
	if !final(l) {
		return v
	}
	if got, ok := c.quoted(rest, s, false); ok {
		return got
	}
	return v
}

// quoted judges the failure of a runtime whose message a line repeats. sure leaves only those that the line alone proves to be
// the end.
func (c *Classifier) quoted(line string, s *scope, sure bool) (Verdict, bool) {
	for _, r := range c.runtimes {
		reader, ok := r.(StatementReader)
		if !ok {
			continue
		}
		if f := reader.Statement(line); f != nil && (f.Fatal || !sure) {
			s.read(r)
			f.Startup = true // the program itself says what it lacked
			v := (&judge{scope: s, log: &evidence{}}).single(f, true)
			v.Runtime = r.Name()
			return v, true
		}
	}
	return Verdict{}, false
}

// parsed reports a line, in lower case, about a document that a parser refused.
func parsed(l string) bool {
	return says(l, " json", "yaml", "toml", "unexpected", "expected", "unknown field", "unknown key", "at position ", " line ")
}

// foreignPlugin reports a message about a plugin that lies in no declared folder.
func (j *judge) foreignPlugin(m string) bool {
	_, rest, ok := strings.Cut(m, "plugin ")
	if opened, after, found := strings.Cut(m, "plugin.Open("); found && (!ok || len(opened) < len(m)-len(rest)) {
		rest, ok = after, true
	}
	if !ok {
		return false
	}
	end := " "
	if rest != "" && strings.IndexByte("'\"`", rest[0]) >= 0 {
		rest, end = rest[1:], rest[:1]
	}
	path, _, _ := strings.Cut(rest, end)
	path = cleanPath(strings.TrimRight(path, "'\"`:,)"))
	// A blank in the path of a root would cut it off.
	for _, d := range j.dirs {
		if strings.HasPrefix(rest, d.path+"/") {
			return false
		}
	}
	if !absolute(path) {
		return false
	}
	if _, r := j.binding(path); r >= 0 {
		return false
	}
	_, claimed := j.claim(path)
	return !claimed
}

// final reports a line, in lower case, that says that the program cannot go on.
func final(l string) bool {
	return says(l, "fatal", "critical", ": error:", "cannot start", "could not start", "can't start", "failed to start", "unable to start", "giving up",
		"aborting", "exiting", "cannot continue", "startup failed", "boot failed")
}

// speaker finds the managed program or logger that a line names as its author, and what it says.
func speaker(line string, s *scope) (prog, rest string, ok bool) {
	// "2026-11-30 12:00:00,1 CRITICAL acme.store: why", "acme: error: why": the name is one of the first words.
	l := line
	for range 6 {
		at := strings.IndexAny(l, ": \t")
		if at < 0 {
			return "", "", false
		}
		word := strings.Trim(l[:at], "[]()")
		if eq := strings.IndexByte(word, '='); eq > 0 { // logger=acme, msg="acme
			word = strings.Trim(word[eq+1:], `"`)
		}
		rest = strings.TrimLeft(l[at:], ": \t")
		for _, name := range [...]string{word, strings.ReplaceAll(word, "-", "_")} {
			if r, _ := s.pattern(name); r >= 0 {
				return unitOf(name), rest, true
			}
		}
		l = rest
	}
	return "", "", false
}

// dressed finds the managed program in what was taken off the front of a line: one of its last words, without a process
// number.
func dressed(dress, line string, s *scope) (prog, rest string, ok bool) {
	words := strings.Fields(dress)
	for i := len(words) - 1; i >= 0 && i >= len(words)-3; i-- {
		word := strings.Trim(words[i], "[]():|")
		if at := strings.IndexByte(word, '['); at > 0 {
			word = word[:at]
		}
		if r, _ := s.pattern(word); r >= 0 {
			return unitOf(word), line, true
		}
	}
	return "", "", false
}

// unitOf drops the type from the printed name of an exception: "pkg.mod.StateError" speaks for "pkg.mod".
func unitOf(name string) string {
	if at := strings.LastIndexByte(name, '.'); at > 0 && at+1 < len(name) && name[at+1] >= 'A' && name[at+1] <= 'Z' && (strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Exception") || strings.HasSuffix(name, "Mismatch")) {
		return name[:at]
	}
	return name
}

// survivedWords reports, in lower case, the words of a failure that was handled.
func survivedWords(l string) bool {
	for _, w := range [...]string{"going on without", "continuing", "carrying on", "will retry", "retrying", "trying again",
		"try again", "ignored", "ignoring", "skipping", "skipped", "falling back", "fallback", "using default", "optional",
		"non-fatal", "nonfatal", "not fatal", "degraded", "without it", "disabled", "survived", "recovered"} {
		if strings.Contains(l, w) {
			return true
		}
	}
	return false
}
