package session

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Text with what JSON escapes, what it does not, and what is no UTF-8.
var text = rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z/0-9 -]{0,40}`),
	rapid.SampledFrom([]string{"", `"`, `\`, "<&>", "\x7f", "\x00", "\n\t\b\f\x1f", "ünï", "\u2028\u2029", "\xff", "a\xc3", "😀"}))

// names draws the names of one event: in half of the events such as hosts make, else any text.
func names(t *rapid.T) *rapid.Generator[string] {
	if rapid.Bool().Draw(t, "plain") {
		return rapid.StringMatching(`[a-z/0-9 <&>-]{0,40}`)
	}
	return text
}

var moments = rapid.Custom(func(t *rapid.T) stamp.Time {
	zone := time.FixedZone("", rapid.OneOf(rapid.Just(0), rapid.IntRange(-90000, 90000)).Draw(t, "zone"))
	wall := time.Unix(rapid.OneOf(rapid.Int64Range(0, 1<<32), rapid.Int64Range(-1<<40, 1<<40)).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).In(zone)
	if rapid.Bool().Draw(t, "utc") {
		wall = wall.UTC()
	}
	return stamp.Time{Wall: wall, Uptime: time.Duration(rapid.Int64().Draw(t, "uptime")),
		Grain: time.Duration(rapid.SampledFrom([]int64{0, 0, 1e9, -1}).Draw(t, "grain"))}
})

// values are JSON of every kind, with and without white space, and what only looks like it.
var values = rapid.Custom(func(t *rapid.T) []byte {
	var make func(depth int) any
	make = func(depth int) any {
		switch n := rapid.IntRange(0, 7).Draw(t, "kind"); {
		case n == 0 && depth < 4:
			m := map[string]any{}
			for range rapid.IntRange(0, 3).Draw(t, "fields") {
				m[text.Draw(t, "field")] = make(depth + 1)
			}
			return m
		case n == 1 && depth < 4:
			var l []any
			for range rapid.IntRange(0, 3).Draw(t, "items") {
				l = append(l, make(depth+1))
			}
			return l
		case n == 2:
			return rapid.Float64().Draw(t, "float")
		case n == 3:
			return rapid.Bool().Draw(t, "bool")
		case n == 4:
			return json.Number(rapid.SampledFrom([]string{"0", "-0", "1e5", "1E-07", "-12.50e+3", "18446744073709551616"}).Draw(t, "number"))
		}
		return text.Draw(t, "text")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(rapid.Bool().Draw(t, "html"))
	if rapid.IntRange(0, 3).Draw(t, "spaced") == 0 {
		enc.SetIndent("", " ")
	}
	if err := enc.Encode(make(0)); err != nil {
		t.Fatal(err)
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if rapid.IntRange(0, 3).Draw(t, "broken") == 0 && len(out) > 0 {
		i := rapid.IntRange(0, len(out)-1).Draw(t, "where")
		out = append(append(bytes.Clone(out[:i]), rapid.SampledFrom([]string{"", " ", ",", `"`, "\xff", "\x00", "}", "0", `\`, "\\u00", "e"}).Draw(t, "with")...), out[i+1:]...)
	}
	return out
})

// What the short way writes is what encoding/json writes, byte for byte, for every event; and where that refuses, so does
// this.
func TestEncodeIsTheEncodingOfJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := names(t)
		e := Event{ID: name.Draw(t, "id"), Seq: rapid.Uint64().Draw(t, "seq"), Kind: Kind(name.Draw(t, "kind")), At: moments.Draw(t, "at"),
			Schema: rapid.Int().Draw(t, "schema"), Fence: rapid.SampledFrom([]uint64{0, 1, 1<<64 - 1}).Draw(t, "fence"), Turn: name.Draw(t, "turn")}
		e.At.Boot = name.Draw(t, "boot")
		if rapid.Bool().Draw(t, "payload") {
			e.Payload = values.Draw(t, "value")
		}
		want, wantErr := encode(e)
		got, err := Encode(e)
		if (err != nil) != (wantErr != nil) || !bytes.Equal(got, want) {
			t.Fatalf("%s, %v\nand encoding/json:\n%s, %v", got, err, want, wantErr)
		}
		if _, r := (Draft{Event: e}).normal(); r != nil || e.Seq == 0 || wantErr != nil {
			return
		}
		// So does what Step plans.
		e.Payload = mustCompact(t, e.Payload)
		got, err = Plan{Events: []Event{{}, e}}.AppendEvent([]byte("before"), 1)
		if err != nil || string(got) != "before"+string(want) {
			t.Fatalf("in a plan: %s, %v\nand encoding/json:\n%s", got, err, want)
		}
	})
}

// TestUsualEventsTakeTheShortWay: else the property above would hold of nothing but encoding/json.
func TestUsualEventsTakeTheShortWay(t *testing.T) {
	t.Parallel()
	at := stamp.Time{Wall: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), Boot: "boot", Uptime: time.Hour, Grain: time.Second}
	for _, e := range []Event{
		{ID: "e1", Seq: 1, Kind: KindTurnBegun, At: at, Schema: 1, Fence: 2, Turn: "t1"},
		{ID: "e2", Seq: 2, Kind: KindMessage, At: at, Schema: 1, Payload: json.RawMessage(`{"text":"a \"b\" ü"}`)},
	} {
		if _, ok := appendEvent(nil, e); !ok {
			t.Errorf("%s took the long way", e.ID)
		}
	}
}

func mustCompact(t *rapid.T, b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// checkCompacted holds compacted to encoding/json: it takes nothing that is not valid and compact.
func checkCompacted(t interface{ Fatalf(string, ...any) }, b []byte) (is bool) {
	var out bytes.Buffer
	is = json.Compact(&out, b) == nil && bytes.Equal(out.Bytes(), b) && utf8.Valid(b)
	if compacted(b) && !is {
		t.Fatalf("%q is taken for compact JSON", b)
	}
	return is
}

func TestCompactedAgreesWithJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := values.Draw(t, "value")
		if checkCompacted(t, b) != compacted(b) {
			t.Fatalf("%q is compact JSON, and is not seen to be", b)
		}
	})
	for text, want := range map[string]bool{
		"": false, " ": false, "1": true, "01": false, "-": false, "1.": false, ".5": false, "1e": false, "1e+": false, "nul": false,
		"[]": true, "[1,]": false, "[,1]": false, "{}": true, `{"a"}`: false, `{"a":}`: false, `{"a":1,}`: false, `{1:2}`: false,
		`"\u12g4"`: false, `"\u1234"`: true, `"\x"`: false, `"a`: false, "\"\t\"": false, "\"\x7f\"": true, "1 ": false, "[1 ]": false,
		"\"\xff\"": false, `""""`: false, "1 2": false, "NaN": false, "+1": false,
		strings.Repeat("[", 200) + strings.Repeat("]", 200): false, // valid, and for encoding/json to say
	} {
		if compacted([]byte(text)) != want {
			t.Errorf("%q: %t", text, !want)
		}
		checkCompacted(t, []byte(text))
	}
}

func FuzzCompacted(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,true,null,"\u00e9é"]}`, ` 1`, `"\ud800"`, "\"\xc3\"", `[[[[]]]]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if checkCompacted(t, b) != compacted(b) && bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) < deepest {
			t.Fatalf("%q is compact JSON, and is not seen to be", b)
		}
	})
}

func BenchmarkStepAndEncode(b *testing.B) {
	at := stamp.Time{Wall: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), Boot: "4f0c7a52-6b1e-4c1c-9f0e-1b6a3c1d2e3f", Uptime: time.Hour}
	d := []Draft{Say(at, "turn-1-event-1", json.RawMessage(`"`+strings.Repeat("x", 180)+`"`))}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		plan, err := Step(Head{Session: "s", Last: 7, Schema: 1}, d, func(string) (Event, bool, error) { return Event{}, false, nil })
		if err == nil {
			buf, err = plan.AppendEvent(buf[:0], 0)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
