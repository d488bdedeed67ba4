package text

import "strings"

// A layer recognises one kind of prefix: it returns the length of the prefix, 0 for none, and the source it names.
type layer func(line string) (n int, source string)

// The layers in the order of how certain they are.
var layers = []layer{criPrefix, syslogPrefix, stampPrefix, composePrefix, bracketPrefix, levelPrefix}

// The layers, by their place in the list.
const (
	stampLayer   = 2
	composeLayer = 3
	levelLayer   = 5
)

// partly reports a prefix that indented lines do not carry: a program's own log format, which it puts in front of an entry
// and not in front of every line. It is no dress, and it tells where entries begin.
func partly(lines []string, match layer) bool {
	for i, l := range lines {
		if i > 0 && strings.HasPrefix(l, "  ") && strings.TrimSpace(l) != "" {
			if n, _ := match(l); n == 0 {
				return true
			}
		}
	}
	return false
}

// margin reports that the bar behind a name is not the dress but the margin of an exception group: the lines that open and
// close the group have a plus in its place.
func margin(lines []string) bool {
	for _, l := range lines {
		at := strings.Index(l, " +-")
		if at <= 0 {
			continue
		}
		if name := strings.TrimRight(l[:at], " "); name != "" && !strings.ContainsAny(name, " |") {
			return true
		}
	}
	return false
}

// sampleLines is how many lines vote about the dress.
const sampleLines = 256

// undress takes one layer of prefixes off the lines if most of them carry it, and reports whether it did.
func (log *Log) undress(lines, sources *[]string) bool {
	// The end of the log is what is read, and tells how all of it is dressed.
	sample := (*lines)[max(0, len(*lines)-sampleLines):]
	full := 0
	for _, l := range sample {
		if strings.TrimSpace(l) != "" {
			full++
		}
	}
	if full == 0 {
		return false
	}
	for i, match := range layers {
		// The first line may be cut and a few lines may come from elsewhere, the rest must agree. The vote ends where the
		// lines that are left cannot turn it any more: soonest from the end, where the lines of a failure stand.
		hits := 0
		for k := len(sample) - 1; k >= 0; k-- {
			if n, _ := match(sample[k]); n > 0 || i == levelLayer && anyLevel(sample[k]) {
				hits++
			} else if most := hits + k; !enough(most, full) {
				hits = 0
				break
			}
		}
		if !enough(hits, full) || i == composeLayer && margin(*lines) || i >= stampLayer && i != composeLayer && partly(sample, match) {
			continue
		}
		// Lines that do not match are kept as they are. They are few, and some are the collector's own.
		out := (*lines)[:0]
		src := (*sources)[:0]
		joining := false
		for i, l := range *lines {
			n, s := match(l)
			if i == len(*lines)-1 {
				log.shared += l[:n]
			}
			partial := n > 2 && strings.HasSuffix(l[:n], " P ")
			if joining && n > 0 && len(out) > 0 {
				out[len(out)-1] += l[n:]
			} else {
				if s == "" {
					s = (*sources)[i]
				}
				out, src = append(out, l[n:]), append(src, s)
			}
			joining = partial
		}
		*lines, *sources = out, src
		return true
	}
	prefix := common(*lines)
	log.shared += prefix
	return prefix != ""
}

// enough reports that of the lines that are not blank so many have a prefix that it is dress.
func enough(hits, full int) bool {
	return hits > 0 && (hits*10 >= full*7 || full <= 3 && hits >= full-1)
}

// criPrefix is the line of a container runtime: time, stream, full or partial.
func criPrefix(l string) (int, string) {
	n := stamp(l)
	if n == 0 || n >= len(l) || l[n] != ' ' {
		return 0, ""
	}
	rest := l[n+1:]
	for _, stream := range [...]string{"stderr ", "stdout "} {
		if strings.HasPrefix(rest, stream) && len(rest) > len(stream)+1 {
			m := len(stream)
			if (rest[m] == 'F' || rest[m] == 'P') && rest[m+1] == ' ' {
				return n + 1 + m + 2, ""
			}
		}
		if rest == stream+"F" {
			return len(l), ""
		}
	}
	return 0, ""
}

// syslogPrefix is "Nov 30 12:54:15 host prog[123]: " in the forms that syslog daemons, journals and relays print.
func syslogPrefix(l string) (int, string) {
	// The old and the new syslog format both begin with the priority where a relay kept it.
	at := 0
	if strings.HasPrefix(l, "<") { // priority, and perhaps the version of the newer syslog format
		end := strings.IndexByte(l, '>')
		if end < 2 || end > 4 {
			return 0, ""
		}
		at = end + 1
		if strings.HasPrefix(l[at:], "1 ") {
			return rfc5424(l, at+2)
		}
	}
	n := bsdStamp(l[at:])
	old := n > 0
	if n == 0 {
		n = stamp(l[at:])
	}
	if n == 0 {
		n = uptime(l[at:])
	}
	if n == 0 {
		return 0, ""
	}
	at += n
	// At most a host and a tag follow; the tag ends with a colon and, but for the old stamp, carries a process id.
	rest := l[at:]
	tag := strings.Index(rest, ": ")
	if tag < 0 && strings.HasSuffix(rest, ":") {
		tag = len(rest) - 1
	}
	if tag < 1 || tag > 120 || rest[0] != ' ' {
		return 0, ""
	}
	words := strings.Fields(rest[:tag])
	if len(words) == 0 || len(words) > 2 {
		return 0, ""
	}
	name := words[len(words)-1]
	pid := strings.HasSuffix(name, "]") && strings.IndexByte(name, '[') > 0
	if !pid && (!old || len(words) != 2) {
		return 0, ""
	}
	return min(at+tag+2, len(l)), ""
}

// rfc5424 skips time, host, application, process id, message id and structured data.
func rfc5424(l string, at int) (int, string) {
	for range 5 {
		sp := strings.IndexByte(l[at:], ' ')
		if sp < 1 {
			return 0, ""
		}
		at += sp + 1
	}
	if strings.HasPrefix(l[at:], "- ") {
		return at + 2, ""
	}
	if strings.HasPrefix(l[at:], "[") {
		if end := strings.Index(l[at:], "] "); end > 0 {
			return at + end + 2, ""
		}
	}
	return 0, ""
}

// stampPrefix is a time alone, bracketed or not, with one blank, tab or pipe behind it.
func stampPrefix(l string) (int, string) {
	at := 0
	open := strings.HasPrefix(l, "[")
	if open {
		at = 1
	}
	n := stamp(l[at:])
	if n == 0 {
		n = bsdStamp(l[at:])
	}
	if n == 0 {
		n = clock(l[at:])
	}
	if n == 0 && !open {
		n = epoch(l)
	}
	if n == 0 && open {
		n = uptime(l)
		if n > 0 {
			n -= 2
		}
	}
	if n == 0 {
		return 0, ""
	}
	at += n
	if open {
		if !strings.HasPrefix(l[at:], "]") {
			return 0, ""
		}
		at++
	}
	if at == len(l) {
		return at, ""
	}
	switch {
	case strings.HasPrefix(l[at:], " | "):
		return at + 3, ""
	case strings.HasPrefix(l[at:], ": "):
		return at + 2, ""
	case l[at] == ' ' || l[at] == '\t':
		return at + 1, ""
	}
	return 0, ""
}

// composePrefix is "service-1  | ".
func composePrefix(l string) (int, string) {
	// The bar must follow the name with nothing but blanks between: a table has words there.
	n := 0
	for n < len(l) && nameByte(l[n]) {
		n++
	}
	if n == 0 || n > 80 {
		return 0, ""
	}
	name := l[:n]
	for n < len(l) && l[n] == ' ' {
		n++
	}
	if n >= len(l) || l[n] != '|' {
		return 0, ""
	}
	n++
	if n < len(l) && l[n] == ' ' {
		n++
	}
	return n, name
}

// bracketPrefix is "[pod/name/container] " or "(Actor pid=17) ".
func bracketPrefix(l string) (int, string) {
	if len(l) < 3 || (l[0] != '[' && l[0] != '(') {
		return 0, ""
	}
	end := byte(']')
	if l[0] == '(' {
		end = ')'
	}
	n := strings.IndexByte(l, end)
	if n < 2 || n > 120 {
		return 0, ""
	}
	// Levels and times stand in brackets too; only what surely names a process keeps lines apart.
	source := ""
	if strings.HasPrefix(l, "[pod/") || strings.Contains(l[:n], "pid=") {
		source = l[1:n]
	}
	if n+1 < len(l) && l[n+1] == ':' {
		n++
	}
	if n+1 == len(l) {
		return n + 1, source
	}
	if l[n+1] != ' ' {
		return 0, ""
	}
	return n + 2, source
}

// levelPrefix is a level, and perhaps a logger, in front of every line.
func levelPrefix(l string) (int, string) {
	for _, w := range [...]string{"ERROR", "CRITICAL", "FATAL", "stderr", "STDERR", "err", "E"} {
		if !strings.HasPrefix(l, w) {
			continue
		}
		rest := l[len(w):]
		switch {
		case strings.HasPrefix(rest, ": "):
			return len(w) + 2, ""
		case strings.HasPrefix(rest, " | "):
			return len(w) + 3, ""
		case rest == ":" && w[0] < 'a':
			return len(l), ""
		case strings.HasPrefix(rest, " ") && len(w) > 4:
			return len(w) + 1, ""
		}
	}
	return 0, ""
}

// anyLevel reports a line that begins with any level, so that where all lines do the errors among them can lose theirs. The
// other levels stay: they tell what a run survived.
func anyLevel(l string) bool {
	for _, w := range [...]string{"DEBUG", "INFO", "WARN", "ERROR", "CRITICAL", "FATAL"} {
		if strings.HasPrefix(l, w) {
			return true
		}
	}
	return false
}

// common takes off what nine lines of ten begin with, digits aside: the prefix of a collector that no layer knows. It returns
// the prefix as one of them has it, empty where there is none.
func common(lines []string) string {
	// The second line is the pattern, because the first may be cut.
	base := ""
	full := 0
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		full++
		if base == "" && full > 1 { // the first line may be cut
			base = l
		}
	}
	if full < 3 {
		return ""
	}
	base = base[:min(len(base), 96)]
	// The shortest agreement among the lines that agree at all; lines that disagree at once are counted out.
	shared, out := len(base), 0
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		n := agree(base, l)
		if n < 4 {
			out++
			continue
		}
		shared = min(shared, n)
	}
	if out*10 > full || out > 0 && full < 6 {
		return ""
	}
	// Only whole words: the prefix ends behind a blank, and is not indentation alone.
	prefix := base[:shared]
	end := strings.LastIndexByte(prefix, ' ') + 1
	if strings.ContainsAny(prefix[:end], "><$#") || !strings.ContainsAny(prefix[:end], "0123456789[](|/-:") {
		return "" // a mark of quotation, or a mere word
	}
	if end < 4 || strings.TrimSpace(prefix[:end]) == "" || strings.HasPrefix(prefix, " ") {
		return ""
	}
	if strings.HasSuffix(prefix[:end], "  ") && !strings.HasPrefix(strings.TrimRight(prefix, " ")+" ", prefix[:end]) {
		return ""
	}
	for i, l := range lines {
		if agree(base[:end], l) == end {
			lines[i] = l[end:]
		} else if strings.TrimSpace(l) == strings.TrimSpace(base[:end]) {
			lines[i] = ""
		}
	}
	return base[:end]
}

// agree is how many leading bytes two lines share, one digit being as good as another.
func agree(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] && !(digit(a[i]) && digit(b[i])) {
			return i
		}
	}
	return n
}
