package text

import (
	"encoding/json"
	"fmt"
	"strings"
)

// unwrap opens the envelopes that hold one or more lines of text: JSON records, escaped line feeds of a syslog relay,
// and key-value records that carry a stack.
func unwrap(lines, sources []string) ([]string, []string) {
	if !enveloped(lines) {
		return lines, sources
	}
	out, src := make([]string, 0, len(lines)), make([]string, 0, len(lines))
	open := false // the last line of out came from a container record without a line feed
	for i, l := range lines {
		t := strings.TrimSpace(l)
		var parts []string
		joins, opens := false, false
		switch {
		case strings.HasPrefix(t, "{\"") && strings.HasSuffix(t, "}"):
			if r := flat(t); r.whole && !r.hasLog {
				if text, ok, _ := r.text(); ok {
					l = lastReturn(stripANSI(text))
				}
				break
			}
			if text, ok, whole := record(t); ok {
				parts, joins, opens = strings.Split(text, "\n"), open, !whole
				for k, s := range parts {
					parts[k] = lastReturn(stripANSI(s))
				}
			}
		case feeds(l):
			n, _ := syslogPrefix(l)
			parts = strings.Split(l[n:], "#012")
			for k := range parts { // every line looks as if it had been sent alone
				parts[k] = l[:n] + lastReturn(strings.TrimSuffix(parts[k], "#015"))
			}
		case escapedFrame(l) && keyValue(t):
			parts = escaped(l)
		}
		if parts == nil {
			out, src, open = append(out, l), append(src, sources[i]), false
			continue
		}
		if joins && len(out) > 0 {
			out[len(out)-1] += parts[0]
			parts = parts[1:]
		}
		for _, s := range parts {
			out, src = append(out, s), append(src, sources[i])
		}
		open = opens
	}
	return out, src
}

// enveloped is the cheap test whether any line is worth opening.
func enveloped(lines []string) bool {
	for _, l := range lines {
		if strings.HasPrefix(strings.TrimLeft(l, " "), "{\"") || feeds(l) || escapedFrame(l) {
			return true
		}
	}
	return false
}

// feeds reports line feeds as a syslog daemon writes them. The byte that they begin with is rare, and looked for first.
func feeds(l string) bool { return strings.IndexByte(l, '#') >= 0 && strings.Contains(l, "#012") }

// escapedFrame reports a frame of Python's behind a line feed that is escaped.
func escapedFrame(l string) bool {
	return strings.IndexByte(l, '\\') >= 0 && strings.Contains(l, `\n  File \"`)
}

// record reads a JSON record and returns the text it carries. whole is false where the record is a part of a line.
func record(l string) (text string, ok, whole bool) {
	if r := flat(l); r.whole {
		return r.text()
	}
	var m map[string]any
	// A record that is cut, or that only looks like one, stays what it is.
	if json.Unmarshal([]byte(l), &m) != nil {
		return "", false, false
	}
	if s, has := m["log"].(string); has { // a container runtime's own envelope
		return strings.TrimSuffix(s, "\n"), true, strings.HasSuffix(s, "\n")
	}
	var b strings.Builder
	message := first(m, messages[:]...)
	level := first(m, levels[:]...)
	if p, has := m["jsonPayload"].(map[string]any); has && message == "" {
		message = first(p, "message", "msg", "event")
	}
	// The message says what was reported and the stack why. Both are wanted, in the order in which a plain log would
	// print them.
	stack := stackOf(m, 0)
	if message == "" && stack == "" && !hasAny(m, spoken[:]...) {
		return "", false, false
	}
	// The level tells a failure that is reported from one that kills. A record that holds one line of many has none worth
	// telling: every line of a stream is of one level.
	if level != "" && (stack != "" || !strings.EqualFold(level, "error") && leading(message)) {
		b.WriteString(strings.ToUpper(level))
		b.WriteByte(' ')
	}
	b.WriteString(strings.TrimSuffix(message, "\n"))
	// The reason, where a logger keeps it beside the message.
	if why := first(m, reasons[:]...); message != "" && why != "" && !strings.Contains(why, "\n") && !strings.Contains(message, why) {
		b.WriteString(": " + why)
	}
	if stack != "" && !strings.Contains(message, stack) {
		b.WriteByte('\n')
		b.WriteString(strings.TrimSuffix(stack, "\n"))
	}
	return b.String(), true, true
}

// The fields that hold the message and the level, the likeliest first, and those that make a record one of a log even where
// they are empty.
var (
	messages = [...]string{"message", "msg", "MESSAGE", "event", "evt", "text", "textPayload", "body", "short_message", "line"}
	levels   = [...]string{"level", "lvl", "severity", "levelname", "log.level", "loglevel"}
	spoken   = [...]string{"message", "msg", "MESSAGE", "textPayload"}
	reasons  = [...]string{"error", "err"}
)

// first is the first string among the named fields.
func first(m map[string]any, names ...string) string {
	for _, n := range names {
		if s, ok := m[n].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// hasAny reports whether one of the named fields is there, whatever it holds.
func hasAny(m map[string]any, names ...string) bool {
	for _, n := range names {
		if _, ok := m[n]; ok {
			return true
		}
	}
	return false
}

// leading reports a message that begins a log entry, and is not a line of a traceback.
func leading(m string) bool {
	if m == "" || m[0] == ' ' || m[0] == '\t' || m[0] == '|' || strings.HasPrefix(m, "Traceback (most recent") {
		return false
	}
	word, _, _ := strings.Cut(m, ":")
	return strings.Contains(word, " ") || !strings.Contains(m, ": ") || strings.ToLower(word) == word
}

// stackOf finds the stack that loggers put into a field of its own. Output of a tool in any other field is not one.
func stackOf(m map[string]any, depth int) string {
	if depth > 3 {
		return ""
	}
	for _, n := range [...]string{"exc_info", "exc_text", "exception", "traceback", "stack", "stack_trace", "stacktrace",
		"stackTrace", "extendedStackTrace", "thrown", "error.stack_trace", "error.stack", "exception.stacktrace", "trace", "exc", "error", "err"} {
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

// described is a traceback that a logger keeps as data: type, value and frames of each exception of a chain.
func described(list []any) string {
	var b strings.Builder
	for i := len(list) - 1; i >= 0; i-- {
		e, ok := list[i].(map[string]any)
		if !ok || first(e, "exc_type") == "" {
			return ""
		}
		if b.Len() > 0 {
			// What is listed first was raised last.
			link := "During handling of the above exception, another exception occurred:"
			if prev, ok := list[i+1].(map[string]any); ok && prev["is_cause"] == true {
				link = "The above exception was the direct cause of the following exception:"
			}
			b.WriteString("\n" + link + "\n\n")
		}
		b.WriteString("Traceback (most recent call last):\n")
		frames, _ := e["frames"].([]any)
		for _, v := range frames {
			if fr, ok := v.(map[string]any); ok {
				n, _ := fr["lineno"].(float64)
				fmt.Fprintf(&b, "  File \"%s\", line %d, in %s\n", first(fr, "filename"), int(n), first(fr, "name"))
				if src := first(fr, "line"); src != "" {
					b.WriteString("    " + src + "\n")
				}
			}
		}
		b.WriteString(first(e, "exc_type") + ": " + first(e, "exc_value") + "\n")
	}
	return b.String()
}

// joined is a stack that is kept as a list of lines.
func joined(list []any) string {
	var b strings.Builder
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return described(list)
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
