package jvm

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// stored reads what deserialising says about a class and the data that was written by another build of it.
func stored(f *classify.Failure, m string) {
	if f.Type != "InvalidClassException" && f.Type != "InvalidObjectException" {
		return
	}
	for _, w := range [...]string{"local class incompatible", "local class name incompatible", "incompatible types for field", "Serializable incompatible with Externalizable",
		"Externalizable incompatible with Serializable", "cannot bind enum descriptor", "cannot bind non-enum descriptor", "class invalid for deserialization", "Not a proxy",
		"cannot bind ordinary class to a record", "unmatched serializable field"} {
		if strings.Contains(m, w) {
			f.Kind, f.Module, f.ByData = classify.KindNewerData, classOf(m), true
			return
		}
	}
}

// archive reports the words of a jar file that is not whole.
func archive(f *classify.Failure, m string) bool {
	m = strings.ToLower(m)
	switch f.TypeModule + "." + f.Type {
	case "java.util.zip.ZipException", "java.util.zip.ZipError", "java.util.jar.JarException":
		return !strings.Contains(m, "duplicate entry")
	case "java.io.EOFException":
		return strings.Contains(m, "zlib") || m == ""
	case "java.util.zip.DataFormatException":
		return true
	case "java.lang.InternalError":
		return strings.Contains(m, "unsafe memory access")
	case "java.io.IOException":
		return strings.Contains(m, "invalid cen") || strings.Contains(m, "end header") || strings.Contains(m, "unexpected end of")
	}
	return false
}

// loading reports a stack on which a loader reads for code that needs a class. The program's own archives are no business
// of a loader.
func loading(frames []classify.Frame) bool {
	for i := len(frames) - 1; i >= 0; i-- {
		if loads(frames[i].Unit) {
			return true
		}
		if frames[i].Origin != classify.OriginRuntime {
			return false
		}
	}
	return false
}

// native reads what the JVM says when native code does not fit.
func native(f *classify.Failure, m string) {
	f.Kind = classify.KindBinding
	switch {
	case strings.HasPrefix(m, "no ") && strings.Contains(m, " in java.library.path"), strings.HasPrefix(m, "no ") && strings.Contains(m, " in system library path"):
		name, _, _ := strings.Cut(m[len("no "):], " in ")
		// The name as the program asked for it, and the file that it stands for.
		f.Module, f.Object = name, "lib"+name+".so"
	case strings.HasPrefix(m, "Can't load library: "), strings.HasPrefix(m, "Can't load "):
		_, path, _ := strings.Cut(m, "load ")
		f.Object = strings.TrimPrefix(path, "library: ")
	case strings.HasPrefix(m, "Native Library "):
		f.Kind = classify.KindOther // two loaders, and nothing that does not fit
	case strings.HasPrefix(m, "'"), strings.HasSuffix(strings.TrimSpace(m), "V") && strings.Contains(m, "("), strings.Contains(m, "(") && !strings.ContainsAny(m, "/ :"),
		strings.Contains(m, ".") && strings.Contains(m, "(") && !strings.Contains(m, ": "):
		f.Module, f.Symbol = signature(m)
	default:
		path, rest, ok := strings.Cut(m, ": ")
		if !ok {
			f.Kind = classify.KindOther
			return
		}
		library(f, path, rest)
	}
}

// library reads a loader's complaint behind the path of the library that was asked for.
func library(f *classify.Failure, path, rest string) {
	f.Object = path
	n, ok := classify.ReadLoader(rest)
	if !ok {
		// Windows words: which of the libraries that it needs is missing is not said.
		if !strings.Contains(rest, "dependent libraries") {
			f.Kind = classify.KindOther
		}
		return
	}
	f.Kind, f.Needs, f.Symbol = n.Kind, n.Needs, n.Symbol
	if n.Object != "" {
		f.Object = n.Object
	}
	if f.Needs == path {
		f.Needs = "" // the library itself is what is missing
	}
	if f.Kind == classify.KindTorn && n.Object == "" {
		f.Object = path
	}
}

// modules reads what the module system says at the start.
func modules(f *classify.Failure, m string) {
	switch {
	case f.Type != "FindException":
	case strings.HasPrefix(m, "Error reading "):
		path := strings.TrimPrefix(strings.TrimPrefix(m, "Error reading "), "module: ")
		f.Kind, f.File, f.FileIsUnit, f.Loading = classify.KindTorn, path, true, true
	case strings.HasPrefix(m, "Module ") && strings.Contains(m, " not found"):
		missing(f, m[len("Module "):])
		f.Startup = true
	}
}
