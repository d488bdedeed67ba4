package classify

import "strings"

// Native is what a dynamic loader's message says. The runtimes print it inside their own errors, or the loader prints it
// and nothing else.
type Native struct {
	// Kind is KindBinding, KindTorn, KindFile or KindForeignABI; KindOther where the loader ran out of something, which the
	// never list reads.
	Kind Kind
	// Object is the file or library that could not be loaded, Needs what it lacks, Symbol the missing symbol or version.
	Object string
	Needs  string
	Symbol string
}

// ReadLoader reads a message of the dynamic loaders of Linux, macOS and Windows. It reports false for any other text.
func ReadLoader(m string) (Native, bool) {
	switch {
	// The loader ran out of memory or descriptors. That it names a file of ours says nothing about the file. "not
	// permitted" is a mount that forbids execution, which is neither.
	case strings.Contains(m, "failed to map segment from shared object"), strings.Contains(m, "cannot allocate memory"),
		strings.Contains(m, "cannot create shared object descriptor"), strings.Contains(m, "cannot map zero-fill pages"):
		n := Native{Kind: KindOther, Object: beforeColon(m)}
		return n, !strings.Contains(m, "not permitted")
	case strings.HasPrefix(m, "DLL load failed"):
		return windowsLoader(m)
	case strings.HasPrefix(m, "dlopen("):
		return macLoader(m)
	}
	return elfLoader(m)
}

// Apply enters into a failure what the loader says, for runtimes that print nothing of their own beside it. Where one
// object lacks something of another, the failure is about the one that does not have it.
func (n Native) Apply(f *Failure) {
	f.Kind, f.Object, f.Symbol = n.Kind, n.Object, n.Symbol
	if n.Needs != "" {
		f.Object = n.Needs
	}
}

// FindLoader finds a loader's complaint in the middle of a program's own words: "cannot load plugin: /path/x.so: undefined
// symbol: y". It reports false where there is none, or where no object is named by its path.
func FindLoader(line string) (Native, bool) {
	line = line[:min(len(line), 4096)]
	for at := 0; at < len(line); at++ {
		n := strings.IndexByte(line[at:], '/')
		if n < 0 {
			break
		}
		at += n
		if at > 0 && strings.IndexByte(" '\"`(=", line[at-1]) < 0 {
			continue
		}
		m := strings.TrimRight(line[at:], "'\"`)}] ")
		object, _, ok := strings.Cut(m, ": ")
		if !ok || !nativeFile(object) || len(object) > 512 {
			continue
		}
		if got, ok := ReadLoader(m); ok && got.Kind != KindOther {
			return got, true
		}
	}
	return Native{}, false
}

// elfLoader reads "object: complaint".
func elfLoader(m string) (Native, bool) {
	n := Native{Object: beforeColon(m)}
	rest := m
	if n.Object != "" {
		rest = strings.TrimPrefix(m[len(n.Object):], ": ")
	}
	switch {
	case strings.Contains(m, "undefined symbol: "):
		n.Kind = KindBinding
		n.Symbol = symbolWord(m[strings.Index(m, "undefined symbol: ")+len("undefined symbol: "):])
		if foreignSymbol(n.Symbol) {
			n.Kind = KindForeignABI
		}
		return n, true
	case strings.Contains(m, "symbol lookup error: "):
		n.Kind = KindBinding
		return n, true
	// The object in front lacks the version, the one behind asked for it and is the one that does not fit.
	case strings.Contains(m, "version `") && strings.Contains(m, "' not found"):
		// "lib.so.2: version `CORE_2' not found (required by object)"
		at := strings.Index(m, "version `") + len("version `")
		n.Kind, n.Needs = KindBinding, n.Object
		n.Symbol, _, _ = strings.Cut(m[at:], "'")
		if by := strings.Index(m, "(required by "); by >= 0 {
			n.Object = strings.TrimSuffix(strings.TrimSpace(m[by+len("(required by "):]), ")")
		}
		return n, true
	// What the loader says of a file that is being copied or was cut: it ends too early, or its beginning is not there
	// yet.
	case strings.Contains(rest, "file too short"), strings.Contains(rest, "invalid ELF header"), strings.Contains(rest, "ELF load command past end of file"),
		strings.Contains(rest, "cannot read file data"), strings.Contains(rest, "object file has no loadable segments"), strings.Contains(rest, "object file has no dynamic section"),
		strings.Contains(rest, "ELF file's phentsize not the expected size"), strings.Contains(rest, "ELF load command alignment not page-aligned"),
		strings.Contains(rest, "ELF file data encoding"), strings.Contains(rest, "ELF load command address/offset not"):
		n.Kind = KindTorn
		return n, true
	// A whole file that was built for something else.
	case strings.Contains(rest, "wrong ELF class"), strings.Contains(rest, "cannot dynamically load executable"), strings.Contains(rest, "cannot dynamically load position-independent executable"):
		n.Kind = KindBinding
		return n, true
	case strings.Contains(rest, "cannot open shared object file: No such file or directory"):
		// The object that asks is not printed; what is missing is.
		n.Kind, n.Needs, n.Object = KindBinding, n.Object, ""
		return n, true
	}
	return Native{}, false
}

// macLoader reads "dlopen(path, flags): complaint".
func macLoader(m string) (Native, bool) {
	path, rest, ok := strings.Cut(m[len("dlopen("):], ", ")
	if !ok {
		return Native{}, false
	}
	n := Native{Object: path, Kind: KindBinding}
	low := string(lowered(rest)) // byte for byte: places in one are places in the other, whatever the bytes are
	// The library in parentheses is what was asked for; the one that could not be bound may lie deeper.
	if from := field(rest, "Referenced from:"); from != "" {
		n.Object = from
	}
	switch {
	case strings.Contains(low, "symbol not found"):
		n.Symbol = macSymbol(rest)
		if in := field(rest, "Expected in:"); in != "" && in != "flat namespace" && in != "dynamic lookup" {
			n.Needs = in
		}
		if foreignSymbol(n.Symbol) {
			n.Kind = KindForeignABI
		}
	case strings.Contains(low, "library not loaded"):
		n.Needs = strings.TrimSpace(firstLine(rest[strings.Index(low, "library not loaded")+len("library not loaded"):]))
		n.Needs = strings.TrimSpace(strings.TrimPrefix(n.Needs, ":"))
		if macTorn(low) {
			n.Kind = KindTorn // it is there, and no whole library
		}
	// macOS lists every place it tried with what was wrong there, so these are looked for anywhere in the text.
	case macTorn(low), strings.Contains(low, "no suitable image found"):
		n.Kind = KindTorn
	case strings.Contains(low, "incompatible architecture"), strings.Contains(low, "wrong architecture"):
	case strings.Contains(low, "no such file"), strings.Contains(low, "image not found"):
	default:
		return Native{}, false
	}
	return n, true
}

// macTorn reports words, in lower case, about a file that is there only in part.
func macTorn(low string) bool {
	for _, w := range [...]string{"file too short", "file is too short", "truncated", "not a mach-o", "not valid mach-o", "extends beyond end of file", "past end of file"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// macSymbol is the symbol that macOS names, in quotes or behind a colon.
func macSymbol(m string) string {
	rest := m[strings.Index(string(lowered(m)), "symbol not found")+len("symbol not found"):]
	if at := strings.IndexByte(rest, '\''); at >= 0 && at < 40 {
		rest = rest[at+1:]
		if end := strings.IndexByte(rest, '\''); end >= 0 {
			return rest[:end]
		}
	}
	if at := strings.Index(rest, ": "); at >= 0 {
		return symbolWord(rest[at+2:])
	}
	return ""
}

// field is the rest of the line behind a label, without a build id.
func field(m, label string) string {
	at := strings.Index(m, label)
	if at < 0 {
		return ""
	}
	v := strings.TrimSpace(firstLine(m[at+len(label):]))
	if strings.HasPrefix(v, "<") {
		if end := strings.IndexByte(v, '>'); end > 0 {
			v = strings.TrimSpace(v[end+1:])
		}
	}
	return v
}

// firstLine is s up to its first line feed.
func firstLine(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}

// windowsLoader reads "DLL load failed while importing NAME: complaint". Older messages name nothing.
func windowsLoader(m string) (Native, bool) {
	n := Native{Kind: KindBinding}
	if at := strings.Index(m, " while importing "); at >= 0 {
		n.Object, _, _ = strings.Cut(m[at+len(" while importing "):], ":")
	}
	switch {
	// The two ways in which Windows says that libraries of different builds have met. It names neither the function nor
	// the library, only what was being imported.
	case strings.Contains(m, "procedure could not be found"), strings.Contains(m, "ordinal") && strings.Contains(m, "could not be located"), strings.Contains(m, "module could not be found"):
	// Error 193 is what a half-copied library gives. Another machine type has an error of its own.
	case strings.Contains(m, "not a valid Win32 application"), strings.Contains(m, "image file") && strings.Contains(m, "is valid, but is for a machine type"):
		n.Kind = KindTorn
		if strings.Contains(m, "machine type") {
			n.Kind = KindBinding
		}
	case strings.Contains(m, "paging file is too small"), strings.Contains(m, "Not enough memory"):
		n.Kind = KindOther
	default:
		return Native{}, false
	}
	return n, true
}

// beforeColon is the object in front of a loader's complaint.
func beforeColon(m string) string {
	o, _, ok := strings.Cut(m, ": ")
	if !ok || strings.ContainsAny(o, "\n") || len(o) > 512 {
		return ""
	}
	return o
}

// symbolWord is the symbol at the start of s, without a version behind an at sign or a closing mark.
func symbolWord(s string) string {
	end := 0
	for end < len(s) && (nameByte(s[end]) || s[end] == '$' || s[end] == '.' && end > 0) {
		end++
	}
	return strings.TrimRight(s[:end], ".")
}

// foreignSymbol reports a symbol that by its mangled name belongs to a well-known library and to no product.
func foreignSymbol(sym string) bool {
	sym = strings.TrimPrefix(sym, "_")
	for _, p := range [...]string{"ZN3c10", "ZNK3c10", "ZN2at", "ZNK2at", "ZN5torch", "ZNK5torch", "ZN6google8protobuf", "ZNK6google8protobuf", "ZN5arrow", "ZNK5arrow",
		"ZN10tensorflow", "ZNK10tensorflow", "ZN2cv", "ZNSt", "ZSt", "SSL_", "EVP_", "OPENSSL_", "CRYPTO_", "sqlite3_", "cblas_", "dgemm_", "cuda", "cublas", "cudnn", "GLIBC", "CXXABI"} {
		if strings.HasPrefix(sym, p) || strings.HasPrefix("_"+sym, p) {
			return true
		}
	}
	return false
}
