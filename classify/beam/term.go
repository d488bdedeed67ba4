package beam

import (
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// maxTerm bounds a term that is printed over several lines.
const maxTerm = 64 << 10

// elements are the top-level elements of a printed tuple or list that s begins with, and whether it is whole. Elements
// are not checked: what a term may hold is the virtual machine's business.
func elements(s string) ([]string, bool) {
	if s == "" || s[0] != '{' && s[0] != '[' {
		return nil, false
	}
	var out []string
	depth, start := 0, 1
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\'':
			// The quoted part, with its escapes.
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '$': // a character
			i++
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
			if depth == 0 {
				if last := strings.TrimSpace(s[start:i]); last != "" {
					out = append(out, last)
				}
				return out, true
			}
		case ',':
			if depth == 1 {
				out = append(out, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	return out, false
}

// The reasons of exits that carry a stack.
var reasons = []string{"undef", "function_clause", "badarg", "badarith", "if_clause", "noproc", "system_limit", "notsup", "timeout"}

// raised is a reason with its stack, the innermost call first.
type raised struct {
	reason string
	stack  []call
}

// call is one entry of a stack.
type call struct {
	module, function string
	arity            int // -1 where the term is cut
	file             string
	line             int
}

// findRaised finds the first reason with a stack inside a printed term.
func findRaised(s string) (raised, bool) {
	// A few look like one and are none; more are no term of the machine.
	for at, tries := 0, 0; at < len(s) && tries < 16; {
		next := strings.IndexByte(s[at:], '{')
		if next < 0 {
			break
		}
		at += next
		rest := s[at+1:]
		simple := ""
		for _, r := range reasons {
			if strings.HasPrefix(rest, r+",[{") || strings.HasPrefix(rest, r+",\n") || strings.HasPrefix(rest, r+", [{") {
				simple = r
			}
		}
		if simple != "" || compound(rest) {
			tries++
			parts, _ := elements(s[at:])
			if len(parts) >= 2 {
				if st := stackOf(parts[1]); len(st) > 0 {
					return raised{parts[0], st}, true
				}
			}
		}
		at++
	}
	return raised{}, false
}

// compound reports a reason that is a tuple: "{badmatch,...}".
func compound(s string) bool {
	for _, r := range [...]string{"badmatch", "case_clause", "try_clause", "nocatch", "badfun", "badarity", "badkey", "badmap", "badrecord", "else_clause"} {
		if strings.HasPrefix(s, "{"+r+",") {
			return true
		}
	}
	return false
}

// stackOf reads a printed stack. An entry that is no call ends it.
func stackOf(s string) []call {
	list, _ := elements(s)
	var out []call
	for _, e := range list {
		parts, _ := elements(e)
		if len(parts) < 3 || !atom(parts[0]) || !atom(parts[1]) {
			break
		}
		c := call{module: moduleName(parts[0]), function: strings.Trim(parts[1], "'"), arity: -1}
		if n, err := strconv.Atoi(parts[2]); err == nil {
			c.arity = n
		} else if args, whole := elements(parts[2]); whole && !strings.Contains(parts[2], "|...") {
			c.arity = len(args)
		} else if strings.HasPrefix(parts[2], `"`) {
			c.arity = len(strings.Trim(parts[2], `"`)) // a list of small numbers looks like text
		}
		if len(parts) > 3 {
			props, _ := elements(parts[3])
			for _, pr := range props {
				kv, _ := elements(pr)
				if len(kv) == 2 && kv[0] == "file" {
					c.file = strings.Trim(kv[1], `"`)
				} else if len(kv) == 2 && kv[0] == "line" {
					c.line, _ = strconv.Atoi(kv[1])
				}
			}
		}
		out = append(out, c)
	}
	return out
}

// atom reports a printed atom.
func atom(s string) bool {
	if s == "" {
		return false
	}
	return s[0] == '\'' || s[0] >= 'a' && s[0] <= 'z'
}

// symbol is "name/arity".
func (c call) symbol() string {
	if c.arity < 0 {
		return c.function
	}
	return c.function + "/" + strconv.Itoa(c.arity)
}

// frames turns a stack into frames, the outermost first.
func frames(stack []call) []classify.Frame {
	out := make([]classify.Frame, 0, len(stack))
	for i := len(stack) - 1; i >= 0; i-- {
		c := stack[i]
		out = append(out, classify.Frame{File: c.file, Line: c.line, Function: c.symbol(), Unit: c.module, Origin: origin(c.module), Built: true})
	}
	return out
}

// The modules of OTP and Elixir that stand on the stacks of every program.
var platform = map[string]bool{
	"init": true, "erl_eval": true, "gen_server": true, "gen_statem": true, "gen_event": true, "gen_fsm": true, "gen": true, "proc_lib": true, "supervisor": true,
	"supervisor_bridge": true, "application": true, "application_master": true, "application_controller": true, "lists": true, "maps": true, "code": true, "code_server": true,
	"error_handler": true, "escript": true, "timer": true, "sys": true, "ets": true, "dets": true, "mnesia": true, "file": true, "io": true, "io_lib": true, "erlang": true,
	"erts_internal": true, "erl_internal": true, "shell": true, "c": true, "rpc": true, "erpc": true, "queue": true, "dict": true, "string": true, "binary": true, "unicode": true, "re": true,
	"prim_file": true, "prim_eval": true, "gen_tcp": true, "gen_udp": true, "inet": true, "ssl": true, "httpc": true, "logger": true, "os": true, "global": true, "user": true, "zlib": true,

	"Enum": true, "Enumerable": true, "GenServer": true, "Task": true, "Supervisor": true, "DynamicSupervisor": true, "Agent": true, "Stream": true, "Kernel": true, "Code": true, "Module": true,
	"Application": true, "String": true, "Map": true, "Keyword": true, "List": true, "File": true, "System": true, "Process": true, "Registry": true, "Mix": true, "IEx": true, "Access": true,
	"Protocol": true, "Config": true, "Logger": true,
}

// origin tells OTP and Elixir, test runners and installed code apart.
func origin(module string) classify.Origin {
	top, _, _ := strings.Cut(module, ".")
	switch {
	case top == "ExUnit", strings.HasPrefix(module, "eunit"), strings.HasPrefix(module, "test_server"), strings.HasPrefix(module, "ct_"):
		return classify.OriginTest
	case platform[top], strings.HasPrefix(module, "elixir_"), module == "elixir":
		return classify.OriginRuntime
	}
	return classify.OriginPackage
}

// starts reports a stack of nothing but what starts and serves processes: the machine itself has called the program.
func starts(fs []classify.Frame) bool {
	for _, f := range fs {
		if f.Origin != classify.OriginRuntime {
			return false
		}
	}
	for _, f := range fs {
		switch f.Unit {
		case "init", "application_master", "supervisor", "gen_server", "gen_statem", "gen_event", "escript", "GenServer", "Supervisor":
			return true
		}
	}
	return false
}
