package text

import (
	"encoding/json"
	"strings"
)

// unwrap opens the envelopes that hold one or more lines of text: JSON records, escaped line feeds of a syslog relay,
// and key-value records that carry a stack.
func unwrap(lines []string) []string {
	out := make([]string, 0, len(lines))
	open := false // the last line of out came from a container record without a line feed
	for _, l := range lines {
		t := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(t, "{\"") && strings.HasSuffix(t, "}"):
			text, ok, whole := record(t)
			if !ok {
				out, open = append(out, l), false
				continue
			}
			for i, s := range strings.Split(text, "\n") {
				s = stripANSI(lastReturn(s))
				if i == 0 && open && len(out) > 0 {
					out[len(out)-1] += s
				} else {
					out = append(out, s)
				}
			}
			open = !whole
		case strings.Contains(l, "#012"):
			out, open = append(out, strings.Split(l, "#012")...), false
		case strings.Contains(l, `\n  File \"`) && keyValue(t):
			out, open = append(out, escaped(l)...), false
		default:
			out, open = append(out, l), false
		}
	}
	return out
}

// record reads a JSON record and returns the text it carries. whole is false where the record is a part of a line.
func record(l string) (text string, ok, whole bool) {
	var m map[string]any
	if json.Unmarshal([]byte(l), &m) != nil {
		return "", false, false
	}
	if s, has := m["log"].(string); has { // a container runtime's own envelope
		return strings.TrimSuffix(s, "\n"), true, strings.HasSuffix(s, "\n")
	}
	var b strings.Builder
	message := first(m, "message", "msg", "MESSAGE", "event", "evt", "text", "textPayload", "body", "short_message", "line")
	level := first(m, "level", "lvl", "severity", "levelname", "log.level", "loglevel")
	if p, has := m["jsonPayload"].(map[string]any); has && message == "" {
		message = first(p, "message", "msg", "event")
	}
	stack := stackOf(m, 0)
	if message == "" && stack == "" {
		return "", false, false
	}
	if level != "" && !strings.Contains(message, "Traceback (most recent call last)") {
		b.WriteString(strings.ToUpper(level))
		b.WriteByte(' ')
	}
	b.WriteString(strings.TrimSuffix(message, "\n"))
	if stack != "" && !strings.Contains(message, stack) {
		b.WriteByte('\n')
		b.WriteString(strings.TrimSuffix(stack, "\n"))
	}
	return b.String(), true, true
}

// first is the first string among the named fields.
func first(m map[string]any, names ...string) string {
	for _, n := range names {
		if s, ok := m[n].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// stackOf finds the stack that loggers put into a field of its own. Output of a tool in any other field is not one.
func stackOf(m map[string]any, depth int) string {
	if depth > 3 {
		return ""
	}
	for _, n := range [...]string{"exc_info", "exc_text", "exception", "traceback", "stack", "stack_trace", "stacktrace",
		"stackTrace", "error.stack_trace", "error.stack", "exception.stacktrace", "trace", "exc", "error", "err"} {
		switch v := m[n].(type) {
		case string:
			if strings.Contains(v, "\n") {
				return v
			}
		case []any:
			if s := joined(v); s != "" {
				return s
			}
		case map[string]any:
			if s := stackOf(v, depth+1); s != "" {
				return s
			}
		}
	}
	for _, n := range [...]string{"jsonPayload", "data", "fields", "record", "attributes", "extra", "context"} {
		if v, ok := m[n].(map[string]any); ok {
			if s := stackOf(v, depth+1); s != "" {
				return s
			}
		}
	}
	return ""
}

// joined is a stack that is kept as a list of lines.
func joined(list []any) string {
	var b strings.Builder
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return ""
		}
		b.WriteString(strings.TrimSuffix(s, "\n"))
		b.WriteByte('\n')
	}
	return b.String()
}

// keyValue reports a record of the form level=error msg="..." exc="...".
func keyValue(l string) bool {
	lead := l[:min(len(l), 80)]
	if !strings.Contains(lead, "level=") && !strings.Contains(lead, "lvl=") && !strings.Contains(lead, "severity=") {
		return false
	}
	for _, k := range [...]string{"exc=\"", "exc_info=\"", "exception=\"", "traceback=\"", "stack=\"", "stacktrace=\"", "err=\"", "error=\""} {
		if strings.Contains(l, " "+k) {
			return true
		}
	}
	return false
}

// escaped opens the escaped line feeds of a key-value record.
func escaped(l string) []string {
	l = strings.ReplaceAll(l, `\n`, "\n")
	l = strings.ReplaceAll(l, `\"`, `"`)
	if at := strings.Index(l, `"Traceback (most`); at > 0 {
		l = l[:at] + "\n" + l[at+1:]
	}
	lines := strings.Split(l, "\n")
	lines[len(lines)-1] = strings.TrimSuffix(lines[len(lines)-1], `"`)
	return lines
}
