package node_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/node"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

// product is what the host of the vectors declares.
var product = []classify.Root{{
	Name: "kestrel", Dirs: []string{"/opt/kestrel"}, Modules: []string{"kestrel", "@kestrel/wire", "kestreld", "kestrel.dev/kes", "kes"},
	Bindings: []string{"kestrel_ink.node", "libkes.so", "pens.so"},
}}

// FuzzClassify holds what must be true of a verdict on any text at all: it names a unit of the product, or is no skew.
func FuzzClassify(f *testing.F) {
	files, err := filepath.Glob("testdata/vectors/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		for _, line := range vectortest.Lines(f, file) {
			if k, err := classify.DecodeCase(line); err == nil {
				f.Add(k.Input.Text, k.Input.Exit.Code)
			}
		}
	}
	c := newClassifier(f)
	f.Fuzz(func(t *testing.T, data []byte, code int) {
		in := classify.Input{Text: data, Exit: classify.Exit{Code: code}, Roots: product, Workspaces: []string{"/home/ada/proj"}}
		v := c.Classify(in)
		switch {
		case v.Disposition != classify.Skew && v.Reason == "":
			t.Errorf("%s without a reason on %q", v.Disposition, data)
		case v.Disposition == classify.Skew && (v.Module == "" || v.Root == "" || v.Family == classify.NoFamily):
			t.Errorf("skew without a managed module: %+v on %q", v, data)
		case v.Disposition == classify.Skew && !strings.Contains(v.Module, "kes") && v.Module != "pens.so":
			t.Errorf("skew names %q, which nobody declared, on %q", v.Module, data)
		}
		in.Roots = nil
		if v := c.Classify(in); v.Disposition == classify.Skew {
			t.Errorf("skew although nothing is managed: %+v", v)
		}
	})
}

// TestHint holds that the cheap test never misses a text in which Parse finds a failure.
func TestHint(t *testing.T) {
	t.Parallel()
	vectortest.Hinted(t, node.New(), "testdata/corpus", "testdata/vectors")
}

// death is the death of a chunk that is gone.
const death = "Error: Cannot find module './pens-4f21.cjs'\nRequire stack:\n- /opt/kestrel/dist/main.cjs\n    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)\n    at draw (/opt/kestrel/dist/main.cjs:7:12) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: [ '/opt/kestrel/dist/main.cjs' ]\n}\n\nNode.js v20.20.2\n"

func BenchmarkClassify(b *testing.B) {
	c := newClassifier(b)
	in := classify.Input{Text: []byte(death), Exit: classify.Exit{Code: 1}, Roots: product}
	b.SetBytes(int64(len(death)))
	b.ReportAllocs()
	for b.Loop() {
		c.Classify(in)
	}
}

// BenchmarkClean reads a full tail in which nothing went wrong.
func BenchmarkClean(b *testing.B) {
	c := newClassifier(b)
	in := classify.Input{Text: []byte(strings.Repeat("2026-11-30T08:00:00Z INFO kestrel.loop: step done in 12 ms\n", 1200)), Roots: product}
	b.SetBytes(classify.TailLimit)
	b.ReportAllocs()
	for b.Loop() {
		c.Classify(in)
	}
}
