package beam

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/internal/logline"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// parser finds the failures in the lines of a log.
type parser struct {
	log   *text.Log
	lines []string
	// refused are the modules whose loading failed before, with the reason.
	refused map[string]*classify.Failure
}

// last returns the last failure that was not survived, else the last one that was, else nil.
func (p *parser) last() *classify.Failure {
	var best *classify.Failure
	for i := 0; i < len(p.lines); {
		f, next := p.at(i)
		if f == nil {
			i = max(next, i+1)
			continue
		}
		f.First, f.Line, f.Last = i, i, max(next-1, i)
		if best != nil && !best.Survived && f.Fatal && echoes(f) && p.reports(best.Last+1, i) {
			// The machine ends, and why stands in the report before it.
			best.Last, best.Line, best.Fatal = f.Last, f.Last, true
			i = max(next, i+1)
			continue
		}
		if len(f.Frames) > 0 {
			f.Line = f.Last
		}
		p.introduced(f)
		// A call into a module that was refused before says less than the refusal.
		if r := p.refused[f.Module]; r != nil && f.Kind == classify.KindMissingName && f.Module != "" {
			late := f
			f = &classify.Failure{}
			*f = *r
			f.Frames, f.First, f.Line, f.Last, f.Survived, f.Listed = late.Frames, late.First, late.Line, late.Last, late.Survived, late.Listed
		}
		switch {
		case best == nil, best.Survived, !f.Survived:
			best = f
		default:
			p.log.Ignore(f.First, f.Last+1)
		}
		i = max(next, i+1)
	}
	return best
}

// reports says that the lines [from, to) are parts of reports, and none is a program's own.
func (p *parser) reports(from, to int) bool {
	for _, l := range p.lines[from:to] {
		if l != "" && l[0] != ' ' && l[0] != '\t' && !(l[0] == '=' && strings.Contains(l, " REPORT====")) {
			return false
		}
	}
	return true
}

// echoes reports the machine's last word on an application that ended, where it does not say why.
func echoes(f *classify.Failure) bool {
	return f.Kind == classify.KindOther && f.Listed == "" && len(f.Frames) == 0 &&
		(strings.Contains(f.Message, "{application_terminated,") || strings.Contains(f.Message, "{application_start_failure,"))
}

// introduced reads the entry that a failure stands in, or the one in front of it.
func (p *parser) introduced(f *classify.Failure) {
	if at := strings.Index(p.lines[f.First], "** ("); at > 0 && logline.Handled(p.lines[f.First][:at]) {
		f.Survived = true
	}
	for i, seen := f.First-1, 0; i >= 0 && seen < 3; i-- {
		t := strings.TrimSpace(p.lines[i])
		if t == "" {
			continue
		}
		seen++
		switch {
		case logline.Quoted(t):
			f.Listed = classify.ToolFailure
			return
		case seen <= 2 && numbered(t) && strings.Contains(t, ") test "):
			f.Listed = classify.TestFailure // "  1) test dips the pen (PenTest)"
			return
		case seen == 1 && !f.Fatal && logline.Introduces(t):
			f.Survived = true
			return
		}
	}
}

func numbered(t string) bool { return t != "" && t[0] >= '1' && t[0] <= '9' }

// at parses the failure that begins at line i, if one does, and returns the line behind it.
func (p *parser) at(i int) (*classify.Failure, int) {
	l := p.lines[i]
	t := strings.TrimSpace(l)
	switch {
	case t == "":
		return nil, i + 1
	case strings.Contains(l, "_alloc: Cannot allocate ") && strings.Contains(l, " bytes of memory"):
		return &classify.Failure{Message: t, Listed: classify.OOM, Fatal: true}, i + 1
	case strings.Contains(l, "Error loading module "):
		return p.loading(i)
	case strings.HasPrefix(t, "Loading of ") && strings.Contains(t, " failed: "):
		return p.loadFailed(i)
	case strings.Contains(l, "The on_load function for module "):
		return p.onLoad(i)
	case strings.Contains(l, "exception error: ") || strings.Contains(l, "exception exit: ") || strings.Contains(l, "exception throw: "):
		return p.report(i)
	}
	if at := elixirAt(l); at >= 0 {
		return p.elixir(i, at)
	}
	if strings.Contains(l, "init terminating in ") || strings.Contains(l, "terminating during boot") || strings.Contains(l, "pid terminated (") {
		return p.boot(i)
	}
	if strings.Contains(l, " with exit value:") || strings.HasPrefix(t, "** Reason for termination") || strings.HasPrefix(t, "** When handler") {
		return p.process(i)
	}
	return nil, i + 1
}

// joined is the text from column at of line i on, up to the line that closes what is open.
func (p *parser) joined(i, at int) (string, int) {
	var b strings.Builder
	depth := 0
	for first := i; i < len(p.lines) && b.Len() < maxTerm && i-first < 400; i++ {
		l := p.lines[i]
		if i == first {
			l = l[at:]
		} else {
			l = strings.TrimPrefix(strings.TrimSpace(l), "** ")
		}
		b.WriteString(l)
		depth += strings.Count(l, "{") + strings.Count(l, "[") - strings.Count(l, "}") - strings.Count(l, "]")
		if depth <= 0 {
			return b.String(), i + 1
		}
	}
	return b.String(), i
}

// boot parses the term with which the machine ends.
func (p *parser) boot(i int) (*classify.Failure, int) {
	s, next := p.joined(i, 0)
	if strings.Contains(s, `("{`) { // the term as a text, with its quotes escaped
		s = strings.ReplaceAll(s, `\"`, `"`)
	}
	// init says the same twice, the second time with the deeper parts left out.
	for next < len(p.lines) && (strings.HasPrefix(p.lines[next], "init terminating in ") || strings.HasPrefix(p.lines[next], "Runtime terminating ")) {
		_, next = p.joined(next, 0)
	}
	for next < len(p.lines) && (p.lines[next] == "" || strings.HasPrefix(p.lines[next], "Crash dump is being written to")) {
		next++
	}
	f := &classify.Failure{Message: s, Fatal: true}
	if r, ok := findRaised(s); ok {
		raise(f, r)
		return f, next
	}
	if _, rest, ok := strings.Cut(s, "{load_failed,"); ok {
		if mods, _ := elements(rest); len(mods) > 0 && atom(mods[0]) {
			f.Type, f.Kind, f.Module, f.Startup = "load_failed", classify.KindMissingModule, moduleName(mods[0]), true
			if r := p.refused[f.Module]; r != nil {
				g := *r
				return &g, next
			}
		}
	}
	return f, next
}

// process parses the reason with which a process ended.
func (p *parser) process(i int) (*classify.Failure, int) {
	from, at := i, 0
	// The term stands in the same line or in the next one.
	if c := strings.IndexByte(p.lines[i], '{'); c >= 0 {
		at = c
	} else if i+1 < len(p.lines) {
		from, at = i+1, len(p.lines[i+1])-len(strings.TrimLeft(p.lines[i+1], "* \t"))
	}
	s, next := p.joined(from, at)
	// "** Reason for termination = error:undef", "** Stacktrace =", "**  [...]"
	if _, reason, ok := strings.Cut(p.lines[i], "= error:"); ok && from == i+1 && strings.Contains(p.lines[from], "Stacktrace") && from+1 < len(p.lines) {
		l := p.lines[from+1]
		st, after := p.joined(from+1, len(l)-len(strings.TrimLeft(l, "* \t")))
		s, next = "{"+strings.TrimSpace(reason)+","+st+"}", after
	}
	r, ok := findRaised(s)
	if !ok {
		return nil, i + 1
	}
	f := &classify.Failure{Message: s}
	raise(f, r)
	return f, next
}

// raise sets what a reason with its stack says.
func raise(f *classify.Failure, r raised) {
	f.Type = strings.Trim(r.reason, "{")
	f.Type, _, _ = strings.Cut(f.Type, ",")
	stack := r.stack
	switch f.Type {
	case "undef":
		// The first call is the one that is not there.
		undefined(f, stack[0].module, stack[0].symbol())
		stack = stack[1:]
	case "function_clause", "badarity":
		f.Kind = classify.KindSignature
	case "timeout":
		f.Listed = classify.Timeout
	}
	f.Frames = frames(stack)
	f.Startup = f.Kind == classify.KindMissingName && starts(f.Frames)
}

// undefined is a function that its module does not have, or a module that is not there.
func undefined(f *classify.Failure, module, symbol string) {
	f.Kind, f.Module, f.Symbol = classify.KindMissingName, module, symbol
	f.Standard = origin(module) == classify.OriginRuntime
}

// report parses "exception error: undefined function acme:run/1" with the calls below it, as escript and crash reports
// print it.
func (p *parser) report(i int) (*classify.Failure, int) {
	l := p.lines[i]
	_, m, _ := strings.Cut(l, "exception ")
	_, m, _ = strings.Cut(m, ": ")
	f := &classify.Failure{Message: m, Fatal: strings.HasPrefix(l, "escript: ")}
	next := i + 1
	var stack []call
	for ; next < len(p.lines); next++ {
		t := strings.TrimSpace(p.lines[next])
		rest, ok := strings.CutPrefix(t, "in function ")
		if !ok {
			rest, ok = strings.CutPrefix(t, "in call from ")
		}
		if !ok {
			if len(stack) > 0 || t == "" || next-i > 12 || !strings.HasPrefix(p.lines[next], " ") {
				break
			}
			continue
		}
		stack = append(stack, calledAt(strings.TrimSpace(rest)))
	}
	if name, ok := strings.CutPrefix(m, "undefined function "); ok {
		f.Type = "undef"
		module, symbol, _ := strings.Cut(name, ":")
		undefined(f, moduleName(module), strings.TrimSpace(symbol))
	} else if strings.HasPrefix(m, "no function clause matching ") {
		f.Type, f.Kind = "function_clause", classify.KindSignature
	}
	f.Frames = frames(stack)
	if f.Kind == classify.KindMissingName {
		f.Startup = starts(f.Frames)
	}
	return f, p.crashReport(i, next)
}

// crashReport is the line behind the crash report whose exception is at line i, next where it stands in none. What a report
// lists of the process ("status: running") is no word of the program's.
func (p *parser) crashReport(i, next int) int {
	in := false
	for k := i - 1; k >= 0 && k >= i-8 && !in; k-- {
		in = strings.TrimSpace(p.lines[k]) == "crasher:"
	}
	for in && next < len(p.lines) && strings.HasPrefix(p.lines[next], "    ") {
		next++
	}
	return next
}

// calledAt reads "acme_agent:main/1 (src/acme_agent.erl, line 3)".
func calledAt(s string) call {
	name, place, _ := strings.Cut(s, " (")
	module, fun, _ := strings.Cut(name, ":")
	fun, arity, _ := strings.Cut(fun, "/")
	c := call{module: moduleName(module), function: fun, arity: -1}
	if n, ok := count(arity); ok {
		c.arity = n
	}
	file, line, _ := strings.Cut(strings.TrimSuffix(place, ")"), ", line ")
	c.file = file
	c.line, _ = count(line)
	return c
}

func count(s string) (int, bool) {
	if s == "" || len(s) > 8 {
		return 0, false
	}
	n := 0
	for _, d := range []byte(s) {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int(d-'0')
	}
	return n, true
}
