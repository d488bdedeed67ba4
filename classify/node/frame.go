package node

import (
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// frameLine reads "    at name (place)" and its relatives. depth is how far it is indented.
func frameLine(l string) (fr classify.Frame, depth int, ok bool) {
	t := strings.TrimLeft(l, " \t")
	depth = len(l) - len(t)
	if depth < 4 || l[0] == '\t' || !strings.HasPrefix(t, "at ") {
		return fr, depth, false
	}
	// Inside of a list the last frame of an error carries a comma, and where properties follow a brace.
	t = strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(t[3:], " "), " {"), ",")
	t = strings.TrimPrefix(t, "async ")
	place := t
	if strings.HasSuffix(t, ")") {
		// A path may hold parentheses and blanks itself, a name may not be followed by " (" twice.
		if at := strings.Index(t, " ("); at >= 0 {
			fr.Function, place = t[:at], t[at+2:len(t)-1]
		}
	}
	fr.File, fr.Line = location(place)
	// Other runtimes write their stacks alike.
	for _, end := range [...]string{".java", ".kt", ".scala", ".groovy", ".clj", "Native Method", "Unknown Source"} {
		if strings.HasSuffix(fr.File, end) {
			return fr, depth, false
		}
	}
	fr.Origin = origin(fr.File)
	return fr, depth, true
}

// location takes "path:line:column" or "path:line" apart and turns a file address into a path.
func location(place string) (string, int) {
	line := 0
	for range 2 {
		at := strings.LastIndexByte(place, ':')
		if at <= 0 {
			break
		}
		n, err := strconv.Atoi(place[at+1:])
		if err != nil || n < 0 {
			break
		}
		place, line = place[:at], n
	}
	return filePath(place), line
}

// filePath turns a file address into a path and leaves everything else as it is.
func filePath(s string) string {
	rest, ok := strings.CutPrefix(s, "file://")
	if !ok {
		return s
	}
	if at := strings.IndexAny(rest, "?#"); at >= 0 {
		rest = rest[:at] // a loader's own mark behind the path
	}
	if len(rest) > 2 && rest[0] == '/' && rest[2] == ':' {
		rest = rest[1:] // file:///C:/...
	}
	if !strings.Contains(rest, "%") {
		return rest
	}
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		if rest[i] == '%' && i+2 < len(rest) {
			if v, err := strconv.ParseUint(rest[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(v))
				i += 2
				continue
			}
		}
		b.WriteByte(rest[i])
	}
	return b.String()
}

// origin is what a path tells by itself.
func origin(file string) classify.Origin {
	p := strings.ReplaceAll(file, `\`, "/")
	switch {
	case p == "", strings.HasPrefix(p, "<"), p == "native", strings.HasPrefix(p, "node:"), strings.HasPrefix(p, "internal/"), strings.HasPrefix(p, "ext:"), strings.HasPrefix(p, "index "),
		strings.HasPrefix(p, "evalmachine."), strings.HasPrefix(p, "wasm:"), strings.HasPrefix(p, "eval at "):
		return classify.OriginRuntime
	case strings.HasPrefix(p, "data:"), strings.HasPrefix(p, "[eval"), strings.HasSuffix(p, "/[eval]"), strings.HasSuffix(p, "/[eval1]"), strings.HasSuffix(p, "/[stdin]"), p == "[stdin]", strings.HasPrefix(p, "REPL"):
		return classify.OriginUser
	case !strings.Contains(p, "/"):
		// Older versions print their own files without a folder: "module.js", "events.js".
		return classify.OriginRuntime
	}
	name, _ := packageOf(p)
	switch name {
	case "":
		return classify.OriginUnknown
	// These find and load the addon of whoever calls them.
	case "bindings", "node-gyp-build", "node-gyp-build-optional-packages", "node-pre-gyp", "@mapbox/node-pre-gyp", "prebuildify", "node-addon-loader", "pkg-prebuilds":
		return classify.OriginRuntime
	}
	return classify.OriginPackage
}

// loads reports a frame of the part of Node.js that finds, reads and compiles modules.
func loads(file string) bool {
	return strings.HasPrefix(file, "node:internal/modules/") || strings.HasPrefix(file, "internal/modules/") || strings.HasPrefix(file, "node:vm") || strings.HasPrefix(file, "node:internal/vm") ||
		strings.HasPrefix(file, "internal/vm") || file == "module.js" || file == "vm.js"
}

// asker builds the frame of a file that the text names as the one that asks.
func asker(file string) classify.Frame {
	return classify.Frame{File: file, Origin: origin(file)}
}

// reversed puts the frames into the order of calls: Node.js prints the innermost first.
func reversed(frames []classify.Frame) []classify.Frame {
	out := make([]classify.Frame, len(frames))
	for i, fr := range frames {
		out[len(frames)-1-i] = fr
	}
	return out
}
