package beam

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/internal/logline"
)

// elixirAt finds "** (Type)" in a line, -1 for none. Exits that only carry another exception are none.
func elixirAt(l string) int {
	at := strings.Index(l, "** (")
	if at < 0 {
		return -1
	}
	typ, _, ok := strings.Cut(l[at+len("** ("):], ")")
	if !ok || typ == "" || typ[0] < 'A' || typ[0] > 'Z' || strings.HasPrefix(typ, "EXIT from") || strings.ContainsAny(typ, " #") {
		return -1
	}
	if typ == "EXIT" && !strings.Contains(l[at:], "time out") || typ == "Mix" {
		return -1
	}
	return at
}

// elixir parses an exception of Elixir: its message, and the calls below it.
func (p *parser) elixir(i, at int) (*classify.Failure, int) {
	l := p.lines[i]
	typ, m, _ := strings.Cut(l[at+len("** ("):], ")")
	f := &classify.Failure{Message: strings.TrimSpace(m), Fatal: at == 0}
	f.Type = typ
	if dot := strings.LastIndexByte(typ, '.'); dot > 0 {
		f.TypeModule, f.Type = typ[:dot], typ[dot+1:]
	}
	margin := len(l) - len(strings.TrimLeft(l, " "))
	var inner []classify.Frame
	next := i + 1
	for ; next < len(p.lines); next++ {
		k := p.lines[next]
		if fr, ok := elixirFrame(k); ok {
			inner = append(inner, fr)
			continue
		}
		t := strings.TrimSpace(k)
		if elixirAt(k) >= 0 || strings.HasPrefix(t, "Last message") || strings.HasPrefix(t, "State: ") || strings.HasPrefix(t, "=") && strings.Contains(t, "REPORT====") {
			break
		}
		// The message may go on: hints, arguments, attempted clauses.
		if len(inner) > 0 && (t == "" || len(k)-len(strings.TrimLeft(k, " ")) <= margin) {
			break
		}
		if len(inner) == 0 && next-i < 80 && (t == "" || k[0] == ' ') {
			if len(f.Message) < 4096 {
				f.Message += "\n" + t
			}
			continue
		}
		if len(inner) == 0 && !(k[0] == ' ') || logline.Entry(k) {
			break
		}
	}
	for j := len(inner) - 1; j >= 0; j-- {
		f.Frames = append(f.Frames, inner[j])
	}
	for len(f.Frames) > 0 && next < len(p.lines) && kept(p.lines[next]) {
		next++
	}
	message(f)
	if f.Kind == classify.KindMissingName && len(f.Frames) > 0 {
		f.Startup = starts(f.Frames)
	}
	return f, next
}

// kept reports what Elixir's logger tells of a process behind its stack. It is what the process knew, and no word of the program's.
func kept(l string) bool {
	for _, w := range [...]string{"Last message", "State: ", "Label: ", "Function: ", "    Args: ", "Client ", "Initial Call: ", "Ancestors: ", "Process Label: "} {
		if strings.HasPrefix(l, w) {
			return true
		}
	}
	return false
}

// elixirFrame parses "    (acme 1.0.0) lib/acme/agent.ex:3: Acme.Agent.prepare/1". A line without a place is the call that
// failed, and no frame.
func elixirFrame(l string) (classify.Frame, bool) {
	t := strings.TrimLeft(l, " ")
	if len(t) == len(l) {
		return classify.Frame{}, false
	}
	app := ""
	if strings.HasPrefix(t, "(") {
		var ok bool
		if app, t, ok = strings.Cut(t[1:], ") "); !ok || strings.Contains(app, ")") {
			return classify.Frame{}, false
		}
		app, _, _ = strings.Cut(app, " ")
	}
	file, rest, ok := strings.Cut(t, ": ")
	if !ok {
		return classify.Frame{}, false
	}
	path, line, ok := cutLine(file)
	if !ok {
		return classify.Frame{}, false
	}
	rest = strings.TrimSpace(rest)
	// "anonymous fn/1 in Acme.Agent.prepare/1"
	if at := strings.LastIndex(rest, " in "); at >= 0 {
		rest = rest[at+len(" in "):]
	}
	fr := classify.Frame{File: path, Line: line, Function: rest, Built: true}
	unit := rest
	if at := strings.IndexByte(unit, '('); at > 0 {
		unit = unit[:at]
	}
	if at := strings.LastIndexByte(unit, '/'); at > 0 {
		unit = unit[:at]
	}
	if strings.HasPrefix(unit, ":") {
		unit, _, _ = strings.Cut(unit, ".")
	} else if at := lastDot(unit); at > 0 {
		unit = unit[:at]
	}
	fr.Unit = moduleName(unit)
	fr.Origin = origin(fr.Unit)
	switch app {
	case "stdlib", "kernel", "erts", "elixir", "mix", "iex", "logger", "compiler", "eex", "ssl", "inets", "crypto", "public_key", "sasl", "mnesia":
		fr.Origin = classify.OriginRuntime
	case "ex_unit", "eunit", "common_test":
		fr.Origin = classify.OriginTest
	}
	return fr, true
}

// lastDot finds the dot in front of a function's name; quoted names may hold dots.
func lastDot(s string) int {
	if at := strings.Index(s, `."`); at > 0 {
		return at
	}
	return strings.LastIndexByte(s, '.')
}

// cutLine splits "lib/acme/agent.ex:3".
func cutLine(s string) (string, int, bool) {
	at := strings.LastIndexByte(s, ':')
	if at <= 0 || strings.ContainsAny(s, " \t") {
		return "", 0, false
	}
	n, ok := count(s[at+1:])
	return s[:at], n, ok
}

// message sets the kind of an exception of Elixir, by its type and message.
func message(f *classify.Failure) {
	first, rest, _ := strings.Cut(f.Message, "\n")
	switch f.Type {
	case "UndefinedFunctionError":
		name, ok := strings.CutPrefix(first, "function ")
		if !ok {
			return
		}
		name, why, _ := strings.Cut(name, " ")
		slash := strings.LastIndexByte(name, '/')
		dot := lastDot(name[:max(slash, 0)])
		if slash < 0 || dot < 0 {
			return
		}
		module, fun := moduleName(name[:dot]), name[dot+1:]
		if module == "nil" || module == "true" || module == "false" || module == "ok" {
			f.Kind = classify.KindSignature // a value where a module was meant
			return
		}
		undefined(f, module, fun)
		// The name is there with other arguments: the call is wrong, not the module.
		bare, _, _ := strings.Cut(fun, "/")
		if !strings.Contains(why, "is not available") && suggested(rest+"\n"+first, bare) {
			f.Kind = classify.KindSignature
		}
	case "FunctionClauseError", "BadArityError":
		f.Kind = classify.KindSignature
	case "TokenMissingError":
		syntax(f, first, classify.KindTorn)
	case "SyntaxError", "MismatchedDelimiterError":
		syntax(f, first, classify.KindSyntax)
	case "ArgumentError":
		if name, ok := strings.CutPrefix(first, "could not load module "); ok {
			name, why, _ := strings.Cut(name, " ")
			f.Module, f.Kind = moduleName(name), classify.KindMissingModule
			if strings.Contains(why, ":badfile") {
				f.Kind = classify.KindTorn
			}
		}
	case "ErlangError":
		if strings.Contains(first, ":bad_lib") {
			f.Kind = classify.KindBinding
			if n := len(f.Frames); n > 0 {
				f.Module = f.Frames[n-1].Unit
			}
		}
	case "EXIT":
		f.Listed = classify.Timeout
	case "EnvError":
		if u := strings.ToUpper(first); strings.Contains(u, "KEY") || strings.Contains(u, "TOKEN") || strings.Contains(u, "SECRET") {
			f.Listed = classify.Auth
		}
	case "AssertionError":
		if f.TypeModule == "ExUnit" {
			f.Listed = classify.TestFailure
		}
	case "TransportError", "HTTPError":
		f.Listed = classify.ProviderError
		if strings.Contains(first, "timeout") {
			f.Listed = classify.Timeout
		}
	}
}

// suggested reports that the message offers the same function with another number of arguments: "* patch/2".
func suggested(m, name string) bool {
	for line := range strings.SplitSeq(m, "\n") {
		t := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(t, "* "); ok && strings.HasPrefix(rest, name+"/") {
			return true
		}
		// "Did you mean one of: ..." of older versions, and "there is patch/2 in the same module".
		if strings.Contains(t, " "+name+"/") && (strings.Contains(t, "Did you mean") || strings.Contains(t, "there is")) {
			return true
		}
	}
	return false
}

// syntax is source that does not parse: "lib/acme/agent.ex:12:1: missing terminator: end".
func syntax(f *classify.Failure, m string, kind classify.Kind) {
	path, _, ok := strings.Cut(m, ":")
	if !ok || !strings.Contains(path, ".ex") {
		return
	}
	f.Kind, f.File, f.FileIsUnit = kind, path, true
}
