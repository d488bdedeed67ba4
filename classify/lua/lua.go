// Package lua reads the failure texts of the Lua interpreters, 5.1 to 5.4 and LuaJIT: modules that are gone, sources and
// native modules that do not load. Call [New] and give the result to [classify.New].
//
// It refuses to take the list of places that were searched for anything but what it is: managed paths in it prove nothing.
// It promises that parsing is linear in the text it is given.
package lua

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is the Lua runtime. It has no state.
type Runtime struct{}

// New returns the Lua runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime   = Runtime{}
	_ classify.PathUnits = Runtime{}
	_ classify.Hinter    = Runtime{}
	_ classify.Speaker   = Runtime{}
)

// Name is "lua".
func (Runtime) Name() string { return "lua" }

// Vocabulary implements [classify.Speaker].
func (Runtime) Vocabulary() classify.Vocabulary {
	return classify.Vocabulary{Exact: []string{"lua: ", "luajit", "lua5", "lua-", "stack traceback:"}}
}

// Hint implements [classify.Hinter]: the interpreter puts its own name in front.
func (Runtime) Hint(tail []byte) bool {
	return bytes.Contains(tail, []byte("lua")) || bytes.Contains(tail, []byte("stack traceback:"))
}

// Module implements [classify.Runtime]: "acme/wire/init.lua" is acme.wire.
func (Runtime) Module(path string) string {
	stem, ok := strings.CutSuffix(path, ".lua")
	if !ok {
		if stem, ok = strings.CutSuffix(path, ".so"); !ok {
			return ""
		}
	}
	return strings.ReplaceAll(strings.TrimSuffix(stem, "/init"), "/", ".")
}

// Package implements [classify.PathUnits]: what lies in a folder that LuaRocks installs into is named by its path there.
func (r Runtime) Package(path string) string {
	for _, d := range [...]string{"/share/lua/5.", "/lib/lua/5."} {
		at := strings.LastIndex("/"+path, d)
		if at < 0 {
			continue
		}
		if _, rest, ok := strings.Cut(path[at+len(d)-1:], "/"); ok {
			if m := r.Module(rest); m != "" {
				return m
			}
			return rest
		}
	}
	return ""
}

// origin is what a path says about a file.
func origin(path string) classify.Origin {
	switch {
	case path == "[C]" || path == "[builtin]" || strings.HasPrefix(path, "builtin:"):
		return classify.OriginRuntime
	case path == "stdin" || path == "(command line)" || strings.HasPrefix(path, "[string "):
		return classify.OriginLauncher
	case strings.Contains(path, "/share/lua/5.") || strings.Contains(path, "/share/luajit"):
		return classify.OriginPackage
	}
	return classify.OriginUnknown
}

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	for i := len(log.Lines) - 1; i >= 0; i-- {
		if m, ok := head(log.Lines[i]); ok && !log.Ignored(i) {
			return read(log, i, m)
		}
	}
	return nil
}

// head is the message behind the interpreter's name.
func head(l string) (string, bool) {
	name, m, ok := strings.Cut(l, ": ")
	if !ok {
		return "", false
	}
	name = name[strings.LastIndexByte(name, '/')+1:]
	rest, ok := strings.CutPrefix(name, "lua")
	if !ok {
		return "", false
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "jit"), "-")
	return m, strings.Trim(rest, "0123456789.") == ""
}
