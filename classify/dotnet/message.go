package dotnet

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// read sets the kind of a failure and what it names, by its type and message.
func read(f *classify.Failure) {
	if !strings.HasPrefix(f.TypeModule, "System") && f.TypeModule != "Microsoft.CSharp.RuntimeBinder" {
		return
	}
	m := f.Message
	l := strings.ToLower(m)
	switch f.Type {
	case "FileNotFoundException", "FileLoadException":
		if name, ok := assembly(m); ok {
			assemblyGone(f, name)
		}
	case "BadImageFormatException":
		if name, ok := assembly(m); ok {
			f.Kind, f.Loading = classify.KindTorn, true
			unit(f, name)
		} else if name, ok := between(m, "format of the file '", "'"); ok {
			f.Kind, f.Loading = classify.KindTorn, true
			unit(f, name)
		}
	case "TypeLoadException", "ReflectionTypeLoadException":
		typeLoad(f, m)
	case "MissingMethodException", "MissingFieldException":
		member(f, m)
	case "MissingMemberException", "InvalidCastException", "TargetParameterCountException", "TargetException", "RuntimeBinderException":
		f.Kind = classify.KindSignature
	case "ArgumentException":
		if strings.HasPrefix(m, "Object of type '") && strings.Contains(m, "' cannot be converted to type '") {
			f.Kind = classify.KindSignature
		}
	case "MethodAccessException", "FieldAccessException", "TypeAccessException":
		access(f, m)
	case "EntryPointNotFoundException":
		entryPoint(f, m)
	case "DllNotFoundException":
		library(f, m)
	case "SerializationException":
		serialized(f, m)
	case "OutOfMemoryException", "InsufficientMemoryException":
		f.Listed = classify.OOM
	case "TimeoutException":
		f.Listed = classify.Timeout
	case "TaskCanceledException", "OperationCanceledException":
		f.Listed = classify.Killed
		if strings.Contains(l, "timeout") || strings.Contains(l, "timed out") {
			f.Listed = classify.Timeout
		}
	case "SocketException":
		f.Listed = classify.ProviderError
		if strings.Contains(l, "timed out") {
			f.Listed = classify.Timeout
		}
	case "HttpRequestException", "WebException", "HttpIOException", "WebSocketException":
		f.Listed = answer(l)
	case "AuthenticationException":
		if strings.HasPrefix(f.TypeModule, "System.Security") {
			f.Listed = classify.ProviderError
		}
	}
}

// answer reads the status in what a client of HTTP says, in lower case.
func answer(l string) classify.Reason {
	switch {
	case strings.Contains(l, "429"):
		return classify.RateLimit
	case strings.Contains(l, "401"), strings.Contains(l, "403"):
		return classify.Auth
	case strings.Contains(l, "timed out"), strings.Contains(l, "timeout"):
		return classify.Timeout
	}
	return classify.ProviderError
}

// between is what stands between two marks.
func between(m, from, to string) (string, bool) {
	_, rest, ok := strings.Cut(m, from)
	if !ok {
		return "", false
	}
	in, _, ok := strings.Cut(rest, to)
	return in, ok
}

// assembly is the name or path in "Could not load file or assembly '...'", without version and culture.
func assembly(m string) (string, bool) {
	name, ok := between(m, "Could not load file or assembly '", "'")
	if !ok {
		return "", false
	}
	name, _, _ = strings.Cut(name, ", ")
	return strings.TrimPrefix(name, "file://"), name != ""
}

// unit sets what a failure is about: an assembly by name, or the path of one.
func unit(f *classify.Failure, name string) {
	if strings.ContainsAny(name, `/\`) {
		f.File, f.FileIsUnit = name, true
		return
	}
	f.Module = strings.TrimSuffix(name, ".dll")
	f.Standard = standard(f.Module)
}

// assemblyGone is an assembly that is not there or is not the one that its user was compiled against.
func assemblyGone(f *classify.Failure, name string) {
	f.Kind, f.Loading = classify.KindMissingModule, true
	unit(f, name)
}

// typeLoad reads which type is missing or does not fit its base and interfaces.
func typeLoad(f *classify.Failure, m string) {
	// The first line of a collection says nothing; what the loader said stands below it.
	for line := range strings.SplitSeq(m, "\n") {
		if name, ok := between(line, "Could not load type '", "'"); ok {
			lack(f, name, "")
			return
		}
		// Mono: "Could not resolve type with token 01000010 from typeref (expected class 'Acme.Sink' in assembly ...)"
		if name, ok := between(line, "expected class '", "'"); ok {
			lack(f, name, "")
			return
		}
		if method, ok := between(line, "Method '", "'"); ok {
			if name, ok := between(line, " in type '", "'"); ok {
				method, _, _ = strings.Cut(method, "(")
				lack(f, name, method[strings.LastIndexAny(method, ". ")+1:])
				return
			}
		}
		if name, ok := between(line, " type '", "'"); ok {
			lack(f, name, "")
			return
		}
		if name, ok := assembly(line); ok {
			assemblyGone(f, name)
			return
		}
		if name, ok := between(line, "VTable setup of type ", " failed"); ok {
			lack(f, name, "")
			return
		}
	}
}

// lack is a type, or a member that a type does not have.
func lack(f *classify.Failure, class, symbol string) {
	f.Kind, f.Module, f.Symbol, f.Loading = classify.KindMissingName, class, symbol, true
	if symbol == "" {
		f.Kind = classify.KindMissingModule
	}
	f.Standard = standard(class)
}

// member reads "Method not found: 'Void Acme.Frames.Open(System.String)'.", with and without quotes.
func member(f *classify.Failure, m string) {
	first, _, _ := strings.Cut(m, "\n")
	rest, ok := strings.CutPrefix(first, "Method not found: ")
	if !ok {
		if rest, ok = strings.CutPrefix(first, "Field not found: "); !ok {
			// Looked up by the program itself: "Constructor on type 'X' not found."
			f.Kind = classify.KindSignature
			return
		}
	}
	class, name := signature(rest)
	if class == "" {
		return
	}
	lack(f, class, name)
}

// signature finds class and member in a printed signature.
func signature(s string) (class, name string) {
	s, _, _ = strings.Cut(s, " Due to: ")
	s = strings.Trim(strings.TrimSpace(s), "'`\".")
	if at := strings.IndexByte(s, '('); at >= 0 {
		s = s[:at]
	}
	// Type arguments hold blanks and dots of their own.
	var b strings.Builder
	depth := 0
	for _, c := range []byte(s) {
		switch {
		case c == '<' || c == '[':
			depth++
		case c == '>' || c == ']':
			depth--
		case depth <= 0:
			b.WriteByte(c)
		}
	}
	s = strings.TrimSpace(b.String())
	s = s[strings.LastIndexByte(s, ' ')+1:]
	if stem, ok := strings.CutSuffix(s, "..ctor"); ok {
		return stem, ".ctor"
	}
	at := strings.LastIndexAny(s, ".:")
	if at <= 0 {
		return "", s
	}
	class = strings.TrimRight(s[:at], ":.")
	if i := strings.IndexByte(class, '`'); i > 0 {
		class = class[:i]
	}
	return class, s[at+1:]
}

// access reads "Attempt by method 'A.M()' to access method 'B.N()' failed."
func access(f *classify.Failure, m string) {
	_, rest, ok := strings.Cut(m, " to access ")
	if !ok {
		return
	}
	q, ok := between(rest, "'", "'")
	if !ok {
		return
	}
	if strings.HasPrefix(rest, "type") {
		lack(f, q, "")
		return
	}
	class, name := signature(q)
	lack(f, class, name)
}

// entryPoint reads a function that native code does not have.
func entryPoint(f *classify.Failure, m string) {
	f.Kind = classify.KindBinding
	if sym, ok := between(m, "entry point named '", "'"); ok {
		f.Symbol = sym
		for _, mark := range [...]string{"shared library '", "native library '", "DLL '"} {
			if name, ok := between(m, mark, "'"); ok {
				object(f, name)
			}
		}
		return
	}
	// Mono names the function alone; the class that declares it stands on the stack.
	f.Symbol, _, _ = strings.Cut(m, " ")
	if n := len(f.Frames); n > 0 {
		f.Module = f.Frames[n-1].Unit
	}
}

// object sets the native library of a failure: as the program named it, and the file that it stands for.
func object(f *classify.Failure, name string) {
	f.Module, f.Object = name, name
	if !strings.ContainsAny(name, "./\\") && !strings.HasPrefix(name, "lib") {
		f.Object = "lib" + name + ".so"
	}
}

// library reads a native library that could not be loaded, and the attempts of the loader where they are printed.
func library(f *classify.Failure, m string) {
	f.Kind = classify.KindBinding
	name, ok := between(m, "Unable to load shared library '", "'")
	if !ok {
		name, ok = between(m, "Unable to load DLL '", "'")
	}
	if !ok { // Mono: "acme_core assembly:<unknown assembly> ..."
		name, _, _ = strings.Cut(m, " ")
	}
	object(f, name)
	for line := range strings.SplitSeq(m, "\n") {
		n, ok := classify.ReadLoader(line)
		if !ok || n.Kind == classify.KindOther {
			continue
		}
		// One of many names that were tried; that most of them are not there says nothing.
		if n.Symbol == "" && n.Kind == classify.KindBinding {
			continue
		}
		f.Kind, f.Needs, f.Symbol = n.Kind, n.Needs, n.Symbol
		if n.Object != "" {
			f.Object = n.Object
		}
		return
	}
}

// serialized reads what deserialising says about types and versions.
func serialized(f *classify.Failure, m string) {
	if name, ok := between(m, "Unable to find assembly '", "'"); ok {
		name, _, _ = strings.Cut(name, ", ")
		assemblyGone(f, name)
		f.ByData = true
		return
	}
	if name, ok := between(m, "Unable to load type ", " required for deserialization"); ok {
		lack(f, name, "")
		f.ByData = true
		return
	}
	if name, ok := between(m, "Possible Version mismatch. Type ", " has "); ok {
		f.Kind, f.Module, f.ByData = classify.KindNewerData, name, true
	}
}
