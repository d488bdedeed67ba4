package loader_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/loader"
)

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

// tally holds the figures that the vectors are judged by.
type tally struct {
	cases, skew, found, falseSkew, right, detail, detailOf int
}

func newClassifier(t testing.TB) *classify.Classifier {
	t.Helper()
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{loader.New()}})
	if err != nil {
		t.Fatal(err)
	}
	return c
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
	switch e.Disposition {
	case classify.Skew:
		y.skew++
		if got.Disposition != classify.Skew || got.Family != e.Family {
			t.Logf("miss %s: want skew/%s, got %s/%s/%s", k.ID, e.Family, got.Disposition, got.Family, got.Reason)
			return
		}
		y.found++
		y.right++
		y.detailOf++
		if got.Module != e.Module || got.Symbol != e.Symbol {
			t.Logf("miss %s: want %s:%s, got %s:%s", k.ID, e.Module, e.Symbol, got.Module, got.Symbol)
			return
		}
		y.detail++
		return
	case classify.Never:
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
		t.Logf("miss %s: want %s, got %s/%s", k.ID, e.Disposition, got.Disposition, got.Reason)
	}
}

// hold fails the test where a figure is below its goal.
func (y *tally) hold(t *testing.T, recall, detail, right float64) {
	t.Helper()
	t.Logf("%d cases: skew found %d/%d, false skew %d, disposition %d/%d, detail %d/%d", y.cases, y.found, y.skew, y.falseSkew, y.right, y.cases, y.detail, y.detailOf)
	if y.cases == 0 || y.skew == 0 {
		t.Fatal("no vectors")
	}
	if y.falseSkew > 0 {
		t.Errorf("%d deaths that no update caused are judged skew: they would be relaunched", y.falseSkew)
	}
	for _, g := range []struct {
		name string
		got  float64
		want float64
	}{
		{"recall of skew with the right family", float64(y.found) / float64(y.skew), recall},
		{"detail", float64(y.detail) / float64(y.detailOf), detail},
		{"disposition", float64(y.right) / float64(y.cases), right},
	} {
		if g.got < g.want {
			t.Errorf("%s is %.3f, the goal is %.3f", g.name, g.got, g.want)
		}
	}
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/corpus/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var y tally
	c := newClassifier(t)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		y.score(t, c, data)
	}
	y.hold(t, 0.97, 0.95, 1)
}

// TestVectors holds the vectors that were made for this package: what was really printed for one failure each, and
// imitations where another version, system or client prints the text.
func TestVectors(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/vectors/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var y tally
	c := newClassifier(t)
	for _, f := range files {
		for _, line := range vectorLines(t, f) {
			y.score(t, c, line)
		}
	}
	y.hold(t, 1, 1, 1)
}

func vectorLines(t testing.TB, file string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]byte
	s := bufio.NewScanner(bytes.NewReader(data))
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		lines = append(lines, append([]byte(nil), s.Bytes()...))
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}
