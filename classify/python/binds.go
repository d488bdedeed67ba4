package python

// Binds reports whether a source text binds a name at the top level of its module: by def, class, import, assignment, an
// annotation with a value, a loop, a with or a type statement, also inside top-level if, try, for, while, with and match
// blocks. It reads text and runs nothing, so names that a star import or a call brings in are not seen, and one branch of
// an if counts as much as the other. Text that is no Python binds whatever its lines seem to bind; nothing makes it fail.
func Binds(src []byte, name string) bool {
	if !identifier(name) {
		return false
	}
	s := scanner{src: src}
	inside := -1 // the indentation of the def or class whose body is being skipped
	for {
		line, indent, ok := s.logical()
		if !ok {
			return false
		}
		if inside >= 0 && indent > inside {
			continue
		}
		inside = -1
		block, found := binds(line, name)
		if found {
			return true
		}
		if block {
			inside = indent
		}
	}
}

// token is a word or a single character of source with the depth of brackets around it. String literals are one token of
// kind 's' without their text.
type token struct {
	text  string
	depth int
}

// scanner splits source into logical lines: brackets and backslashes join physical ones.
type scanner struct {
	src []byte
	at  int
}

// logical returns the tokens of the next logical line that has any, and its indentation.
func (s *scanner) logical() (line []token, indent int, ok bool) {
	for s.at < len(s.src) {
		indent = 0
		for s.at < len(s.src) && (s.src[s.at] == ' ' || s.src[s.at] == '\t' || s.src[s.at] == '\f') {
			if s.src[s.at] == '\t' {
				indent += 8 - indent%8
			} else {
				indent++
			}
			s.at++
		}
		if line = s.tokens(); len(line) > 0 {
			return line, indent, true
		}
	}
	return nil, 0, false
}

// tokens reads up to the end of the logical line and past it.
func (s *scanner) tokens() []token {
	var line []token
	depth := 0
	for s.at < len(s.src) {
		c := s.src[s.at]
		switch {
		case c == '\n':
			s.at++
			if depth == 0 {
				return line
			}
		case c == '#':
			for s.at < len(s.src) && s.src[s.at] != '\n' {
				s.at++
			}
		case c == '\\' && s.at+1 < len(s.src) && (s.src[s.at+1] == '\n' || s.src[s.at+1] == '\r'):
			s.at += 2
			if s.at < len(s.src) && s.src[s.at] == '\n' {
				s.at++
			}
		case c == '\'' || c == '"':
			s.literal(c)
			line = append(line, token{"s", depth})
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			s.at++
		case wordByte(c):
			from := s.at
			for s.at < len(s.src) && wordByte(s.src[s.at]) {
				s.at++
			}
			if s.at < len(s.src) && (s.src[s.at] == '\'' || s.src[s.at] == '"') && s.at-from <= 2 {
				continue // the prefix of a string literal
			}
			line = append(line, token{string(s.src[from:s.at]), depth})
		default:
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth = max(0, depth-1)
			}
			line = append(line, token{string(c), depth})
			s.at++
		}
	}
	return line
}

// literal skips a string. One that is not closed ends with its line, a triple-quoted one with the text.
func (s *scanner) literal(quote byte) {
	triple := s.at+2 < len(s.src) && s.src[s.at+1] == quote && s.src[s.at+2] == quote
	s.at++
	if triple {
		s.at += 2
	}
	for s.at < len(s.src) {
		switch c := s.src[s.at]; {
		case c == '\\':
			s.at++
		case c == '\n' && !triple:
			return
		case c == quote && !triple:
			s.at++
			return
		case c == quote && s.at+2 < len(s.src) && s.src[s.at+1] == quote && s.src[s.at+2] == quote:
			s.at += 3
			return
		}
		s.at++
	}
	s.at = len(s.src)
}

// wordByte reports a character of a name, every byte of a wide one included.
func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// binds reports whether a logical line binds the name, and whether it opens a def or class whose body is not top level.
func binds(line []token, name string) (block, found bool) {
	for len(line) > 0 {
		// One statement: up to a semicolon outside of brackets.
		end := 0
		for end < len(line) && !(line[end].text == ";" && line[end].depth == 0) {
			end++
		}
		b, f := statementBinds(line[:end], name)
		if f {
			return false, true
		}
		if b {
			return true, false
		}
		line = line[min(end+1, len(line)):]
	}
	return false, false
}

// statementBinds looks at one simple statement or the head of a compound one.
func statementBinds(t []token, name string) (block, found bool) {
	if len(t) == 0 {
		return false, false
	}
	word := t[0].text
	if word == "async" && len(t) > 1 {
		t = t[1:]
		word = t[0].text
	}
	// Every statement that binds has a word of its own, but for the assignment, which is what is left over.
	switch word {
	case "def", "class":
		return true, len(t) > 1 && t[1].text == name
	case "type":
		if len(t) > 2 && wordByte(t[1].text[0]) {
			return false, t[1].text == name
		}
	case "import":
		return false, importBinds(t[1:], name, true)
	case "from":
		for i := range t {
			if t[i].text == "import" && t[i].depth == 0 {
				return false, importBinds(t[i+1:], name, false)
			}
		}
		return false, false
	case "for":
		for i := 1; i < len(t) && t[i].text != "in"; i++ {
			if bare(t, i, name) {
				return false, true
			}
		}
		return bodyBinds(t, name)
	case "with":
		for i := 1; i+1 < len(t); i++ {
			if t[i].text == "as" && (t[i+1].text == name || t[i+1].text == "(") {
				for k := i + 1; k < len(t) && t[k].text != ":"; k++ {
					if bare(t, k, name) {
						return false, true
					}
				}
			}
		}
		return bodyBinds(t, name)
	case "if", "elif", "else", "try", "except", "finally", "while", "match", "case":
		if walrus(t, name) {
			return false, true
		}
		if block, found = bodyBinds(t, name); block || found || word != "match" && word != "case" {
			return block, found
		}
	case "return", "del", "assert", "raise", "global", "nonlocal", "pass", "print", "yield", "lambda":
		return false, walrus(t, name)
	}
	return false, walrus(t, name) || assigned(t, name)
}

// bodyBinds looks at what follows the colon of a compound statement in the same line.
func bodyBinds(t []token, name string) (block, found bool) {
	for i := range t {
		if t[i].text == ":" && t[i].depth == 0 && !(i+1 < len(t) && t[i+1].text == "=") {
			return statementBinds(t[i+1:], name)
		}
	}
	return false, false
}

// importBinds looks at the names behind import: an alias binds in place of what it stands for, and a dotted module its
// first part.
func importBinds(t []token, name string, dotted bool) bool {
	for i := range t {
		if t[i].text != name || i > 0 && t[i-1].text == "." {
			continue
		}
		if i > 0 && t[i-1].text == "as" {
			return true
		}
		renamed := false
		for k := i + 1; k < len(t) && t[k].text != ","; k++ {
			renamed = renamed || t[k].text == "as"
		}
		if !renamed && (dotted || i == 0 || t[i-1].text == "," || t[i-1].text == "(") {
			return true
		}
	}
	return false
}

// assigned looks for the name among the targets of an assignment: "a = b, (name, c) = f()", "name: int = 1".
func assigned(t []token, name string) bool {
	// In "a = b = f()" all but the last part are targets.
	last := -1 // the last equals sign that assigns
	for i := range t {
		if t[i].text == "=" && t[i].depth == 0 && !comparison(t, i) {
			last = i
		}
	}
	if last < 0 {
		return false
	}
	for i := range last {
		switch {
		case t[i].text == ":" && t[i].depth == 0:
			return i == 1 && t[0].text == name // behind it stands an annotation
		case bare(t, i, name):
			return true
		}
	}
	return false
}

// comparison reports an equals sign that is part of ==, <=, >=, != or :=. An operator in front of it, as in +=, rebinds.
func comparison(t []token, i int) bool {
	if i > 0 {
		switch t[i-1].text {
		case "=", "<", ">", "!", ":":
			return true
		}
	}
	return i+1 < len(t) && t[i+1].text == "="
}

// bare reports the name itself as a target: no attribute, no index, no call, no keyword.
func bare(t []token, i int, name string) bool {
	if t[i].text != name || i > 0 && t[i-1].text == "." {
		return false
	}
	if i+1 < len(t) {
		switch t[i+1].text {
		case ".", "[", "(":
			return false
		}
	}
	// Inside an index or a call the name is used and not bound.
	for k := i - 1; k >= 0; k-- {
		if (t[k].text == "(" || t[k].text == "[") && t[k].depth <= t[i].depth && t[k].depth > 0 && k > 0 && (wordByte(t[k-1].text[0]) && !keyword(t[k-1].text) || t[k-1].text == "]" || t[k-1].text == ")") {
			return closedBefore(t, k, i)
		}
	}
	return true
}

// closedBefore reports whether the bracket that opens at k is closed before i.
func closedBefore(t []token, k, i int) bool {
	for x := k + 1; x < i; x++ {
		switch t[x].text {
		case ")", "]", "}":
			if t[x].depth == t[k].depth-1 {
				return true
			}
		}
	}
	return false
}

// keyword reports a word in front of a bracket that does not make the bracket a call.
func keyword(w string) bool {
	switch w {
	case "for", "as", "in", "and", "or", "not", "if", "else", "with":
		return true
	}
	return false
}

// walrus looks for "name :=".
func walrus(t []token, name string) bool {
	for i := 0; i+2 < len(t); i++ {
		if t[i].text == name && t[i+1].text == ":" && t[i+2].text == "=" && t[i].depth > 0 {
			return true
		}
	}
	return false
}
