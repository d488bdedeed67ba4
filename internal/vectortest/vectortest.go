// Package vectortest holds a runtime to labelled failure texts: no false skew, and the figures of the corpora. Call [Hold]
// in a test and [Fuzz] in a fuzz target of each runtime package.
//
// It refuses a folder without vectors, since a test that reads nothing proves nothing. It promises to print every miss.
package vectortest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Goals are the least shares that [Hold] accepts. False skew has no goal: there must be none.
type Goals struct {
	Recall, Detail, Disposition float64
}

// Corpus are the goals on the labelled corpora.
var Corpus = Goals{Recall: 0.97, Detail: 0.95, Disposition: 1}

// Exact are the goals on vectors that were made for a package.
var Exact = Goals{Recall: 1, Detail: 1, Disposition: 1}

// label is what a vector expects.
type label struct {
	Expect struct {
		Disposition classify.Disposition `json:"disposition"`
		Family      classify.Family      `json:"family"`
		Reason      classify.Reason      `json:"reason"`
		Module      string               `json:"module"`
		Symbol      string               `json:"symbol"`
	} `json:"expect"`
}

// tally holds the figures that a folder is judged by.
type tally struct {
	cases, skew, found, falseSkew, right, detail, detailOf int
}

// New returns a classifier of runtimes.
func New(t testing.TB, runtimes ...classify.Runtime) *classify.Classifier {
	t.Helper()
	c, err := classify.New(classify.Config{Runtimes: runtimes})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Hold judges every vector of a folder, "*.json" with one and "*.jsonl" with one per line, and fails below the goals.
func Hold(t *testing.T, c *classify.Classifier, dir string, g Goals) {
	t.Helper()
	var y tally
	for _, v := range Vectors(t, dir) {
		y.score(t, c, v)
	}
	t.Logf("%s: %d cases: skew found %d/%d, false skew %d, disposition %d/%d, detail %d/%d", dir, y.cases, y.found, y.skew, y.falseSkew, y.right, y.cases, y.detail, y.detailOf)
	for _, s := range []struct {
		name     string
		got, of  int
		atLeast  float64
		optional bool
	}{
		{"recall of skew with the right family", y.found, y.skew, g.Recall, true}, {"detail", y.detail, y.detailOf, g.Detail, true}, {"disposition", y.right, y.cases, g.Disposition, false},
	} {
		if s.of == 0 && s.optional {
			continue // a folder need not hold skew
		}
		if float64(s.got) < s.atLeast*float64(s.of) {
			t.Errorf("%s is %d of %d, the goal is %.2f", s.name, s.got, s.of, s.atLeast)
		}
	}
}

// score judges one vector and prints a miss. An unknown may be answered by anything but skew: neither is relaunched.
func (y *tally) score(t *testing.T, c *classify.Classifier, data []byte) {
	t.Helper()
	k, err := classify.DecodeCase(data)
	if err != nil {
		t.Errorf("a vector does not decode: %v", err)
		return
	}
	var want label
	if err := json.Unmarshal(data, &want); err != nil {
		t.Errorf("%s: %v", k.ID, err)
		return
	}
	e, got := want.Expect, c.Classify(k.Input)
	y.cases++
	if e.Disposition == classify.Skew {
		y.skew++
		if got.Disposition != classify.Skew || got.Family != e.Family {
			t.Logf("miss %s: want skew/%s %s:%s, got %s/%s/%s %s:%s", k.ID, e.Family, e.Module, e.Symbol, got.Disposition, got.Family, got.Reason, got.Module, got.Symbol)
			return
		}
		y.found, y.right, y.detailOf = y.found+1, y.right+1, y.detailOf+1
		if got.Module == e.Module && got.Symbol == e.Symbol {
			y.detail++
		} else {
			t.Logf("miss %s: want %s:%s, got %s:%s", k.ID, e.Module, e.Symbol, got.Module, got.Symbol)
		}
		return
	}
	if e.Disposition == classify.Never {
		y.detailOf++
		if got.Disposition == classify.Never && got.Reason == e.Reason {
			y.detail++
		} else {
			t.Logf("miss %s: want never/%s, got %s/%s", k.ID, e.Reason, got.Disposition, got.Reason)
		}
	}
	switch {
	case got.Disposition == classify.Skew:
		y.falseSkew++
		t.Errorf("%s: FALSE SKEW %s %s:%s, want %s/%s", k.ID, got.Family, got.Module, got.Symbol, e.Disposition, e.Reason)
	case got.Disposition == e.Disposition || e.Disposition == classify.Unknown:
		y.right++
	default:
		t.Logf("miss %s: want %s/%s, got %s/%s", k.ID, e.Disposition, e.Reason, got.Disposition, got.Reason)
	}
}

// Vectors reads the vectors of a folder.
func Vectors(t testing.TB, dir string) [][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json*"))
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, f := range files {
		if strings.HasSuffix(f, ".jsonl") {
			out = append(out, Lines(t, f)...)
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, data)
	}
	if len(out) == 0 {
		t.Fatalf("no vectors in %s", dir)
	}
	return out
}

// Lines are the vectors of one "*.jsonl" file.
func Lines(t testing.TB, file string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out = append(out, line)
		}
	}
	return out
}

// Fuzz feeds a classifier texts made of the folders' vectors: it must not panic, must give a reason with every verdict that
// is no skew, and must name a managed unit with every one that is.
func Fuzz(f *testing.F, c *classify.Classifier, dirs ...string) {
	f.Helper()
	var owner classify.Input
	for _, dir := range dirs {
		for _, v := range Vectors(f, dir) {
			k, err := classify.DecodeCase(v)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(k.Input.Text, k.Input.Exit.Code)
			owner.Roots, owner.Workspaces = k.Input.Roots, k.Input.Workspaces
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, code int) {
		in := owner
		in.Text, in.Exit.Code = data, code
		Sane(t, c.Classify(in), data)
		in.Roots = nil
		if v := c.Classify(in); v.Disposition == classify.Skew {
			t.Errorf("skew although nothing is managed: %+v", v)
		}
	})
}

// Sane checks what holds of every verdict, whatever the text.
func Sane(t *testing.T, v classify.Verdict, data []byte) {
	t.Helper()
	switch v.Disposition {
	case classify.Skew:
		if v.Module == "" || v.Root == "" || v.Family == classify.NoFamily || v.Reason != "" {
			t.Errorf("skew without a managed unit: %+v on %q", v, data)
		}
	case classify.Annotate, classify.Never, classify.Unknown:
		if v.Reason == "" {
			t.Errorf("%s without a reason on %q", v.Disposition, data)
		}
	default:
		t.Errorf("disposition %q on %q", v.Disposition, data)
	}
}

// Hinted fails where a runtime finds a failure in a vector and its quick search does not.
func Hinted(t *testing.T, r classify.Runtime, dirs ...string) {
	t.Helper()
	h, ok := r.(classify.Hinter)
	if !ok {
		t.Fatalf("%s gives no hints", r.Name())
	}
	for _, dir := range dirs {
		for _, v := range Vectors(t, dir) {
			k, err := classify.DecodeCase(v)
			if err != nil {
				t.Fatal(err)
			}
			if r.Parse(text.Read(k.Input.Text, classify.TailLimit)) != nil && !h.Hint(k.Input.Text) {
				t.Errorf("%s: a failure is found, and no hint of it", k.ID)
			}
		}
	}
}
