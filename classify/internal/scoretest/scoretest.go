// Package scoretest judges a runtime by labelled vectors: how much skew it finds, whether it ever cries skew falsely,
// and how often reason, module and symbol are right. Call [Folder] or [Lines]; every miss is printed.
package scoretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
)

// Goal are the figures that a set of vectors must reach. False skew has no figure: it must be none.
type Goal struct {
	Recall, Detail, Disposition float64
}

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

// tally holds the figures.
type tally struct {
	cases, skew, found, falseSkew, right, detail, detailOf int
}

// Classifier is one with the runtimes given.
func Classifier(t testing.TB, runtimes ...classify.Runtime) *classify.Classifier {
	t.Helper()
	c, err := classify.New(classify.Config{Runtimes: runtimes})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Folder judges a folder with one vector a file.
func Folder(t *testing.T, c *classify.Classifier, pattern string, g Goal) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var vectors [][]byte
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, data)
	}
	judge(t, c, vectors, g)
}

// Lines judges a file with one vector a line.
func Lines(t *testing.T, c *classify.Classifier, file string, g Goal) {
	t.Helper()
	judge(t, c, Vectors(t, file), g)
}

// Vectors reads a file with one vector a line.
func Vectors(t testing.TB, file string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) > 0 {
			out = append(out, line)
		}
	}
	return out
}

// dresses are what collectors, terminals and editors do to every line.
var dresses = []struct {
	name string
	line func(i int, l string) string
}{
	{"compose", func(_ int, l string) string { return "worker-1  | " + l }},
	{"journal", func(i int, l string) string {
		return fmt.Sprintf("Nov 30 12:00:%02d host agentd[4711]: %s", i%60, l)
	}},
	{"stamp", func(i int, l string) string { return fmt.Sprintf("2026-11-30T12:00:%02d.%06dZ %s", i%60, i, l) }},
	{"container", func(i int, l string) string {
		return fmt.Sprintf("2026-11-30T12:00:%02d.%09dZ stderr F %s", i%60, i, l)
	}},
	{"carriage returns", func(_ int, l string) string { return l + "\r" }},
	{"colours", func(_ int, l string) string { return "\x1b[31m" + l + "\x1b[0m" }},
	{"spaces", func(_ int, l string) string { return strings.ReplaceAll(l, "\t", "    ") }},
}

// Dressed judges every vector of a file again in each dress: the verdict must be the one without it.
func Dressed(t *testing.T, c *classify.Classifier, file string) {
	t.Helper()
	for _, v := range Vectors(t, file) {
		k, err := classify.DecodeCase(v)
		if err != nil {
			t.Fatal(err)
		}
		plain := c.Classify(k.Input)
		lines := strings.Split(strings.TrimRight(string(k.Input.Text), "\n"), "\n")
		for _, d := range dresses {
			dressed := make([]string, len(lines))
			for i, l := range lines {
				dressed[i] = d.line(i, l)
			}
			in := k.Input
			in.Text = []byte(strings.Join(dressed, "\n") + "\n")
			got := c.Classify(in)
			if got.Disposition != plain.Disposition || got.Family != plain.Family || got.Reason != plain.Reason || got.Module != plain.Module || got.Symbol != plain.Symbol {
				t.Errorf("%s in %s: %s/%s/%s %s:%s, without it %s/%s/%s %s:%s", k.ID, d.name, got.Disposition, got.Family, got.Reason, got.Module, got.Symbol,
					plain.Disposition, plain.Family, plain.Reason, plain.Module, plain.Symbol)
			}
		}
	}
}

func judge(t *testing.T, c *classify.Classifier, vectors [][]byte, g Goal) {
	t.Helper()
	var y tally
	for _, v := range vectors {
		y.score(t, c, v)
	}
	y.hold(t, g)
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
func (y *tally) hold(t *testing.T, g Goal) {
	t.Helper()
	t.Logf("%d cases: skew found %d/%d, false skew %d, disposition %d/%d, detail %d/%d", y.cases, y.found, y.skew, y.falseSkew, y.right, y.cases, y.detail, y.detailOf)
	if y.cases == 0 || y.skew == 0 {
		t.Fatal("no vectors")
	}
	if y.falseSkew > 0 {
		t.Errorf("%d deaths that no update caused are judged skew: they would be relaunched", y.falseSkew)
	}
	for _, goal := range []struct {
		name      string
		got, of   int
		threshold float64
	}{{"recall of skew with the right family", y.found, y.skew, g.Recall}, {"detail", y.detail, y.detailOf, g.Detail}, {"disposition", y.right, y.cases, g.Disposition}} {
		if got := float64(goal.got) / float64(goal.of); got < goal.threshold {
			t.Errorf("%s is %.3f, the goal is %.3f", goal.name, got, goal.threshold)
		}
	}
}

// Fuzz feeds any text to a classifier, with the vectors of the files as seeds. Skew must name a unit that was declared, and
// there is none where nothing is managed.
func Fuzz(f *testing.F, c *classify.Classifier, files ...string) {
	f.Helper()
	var managed []classify.Root
	for _, file := range files {
		for _, v := range Vectors(f, file) {
			if k, err := classify.DecodeCase(v); err == nil {
				managed = k.Input.Roots
				f.Add(k.Input.Text, k.Input.Exit.Code, k.Input.Exit.Signal)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, code int, signal string) {
		in := classify.Input{Text: data, Exit: classify.Exit{Code: code, Signal: signal}, Roots: managed, Workspaces: []string{"/home/ada/proj"}}
		v := c.Classify(in)
		switch {
		case v.Disposition == classify.Skew && (v.Module == "" || v.Root == "" || v.Family == classify.NoFamily || v.Reason != ""):
			t.Errorf("skew without a managed unit: %+v", v)
		case v.Disposition != classify.Skew && v.Reason == "":
			t.Errorf("%s without a reason", v.Disposition)
		case v.ManagedModules == nil:
			t.Error("managed modules are nil")
		}
		in.Roots = nil
		if v := c.Classify(in); v.Disposition == classify.Skew {
			t.Errorf("skew although nothing is managed: %+v", v)
		}
	})
}

// Bench measures the first skew of a file at the end of a full tail of healthy lines.
func Bench(b *testing.B, c *classify.Classifier, file string) {
	b.Helper()
	for _, v := range Vectors(b, file) {
		k, err := classify.DecodeCase(v)
		if err != nil {
			b.Fatal(err)
		}
		if c.Classify(k.Input).Disposition != classify.Skew {
			continue
		}
		healthy := strings.Repeat("2026-11-30 12:00:02 INFO  [main] worker - polled the queue, nothing to do\n", classify.TailLimit/64)
		in := k.Input
		in.Text = []byte(healthy + string(k.Input.Text))
		b.SetBytes(classify.TailLimit)
		b.ReportAllocs()
		for b.Loop() {
			c.Classify(in)
		}
		return
	}
	b.Fatal("no skew in " + file)
}
