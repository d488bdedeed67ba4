package notify

import (
	"strings"
)

// Placeholder stands where something secret was.
const Placeholder = "[redacted]"

// Redact takes out what must not be shown: passwords, keys and tokens named as such (in assignments, JSON, headers,
// options and URLs), credentials in URLs, private key blocks, and tokens that their shape betrays. Everything else
// stays as it is, down to the last byte. Redacting twice changes nothing more, and the time is linear in the text.
//
// It goes by names and shapes, so a bare password in a sentence passes through: raw evidence stays private all the
// same, and text that needs no showing should not be shown.
func Redact(s string) string {
	// The shortest thing that is hidden has a separator in it or is longer than this.
	if !strings.ContainsAny(s, ":=_- ") && len(s) < 16 {
		return s
	}
	// What is hidden changes what stands beside it, so the result is looked at once more until nothing is found. Twice is
	// the rule; the bound keeps the time linear whatever the text.
	for range passes {
		next := redactOnce(s)
		if next == s {
			break
		}
		s = next
	}
	return s
}

// passes bounds the times that a text is gone over.
const passes = 6

func redactOnce(s string) string {
	r := redactor{in: s}
	for r.i < len(s) {
		if !r.match() {
			r.i++
		}
	}
	if r.done == 0 {
		return s // nothing was hidden, and nothing copied
	}
	return r.out.String() + s[r.done:]
}

// redactor walks over the text once. What lies before done is in out already, redacted.
type redactor struct {
	in   string
	i    int
	done int
	out  strings.Builder
	run  run
	// lineTo and wordTo are the ends that were found last, and equals the last "=" before lineTo. A position before them
	// has the same end, so that a line of a thousand headers is measured once.
	lineTo, wordTo, equals int
}

// hide replaces in[from:to], and goes on after it.
func (r *redactor) hide(from, to int) {
	if from < r.done {
		from = r.done
	}
	if to <= from {
		r.i = max(r.i+1, to)
		return
	}
	r.out.WriteString(r.in[r.done:from])
	r.out.WriteString(Placeholder)
	r.done, r.i = to, to
}

// match tries everything that can begin or be decided at in[i], and reports whether it moved on.
func (r *redactor) match() bool {
	switch c := r.in[r.i]; {
	case c == '-':
		return r.keyBlock() || r.option()
	case c == ':':
		return r.url() || r.assignment()
	case c == '=':
		return r.assignment()
	case isWord(c):
		return r.shape() || r.scheme()
	}
	return false
}

// keyBlock hides a private key in PEM armour. A block whose end was cut off is hidden as far as its lines look like
// one; a block whose beginning was cut off, backwards from its end.
func (r *redactor) keyBlock() bool {
	const begin, end, key = "-----BEGIN ", "-----END ", "PRIVATE KEY"
	rest := r.in[r.i:]
	isBegin, isEnd := strings.HasPrefix(rest, begin), strings.HasPrefix(rest, end)
	if !isBegin && !isEnd {
		return false
	}
	label, ok := armourLabel(rest)
	if !ok || !strings.Contains(label, key) {
		return false
	}
	stop := r.i + len(label)
	// An end without its beginning: the tail of a log starts within the key.
	if isEnd {
		from := r.i
		for from > r.done && isArmour(r.in[from-1]) {
			from--
		}
		// A line that is only in its end like the block belongs to the text before it.
		if from > 0 && r.in[from-1] != '\n' {
			from += strings.IndexByte(r.in[from:r.i], '\n') + 1
		}
		r.hide(from, stop)
		return true
	}
	for stop < len(r.in) {
		if strings.HasPrefix(r.in[stop:], end) {
			if l, ok := armourLabel(r.in[stop:]); ok {
				stop += len(l)
			}
			break
		}
		n := armourLine(r.in[stop:])
		if n == 0 {
			break
		}
		stop += n
	}
	r.hide(r.i, stop)
	return true
}

// armourLabel is the "-----BEGIN X-----" that s begins with.
func armourLabel(s string) (string, bool) {
	head := s[:min(len(s), 96)]
	i := strings.Index(head[5:], "-----")
	if i < 0 || strings.Trim(head[5:5+i], "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ") != "" {
		return "", false
	}
	return head[:5+i+5], true
}

// armourLine is how much of s, up to and with its first line break, may belong to a key block. Breaks may be written
// out, as they are in JSON.
func armourLine(s string) int {
	for _, header := range []string{"Proc-Type:", "DEK-Info:", "Comment:", "Version:"} {
		if strings.HasPrefix(s, header) {
			if i := strings.IndexByte(s, '\n'); i >= 0 {
				return i + 1
			}
			return len(s)
		}
	}
	i := 0
	for i < len(s) && isArmour(s[i]) {
		i++
		if s[i-1] == '\n' {
			break
		}
	}
	return i
}

func isArmour(c byte) bool {
	return isAlnum(c) || c == '+' || c == '/' || c == '=' || c == '\\' || c == '\n' || c == '\r'
}

// url hides the credentials of "scheme://user:password@host". A user alone is kept unless it looks like a token, as in
// "ssh://git@host".
func (r *redactor) url() bool {
	if !strings.HasPrefix(r.in[r.i:], "://") {
		return false
	}
	// The authority ends at the first "/", "?" or "#", but people put passwords with slashes into URLs unescaped: where
	// what follows the colon is no port, the "@" is looked for beyond.
	from := r.i + 3
	if at(r.in, from) == '[' { // an IPv6 address, or hidden already
		r.i = from
		return true
	}
	at, colon, slash, stop := -1, -1, -1, from
	for ; stop < len(r.in) && !endsURL(r.in[stop]); stop++ {
		switch c := r.in[stop]; {
		case c == '@' && (slash < 0 || !isPort(r.in, colon, slash)):
			at = stop
		case c == ':' && colon < 0 && slash < 0:
			colon = stop
		case (c == '/' || c == '?' || c == '#') && slash < 0:
			slash = stop
		}
		if at >= 0 && slash >= 0 && at < slash {
			break
		}
		if strings.HasPrefix(r.in[stop:], "://") {
			break
		}
	}
	if at >= 0 && (colon >= 0 && colon < at || at-from >= 16 && looksRandom(r.in[from:at])) {
		r.hide(from, at)
		return true
	}
	// A hook's address is its secret.
	for _, hook := range []string{"hooks.slack.com/services/", "discord.com/api/webhooks/"} {
		if strings.HasPrefix(r.in[from:], hook) {
			r.hide(from+len(hook), max(stop, from+len(hook)))
			return true
		}
	}
	r.i = from
	return true
}

// isPort reports that nothing between an authority's colon and its end speaks for a password: "host:8080/".
func isPort(s string, colon, slash int) bool {
	if colon < 0 {
		return true
	}
	for _, c := range []byte(s[colon+1 : slash]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func endsURL(c byte) bool {
	return c <= ' ' || c == '"' || c == '\'' || c == '`' || c == '<' || c == '>' || c == '\\'
}

// option hides the value after a bare option: "--password hunter2".
func (r *redactor) option() bool {
	if !strings.HasPrefix(r.in[r.i:], "--") || r.i > 0 && !isSpace(r.in[r.i-1]) {
		return false
	}
	end := r.i + 2
	for end < len(r.in) && isKeyByte(r.in[end]) && end-r.i < keyLimit {
		end++
	}
	kind := notSecret
	if end+1 < len(r.in) && r.in[end] == ' ' {
		kind = secretName(r.in[r.i+2 : end])
	}
	if kind != weak && kind != strong {
		return false
	}
	from := end + 1
	to := from
	quote := r.in[from]
	if quote == '"' || quote == '\'' {
		from++
		to = closing(r.in, from, quote)
	} else {
		for to < len(r.in) && !isSpace(r.in[to]) {
			to++
		}
	}
	text := r.in[from:to]
	// A usage text names its value in capitals or brackets, and prose goes on with a word.
	if text == "" || text[0] == '-' || text[0] == '[' || harmless(text) || text == strings.ToUpper(text) && !looksRandom(text) ||
		kind == weak && !looksRandom(text) || len(text) < 4 || strings.Contains(text, Placeholder) {
		return false
	}
	r.hide(from, to)
	return true
}

// scheme hides what follows "Bearer " where it looks like a token; prose such as "bearer token missing" stays.
func (r *redactor) scheme() bool {
	const word = "bearer "
	if r.i > 0 && isWord(r.in[r.i-1]) || len(r.in)-r.i < len(word) || !strings.EqualFold(r.in[r.i:r.i+len(word)], word) {
		return false
	}
	from := r.i + len(word)
	to := from
	for to < len(r.in) && isTokenByte(r.in[to]) {
		to++
	}
	if !looksRandom(r.in[from:to]) {
		return false
	}
	r.hide(from, to)
	return true
}

// looksRandom reports whether a text is long enough and mixed enough to be a token rather than a word.
func looksRandom(s string) bool {
	digit, letter := false, false
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digit = true
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			letter = true
		}
	}
	return len(s) >= 8 && digit && letter || len(s) >= 32 && letter
}

// closing is where a quoted value ends: at its quote, at the end of the line, or at the end of the text.
func closing(s string, from int, quote byte) int {
	for i := from; i < len(s); i++ {
		switch s[i] {
		case quote, '\n', '\r':
			return i
		case '\\':
			i++
		}
	}
	return len(s)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isWord(c byte) bool { return isAlnum(c) || c == '_' }

func isTokenByte(c byte) bool {
	return isWord(c) || c == '-' || c == '.' || c == '~' || c == '+' || c == '/' || c == '='
}
