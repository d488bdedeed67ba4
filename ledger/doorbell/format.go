package doorbell

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/run"
)

// kind is the JSON type of a value, with the words in which its absence is said.
type kind string

const (
	object  kind = "object"
	array   kind = "array"
	text    kind = "string"
	integer kind = "integer"
	truth   kind = "boolean"
)

// words is how an error names what it wants.
var words = map[kind]string{object: "an object", array: "a list", text: "a string", integer: "a whole number", truth: "true or false"}

// shape is what one value of a note may be. One description both refuses what is wrong and makes the published schema,
// so that the two cannot say different things.
type shape struct {
	kind  kind
	about string
	// fields of an object; no other is allowed.
	fields []field
	// items are the elements of a list.
	items *shape
	// only are the allowed strings, nil for all.
	only []string
	// full refuses the empty string.
	full bool
	// format is "date-time" (RFC 3339) or, for a string in base64, "base64".
	format string
	// or is another shape that does as well.
	or *shape
}

type field struct {
	name     string
	required bool
	shape
}

// format is the shape of a whole note; nothing alters it.
var format = note()

func note() shape {
	phases := make([]string, 0, len(run.All)+1)
	for _, p := range run.All {
		phases = append(phases, string(p))
	}
	phases = append(phases, string(run.UnknownPhase))
	count := func(about string) shape { return shape{kind: integer, about: about} }
	word := func(about string) shape { return shape{kind: text, about: about} }
	stamp := func(about string) shape {
		return shape{kind: object, about: about, fields: []field{
			{"wall", true, shape{kind: text, format: "date-time", about: "The wall clock, in RFC 3339."}},
			{"boot", false, word("The kernel's boot id, /proc/sys/kernel/random/boot_id on Linux. With uptime it makes the moment proof against changes of the wall clock.")},
			{"uptime", false, count("The clock that runs since the boot and also in suspend (CLOCK_BOOTTIME), in nanoseconds; only together with boot.")},
			{"grain", false, count("How coarse the wall clock's reading is, in nanoseconds: the moment lies in [wall, wall+grain].")},
		}}
	}
	file := shape{kind: object, fields: []field{
		{"path", true, word("Relative to the root's first folder, with slashes.")},
		{"digest", false, word("The SHA-256 of the content in hex; absent for a file that was deleted.")},
	}}
	binding := shape{kind: object, fields: []field{
		{"path", true, word("Where the library lies.")},
		{"size", false, count("In bytes.")},
		{"mtime", false, count("In nanoseconds since 1970.")},
		{"build_id", false, word("The library's build id.")},
	}}
	identity := shape{kind: object, fields: []field{
		{"root", true, shape{kind: text, full: true, about: "The root's name, as the run was registered with it."}},
		{"kind", false, word("How the identity was read: git, pypackage, folder, or a host's own.")},
		{"at", false, stamp("When it was read.")},
		{"revision", false, word("The commit, package version, or digest of the tree.")},
		{"dirty", false, shape{kind: array, about: "The files that differ from the revision, sorted by path.", items: &file}},
		{"bindings", false, shape{kind: array, about: "What the declared native libraries looked like.", items: &binding}},
		{"unknown", false, word("Why there is no identity; then nothing else is said.")},
	}}
	return shape{kind: object, about: "One death, as the dying run's side tells it.", fields: []field{
		{"schema", true, count("The version of this format: " + strconv.Itoa(Schema) + ".")},
		{"run", true, shape{kind: text, full: true, about: "The id with which the run was registered."}},
		{"at", false, stamp("When the run died. Absent: the time at which the note was written.")},
		{"phase", false, shape{kind: text, only: phases, about: "How far the run had come, at its highest. Absent: what the run marked before; where it marked nothing, a person is asked."}},
		{"exit", false, shape{kind: object, about: "How the process ended.", fields: []field{
			{"code", false, count("The exit code; -1 when the process died of a signal.")},
			{"signal", false, word("A name such as SIGKILL; absent when there was none.")},
		}}},
		{"cause", false, word("What the host knows for certain, such as rate_limit, auth, oom, timeout, disk_full, tool_failure; it beats the text.")},
		{"text", false, shape{kind: text, about: "The failure text; of a longer one the last " + strconv.Itoa(TextLimit) + " bytes are read. The whole note must be smaller than 1 MiB.",
			or: &shape{kind: object, about: "Text that is not valid UTF-8.", fields: []field{
				{"base64", true, shape{kind: text, format: "base64", about: "Its bytes."}},
			}}}},
		{"identities", false, shape{kind: array, about: "What code each root held at the death; a root that is missing was not read.", items: &identity}},
		{"silenced", false, shape{kind: truth, about: "Whether the run's own failure notice was held back for the healer; then nobody else tells of the failure."}},
	}}
}

// Parse reads a note as any program may have written it. What is wrong is said by field, with what is allowed there; a
// note of a later version is refused whole, for nobody here knows what it means. Text is cut to its last TextLimit bytes.
func Parse(b []byte) (Note, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return Note{}, fmt.Errorf("it is no whole JSON object: %w", err)
	}
	if len(bytes.TrimSpace(b[dec.InputOffset():])) > 0 {
		return Note{}, fmt.Errorf("it goes on behind the JSON object, at byte %d", dec.InputOffset())
	}
	if o, ok := v.(map[string]any); ok {
		if n, ok := whole(o["schema"]); ok {
			if err := (Note{Schema: int(n)}).version(); err != nil {
				return Note{}, err
			}
		}
	}
	var bad problems
	format.check("", v, &bad)
	if len(bad) > 0 {
		return Note{}, bad
	}
	var n Note
	if err := json.Unmarshal(b, &n); err != nil {
		return Note{}, err
	}
	if over := len(n.Text) - TextLimit; over > 0 {
		n.Text = n.Text[over:]
	}
	return n, n.Validate()
}

// problems are what is wrong with a note, a sentence each.
type problems []string

// showProblems bounds what one error says: a file that is something else altogether is wrong everywhere.
const showProblems = 4

func (p problems) Error() string {
	if n := len(p) - showProblems; n > 0 {
		return strings.Join(p[:showProblems], "; ") + fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(p, "; ")
}

// check adds what is wrong with a value.
func (s shape) check(path string, v any, bad *problems) {
	at := path
	if at == "" {
		at = "the note"
	}
	refuse := func(format string, args ...any) { *bad = append(*bad, at+": "+fmt.Sprintf(format, args...)) }
	switch k := kindOf(v); {
	case k != s.kind && s.or != nil && k == s.or.kind:
		s.or.check(path, v, bad)
		return
	case k != s.kind && s.or != nil:
		refuse("%s, want %s or %s", named(v), words[s.kind], words[s.or.kind])
		return
	case k != s.kind:
		refuse("%s, want %s", named(v), words[s.kind])
		return
	}
	switch v := v.(type) {
	case string:
		s.text(v, refuse)
	case []any:
		for i, e := range v {
			s.items.check(path+"["+strconv.Itoa(i)+"]", e, bad)
		}
	case map[string]any:
		s.object(path, v, bad)
	}
}

func (s shape) text(v string, refuse func(string, ...any)) {
	switch {
	case s.only != nil && !slices.Contains(s.only, v):
		refuse("%q, want one of %s", short(v), strings.Join(s.only, ", "))
	case s.full && v == "":
		refuse("empty, want %s", s.about)
	case s.format == "date-time":
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			refuse("%q, want a time in RFC 3339, such as 2026-01-31T12:00:00Z", short(v))
		}
	case s.format == "base64":
		if _, err := base64.StdEncoding.DecodeString(v); err != nil {
			refuse("no base64: %v", err)
		}
	}
}

func (s shape) object(path string, v map[string]any, bad *problems) {
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = f.name
		e, ok := v[f.name]
		switch {
		case ok:
			f.check(below(path, f.name), e, bad)
		case f.required:
			*bad = append(*bad, below(path, f.name)+": missing, want "+words[f.kind]+": "+f.about)
		}
	}
	// A field with a wrong name would be lost without a word, and with it a phase that forbids a second start.
	var strange []string
	for name := range v {
		if !slices.Contains(names, name) {
			strange = append(strange, name)
		}
	}
	slices.Sort(strange)
	for _, name := range strange {
		*bad = append(*bad, below(path, short(name))+": no such field, want one of "+strings.Join(names, ", "))
	}
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func kindOf(v any) kind {
	switch v := v.(type) {
	case map[string]any:
		return object
	case []any:
		return array
	case string:
		return text
	case bool:
		return truth
	default:
		if _, ok := whole(v); ok {
			return integer
		}
	}
	return ""
}

// whole is a JSON number that a field can hold.
func whole(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}

// named says what a value is, and small ones as they stand.
func named(v any) string {
	switch k := kindOf(v); {
	case v == nil:
		return "null"
	case k == text:
		return "the string " + strconv.Quote(short(v.(string)))
	case k == object, k == array:
		return words[k]
	}
	return short(fmt.Sprint(v))
}

// short bounds what an error quotes.
func short(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// JSONSchema is the format as a JSON Schema (draft 2020-12), for validators and editors of other languages. The file
// note.schema.json beside this package is the same text.
func JSONSchema() []byte {
	s := format.schema()
	top := append(members{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "A doorbell of Mulligan"}}, s...)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(top); err != nil {
		return nil // strings, numbers and lists of them can always be written
	}
	return b.Bytes()
}

// members is a JSON object that keeps its order.
type members []member

type member struct {
	name  string
	value any
}

func (m members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		v, err := json.Marshal(e.value)
		if err != nil {
			return nil, err
		}
		b.WriteString(strconv.Quote(e.name) + ":")
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schema renders a shape.
func (s shape) schema() (m members) {
	if s.about != "" {
		m = append(m, member{"description", s.about})
	}
	if s.or != nil {
		one := s
		one.or, one.about = nil, ""
		return append(m, member{"anyOf", []members{one.schema(), s.or.schema()}})
	}
	m = append(m, member{"type", string(s.kind)})
	if s.only != nil {
		m = append(m, member{"enum", s.only})
	}
	if s.full {
		m = append(m, member{"minLength", 1})
	}
	switch s.format {
	case "base64":
		m = append(m, member{"contentEncoding", s.format})
	case "date-time":
		m = append(m, member{"format", s.format})
	}
	if s.items != nil {
		m = append(m, member{"items", s.items.schema()})
	}
	if s.kind != object {
		return m
	}
	var props members
	required := []string{}
	for _, f := range s.fields {
		p := f.schema()
		if f.name == "schema" {
			p = append(p, member{"const", Schema})
		}
		props = append(props, member{f.name, p})
		if f.required {
			required = append(required, f.name)
		}
	}
	return append(m, member{"properties", props}, member{"required", required}, member{"additionalProperties", false})
}
