package text

import (
	"encoding/json"
	"strings"
	"testing"
)

// decoded is what record gave before there was a short way: it decodes.
func decoded(l string) (string, bool, bool) {
	// A field that is no plain value, and that record does not look at, takes the short way out.
	var m map[string]any
	if json.Unmarshal([]byte(l), &m) != nil {
		return record(l)
	}
	at := strings.LastIndexByte(l, '}')
	return record(l[:at] + `,"\u007anothing":[]` + l[at:])
}

func sameRecord(t *testing.T, l string) {
	t.Helper()
	if r := flat(l); !r.whole {
		return
	}
	if !json.Valid([]byte(l)) {
		t.Fatalf("%q is taken for a record", l)
	}
	text, ok, whole := record(l)
	text2, ok2, whole2 := decoded(l)
	if text != text2 || ok != ok2 || whole != whole2 {
		t.Errorf("%q\nread:    %q %t %t\ndecoded: %q %t %t", l, text, ok, whole, text2, ok2, whole2)
	}
}

var flatRecords = []string{
	`{"level":"info","msg":"turn finished","turn":1,"cost":-0.25}`, `{"log":"a"}`, `{"log":""}`, `{"log":1,"msg":"x"}`, `{"log":"a","log":null,"msg":"b"}`, `{"msg":"","level":"warn"}`,
	`{ "ts" : 1.5 , "message" : "Traceback (most recent call last):" , "severity":"ERROR" }`, `{"a":1}`, `{"a":true,"b":null,"event":"KeyError: x","lvl":"debug"}`, `{"msg":"x","msg":"y"}`,
	`{"msg":5,"text":"x","level":"Error"}`, `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":truex}`, `{"a":1}}`, `{"a":1,}`, `{}`, `{"a"}`, `{"error":"x","exc":"y"}`, `{"message":"a b: c","loglevel":"fatal","log.level":""}`,
	"{\"msg\":\"a\xffb\"}", "{\"msg\":\"\u00e9\"}",
}

// TestFlatRecords: records that are read without decoding give the same text as if they were decoded.
func TestFlatRecords(t *testing.T) {
	short := 0
	for _, l := range flatRecords {
		sameRecord(t, l)
		if flat(l).whole {
			short++
		}
	}
	if short != 13 {
		t.Errorf("%d of the records are flat, want 13", short)
	}
	if n := testing.AllocsPerRun(10, func() { flat(flatRecords[0]) }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzFlat(f *testing.F) {
	for _, l := range flatRecords {
		f.Add(l)
	}
	f.Fuzz(func(t *testing.T, l string) { sameRecord(t, l) })
}
