package doorbell_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

var rewrite = flag.Bool("update", false, "rewrite note.schema.json from the format")

// TestSchemaFile keeps the published schema the same as what Parse refuses by.
func TestSchemaFile(t *testing.T) {
	t.Parallel()
	want := doorbell.JSONSchema()
	if *rewrite {
		if err := os.WriteFile("note.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("note.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("note.schema.json is not the format; run the test with -update (-file +format):\n%s", diff)
	}
}

func published(t *testing.T) map[string]any {
	t.Helper()
	b, err := os.ReadFile("note.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// allows is a JSON Schema validator for the words that the schema file uses, written apart from the product's; a word
// that it does not know fails the test.
func allows(t *testing.T, s map[string]any, v any) bool {
	t.Helper()
	ok := true
	for word, arg := range s {
		switch word {
		case "$schema", "title", "description", "contentEncoding":
			if word == "contentEncoding" { // an annotation, which this format means
				str, _ := v.(string)
				_, err := base64.StdEncoding.DecodeString(str)
				ok = ok && err == nil
			}
		case "type":
			ok = ok && isA(v, arg.(string))
		case "enum":
			ok = ok && slices.Contains(arg.([]any), v)
		case "const":
			ok = ok && v == arg
		case "minLength":
			str, _ := v.(string)
			ok = ok && float64(len([]rune(str))) >= arg.(float64)
		case "format":
			str, _ := v.(string)
			_, err := time.Parse(time.RFC3339, str)
			ok = ok && arg == "date-time" && err == nil
		case "anyOf":
			one := false
			for _, alt := range arg.([]any) {
				one = one || allows(t, alt.(map[string]any), v)
			}
			ok = ok && one
		case "items":
			list, _ := v.([]any)
			for _, e := range list {
				ok = allows(t, arg.(map[string]any), e) && ok
			}
		case "properties":
			o, _ := v.(map[string]any)
			for name, p := range arg.(map[string]any) {
				if e, there := o[name]; there {
					ok = allows(t, p.(map[string]any), e) && ok
				}
			}
		case "required":
			o, _ := v.(map[string]any)
			for _, name := range arg.([]any) {
				_, there := o[name.(string)]
				ok = ok && there
			}
		case "additionalProperties":
			o, _ := v.(map[string]any)
			for name := range o {
				_, known := s["properties"].(map[string]any)[name]
				ok = ok && known
			}
		default:
			t.Fatalf("the schema file says %q, which this test does not know", word)
		}
	}
	return ok
}

func isA(v any, kind string) bool {
	switch v := v.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "integer" && v == float64(int64(v))
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}

// TestGoldenNotes: every example is taken by the schema file and by Parse, and comes back the same once it is written.
func TestGoldenNotes(t *testing.T) {
	t.Parallel()
	schema := published(t)
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		if !allows(t, schema, v) {
			t.Errorf("%s: the schema file refuses it", f)
		}
		n, err := doorbell.Parse(b)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		written, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		again, err := doorbell.Parse(written)
		if err != nil || !reflect.DeepEqual(n, again) {
			t.Errorf("%s: written again it is %s: %v", f, written, err)
		}
	}
}

// TestGoNotesFitTheSchema: whatever this package writes, a program in another language may rely on the schema for it.
func TestGoNotesFitTheSchema(t *testing.T) {
	t.Parallel()
	schema := published(t)
	at := stamp.Time{Wall: time.Unix(1769860800, 5).UTC(), Boot: "b", Uptime: 3, Grain: 4}
	for _, n := range []doorbell.Note{
		{Schema: 1, Run: "r"},
		{Schema: 1, Run: "r", At: at, Phase: run.Finalizing, Exit: classify.Exit{Code: -1, Signal: "SIGKILL"}, Cause: classify.OOM,
			Text: doorbell.Text("\xff"), Silenced: true, Identities: []witness.Identity{
				{Root: "a", Kind: "git", At: at, Revision: "f", Dirty: []witness.File{{Path: "p"}}, Bindings: []witness.Binding{{Path: "p", Size: 1, MTime: 2, BuildID: "b"}}},
				{Root: "b", Unknown: "why"}}},
	} {
		b, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		if !allows(t, schema, v) {
			t.Errorf("the schema file refuses %s", b)
		}
		if got, err := doorbell.Parse(b); err != nil || !reflect.DeepEqual(got, n) {
			t.Errorf("%s came back as %+v, %v", b, got, err)
		}
	}
}

// TestTypeAndSchemaAgree goes through the Go type field by field.
func TestTypeAndSchemaAgree(t *testing.T) {
	t.Parallel()
	agree(t, "note", reflect.TypeFor[doorbell.Note](), published(t))
	phase := published(t)["properties"].(map[string]any)["phase"].(map[string]any)["enum"].([]any)
	want := []any{}
	for _, p := range append(run.All[:], run.UnknownPhase) {
		want = append(want, string(p))
	}
	if !slices.Equal(phase, want) {
		t.Errorf("phases are %v, want %v", phase, want)
	}
}

func agree(t *testing.T, at string, typ reflect.Type, s map[string]any) {
	t.Helper()
	if typ == reflect.TypeFor[doorbell.Text]() {
		if len(s["anyOf"].([]any)) != 2 {
			t.Errorf("%s: want a string or an object", at)
		}
		return
	}
	want := map[reflect.Kind]string{reflect.String: "string", reflect.Int: "integer", reflect.Int64: "integer", reflect.Bool: "boolean",
		reflect.Slice: "array", reflect.Struct: "object"}[typ.Kind()]
	if typ == reflect.TypeFor[time.Time]() {
		want = "string"
	}
	if s["type"] != want {
		t.Errorf("%s is a Go %s, and %v in the schema", at, typ, s["type"])
		return
	}
	switch want {
	case "array":
		agree(t, at+"[]", typ.Elem(), s["items"].(map[string]any))
	case "object":
		props := s["properties"].(map[string]any)
		seen := map[string]bool{}
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			seen[name] = true
			p, ok := props[name].(map[string]any)
			if !ok {
				t.Errorf("%s.%s is missing in the schema", at, name)
				continue
			}
			agree(t, at+"."+name, f.Type, p)
		}
		for name := range props {
			if !seen[name] {
				t.Errorf("%s.%s is in the schema alone", at, name)
			}
		}
	}
}

// TestInvalidNotes: each is refused by the schema file and by Parse, and the error names the field and what is allowed.
func TestInvalidNotes(t *testing.T) {
	t.Parallel()
	schema := published(t)
	for raw, want := range map[string][]string{
		`[]`:                          {"the note: a list, want an object"},
		`null`:                        {"the note: null, want an object"},
		`"ring"`:                      {`the string "ring", want an object`},
		`{}`:                          {"schema: missing", "run: missing, want a string"},
		`{"schema":1}`:                {"run: missing", "the id with which the run was registered"},
		`{"schema":1,"run":""}`:       {"run: empty"},
		`{"schema":1,"run":7}`:        {"run: 7, want a string"},
		`{"schema":0,"run":"r"}`:      {"schema: 0, want 1 to 1"},
		`{"schema":2,"run":7,"n":[]}`: {"schema: 2 is newer than 1", "update mulligan"},
		`{"schema":"1","run":"r"}`:    {`schema: the string "1", want a whole number`},
		`{"schema":1.5,"run":"r"}`:    {"schema: 1.5, want a whole number"},
		`{"schema":1,"Run":"r"}`:      {"run: missing", "Run: no such field, want one of schema, run, at, phase"},
		`{"schema":1,"run":"r","phaze":"handoff"}`:                            {"phaze: no such field", "phase"},
		`{"schema":1,"run":"r","phase":"working"}`:                            {`phase: "working", want one of booting, waiting, preparing, handoff, provider_running, provider_done, finalizing, unknown`},
		`{"schema":1,"run":"r","phase":""}`:                                   {`phase: "", want one of booting`},
		`{"schema":1,"run":"r","phase":null}`:                                 {"phase: null, want a string"},
		`{"schema":1,"run":"r","at":"2026-01-31T12:00:00Z"}`:                  {`at: the string "2026-01-31T12:00:00Z", want an object`},
		`{"schema":1,"run":"r","at":{}}`:                                      {"at.wall: missing"},
		`{"schema":1,"run":"r","at":{"wall":"yesterday"}}`:                    {`at.wall: "yesterday", want a time in RFC 3339, such as`},
		`{"schema":1,"run":"r","at":{"wall":1769860800}}`:                     {"at.wall: 1769860800, want a string"},
		`{"schema":1,"run":"r","at":{"wall":"2026-01-31T12:00:00Z","up":1}}`:  {"at.up: no such field, want one of wall, boot, uptime, grain"},
		`{"schema":1,"run":"r","exit":1}`:                                     {"exit: 1, want an object"},
		`{"schema":1,"run":"r","exit":{"code":"1"}}`:                          {`exit.code: the string "1", want a whole number`},
		`{"schema":1,"run":"r","exit":{"code":true}}`:                         {"exit.code: true, want a whole number"},
		`{"schema":1,"run":"r","text":["a"]}`:                                 {"text: a list, want a string or an object"},
		`{"schema":1,"run":"r","text":{"base64":"!"}}`:                        {"text.base64: no base64"},
		`{"schema":1,"run":"r","text":{"base64":"","x":1}}`:                   {"text.x: no such field, want one of base64"},
		`{"schema":1,"run":"r","silenced":"yes"}`:                             {`silenced: the string "yes", want true or false`},
		`{"schema":1,"run":"r","identities":{"root":"a"}}`:                    {"identities: an object, want a list"},
		`{"schema":1,"run":"r","identities":[{"kind":"git"}]}`:                {"identities[0].root: missing"},
		`{"schema":1,"run":"r","identities":[{"root":"a","dirty":[{}]}]}`:     {"identities[0].dirty[0].path: missing"},
		`{"schema":1,"run":"r","identities":[{"root":"a","dirty":["a.py"]}]}`: {`identities[0].dirty[0]: the string "a.py", want an object`},
	} {
		var v any
		if err := json.Unmarshal([]byte(raw), &v); err != nil {
			t.Fatal(err)
		}
		if allows(t, schema, v) {
			t.Errorf("the schema file allows %s", raw)
		}
		_, err := doorbell.Parse([]byte(raw))
		if err == nil {
			t.Errorf("%s was taken", raw)
			continue
		}
		for _, w := range want {
			if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(w)) {
				t.Errorf("%s: %v, want %q in it", raw, err, w)
			}
		}
	}
	for raw, want := range map[string]string{
		"": "EOF", "{": "EOF", `{"schema":1,"run":"r"} {}`: "goes on", "\x00\x00": "invalid", `{"schema":1,"run":"r"`: "EOF",
		"{\"schema\":1,\"run\":\"" + strings.Repeat("x", 1000) + "\",\"y\":" + strings.Repeat("[", 20000): "depth",
	} {
		if _, err := doorbell.Parse([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", raw, err, want)
		}
	}
	_, err := doorbell.Parse([]byte(`{"schema":1,"run":"r",` + strings.Repeat(`"`+strings.Repeat("k", 5000)+`":1,`, 1) + `"a":1,"b":1,"c":1,"d":1,"e":1}`))
	if err == nil || len(err.Error()) > 2000 || !strings.HasSuffix(err.Error(), "and 2 more") {
		t.Errorf("a file that is something else: %v", err)
	}
}

// TestLongText: a program that does not count bytes is not refused for it; the end of what it said is kept.
func TestLongText(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(map[string]any{"schema": 1, "run": "r", "text": strings.Repeat("x", doorbell.TextLimit) + "the end"})
	if err != nil {
		t.Fatal(err)
	}
	n, err := doorbell.Parse(b)
	if err != nil || len(n.Text) != doorbell.TextLimit || !bytes.HasSuffix(n.Text, []byte("the end")) {
		t.Errorf("%d bytes, %v", len(n.Text), err)
	}
}

func FuzzParse(f *testing.F) {
	for _, raw := range []string{`{"schema":1,"run":"r"}`, `{"schema":2}`, `[[`, `{"schema":1,"run":"r","text":{"base64":"/w=="},"identities":[{"root":"a"}]}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := doorbell.Parse(b)
		if err != nil {
			return
		}
		if err := n.Validate(); err != nil {
			t.Fatalf("%q was taken: %v", b, err)
		}
		again, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := doorbell.Parse(again); err != nil || m.Run != n.Run || !bytes.Equal(m.Text, n.Text) {
			t.Fatalf("%q came back as %q: %v", b, again, err)
		}
	})
}

func ExampleParse() {
	n, err := doorbell.Parse([]byte(`{"schema": 1, "run": "r1", "phase": "preparing", "text": "ImportError: cannot import name 'Frame'"}`))
	fmt.Println(n.Run, n.Phase, err)
	_, err = doorbell.Parse([]byte(`{"schema": 1, "run": "r1", "phase": "working"}`))
	fmt.Println(err)
	// Output:
	// r1 preparing <nil>
	// phase: "working", want one of booting, waiting, preparing, handoff, provider_running, provider_done, finalizing, unknown
}
