package node

import (
	"path"
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// finish reads what the error says, once everything that belongs to it is there.
func finish(f *classify.Failure, k *facts) {
	m := f.Message
	switch {
	case k.code == "MODULE_NOT_FOUND" || k.code == "ERR_MODULE_NOT_FOUND" || telling(m):
		missing(f, k)
	case strings.HasPrefix(m, "No such built-in module: "), k.code == "ERR_UNKNOWN_BUILTIN_MODULE":
		f.Kind, f.Standard = classify.KindMissingModule, true
		f.Module = lastWord(m)
	case k.code == "ERR_PACKAGE_PATH_NOT_EXPORTED", k.code == "ERR_PACKAGE_IMPORT_NOT_DEFINED":
		notExported(f)
	case k.code == "ERR_REQUIRE_ESM", k.code == "ERR_REQUIRE_ASYNC_MODULE", k.code == "ERR_REQUIRE_CYCLE_MODULE":
		otherKind(f)
	case strings.HasPrefix(m, `Module not found "`):
		notFound(f)
	case parsed(f):
	case native(f, k):
	case f.Type == "ChunkLoadError":
		chunk(f)
	case f.Type == "SyntaxError" || k.code == "ERR_INVALID_PACKAGE_CONFIG" || strings.HasPrefix(m, "Invalid package config ") || strings.HasPrefix(m, "Error parsing /"):
		syntax(f, k)
	case strings.HasPrefix(m, "Command failed"):
		f.Type = "ToolError"
		return
	case f.Type == "ReferenceError":
		f.Kind = classify.KindUndefined
		f.Symbol, _, _ = strings.Cut(m, " is not defined")
		if strings.Contains(f.Symbol, " ") {
			f.Symbol = quotedIn(m)
		}
	case f.Type == "TypeError":
		typeError(f)
	case f.Type == "RangeError" && strings.Contains(m, "allocation failed"), k.code == "ERR_WORKER_OUT_OF_MEMORY", k.code == "ERR_MEMORY_ALLOCATION_FAILED":
		f.Type = "OutOfMemory"
		return
	case strings.HasPrefix(k.code, "UND_ERR_"):
		f.Code = k.code
	case strings.Contains(k.code, "CERT_") || strings.HasSuffix(k.code, "_CERT") || strings.HasPrefix(k.code, "ERR_TLS_") || strings.HasPrefix(k.code, "ERR_SSL_"):
		f.Code = "ECONNREFUSED" // the peer was there, and no connection came about
	case k.syscall != "" || systemCode(k.code):
		system(f, k)
	}
	if f.Code == "" && k.status >= 400 && k.status < 600 {
		f.Code = "HTTP " + strconv.Itoa(k.status)
	}
	if f.Code == "" && (f.Kind == classify.KindOther) {
		f.Code = httpCode(f)
	}
	switch {
	case f.Type == "DOMException" && k.code != "":
		f.Type = k.code
		if f.Type == "AbortError" {
			f.Type = "Cancelled"
		}
	case f.Type == "AbortError", f.Type == "APIUserAbortError":
		f.Type = "Cancelled"
	case general(f.Type) && upper(k.code):
		// The code says more than a general type.
		f.Type = k.code
	}
}

// general reports the types that say nothing of what went wrong.
func general(typ string) bool {
	switch typ {
	case "Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError", "AssertionError", "SystemError", "NodeError", "EvalError", "URIError":
		return true
	}
	return false
}

// upper reports a code that is written like those of Node.js and of the system.
func upper(c string) bool {
	return c != "" && strings.Trim(c, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && c[0] >= 'A'
}

// httpCode is the status that a client's message carries: in front, in brackets, or behind the words for it.
func httpCode(f *classify.Failure) string {
	m := f.Message
	for _, w := range [...]string{"status code ", "status: ", "HTTP ", "HTTP error! status: "} {
		if _, rest, ok := strings.Cut(m, w); ok {
			if n := leadingDigits(rest); len(n) == 3 && n >= "400" && n < "600" {
				return "HTTP " + n
			}
		}
	}
	if at := strings.Index(m, ": ["); at >= 0 && strings.HasPrefix(m, "[") { // "[Client Error]: ... : [429 Too Many Requests]"
		if n := leadingDigits(m[at+3:]); len(n) == 3 && n >= "400" && n < "600" {
			return "HTTP " + n
		}
	}
	if n := leadingDigits(m); len(n) == 3 && n >= "400" && n < "600" && len(m) > 4 && m[3] == ' ' && (!general(f.Type) || m[4] == '{' || m[4] >= 'A' && m[4] <= 'Z') {
		return "HTTP " + n
	}
	return ""
}

// missing reads the messages about modules and exports that are not there.
func missing(f *classify.Failure, k *facts) {
	m := firstLine(f.Message)
	f.Kind = classify.KindMissingModule
	f.Loading = true
	stack := k.stack
	if len(stack) == 0 {
		stack = requireList(f.Message)
	}
	from := importer(f.Message)
	switch {
	case strings.HasPrefix(m, "The requested module '"), strings.HasPrefix(m, "Named export '"), strings.HasPrefix(m, "Export named '"):
		f.Kind = classify.KindMissingName
		from = export(f, k, m)
		if f.Kind != classify.KindMissingName {
			return
		}
	case strings.HasPrefix(m, "Package subpath '"):
		notExported(f)
		return
	default:
		f.Module = quotedIn(m)
	}
	if f.Module == "" {
		f.Kind = classify.KindOther
		return
	}
	// The list of who required goes further out than the stack, which is limited.
	var out []classify.Frame
	for i := len(stack) - 1; i >= 0; i-- {
		if stack[i] != "internal/preload" {
			out = append(out, asker(stack[i]))
		}
	}
	f.Frames = append(out, f.Frames...)
	switch {
	case strings.HasSuffix(from, "/"), strings.HasSuffix(from, `\`):
		from = "" // the folder in which the program was started
	case from != "":
		f.Frames = append(f.Frames, asker(from))
	case len(stack) > 0:
		// The call may stand elsewhere, but this is the file for which it is looked up.
		if from = stack[0]; from != "internal/preload" {
			f.Frames = append(f.Frames, asker(from))
		}
	default:
		from = caller(f) // older versions print no list
	}
	f.Startup = starts(f)
	f.Module = filePath(f.Module)
	if strings.HasPrefix(f.Module, "node:") {
		f.Standard = true
	}
	resolve(f, from)
}

// caller is the file of the innermost frame that is not the runtime's own.
func caller(f *classify.Failure) string {
	for i := len(f.Frames) - 1; i >= 0; i-- {
		if f.Frames[i].Origin != classify.OriginRuntime {
			return f.Frames[i].File
		}
	}
	return ""
}

// starts reports that nobody but Node.js itself asked: it was told to run, or to load first, what is missing.
func starts(f *classify.Failure) bool {
	for _, fr := range f.Frames {
		if fr.Origin != classify.OriginRuntime {
			return false
		}
	}
	return len(f.Frames) > 0
}

// resolve turns the unit of a failure into a file where it is one: a path, or relative to who asks.
func resolve(f *classify.Failure, from string) {
	m := strings.ReplaceAll(f.Module, `\`, "/")
	switch {
	case strings.HasPrefix(m, "/") || len(m) > 2 && m[1] == ':' && m[2] == '/':
		f.File, f.Module = f.Module, ""
	case (m == "." || m == ".." || strings.HasPrefix(m, "./") || strings.HasPrefix(m, "../")) && from != "":
		dir := path.Dir(strings.ReplaceAll(from, `\`, "/"))
		f.File, f.Module = path.Join(dir, m), ""
		if strings.Contains(from, `\`) {
			f.File = strings.ReplaceAll(f.File, "/", `\`)
		}
	}
	if strings.HasSuffix(f.File, ".node") {
		f.Object = f.File
	}
}

// importer is the file behind "imported from", or behind "from" where another engine prints it in quotes.
func importer(m string) string {
	if _, rest, ok := strings.Cut(m, " imported from "); ok {
		return filePath(strings.TrimSpace(firstLine(rest)))
	}
	l := firstLine(m)
	for _, w := range [...]string{`" from "`, `' from '`} {
		if _, rest, ok := strings.Cut(l, w); ok {
			return filePath(strings.TrimRight(rest, `"'`))
		}
	}
	return ""
}

// requireList reads the list of who required out of the message itself.
func requireList(m string) []string {
	_, rest, ok := strings.Cut(m, "Require stack:\n")
	if !ok {
		return nil
	}
	var list []string
	for l := range strings.SplitSeq(rest, "\n") {
		name, ok := strings.CutPrefix(strings.TrimSpace(l), "- ")
		if !ok {
			break
		}
		list = append(list, name)
	}
	return list
}

// export reads the messages about an export that a module does not have, and returns who asks.
func export(f *classify.Failure, k *facts, m string) (from string) {
	switch {
	case strings.HasPrefix(m, "Named export '"):
		f.Symbol = quotedIn(m)
		if _, rest, ok := strings.Cut(m, "The requested module "); ok {
			f.Module = quotedIn(rest)
		}
	case strings.HasPrefix(m, "Export named '"):
		f.Symbol = quotedIn(m)
		if _, rest, ok := strings.Cut(m, " not found in module "); ok {
			f.Module = quotedIn(rest)
		}
	default:
		f.Module = quotedIn(m)
		_, rest, ok := strings.Cut(m, " does not provide an export named ")
		if !ok {
			// Two modules give the same name, or the like: nothing is missing.
			f.Kind, f.Module = classify.KindOther, ""
			return ""
		}
		f.Symbol = quotedIn(rest)
	}
	return k.file
}

// notExported reads the messages about what a package's own table does not offer.
func notExported(f *classify.Failure) {
	m := firstLine(f.Message)
	f.Kind, f.Loading = classify.KindMissingName, true
	f.Symbol = quotedIn(m)
	table := ""
	for _, w := range [...]string{`"exports" in `, "in package ", "exports main defined in ", `"exports" main defined in `} {
		if _, rest, ok := strings.Cut(m, w); ok {
			table, _, _ = strings.Cut(rest, " imported from ")
			break
		}
	}
	if strings.HasPrefix(m, "No ") {
		f.Symbol = ""
	}
	table = filePath(strings.TrimSpace(table))
	f.File = table
	if name, _ := packageOf(strings.ReplaceAll(table, `\`, "/")); name != "" {
		f.Module = name
	}
	if from := importer(m); from != "" && !strings.HasSuffix(from, "/") {
		f.Frames = append(f.Frames, asker(from))
	}
	f.Startup = starts(f)
}

// otherKind reads the refusal of a module that is of the other kind than who requires it: one of the two is of another build.
func otherKind(f *classify.Failure) {
	f.Loading = true
	for _, w := range [...]string{"require() of ES Module ", "Cannot require() ES Module ", "Must use import to load ES Module: ", "  Requiring "} {
		if _, rest, ok := strings.Cut(f.Message, w); ok {
			f.Kind = classify.KindMissingModule
			file, _, _ := strings.Cut(firstLine(rest), " from ")
			file, _, _ = strings.Cut(file, " in a cycle.")
			f.Module = filePath(strings.TrimSpace(strings.TrimSuffix(file, " not supported.")))
			resolve(f, "")
			break
		}
	}
	if _, rest, ok := strings.Cut(f.Message, "\n  From "); ok && starts(f) {
		f.Frames = append(f.Frames, asker(filePath(strings.TrimSpace(firstLine(rest)))))
	}
}

// chunk reads the error of a bundler's loader.
func chunk(f *classify.Failure) {
	f.Loading = true
	_, rest, ok := strings.Cut(f.Message, "(missing: ")
	if !ok {
		return
	}
	f.Kind = classify.KindMissingModule
	file, _, _ := strings.Cut(rest, ")")
	f.Module = filePath(file)
	resolve(f, "")
}

// typeError tells calls that do not fit from what clients report with the same type.
func typeError(f *classify.Failure) {
	switch f.Message {
	case "fetch failed", "terminated", "Failed to fetch", "network error":
		// The reason stands in the cause, if anywhere.
		if c := f.Cause; c != nil && c.Code != "" {
			f.Code = c.Code
		} else {
			f.Code = "ECONNRESET"
		}
		return
	}
	f.Kind = classify.KindSignature
}

// notFound reads the words of Deno for a file that is not there. Who asks is a place below.
func notFound(f *classify.Failure) {
	f.Kind, f.Loading = classify.KindMissingModule, true
	f.Module = filePath(quotedIn(f.Message))
	resolve(f, "")
}

// firstLine is s up to its first line feed.
func firstLine(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}

// lastWord is the word at the end of the first line of s.
func lastWord(s string) string {
	s = strings.TrimRight(firstLine(s), " .'\"")
	return strings.TrimLeft(s[strings.LastIndexByte(s, ' ')+1:], `'"`)
}

// quotedIn is the first text between quotes of one kind.
func quotedIn(s string) string {
	at := strings.IndexAny(s, `'"`)
	if at < 0 {
		return ""
	}
	end := strings.IndexByte(s[at+1:], s[at])
	if end < 0 {
		return ""
	}
	return s[at+1 : at+1+end]
}
