package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
)

// FuzzReadCases holds any input to what classify promises of a file: cases with an id each, or one error that names the
// file; never a panic, and never a case that was made of something that could not be read.
func FuzzReadCases(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "{", "{}", `{"id":"a","text":"x"}`, `{"id":"a","text":"x"}{"id":"b","text_base64":"eA=="}`, `{"id":1,"text":"x"}`,
		`{"id":"a","text":"x","exit":{"code":"1"}}`, `{"id":"a","text":null}`, "\ufeff {\"id\":\"a\",\"text\":\"\"}", `[{"id":"a"}]`,
		`{"id":"a","text":"x","managed":{"modules":["m"],"roots":["/r"]}} trailing`,
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, text string, asText bool) {
		plain := classify.Input{Exit: classify.Exit{Code: 9}}
		err := readCases(strings.NewReader(text), "file", "id", asText, plain, func(id string, in classify.Input, _ int64) error {
			if id == "" {
				t.Error("a case without an id")
			}
			if asText && (string(in.Text) != text || in.Exit.Code != 9) {
				t.Errorf("plain text came through as %+v", in)
			}
			return nil
		})
		var bad *caseError
		if err != nil && (!errors.As(err, &bad) || bad.File != "file" || bad.Err == "") {
			t.Errorf("error %v, want one that names the file", err)
		}
	})
}
