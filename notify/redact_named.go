package notify

import "strings"

// naming says how surely a name announces a secret.
type naming int

const (
	notSecret naming = iota
	// weak names ("token", "secret") are ordinary words of compilers and prose too: outside of plain assignments their
	// value has to look like a token.
	weak
	strong
	// header is Authorization, whose value has a scheme, and cookies whose value is a list.
	header
	cookies
)

// keyLimit bounds how far a name is looked for, so that the time stays linear.
const keyLimit = 64

// secretName classifies a name, whatever its case and its separators: "DB_PASSWORD", "db-password", "dbPassword".
func secretName(name string) naming {
	var buf [keyLimit]byte
	n, upper, parts := 0, true, 1
	// Lower case without separators, in place: the name of every assignment in a log comes through here.
	for i := 0; i < len(name) && n < keyLimit; i++ {
		c := name[i]
		switch {
		case c == '_' || c == '-' || c == '.':
			parts++
			continue
		case c >= 'A' && c <= 'Z':
			if i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
				parts++
			}
			c += 'a' - 'A'
		case c >= 'a' && c <= 'z':
			upper = false
		}
		buf[n] = c
		n++
	}
	s := buf[:n]
	ends := func(suffix string) bool { return n >= len(suffix) && string(s[n-len(suffix):]) == suffix }
	// The end of a name says what it is: "token_count" counts, "password_file" is a path, "max_tokens" is a bound.
	switch {
	case ends("password"), ends("passwd"), ends("passphrase"), ends("apikey"), ends("accesskey"), ends("secretkey"),
		ends("privatekey"), ends("signingkey"), ends("encryptionkey"), ends("accountkey"), ends("clientsecret"), ends("secretkeybase"),
		ends("accesstoken"), ends("authtoken"), ends("refreshtoken"), ends("idtoken"), ends("sessiontoken"), ends("apitoken"):
		return strong
	// PWD is where a shell stands, and "pass: 12" is what tests do.
	case ends("pwd") && parts > 1, ends("pass") && parts > 1 && upper:
		return strong
	case ends("token"), ends("secret"), ends("credential"), ends("credentials"), ends("key") && parts > 1 && upper:
		return weak
	case ends("authorization"):
		return header
	case string(s) == "cookie", string(s) == "setcookie":
		return cookies
	}
	return notSecret
}

// assignment hides the value of a secret's name: "password=x", "\"api_key\": \"x\"", "Authorization: Bearer x",
// "config['token'] = 'x'".
func (r *redactor) assignment() bool {
	i, sep := r.i, r.in[r.i]
	// "==", "!=", "<=" and "::" assign nothing.
	if at(r.in, i+1) == sep || i > 0 && strings.IndexByte(string(sep)+"!<>", r.in[i-1]) >= 0 {
		return false
	}
	if sep == ':' && at(r.in, i+1) == '=' {
		return false // the "=" decides
	}
	name, quoted := r.nameBefore(i)
	kind := secretName(name)
	if kind == notSecret {
		return r.signature(i, name)
	}
	from := i + 1
	if sep == '=' && at(r.in, from) == '>' {
		from++
	}
	spaced := at(r.in, i-1) == ' '
	for from < len(r.in) && (r.in[from] == ' ' || r.in[from] == '\t') {
		from++
		spaced = true
	}
	// A name at the end of its line announces something below it, which is not a value.
	if from == len(r.in) || r.in[from] == '\n' || r.in[from] == '\r' {
		return false
	}
	// What was hidden before stays as it is; that is what makes Redact idempotent.
	if strings.HasPrefix(r.in[from:], Placeholder) {
		r.i = from + len(Placeholder)
		return true
	}
	v := r.value(from)
	text := r.in[v.from:v.to]
	if text == "" {
		return false
	}
	switch kind {
	case header:
		return r.authorization(v, quoted)
	case cookies:
		end := r.lineEnd(v.from)
		if r.equals < v.from {
			return false
		}
		r.hide(v.from, end)
		return true
	}
	if !v.quoted && (harmless(text) || codeLike(text)) {
		return false
	}
	// "Unexpected token: foo" is a compiler's word and "token = next" a line of code; "token=foo" is an assignment.
	if kind == weak && !looksRandom(text) && !quoted && (sep == ':' || spaced && !v.quoted) {
		return false
	}
	r.hide(v.from, v.to)
	return true
}

// signature hides what lets a URL in by its query, where the name alone would not tell: "?key=", "&sig=" and
// "&X-Amz-Signature=" before something that looks like a key.
func (r *redactor) signature(i int, name string) bool {
	if before := at(r.in, i-len(name)-1); r.in[i] != '=' || before != '?' && before != '&' {
		return false
	}
	switch short := strings.ToLower(name); {
	case short == "key", short == "sig", strings.HasSuffix(short, "signature"):
	default:
		return false
	}
	if i+1 == len(r.in) {
		return false
	}
	v := r.value(i + 1)
	if text := r.in[v.from:v.to]; len(text) < 16 || !looksRandom(text) {
		return false
	}
	r.hide(v.from, v.to)
	return true
}

// nameBefore is the name that the separator at i belongs to, and whether it stands in quotes. A part of a path is no
// name.
func (r *redactor) nameBefore(i int) (name string, quoted bool) {
	// Nothing before done is looked at: it has been written out, and may have been hidden.
	end := i
	for end > r.done && i-end < keyLimit && (r.in[end-1] == ' ' || r.in[end-1] == '\t' || r.in[end-1] == ':') {
		end--
	}
	if end-1 > r.done && r.in[end-1] == ']' && isQuote(r.in[end-2]) {
		end--
	}
	if end > r.done && isQuote(r.in[end-1]) {
		quoted = true
		end--
		if end > r.done && r.in[end-1] == '\\' {
			end--
		}
	}
	from := end
	for from > r.done && end-from < keyLimit && isKeyByte(r.in[from-1]) {
		from--
	}
	if from > r.done && r.in[i] == ':' && (r.in[from-1] == '/' || r.in[from-1] == '\\') && !quoted {
		return "", false
	}
	return r.in[from:end], quoted
}

// value is where an assigned value lies, without its quotes.
type value struct {
	from, to int
	quoted   bool
}

func (r *redactor) value(from int) value {
	s := r.in
	// b"", f"", r"" and u"" are Python's; the letter stays.
	if c := s[from]; (c == 'b' || c == 'f' || c == 'r' || c == 'u') && isQuote(at(s, from+1)) {
		from++
	}
	if s[from] == '\\' && isQuote(at(s, from+1)) { // JSON within a string
		stop := s[from : from+2]
		from += 2
		end := from // not the line's end first: a line may hold thousands of them
		for end < len(s) && s[end] != '\n' && !strings.HasPrefix(s[end:], stop) {
			end++
		}
		return value{from, end, true}
	}
	if isQuote(s[from]) {
		return value{from + 1, closing(s, from+1, s[from]), true}
	}
	if r.wordTo <= from {
		r.wordTo = from
		for r.wordTo < len(s) && !isSpace(s[r.wordTo]) && strings.IndexByte("&;,)}]>\"'`<|", s[r.wordTo]) < 0 {
			r.wordTo++
		}
	}
	return value{from, r.wordTo, false}
}

// authorization hides what follows the scheme of an Authorization header. Prose that only mentions the word stays.
func (r *redactor) authorization(v value, quotedName bool) bool {
	end := v.to
	if !v.quoted {
		end = r.lineEnd(v.from)
	}
	text := r.in[v.from:end]
	word, rest, _ := strings.Cut(text, " ")
	if word == "" {
		return false
	}
	// One word follows these schemes; the others have lists, which go to the end of the header.
	switch strings.ToLower(word) {
	case "bearer", "basic", "token", "apikey":
		n := 0
		for n < len(rest) && isTokenByte(rest[n]) {
			n++
		}
		if n == 0 {
			return false
		}
		r.hide(v.from, v.from+len(word)+1+n)
		return true
	case "digest", "negotiate", "ntlm", "hawk", "aws4-hmac-sha256":
		r.hide(v.from, end)
		return true
	}
	if v.quoted && quotedName || looksRandom(word) {
		r.hide(v.from, v.from+len(word))
		return true
	}
	return false
}

// harmless are values that hold nothing: literals, types, variables and blanks of templates.
func harmless(s string) bool {
	word := s
	if len(s) <= len("undefined") {
		word = strings.ToLower(s)
	}
	switch word {
	case "none", "null", "nil", "true", "false", "undefined", "str", "string", "int", "bool", "bytes", "any", "optional",
		"object", "secretstr", "missing", "required", "invalid", "expired", "empty":
		return true
	}
	if strings.HasPrefix(s, "Optional[") || strings.HasPrefix(s, "[") || strings.Trim(s, "*.-{(^?!") == "" {
		return true
	}
	switch s[0] {
	case '{', '<', '%':
		return true
	case '$':
		// A variable's name in capitals, as shells write it; anything else behind a dollar may be a password.
		return strings.Trim(s[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789{") == ""
	}
	return false
}

// codeLike reports a value that is an expression in a printed source line: "get_token(", "self.token",
// "os.environ[". A name with a digit in it is taken for a password instead.
func codeLike(s string) bool {
	for _, p := range []string{"self.", "this.", "os.", "process.", "args.", "config.", "settings.", "cfg.", "opts.", "req.", "ctx.", "env."} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	n := 0
	for n < len(s) && (s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z' || s[n] == '_' || s[n] == '.') {
		n++
	}
	return n >= 3 && n < len(s) && (s[n] == '(' || s[n] == '[')
}

// lineEnd is the end of an unquoted header value: the end of the line, or the quote round the whole header.
func (r *redactor) lineEnd(from int) int {
	if r.lineTo <= from {
		i := from
		for i < len(r.in) && r.in[i] != '\n' && r.in[i] != '\r' && !isQuote(r.in[i]) {
			if r.in[i] == '=' {
				r.equals = i
			}
			i++
		}
		r.lineTo = i
	}
	return r.lineTo
}

func at(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

func isKeyByte(c byte) bool { return isWord(c) || c == '-' || c == '.' }
