package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
)

// TestRuntimesBesideEachOther: with all runtimes at work, none takes another's text for its own. Every labelled text of
// every runtime is judged, and none that is no update's is taken for one.
func TestRuntimesBesideEachOther(t *testing.T) {
	t.Parallel()
	allTexts(t)
	judge, err := classifier()
	if err != nil {
		t.Fatal(err)
	}
	// A runtime's own trap may be another's failure.
	others := map[string]bool{"no-java-trace": true}
	cases, skew, missed := 0, 0, 0
	check := func(from string, text []byte) {
		var label struct {
			Expect struct {
				Disposition classify.Disposition `json:"disposition"`
				Family      classify.Family      `json:"family"`
			} `json:"expect"`
		}
		if err := json.Unmarshal(text, &label); err != nil || label.Expect.Disposition == "" {
			return // not a labelled case
		}
		c, err := classify.DecodeCase(text)
		if err != nil {
			t.Errorf("%s: %v", from, err)
			return
		}
		cases++
		got := judge.Classify(c.Input)
		switch want := label.Expect; {
		case want.Disposition == classify.Skew:
			skew++
			if got.Disposition != classify.Skew || got.Family != want.Family {
				missed++
				t.Logf("%s %s: %s %s, want skew %s", from, c.ID, got.Disposition, got.Family, want.Family)
			}
		case got.Disposition == classify.Skew && !others[c.ID]:
			t.Errorf("%s %s: taken for %s by %q, want %s", from, c.ID, got.Family, got.Runtime, want.Disposition)
		}
	}
	files, err := filepath.Glob("../../classify/*/testdata/corpus/*.json")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../classify/*/testdata/corpus/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, more...) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		check(f, b)
	}
	for _, pattern := range []string{"../../classify/*/testdata/*.jsonl", "../../classify/*/testdata/vectors/*.jsonl"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(b) {
				check(f, line)
			}
		}
	}
	t.Logf("%d texts, %d of them an update's, %d of those missed", cases, skew, missed)
	if cases < 1500 || missed*100 > 3*skew {
		t.Errorf("%d texts were found and %d of %d updates missed, want all of them and 97 %%", cases, missed, skew)
	}
}
