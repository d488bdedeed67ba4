package text

import "strings"

// flatRecord is a JSON object of plain values: strings of ASCII without escapes, numbers, words. Most records of a log are,
// and reading them takes no memory. whole is false where an object is not of this kind, and must be decoded.
type flatRecord struct {
	whole bool
	// message and level are strings among the fields of that name, log the one of a container runtime.
	message, level [len(messages)]string
	log            string
	hasLog         bool
	// spoken says that there is a field that makes it a record of a log.
	spoken bool
	// because says that a reason stands beside the message: the two are put together.
	because bool
}

// flat reads a flat record.
func flat(l string) (r flatRecord) {
	at := blanks(l, 0)
	if at >= len(l) || l[at] != '{' {
		return flatRecord{}
	}
	at = blanks(l, at+1)
	for {
		key, n := plainString(l, at)
		if n < 0 {
			return flatRecord{} // an empty object too: nobody logs that
		}
		if at = blanks(l, n); at >= len(l) || l[at] != ':' {
			return flatRecord{}
		}
		at = blanks(l, at+1)
		value, isString := "", false
		if at < len(l) && l[at] == '"' {
			value, n = plainString(l, at)
			isString = true
		} else {
			n = plainValue(l, at)
		}
		if n < 0 {
			return flatRecord{}
		}
		r.set(key, value, isString)
		if at = blanks(l, n); at >= len(l) {
			return flatRecord{}
		}
		switch l[at] {
		case ',':
			at = blanks(l, at+1)
		case '}':
			r.whole = blanks(l, at+1) == len(l) && !(r.because && some(r.message[:]) != "")
			return r
		default:
			return flatRecord{}
		}
	}
}

// set notes a field. Of two with one name the later counts.
func (r *flatRecord) set(key, value string, isString bool) {
	if isString && value != "" && (key == reasons[0] || key == reasons[1]) {
		r.because = true
	}
	if key == "log" {
		r.log, r.hasLog = value, isString
		return
	}
	for i, k := range messages {
		if k == key {
			r.message[i] = value
		}
	}
	for i, k := range levels {
		if k == key {
			r.level[i] = value
		}
	}
	for _, k := range spoken {
		r.spoken = r.spoken || k == key
	}
}

// text is what [record] gives for the record. There is no stack in it: one has line feeds, and those are escapes.
func (r *flatRecord) text() (text string, ok, whole bool) {
	if r.hasLog {
		return r.log, true, false
	}
	message, level := some(r.message[:]), some(r.level[:])
	if message == "" && !r.spoken {
		return "", false, false
	}
	if level != "" && !strings.EqualFold(level, "error") && leading(message) {
		return strings.ToUpper(level) + " " + message, true, true
	}
	return message, true, true
}

// some is the first that is not empty.
func some(list []string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// blanks is the next place from at on that holds no blank.
func blanks(l string, at int) int {
	for at < len(l) && (l[at] == ' ' || l[at] == '\t') {
		at++
	}
	return at
}

// plainString reads a string at a place, and where it ends; -1 where there is none, or one that is not plain.
func plainString(l string, at int) (string, int) {
	if at >= len(l) || l[at] != '"' {
		return "", -1
	}
	for i := at + 1; i < len(l); i++ {
		switch c := l[i]; {
		case c == '"':
			return l[at+1 : i], i + 1
		case c == '\\' || c < ' ' || c >= 0x80:
			return "", -1
		}
	}
	return "", -1
}

// plainValue is the end of a number without an exponent or of a word, -1 where there is none.
func plainValue(l string, at int) int {
	for _, w := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(l[at:], w) {
			return at + len(w)
		}
	}
	i := at
	if i < len(l) && l[i] == '-' {
		i++
	}
	first := i
	for i < len(l) && digit(l[i]) {
		i++
	}
	if i == first || l[first] == '0' && i > first+1 {
		return -1
	}
	if i < len(l) && l[i] == '.' {
		dot := i
		for i++; i < len(l) && digit(l[i]); i++ {
		}
		if i == dot+1 {
			return -1
		}
	}
	if i-at > 300 { // beyond what a decoder takes for a number
		return -1
	}
	return i
}
