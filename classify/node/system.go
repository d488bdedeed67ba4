package node

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// systemCode reports the names of system errors.
func systemCode(code string) bool {
	return len(code) > 2 && code[0] == 'E' && code[1] != 'R' && upper(code) && !strings.Contains(code, "_")
}

// system reads errors of the system: files that cannot be opened, programs that cannot be started, peers.
func system(f *classify.Failure, k *facts) {
	switch k.code {
	case "ENOENT":
		f.Code = "2"
	case "EACCES":
		f.Code = "13"
	case "EPERM":
		f.Code = "1"
	case "ESTALE":
		f.Code = "116"
	default:
		f.Code = k.code
	}
	if strings.HasPrefix(k.syscall, "spawn") {
		spawn(f, k)
		return
	}
	file := k.path
	if file == "" {
		_, rest, _ := strings.Cut(f.Message, ", ")
		file = quotedIn(rest)
	}
	if file == "" {
		return
	}
	f.Kind, f.File = classify.KindFile, file
	// The part that reads modules has already found the file when it opens it: the file went away in between.
	if k.code == "ENOENT" && k.syscall == "open" && loading(f) && source(file) {
		f.Kind, f.Code, f.Loading = classify.KindMissingModule, "", true
		f.Startup = starts(f)
	}
}

// spawn reads errors of starting a program.
func spawn(f *classify.Failure, k *facts) {
	file := k.path
	if file == "" {
		file = strings.TrimPrefix(k.syscall, "spawn ")
	}
	if !strings.ContainsAny(file, `/\`) {
		f.Type, f.Code = "ToolError", "" // somebody else's program, by its name
		return
	}
	switch k.code {
	case "ENOENT":
		f.Kind, f.Code, f.File = classify.KindMissingModule, "", file
		f.Startup = true
	case "ENOEXEC", "ETXTBSY":
		f.Kind, f.Code, f.File = classify.KindTorn, "", file
	default:
		f.Kind, f.File = classify.KindFile, file
	}
}

// loading reports a stack whose innermost frames are those of the part that loads modules, files aside.
func loading(f *classify.Failure) bool {
	for i := len(f.Frames) - 1; i >= 0; i-- {
		file := f.Frames[i].File
		if strings.HasPrefix(file, "node:fs") || strings.HasPrefix(file, "node:internal/fs") || file == "fs.js" || strings.HasPrefix(file, "internal/fs") || file == "" || strings.HasPrefix(file, "<") {
			continue
		}
		return loads(file)
	}
	return false
}

// source reports the names of files that hold code.
func source(file string) bool {
	for _, ext := range [...]string{".js", ".mjs", ".cjs", ".json", ".node", ".wasm", ".ts", ".mts", ".cts"} {
		if strings.HasSuffix(file, ext) {
			return true
		}
	}
	return false
}

// native reads what goes wrong with native addons, and reports whether it was that.
func native(f *classify.Failure, k *facts) bool {
	m := f.Message
	switch {
	// "The module '/path/x.node'\nwas compiled against a different Node.js version using ..."
	case strings.HasPrefix(m, "The module '") && strings.Contains(m, "compiled against a different Node.js version"),
		strings.HasPrefix(m, "Module did not self-register"), strings.HasPrefix(m, "Module version mismatch. Expected "), strings.HasPrefix(m, "Module compiled against"):
		f.Kind = classify.KindBinding
		if f.Object = quotedIn(m); f.Object == "" {
			f.Object = objectIn(m)
		}
		return true
	case strings.HasPrefix(m, "Could not locate the bindings file"), strings.HasPrefix(m, "No native build was found for "):
		f.Kind = classify.KindBinding
		f.Object = objectIn(m)
		return true
	}
	if k.code != "ERR_DLOPEN_FAILED" && !dlopen(f) && !nativeWords(m) {
		return false
	}
	if n, ok := classify.ReadLoader(m); ok {
		n.Apply(f)
		return true
	}
	// Windows prints the path behind its complaint.
	if k.code == "ERR_DLOPEN_FAILED" || dlopen(f) {
		f.Kind, f.Object = classify.KindBinding, objectIn(m)
		if strings.Contains(m, "is not a valid Win32 application") {
			f.Kind = classify.KindTorn
		}
		if f.Object == "" {
			f.Kind = classify.KindOther
		}
		return f.Object != ""
	}
	return false
}

// dlopen reports a stack that ends in the loading of an addon.
func dlopen(f *classify.Failure) bool {
	n := len(f.Frames)
	return n > 0 && (strings.HasSuffix(f.Frames[n-1].Function, "_extensions..node") || strings.HasSuffix(f.Frames[n-1].Function, "Object..node") || strings.HasSuffix(f.Frames[n-1].Function, "process.dlopen"))
}

// nativeWords reports a loader's complaint that begins with the path of an object.
func nativeWords(m string) bool {
	l := firstLine(m)
	return (strings.HasPrefix(l, "/") || strings.HasPrefix(l, "lib") || strings.HasPrefix(l, "dlopen(")) && strings.Contains(l, ": ")
}

// objectIn is the last word of a message that is the path of a native object.
func objectIn(m string) string {
	object := ""
	for w := range strings.FieldsFuncSeq(m, func(r rune) bool { return strings.ContainsRune("\n\r'\"`", r) }) {
		w = strings.TrimSpace(w)
		if at := strings.LastIndex(w, "→ "); at >= 0 {
			w = w[at+len("→ "):]
		}
		w = strings.TrimPrefix(strings.TrimRight(w, ".,"), `\\?\`)
		if strings.HasSuffix(w, ".node") && strings.ContainsAny(w, `/\`) {
			object = w
			if at := strings.LastIndex(w, " "); at >= 0 && strings.ContainsAny(w[at:], `/\`) {
				object = w[at+1:]
			}
		}
	}
	return object
}

// halves are the messages for source that stops or holds what no source holds.
var halves = []string{"Unexpected end of input", "missing ) after argument list", "Unterminated template literal", "missing } in template expression", "Invalid regular expression: missing /",
	"Unterminated string constant", "Unterminated regular expression", "Unexpected token '}'", "Unexpected token '])'", "Unexpected token ')'", "Unexpected token ']'",
	"Unexpected token }", "Unexpected token )", "Unexpected token ]", "Unexpected token '<<'", "Unexpected token '>>'", "Unexpected token '<<<'", "Unexpected token '>>>'"}

// syntax tells half a file from source that this version merely does not know, and from documents that a program refused.
func syntax(f *classify.Failure, k *facts) {
	m := firstLine(f.Message)
	if file := jsonFile(m); file != "" {
		f.File = file
		if f.File != "" && strings.HasSuffix(f.File, ".json") {
			// There is no newer language that would explain it.
			f.Kind, f.Loading = classify.KindTorn, true
			f.Startup = starts(f)
		}
		return
	}
	if k.file == "" || !compiling(f) || strings.HasPrefix(k.file, "node:") {
		return
	}
	f.Kind, f.File, f.Loading = classify.KindSyntax, k.file, true
	if f.File == "undefined" || !strings.ContainsAny(f.File, `/\`) {
		f.Kind, f.File = classify.KindOther, ""
		return
	}
	for _, h := range halves {
		if strings.HasPrefix(m, h) {
			f.Kind = classify.KindTorn
			return
		}
	}
	for _, mark := range [...]string{"<<<<<<<", "=======", ">>>>>>>"} {
		if strings.HasPrefix(k.source, mark) {
			f.Kind = classify.KindTorn
			return
		}
	}
	// A string that does not end, or bytes that are no text. Other characters may be a newer language's.
	if strings.HasPrefix(m, "Invalid or unexpected token") && strings.TrimSpace(k.source) == "" {
		f.Kind = classify.KindTorn // bytes that do not even print
	}
	if strings.HasPrefix(m, "Invalid or unexpected token") && k.mark >= 0 && k.mark < len(k.source) {
		switch c := k.source[k.mark]; {
		case c == '"', c == '\'', c == '`', c == '\\', c < ' ', c >= 0x7f:
			f.Kind = classify.KindTorn
		}
	}
}

// compiling reports a stack whose innermost frame is the compiler's caller.
func compiling(f *classify.Failure) bool {
	if len(f.Frames) == 0 {
		return true // an error of the compiler alone, with the place above it
	}
	last := f.Frames[len(f.Frames)-1]
	return loads(last.File)
}

// jsonFile is the file that a message about a document names in front: "Error parsing /x/package.json: why",
// "/x/package.json: why", "Invalid package config /x/package.json. why".
func jsonFile(m string) string {
	rest := m
	for _, w := range [...]string{"Error parsing ", "Invalid package config "} {
		rest = strings.TrimPrefix(rest, w)
	}
	rest = strings.TrimPrefix(rest, `\\?\`)
	rest = strings.Trim(rest, `"'`)
	end := strings.Index(rest, ".json")
	if end < 0 {
		return ""
	}
	file := strings.Trim(rest[:end+len(".json")], `"'`)
	p := strings.ReplaceAll(file, `\`, "/")
	if strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && p[2] == '/' || strings.HasPrefix(p, "file://") {
		return filePath(file)
	}
	return ""
}
