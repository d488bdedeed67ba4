package python

import (
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// frame parses `  File "path", line 12, in name`, also with the mark of a logger in front.
func frame(l string) (classify.Frame, bool) {
	t := strings.TrimLeft(l, " \t")
	t = strings.TrimLeft(strings.TrimPrefix(t, ">"), " ")
	if !strings.HasPrefix(t, `File "`) {
		return classify.Frame{}, false
	}
	// The path may hold quotes, so its end is looked for from behind.
	t = t[len(`File "`):]
	at := strings.LastIndex(t, `", line `)
	if at < 0 {
		return classify.Frame{}, false
	}
	fr := classify.Frame{File: t[:at]}
	t = t[at+len(`", line `):]
	end := 0
	for end < len(t) && t[end] >= '0' && t[end] <= '9' {
		end++
	}
	if end == 0 {
		return classify.Frame{}, false
	}
	fr.Line = number(t[:end])
	t = strings.TrimPrefix(strings.TrimPrefix(t[end:], ","), " ")
	fr.Function = strings.TrimPrefix(t, "in ")
	describe(&fr)
	return fr, true
}

// openFrame parses the rest of a frame line whose head is cut off.
func openFrame(l string) (classify.Frame, bool) {
	at := strings.Index(l, `", line `)
	if at < 0 {
		return classify.Frame{}, false
	}
	fr, ok := frame(`File "` + l)
	fr.Open = true
	return fr, ok
}

// number reads a line number. One that is too long for a file is none.
func number(s string) int {
	n, err := strconv.Atoi(s[:min(len(s), 9)])
	if err != nil {
		return 0
	}
	return n
}

// describe sets what the path and the function tell about a frame.
func describe(fr *classify.Frame) {
	fr.Origin = origin(fr.File)
	// Compiled modules print "init pkg.mod" or "pkg.mod.function" for a function.
	if unit, ok := strings.CutPrefix(fr.Function, "<module "); ok && dotted(strings.TrimSuffix(unit, ">")) {
		fr.Unit = strings.TrimSuffix(unit, ">")
	}
	compiled := strings.HasSuffix(fr.File, ".pyx") || strings.HasSuffix(fr.File, ".pxd")
	if stem := strings.TrimSuffix(lastPart(strings.ReplaceAll(fr.File[:max(0, len(fr.File)-4)], "/", ".")), "."); compiled && stem != "" && dotted(fr.Function) {
		// "pkg.mod.Class.method": the module ends with the file's own name.
		if at := strings.Index("."+fr.Function+".", "."+stem+"."); at >= 0 {
			fr.Unit = fr.Function[:at+len(stem)]
			return
		}
	}
	if strings.HasSuffix(fr.File, ".pyx") || strings.HasSuffix(fr.File, ".pxd") || strings.HasPrefix(fr.Function, "init ") {
		fr.Unit = strings.TrimPrefix(fr.Function, "init ")
		if !dotted(fr.Unit) {
			fr.Unit = ""
		}
	}
}

// origin tells interpreter, package folders and typed code apart by the path.
func origin(path string) classify.Origin {
	switch {
	case path == "<string>":
		return classify.OriginLauncher
	case path == "<stdin>" || strings.HasPrefix(path, "<ipython-input") || strings.HasPrefix(path, "<console>") || strings.HasPrefix(path, "<doctest"):
		return classify.OriginUser
	case strings.HasPrefix(path, "<"):
		// Frozen modules, and code that a library generates: attrs, dataclasses, namedtuples.
		return classify.OriginRuntime
	}
	p := strings.ReplaceAll(path, `\`, "/")
	for _, d := range [...]string{"/site-packages/", "/dist-packages/", ".egg/", "/__pypackages__/"} {
		if at := strings.LastIndex(p, d); at >= 0 {
			// What finds and loads entry points is the import system's other half.
			for _, glue := range [...]string{"pkg_resources/", "importlib_metadata/", "importlib_resources/", "_distutils_hack/", "PyInstaller/"} {
				if strings.HasPrefix(p[at+len(d):], glue) {
					return classify.OriginRuntime
				}
			}
			return classify.OriginPackage
		}
	}
	if strings.HasPrefix(p, "site-packages/") || strings.HasPrefix(p, "PyInstaller/") || strings.HasPrefix(p, "bootstrap_external") {
		return classify.OriginRuntime
	}
	if standardFolder(p) {
		return classify.OriginRuntime
	}
	return classify.OriginUnknown
}

// handed finds code without a file that a running program was given to run, as an agent runs what a model writes. Whose it is
// stands nowhere, unless the line that runs it holds it.
func handed(f *classify.Failure) {
	for i := 1; i < len(f.Frames); i++ {
		fr := &f.Frames[i]
		// exec and eval make a module of what they are given, whatever they are told to call it. What libraries generate for
		// themselves are functions.
		if fr.Function != "<module>" || !strings.HasPrefix(fr.File, "<") || strings.HasPrefix(fr.File, "<frozen ") || fr.Origin == classify.OriginUser {
			continue
		}
		if fr.Origin = classify.OriginLauncher; literal(f.Frames[i-1].Source) {
			fr.Origin = classify.OriginRuntime
		}
	}
}

// literal reports a line that runs a text which it holds itself: exec("import x").
func literal(source string) bool {
	for _, call := range [...]string{"exec(", "eval("} {
		if _, rest, ok := strings.Cut(source, call); ok {
			rest = strings.TrimLeft(rest, " rbfRBF")
			return rest != "" && (rest[0] == '"' || rest[0] == '\'')
		}
	}
	return false
}

// standardFolder reports a path in an interpreter's own library: ".../lib/python3.11/json/decoder.py".
func standardFolder(p string) bool {
	// "lib/pythonX.Y/" with a folder behind it. The version keeps "/srv/python/app" out, and "lib" keeps out a folder
	// that is merely called after a version.
	for from := 0; ; {
		at := strings.Index(p[from:], "/python")
		if at < 0 {
			break
		}
		at += from + len("/python")
		rest := p[at:]
		end := 0
		for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || rest[end] == '.') {
			end++
		}
		lead := p[:at-len("/python")]
		if end >= 3 && end < len(rest) && (rest[end] == '/' || strings.HasPrefix(rest[end:], "t/")) &&
			(strings.HasSuffix(lead, "/lib") || strings.HasSuffix(lead, "/lib64") || strings.HasSuffix(lead, "/lib32")) {
			return true
		}
		from = at
	}
	lower := strings.ToLower(p)
	if at := strings.Index(lower, "/lib/"); at > 0 && len(p) > 2 && p[1] == ':' {
		folder := lower[strings.LastIndexByte(lower[:at], '/')+1 : at]
		return strings.HasPrefix(folder, "python") || strings.HasPrefix(folder, "pypy") || folder == "anaconda3" || folder == "miniconda3"
	}
	return strings.Contains(lower, "/python3") && strings.Contains(lower, ".zip/") || strings.Contains(lower, "/pypy3") && strings.Contains(lower, "/lib/")
}

// headless reports whether line i begins frames without a header: a script's own syntax error, or a cut head.
func (p *parser) headless(i int) bool {
	if _, ok := frame(p.lines[i]); ok {
		return true
	}
	if i != 0 {
		return false
	}
	// The text may start anywhere in a traceback: in a path, in a line of source.
	for j := 0; j < 4 && j < len(p.lines); j++ {
		if _, ok := frame(p.lines[j]); ok {
			return true
		}
		if _, ok := openFrame(p.lines[j]); ok && j == 0 {
			return true
		}
		if j > 0 && !strings.HasPrefix(p.lines[j], "  ") {
			return false
		}
	}
	return false
}
