package python

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// finish reads what the exception's type and message say, once both are complete.
func (p *parser) finish(f *classify.Failure) {
	handed(f)
	f.Loading = loading(f)
	// The type is trusted by its last name. A program that calls an exception of its own ImportError means it.
	switch f.Type {
	case "ImportError", "ModuleNotFoundError", "DLLImportError":
		importError(f)
	case "AttributeError":
		attributeError(f)
	case "SyntaxError", "IndentationError", "TabError":
		syntaxError(f, p.stopped)
	case "TypeError":
		typeError(f)
	case "NameError", "UnboundLocalError":
		f.Kind = classify.KindUndefined
		f.Symbol = quotedName(f.Message)
	case "PackageNotFoundError", "DistributionNotFound", "VersionConflict", "ContextualVersionConflict", "UnknownExtra":
		f.Kind = classify.KindMetadata
	case "OSError", "IOError", "PermissionError", "FileNotFoundError", "NotADirectoryError", "IsADirectoryError", "BlockingIOError", "WindowsError",
		"ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError", "FileExistsError":
		osError(f)
	case "ZipImportError", "BadZipFile", "BadZipfile":
		archive(f)
	case "EOFError", "ValueError", "SystemError", "RuntimeError", "UnpicklingError", "PickleError", "PicklingError":
		otherBuiltin(f)
	default:
		if f.TypeModule == "zlib" && f.Type == "error" {
			archive(f)
		}
	}
}

// loading reports whether the innermost frames are the import system's, or the asker's line is an import.
func loading(f *classify.Failure) bool {
	if n := len(f.Frames); n > 0 {
		last := f.Frames[n-1].File
		if strings.HasPrefix(last, "<frozen importlib") || strings.HasPrefix(last, "<frozen zipimport") || strings.Contains(last, "pyimod") ||
			strings.HasSuffix(last, "/importlib/_bootstrap_external.py") || strings.HasSuffix(last, "/importlib/_bootstrap.py") || strings.HasSuffix(last, "/importlib/__init__.py") {
			return true
		}
	}
	fr := asker(f)
	if fr == nil {
		return false
	}
	_, ok := importStatement(fr.Source)
	return ok || dynamicImport(fr.Source) != ""
}

// importError reads the messages of ImportError and ModuleNotFoundError.
func importError(f *classify.Failure) {
	m := f.Message
	line, _, _ := strings.Cut(m, "\n")
	switch {
	case strings.HasPrefix(m, "No module named "):
		f.Kind = classify.KindMissingModule
		missingModule(f, line[len("No module named "):])
	case strings.HasPrefix(m, "cannot import name "):
		f.Kind = classify.KindMissingName
		missingName(f)
	case strings.HasPrefix(m, "bad magic number in "):
		f.Kind = classify.KindTorn
		f.Module = strings.Trim(strings.TrimSuffix(firstWord(line[len("bad magic number in "):]), ":"), "'\"")
	case strings.HasPrefix(m, "Bad magic number in "):
		f.Kind = classify.KindTorn
		f.File = strings.TrimSpace(line[len("Bad magic number in "):])
	case strings.HasPrefix(m, "module '") && strings.Contains(m, "' has no attribute '"):
		// Loaders of entry points turn the one error into the other.
		attributeError(f)
	case strings.HasPrefix(m, "spec not found for the module "), strings.HasPrefix(m, "__path__ attribute not found on "):
		f.Kind = classify.KindMissingModule
		f.Module = lastQuoted(line)
	case strings.HasPrefix(m, "reached EOF while reading "), strings.HasPrefix(m, "Non-code object in "), strings.HasPrefix(m, "bad marshal data"):
		f.Kind = classify.KindTorn
		if f.Module = lastQuoted(line); strings.ContainsAny(f.Module, `/\`) {
			f.File, f.Module = f.Module, ""
			return
		}
		tornTarget(f)
	default:
		if native(f) {
			return
		}
		if strings.Contains(m, "numpy.core.multiarray failed to import") || strings.Contains(m, "numpy._core.multiarray failed to import") || strings.Contains(m, "this version of numpy is") {
			f.Kind = classify.KindForeignABI
			f.Module, f.Place = sourceTarget(f, true)
		}
	}
}

// missingModule reads the name behind "No module named", quoted since Python 3, and bare and shortened before.
func missingModule(f *classify.Failure, rest string) {
	// "'pkg.mod'; 'pkg' is not a package" and the like may follow the name.
	var name string
	if len(rest) > 0 && (rest[0] == '\'' || rest[0] == '"') {
		if end := strings.IndexByte(rest[1:], rest[0]); end >= 0 {
			name = rest[1 : 1+end]
		} else {
			name = rest[1:]
		}
	} else {
		name = strings.TrimRight(firstWord(rest), ";,.")
	}
	f.Module = name
	fr := asker(f)
	if fr == nil {
		return
	}
	f.Dynamic = strings.Contains(fr.Source, "import_module(") || strings.Contains(fr.Source, "__import__(") || strings.Contains(fr.Source, "find_spec(") ||
		importedByCall(f, fr)
	f.ByData = unpickling(f)
	if strings.HasPrefix(rest, "'") {
		f.Standard = standard[topLevel(name)]
		return
	}
	// Python 2 prints the tail of the name only. The statement tells the rest.
	if st, ok := importStatement(fr.Source); ok && st.level == 0 {
		parts := strings.Split(st.module, ".")
		for i := range parts {
			whole := strings.Join(parts[:i+1], ".")
			if whole == name || strings.HasSuffix(whole, "."+name) {
				f.Module = whole
				return
			}
		}
	} else if ok {
		if _, place := sourceTarget(f, true); strings.HasSuffix(place, "/"+strings.ReplaceAll(name, ".", "/")) {
			f.Module, f.Place = "", place
		}
	}
}

// importedByCall reports whether the asker called the import system's function and wrote no import statement.
func importedByCall(f *classify.Failure, fr *classify.Frame) bool {
	for i := len(f.Frames) - 1; i >= 0 && &f.Frames[i] != fr; i-- {
		if strings.HasSuffix(strings.ReplaceAll(f.Frames[i].File, `\`, "/"), "/importlib/__init__.py") || f.Frames[i].Function == "_gcd_import" {
			return true
		}
	}
	return false
}

// unpickling reports whether stored data was being read when the failure came up.
func unpickling(f *classify.Failure) bool {
	for i := range f.Frames {
		// A spawned child loads what its parent sends it.
		if strings.HasSuffix(strings.ReplaceAll(f.Frames[i].File, `\`, "/"), "/multiprocessing/spawn.py") && asker(f) == &f.Frames[0] {
			return true
		}
	}
	for i := len(f.Frames) - 1; i >= 0 && i >= len(f.Frames)-4; i-- {
		fr := &f.Frames[i]
		if strings.HasSuffix(fr.File, "/pickle.py") || strings.HasSuffix(fr.File, "/cloudpickle.py") {
			return true
		}
		if s := fr.Source; strings.Contains(s, "pickle.load") || strings.Contains(s, "ickler(") || strings.Contains(s, "ForkingPickler.loads") || strings.Contains(s, "joblib.load") || strings.Contains(s, "torch.load") || strings.Contains(s, "dill.load") {
			return true
		}
	}
	return false
}

// missingName reads "cannot import name 'X' from 'pkg.mod' (/path/mod.py). Did you mean: 'x'?" and its older forms.
func missingName(f *classify.Failure) {
	// Renderers wrap long messages. The parts are put together before they are taken apart.
	m := strings.ReplaceAll(f.Message, "\n", " ")
	rest := m[len("cannot import name "):]
	f.Symbol = strings.Trim(firstWord(rest), "'\",.")
	if at := strings.Index(rest, "partially initialized module "); at >= 0 {
		f.Module = quotedName(rest[at:])
	} else if at := strings.Index(rest, " from '"); at >= 0 {
		f.Module = quotedName(rest[at:])
	}
	f.File = messagePath(rest)
	if f.Module == "<unknown module name>" {
		f.Module = ""
	}
	f.Standard = standard[topLevel(f.Module)]
	if f.Module == "" && f.File == "" {
		f.Module, f.Place = sourceTarget(f, false)
	}
}

// messagePath is the file that an import message prints: in parentheses, or as the one to rename.
func messagePath(m string) string {
	if at := strings.Index(m, "consider renaming '"); at >= 0 {
		rest := m[at+len("consider renaming '"):]
		if end := strings.IndexByte(rest, '\''); end > 0 {
			return rest[:end]
		}
	}
	// The path stands in the last parentheses, before a suggestion if there is one. "(most likely due to a circular
	// import)" stands in parentheses too and holds no slash.
	for end := strings.LastIndexByte(m, ')'); end > 0; end = strings.LastIndexByte(m[:end], ')') {
		start := strings.LastIndex(m[:end], " (")
		if start < 0 {
			return ""
		}
		if p := m[start+2 : end]; strings.ContainsAny(p, `/\`) {
			return p
		}
		// A path may hold parentheses: look for the one that opens a path.
		if s := strings.Index(m, " (/"); s >= 0 && s < end {
			return m[s+2 : end]
		}
	}
	return ""
}

// attributeError reads what lacks the attribute: a module, a class or an instance.
func attributeError(f *classify.Failure) {
	m := strings.ReplaceAll(f.Message, "\n", " ")
	switch {
	case strings.HasPrefix(m, "module '") || strings.HasPrefix(m, "partially initialized module '"):
		f.Kind = classify.KindMissingName
		f.Module = quotedName(m)
		f.Symbol = attributeName(m)
		f.File = messagePath(m)
		f.Standard = standard[topLevel(f.Module)]
	case strings.HasPrefix(m, "cannot access submodule '"):
		// "cannot access submodule 'a' of module 'pkg' (most likely due to a circular import)"
		f.Kind = classify.KindMissingName
		f.Symbol = quotedName(m)
		if at := strings.Index(m, " of module "); at >= 0 {
			f.Module = quotedName(m[at:])
		}
	case strings.HasPrefix(m, "Can't get attribute '"):
		f.Kind = classify.KindMissingName
		f.Symbol = quotedName(m[len("Can't get attribute "):])
		f.ByData = true
		if at := strings.Index(m, "<module '"); at >= 0 {
			f.Module = quotedName(m[at:])
			if at := strings.Index(m, "' from '"); at >= 0 {
				f.File = quotedName(m[at+len("' from"):])
			}
			if f.Module == "__main__" || f.Module == "__mp_main__" {
				f.Module = ""
			}
		}
	case strings.HasPrefix(m, "'module' object has no attribute '"):
		f.Kind = classify.KindMissingName
		f.Symbol = attributeName(m)
		oldModule(f)
	case native(f):
		// ctypes looks symbols up as attributes and passes on what the loader says.
	default:
		f.Kind = classify.KindAttribute
		f.Symbol = attributeName(m)
		if owner := quotedName(m); strings.Contains(owner, ".") {
			f.Module = owner[:strings.LastIndexByte(owner, '.')]
		}
	}
}

// oldModule finds the module that Python 2 does not name: in a star import, or written out before the attribute.
func oldModule(f *classify.Failure) {
	fr := asker(f)
	if fr == nil {
		return
	}
	if st, ok := importStatement(fr.Source); ok {
		if st.from && st.level == 0 {
			f.Module = st.module
		}
		return
	}
	at := strings.Index(fr.Source, "."+f.Symbol)
	if at <= 0 {
		return
	}
	start := at
	for start > 0 && (fr.Source[start-1] == '.' || fr.Source[start-1] == '_' || dotted(string(fr.Source[start-1])) || fr.Source[start-1] >= '0' && fr.Source[start-1] <= '9') {
		start--
	}
	if q := fr.Source[start:at]; dotted(q) {
		f.Module = q
	}
}

// typeError is a call that does not fit, but for two messages with which compiled modules refuse each other.
func typeError(f *classify.Failure) {
	f.Kind = classify.KindSignature
	if strings.HasPrefix(f.Message, "C function ") && strings.Contains(f.Message, " has wrong signature") {
		f.Kind = classify.KindBinding
		f.Module = parentName(firstWord(f.Message[len("C function "):]))
		return
	}
	if strings.HasPrefix(f.Message, "bad marshal data") {
		f.Kind = classify.KindTorn
		tornTarget(f)
	}
}

// otherBuiltin reads the messages of general types that only the import system and compiled modules print.
func otherBuiltin(f *classify.Failure) {
	m := f.Message
	switch {
	// The same messages come from data that a program unmarshals itself. Only while a module is being loaded are they
	// about its bytecode.
	case strings.HasPrefix(m, "bad marshal data"), strings.HasPrefix(m, "marshal data too short"), strings.HasPrefix(m, "EOF read where"), strings.HasPrefix(m, "reached EOF while reading"):
		if f.Loading {
			f.Kind = classify.KindTorn
			if f.Module = quotedName(m); !dotted(f.Module) {
				f.Module = ""
			}
			tornTarget(f)
		}
	case strings.HasPrefix(m, "source code string cannot contain null bytes"):
		if f.Loading {
			f.Kind = classify.KindTorn
			tornTarget(f)
		}
	case strings.Contains(m, " size changed, may indicate binary incompatibility"):
		f.Kind = classify.KindBinding
		if f.Module = parentName(firstWord(m)); topLevel(f.Module) == "numpy" || f.Module == "" {
			f.Kind = classify.KindForeignABI
			f.Module, f.Place = sourceTarget(f, true)
		}
	case strings.Contains(m, "module compiled against A"):
		f.Kind = classify.KindForeignABI
		f.Module, f.Place = sourceTarget(f, true)
	}
}

// archive reads failures of code that lies in a zip file.
func archive(f *classify.Failure) {
	if f.Type != "ZipImportError" && !f.Loading && !zipFrames(f) {
		return
	}
	f.Kind = classify.KindTorn
	if p := lastQuoted(f.Message); strings.ContainsAny(p, `/\`) {
		f.File = p
	}
	module, place := sourceTarget(f, true)
	if module != "" || place != "" {
		f.Module, f.Place, f.File = module, place, ""
	}
}

// zipFrames reports whether the import system for archives is on the stack.
func zipFrames(f *classify.Failure) bool {
	for i := range f.Frames {
		if strings.Contains(f.Frames[i].File, "zipimport") || strings.HasPrefix(f.Frames[i].Function, "get_code") {
			return true
		}
	}
	return false
}

// osError reads number and file of a system error.
func osError(f *classify.Failure) {
	m := f.Message
	if strings.HasPrefix(m, "zipimport: can't read data") || strings.HasPrefix(m, "zipimport: ") {
		archive(f)
		return
	}
	if strings.HasPrefix(m, "[Errno ") || strings.HasPrefix(m, "[WinError ") {
		at := strings.IndexByte(m, ' ') + 1
		if end := strings.IndexByte(m, ']'); end > at {
			f.Code = m[at:end]
		}
		f.Kind = classify.KindFile
		if q := lastQuoted(m); strings.ContainsAny(q, `/\`) {
			f.File = q
		}
		// The file in the message is the program that could not be started, and not a file of the product.
		if fromTool(f) && (f.Code == "2" || f.Code == "13" || f.Code == "8") {
			// A program that could not be started.
			f.Kind, f.Code, f.Message = classify.KindOther, "", "tool '"+lastQuoted(m)+"': "+m
		}
		return
	}
	native(f)
}

// fromTool reports whether the innermost frame is the one that starts child processes.
func fromTool(f *classify.Failure) bool {
	n := len(f.Frames)
	return n > 0 && strings.HasSuffix(strings.ReplaceAll(f.Frames[n-1].File, `\`, "/"), "/subprocess.py")
}

// tornTarget names the unit that the import statement was loading.
func tornTarget(f *classify.Failure) {
	if f.Module == "" {
		f.Module, f.Place = sourceTarget(f, true)
	}
}
