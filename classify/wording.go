package classify

import "strings"

// wording reads what the product's own messages say about versions: the kind, and for a binding which one.
func (j *judge) wording(f *Failure, at seat) (Kind, string, int) {
	// A message says what it has to say in its first line. Behind it stand notes, output and other people's words.
	m := firstLine(f.Message)
	if len(m) > 2048 {
		m = m[:2048]
	}
	l := strings.ToLower(m)
	// Versions of the interpreter or of a provider's API are not versions of the product.
	if f.Type == "PackageNotFoundError" || says(l, "python version", "requires python", "api version") && !says(l, "schema", "wire") {
		return KindOther, "", -1
	}
	if j.foreignData(m) || foreignFormat(l) || j.userConfig(m) {
		return KindOther, "", -1
	}
	native := f.Type == "PanicException" || at.frame >= 0 && at.frame < len(f.Frames) && j.callsBinding(f.Frames[at.frame].Source)
	if k := wire(l, strings.ToLower(f.Type), native); k != KindOther {
		return k, "", -1
	}
	if b, r := j.namedBinding(m); r >= 0 && otherBuild(l) {
		return KindBinding, b, r
	}
	k := data(l, strings.ToLower(f.Type))
	if k == KindNewerData && j.foreignAuthor(l) {
		k = KindOther
	}
	return k, "", -1
}

// otherBuild reports words, in lower case, about a build or a version that does not fit.
func otherBuild(m string) bool {
	if says(m, "older than", "newer than", "rebuild", "reinstall", "built for", "built against", "compiled for", "compiled against", "out of date", "outdated",
		"too old", "too new", "stale", "version mismatch", "abi ") {
		return true
	}
	if !says(m, "mismatch", "requires", "required", "expected", "incompatible", "does not match") {
		return false
	}
	for i := 1; i+1 < len(m); i++ { // a dotted version
		if m[i] == '.' && m[i-1] >= '0' && m[i-1] <= '9' && m[i+1] >= '0' && m[i+1] <= '9' {
			return true
		}
	}
	return says(m, "version", "build")
}

// foreignData reports a message about a file of a workspace. What it says of versions is not about the product.
func (s *scope) foreignData(m string) bool {
	for _, d := range s.dirs {
		if d.root >= 0 {
			continue
		}
		for from := 0; ; {
			at := strings.Index(m[from:], d.path)
			if at < 0 {
				break
			}
			path := m[from+at:]
			if end := strings.IndexAny(path, "'\" \n),;"); end >= 0 && !strings.ContainsAny(d.path, " ") {
				path = path[:end]
			}
			if h, _, _ := s.file(path); h == workspace {
				return true
			}
			from += at + len(d.path)
		}
	}
	return false
}

// foreignFormat reports a message, in lower case, about what others define: the answers of a provider, and formats that many
// programs read. Their versions do not change with the product.
func foreignFormat(m string) bool {
	return says(m, "provider response", "provider returned", "provider sent", "provider's", "from the provider", "from provider", "by the provider", "lockfile", "lock file version", "package manager", "image manifest",
		"parquet", "avro", "git repository", "repository format", "openapi", "json schema", "onnx", "model format", "gguf")
}

// userConfig reports a message about a file of settings that lies in no root. People write those, and carry them between
// machines.
func (j *judge) userConfig(m string) bool {
	for w := range strings.FieldsFuncSeq(m, func(r rune) bool { return strings.ContainsRune(" '\"`,;()", r) }) {
		p := cleanPath(strings.TrimRight(w, ".:"))
		if !absolute(p) {
			continue
		}
		base := strings.ToLower(baseName(p))
		if !strings.Contains(p, "/.config/") && !strings.Contains(base, "config") && !strings.Contains(base, "settings") && !strings.HasSuffix(base, ".toml") && !strings.HasSuffix(base, ".ini") {
			continue
		}
		if d, ok := j.claim(p); !ok || d.root < 0 {
			return true
		}
	}
	return false
}

// foreignAuthor reports a message, in lower case, that names a program as the newer one which is not the product: a lock file
// that a newer package manager wrote is no skew of ours.
func (j *judge) foreignAuthor(m string) bool {
	at := strings.Index(m, "newer ")
	if at < 0 {
		return false
	}
	rest := m[at+len("newer "):]
	if end := strings.IndexAny(rest, "(,;:"); end >= 0 {
		rest = rest[:end]
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return r != '_' && r != '-' && (r < 'a' || r > 'z') })
	for _, w := range words[:min(len(words), 4)] {
		switch w {
		case "version", "release", "build", "of", "the", "a", "this", "program", "tool":
			continue
		case "than", "schema", "format", "layout", "client", "host", "process", "agent", "core", "code", "one", "and", "it", "which", "with", "to", "on", "for", "is", "was",
			"kind", "revision", "writer", "daemon", "server", "or", "in", "supports", "supported", "us":
			return false
		}
		return !j.productName(w)
	}
	return false
}

// productName reports whether a word in a message is a name of the product: a module or binding, or a part of one.
func (j *judge) productName(w string) bool {
	w = strings.ReplaceAll(w, "-", "_")
	for _, r := range j.roots {
		for _, list := range [...][]string{r.Modules, r.Bindings, {r.Name}} {
			for _, n := range list {
				n = strings.ToLower(strings.Trim(n, "_"))
				if len(w) > 2 && (strings.HasPrefix(n, w) || strings.HasPrefix(w, n)) {
					return true
				}
			}
		}
	}
	return false
}

// callsBinding reports whether a printed line of source calls into a declared binding. It supports a reading of the
// message and never makes one.
func (j *judge) callsBinding(source string) bool {
	if source == "" || strings.HasPrefix(source, "import ") || strings.HasPrefix(source, "from ") {
		return false // to load it is not to talk to it
	}
	_, r := j.namedBinding(source)
	return r >= 0
}

// namedBinding finds a declared binding that a text names as a whole word.
func (j *judge) namedBinding(s string) (string, int) {
	for i, r := range j.roots {
		for _, b := range r.Bindings {
			if word(s, b) || strings.Contains(b, "_") && word(s, strings.ReplaceAll(b, "_", "-")) {
				return b, i
			}
			// People leave the ending out. What is left must not be a word of the language.
			if stem := bindingStem(b); stem != b && strings.ContainsAny(stem, "_-") && (word(s, stem) || word(s, strings.ReplaceAll(stem, "_", "-"))) {
				return b, i
			}
		}
	}
	return "", -1
}

// named finds the first managed module that a message names as a whole word.
func (j *judge) named(m string) (string, int) {
	for w := range strings.FieldsFuncSeq(m, func(r rune) bool { return strings.ContainsRune(" \"'`,;:()[]{}=", r) }) {
		if r, more := j.pattern(w); r >= 0 && !more && has(j.roots[r].Modules, w) {
			return w, r
		}
	}
	return "", -1
}

// word reports whether s holds w between characters that belong to no name.
func word(s, w string) bool {
	if w == "" {
		return false
	}
	for from := 0; ; {
		at := strings.Index(s[from:], w)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(w)
		if (at == 0 || !nameByte(s[at-1])) && (end == len(s) || !nameByte(s[end])) {
			return true
		}
		from = at + 1
	}
}

func nameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// wire reads messages about what two sides of the product exchange, in lower case. native says that a binding raised it.
func wire(m, typ string, native bool) Kind {
	// Protocols of others. A product speaks many, and their versions do not change with its code.
	if says(m, "pickle protocol", "http", "tls", "ssl", "mcp", "language server", "lsp", "ssh", "git ", "docker", "redis", "postgres", "mysql", "websocket", "kafka", "provider", "amqp", "smtp", "ftp") {
		return KindOther
	}
	sides := says(m, "wire", "protocol", "handshake", "rpc", "ipc", "peer", "daemon", " speaks ", "theirs", "envelope", "frame version", "message version", "reply version", "request version", "packet version") ||
		says(typ, "wire", "protocol", "handshake")
	differ := says(m, "mismatch", "unsupported", "not supported", "incompatible", "unknown version", "unknown protocol", "newer", "differ",
		"disagree", "too old", "too new", " speaks ", "expected", "!=")
	versions := says(m, "version", "schema", " speaks ", "protocol too ", "protocol is too ")
	for _, w := range [...]string{"protocol", "wire", "rpc", "wire format", "frame format", "message format", "packet format", "wire revision", "protocol revision"} {
		versions = versions || numbered(m, w)
	}
	switch {
	// All three must be there: who talks, that they disagree, and about what. "handshake failed" alone may be a network.
	case sides && versions && (differ || versioned(m) && bounded(m) && compare(m) == KindNewerData):
		return KindWire
	case native && says(m, "schemamismatch", "schema mismatch", "versionmismatch", "version mismatch", "protocolmismatch"):
		return KindWire
	// A decoder that checks a closed set refuses what it does not know. That is skew where both ends are the product's,
	// and a typing error where a person wrote the document.
	case says(m, "unknown variant `", "unknown field `"):
		if (sides || native) && !says(m, "config", "directive", "workflow", ".toml", ".yml", ".yaml") {
			return KindWire
		}
		return KindUnclearWire
	// A field that is missing may have been dropped by the one side or be new to the other, or never have been sent.
	case says(m, "missing field `"):
		if sides {
			return KindWire
		}
		return KindUnclearWire
	case says(m, "validation error for ", "validation errors for "):
		return KindUnclearWire
	}
	return KindOther
}

// numbered reports a word with a number right behind it: "protocol 7", "wire v3".
func numbered(m, word string) bool {
	_, rest, ok := strings.Cut(m, word+" ")
	if !ok {
		return false
	}
	rest = strings.TrimPrefix(rest, "v")
	return rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

// data reads messages about stored data, in lower case.
func data(m, typ string) Kind {
	for _, verb := range [...]string{"written", "created", "saved", "stored", "migrated", "produced", "generated", "made", "serialized", "upgraded", "comes", "is", "was"} {
		for _, by := range [...]string{" by a newer", " with a newer", " from a newer", " by newer", " with newer", " by a more recent", " by a later", " by a future"} {
			if strings.Contains(m, verb+by) {
				return KindNewerData
			}
		}
	}
	if says(m, "unsupported pickle protocol") {
		return KindNewerData
	}
	noun := says(m, "schema", "format", "layout", "database", "ledger", "manifest", "snapshot", "state file", "journal", "checkpoint", "store version", "file version", "revision", "user_version") ||
		says(typ, "schema", "format")
	// The message says which side is ahead, in words.
	if noun && says(m, "newer than", "from the future", "too new", "more recent than", "ahead of", " is newer") {
		if !says(m, "code is newer", "binary is newer") {
			return KindNewerData
		}
	}
	// It says so in numbers: what the data has against what the code knows.
	if noun && versioned(m) && (bounded(m) || says(m, "unsupported", "not supported", "unknown", "mismatch", "expected", "supports", "supported",
		"known", "knows", "understands", "cannot read", "can't read", "refus", "incompatible", "unrecognized", "older than", "too old")) {
		if k := compare(m); k != KindOther {
			return k
		}
	}
	// The code and the tables differ, and nothing says which of them is ahead.
	if says(m, "no such column", "no such table", "has no column named", "can't locate revision", "undefinedcolumn", "undefinedtable") ||
		says(m, "column ", "relation ", "table ") && says(m, " does not exist", "doesn't exist") ||
		says(m, "reference nonexistent parent node", "unknown column") {
		return KindUnclearData
	}
	return KindOther
}

// bounded reports words, in lower case, for the newest version that the code knows.
func bounded(m string) bool {
	for _, w := range [...]string{"newest", "latest"} {
		if says(m, w+" format", w+" schema", w+" version", w+" protocol", w+" known", w+" understood", w+" supported", w+" readable") {
			return true
		}
	}
	return false
}

// versioned reports that a number in the message is a version: it stands right behind a word for one.
func versioned(m string) bool {
	if says(m, "version mismatch", "schema mismatch", "format mismatch", "layout mismatch", "revision mismatch") {
		return true
	}
	near := 0
	for w := range strings.FieldsFuncSeq(m, func(r rune) bool { return r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }) {
		w = strings.Trim(w, ".")
		switch {
		case says(w, "version", "schema", "format", "layout", "revision") || w == "rev":
			near = 3
		case near > 0 && strings.Trim(strings.TrimPrefix(w, "v"), "0123456789") == "" && w != "v" && w != "":
			return true
		case near > 0 && (w == "v" || w == "is" || w == "number" || w == "no" || w == "of" || w == "at" || w == "has" || w == "version" || w == "expected"):
			near--
		default:
			near = 0
		}
	}
	return false
}

// compare finds the version of the data and the versions that the code knows in a message and says which is newer.
func compare(m string) Kind {
	var have, know []int
	code := false
	for i := 0; i < len(m); {
		c := m[i]
		switch {
		case c >= '0' && c <= '9':
			n, end := 0, i
			for end < len(m) && m[end] >= '0' && m[end] <= '9' && end-i < 9 {
				n = n*10 + int(m[end]-'0')
				end++
			}
			// A number inside a name or a dotted version is no schema version.
			plain := (i == 0 || !nameByte(m[i-1]) && m[i-1] != '.' && m[i-1] != '-' || m[i-1] == 'v') && (end == len(m) || !nameByte(m[end])) &&
				(end+1 >= len(m) || m[end] != '.' || m[end+1] < '0' || m[end+1] > '9')
			if plain {
				if code {
					know = append(know, n)
				} else {
					have = append(have, n)
				}
			}
			i = end
		case nameByte(c):
			end := i
			for end < len(m) && nameByte(m[end]) {
				end++
			}
			word := m[i:end]
			if i > 0 && (m[i-1] == '/' || m[i-1] == '\\') {
				word = "" // a folder may be called anything
			}
			switch word {
			case "expected", "expects", "supports", "supported", "known", "knows", "know", "max", "maximum", "understands", "handles", "reads", "this", "only", "newest", "latest", "understood",
				"requires", "wanted", "want", "needs", "code", "binary", "current":
				code = true
			case "found", "got", "has", "file", "database", "db", "disk", "stored", "have", "actual", "unsupported", "unknown":
				code = false
			}
			i = end
		default:
			i++
		}
	}
	if len(have) == 0 || len(know) == 0 {
		return KindOther
	}
	high, low := know[0], know[0]
	for _, k := range know {
		high, low = max(high, k), min(low, k)
	}
	// Numbers that are no version of the data (a line, a shard) may stand in front of it: the last one counts.
	switch v := have[len(have)-1]; {
	case v > high:
		return KindNewerData
	case v < low:
		return KindOlderData
	}
	return KindOther
}
