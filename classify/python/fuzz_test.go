package python_test

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/classify/text"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

var product = []classify.Root{{Name: "kestrel", Dirs: []string{"/opt/kestrel/lib"}, Modules: []string{"kestrel"}, Bindings: []string{"kestrel_fast"}}}

// checkVerdict holds what must be true of a verdict on any text at all.
func checkVerdict(t interface{ Errorf(string, ...any) }, v classify.Verdict, input []byte) {
	if v.ManagedModules == nil {
		t.Errorf("managed modules are nil on %q", input)
	}
	switch v.Disposition {
	case classify.Skew:
		if v.Module == "" || v.Root == "" || v.Family == classify.NoFamily || v.Reason != "" {
			t.Errorf("skew without a managed module: %+v on %q", v, input)
		}
		if !strings.HasPrefix(v.Module, "kestrel") {
			t.Errorf("skew names %q, which nobody declared, on %q", v.Module, input)
		}
	case classify.Annotate, classify.Never, classify.Unknown:
		if v.Reason == "" {
			t.Errorf("%s without a reason on %q", v.Disposition, input)
		}
	default:
		t.Errorf("disposition %q on %q", v.Disposition, input)
	}
}

func FuzzClassify(f *testing.F) {
	for _, file := range []string{"testdata/vectors/captured.jsonl", "testdata/vectors/imitated.jsonl"} {
		for i, line := range vectortest.Lines(f, file) {
			if k, err := classify.DecodeCase(line); err == nil && i%3 == 0 {
				f.Add(k.Input.Text, k.Input.Exit.Code, k.Input.Exit.Signal)
			}
		}
	}
	c := newClassifier(f)
	f.Fuzz(func(t *testing.T, data []byte, code int, signal string) {
		in := classify.Input{Text: data, Exit: classify.Exit{Code: code, Signal: signal}, Roots: product, Workspaces: []string{"/home/ada/proj"}}
		v := c.Classify(in)
		checkVerdict(t, v, data)
		in.Roots = nil
		if v := c.Classify(in); v.Disposition == classify.Skew {
			t.Errorf("skew although nothing is managed: %+v", v)
		}
	})
}

func FuzzBinds(f *testing.F) {
	f.Add([]byte("def a(b, c=(d := 1)): pass\nif x: y, (z) = 1, 2\n"), "z")
	f.Add([]byte("'''\nx = 1\n\"\"\""), "x")
	f.Fuzz(func(_ *testing.T, src []byte, name string) { python.Binds(src, name) })
}

func FuzzCase(f *testing.F) {
	f.Add([]byte(`{"id":"a","text":"x","exit":{"code":1}}`))
	f.Add([]byte(`{"id":"a","text_base64":"!","managed":{"modules":[1]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if k, err := classify.DecodeCase(data); err == nil && k.ID == "" {
			t.Error("a case without an id was accepted")
		}
	})
}

// TestShuffledLines builds texts out of the lines of real failures, in any order and any dress.
func TestShuffledLines(t *testing.T) {
	t.Parallel()
	var pool []string
	for _, line := range vectortest.Lines(t, "testdata/vectors/imitated.jsonl") {
		k, err := classify.DecodeCase(line)
		if err != nil {
			t.Fatal(err)
		}
		pool = append(pool, strings.Split(string(k.Input.Text), "\n")...)
	}
	c := newClassifier(t)
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom(pool), 1, 40).Draw(t, "lines")
		dress := rapid.SampledFrom([]string{"", "  | ", "kes-1  | ", "Nov 30 08:00:00 host kes[1]: ", "\x1b[31m", "2026-11-30T08:00:00Z stderr F "}).Draw(t, "dress")
		data := []byte(dress + strings.Join(lines, "\n"+dress))
		checkVerdict(t, c.Classify(classify.Input{Text: data, Roots: product, Workspaces: []string{"/home/ada/proj"}}), data)
	})
}

// TestHeadDoesNotMatter holds that lines in front of an undressed death change nothing about it.
func TestHeadDoesNotMatter(t *testing.T) {
	t.Parallel()
	c := newClassifier(t)
	heads := []string{"", strings.Repeat("2026-11-30 08:00:00,123 INFO kes.loop: step done\n", 4000), strings.Repeat("x\n", 50000), "\xff\xfe\x00 noise\n"}
	for _, line := range vectortest.Lines(t, "testdata/vectors/captured.jsonl") {
		k, err := classify.DecodeCase(line)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(k.Input.Text), "\nTraceback (most") && !strings.HasPrefix(string(k.Input.Text), "Traceback (most") {
			continue
		}
		want := c.Classify(k.Input)
		for i, h := range heads {
			in := k.Input
			in.Text = append([]byte(h), in.Text...)
			if got := c.Classify(in); got.Disposition != want.Disposition || got.Family != want.Family || got.Module != want.Module || got.Symbol != want.Symbol {
				t.Errorf("%s behind head %d: %s/%s %s:%s, alone it is %s/%s %s:%s", k.ID, i, got.Disposition, got.Family, got.Module, got.Symbol, want.Disposition, want.Family, want.Module, want.Symbol)
			}
		}
	}
}

// TestReadsFromTheEnd holds that a verdict costs the same for a megabyte and for a gigabyte: what is in front of the tail
// is not looked at.
func TestReadsFromTheEnd(t *testing.T) {
	// Not parallel: it counts allocations.
	death := "Traceback (most recent call last):\n  File \"/opt/kestrel/lib/kestrel/app.py\", line 3, in <module>\n    from kestrel.pens import Quill\n" +
		"ImportError: cannot import name 'Quill' from 'kestrel.pens' (/opt/kestrel/lib/kestrel/pens.py)\n"
	c := newClassifier(t)
	measure := func(size int) (bytes uint64, v classify.Verdict) {
		line := "turn 9: tool grep | logs/run-1.txt:40:ImportError: cannot import name 'lane' from 'kestrel.lanes' (/opt/kestrel/lib/kestrel/lanes.py)\n"
		in := classify.Input{Text: []byte(strings.Repeat(line, size/len(line)) + death), Roots: product}
		const runs = 8
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			v = c.Classify(in)
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / runs, v
	}
	small, v := measure(256 << 10)
	if v.Disposition != classify.Skew || v.Module != "kestrel.pens" {
		t.Fatalf("the death at the end is judged %+v", v)
	}
	large, _ := measure(16 << 20)
	if large > small+small/2 {
		t.Errorf("a text 64 times as long costs %d bytes, the short one %d: more than the tail is read", large, small)
	}
	if limit := uint64(40 * classify.TailLimit); large > limit {
		t.Errorf("a verdict allocates %d bytes, the bound is %d", large, limit)
	}
}

// TestHostileText holds that shapes made to be slow are not.
func TestHostileText(t *testing.T) {
	t.Parallel()
	c := newClassifier(t)
	for name, unit := range map[string]string{
		"headers": "Traceback (most recent call last):\n", "chains": "E: x\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a\", line 1, in b\n",
		"groups": "  + Exception Group Traceback (most recent call last):\n  | E: x\n  +-+---------------- 1 ----------------\n", "frames": "  File \"/opt/kestrel/lib/kestrel/a.py\", line 1, in b\n",
		"json": "{\"log\":\"{\\\"log\\\":\\\"Traceback (most recent call last):\\\"}\\n\"}\n", "open json": "{\"a\":[[[[[[[[", "boxes": "╭─ Traceback (most recent call last) ─╮\n", "escapes": "\x1b[\x1b]", "returns": "\r", "feeds": "\n",
		"messages": "E: tool failed:\n\n", "quotes": "ValueError: x\n\"\"\"\n", "cells": "E  Traceback (most recent call last)\n", "remote": "multiprocessing.pool.RemoteTraceback: \n\"\"\"\n", "hash": "#012", "nul": "\x00",
	} {
		in := classify.Input{Text: []byte(strings.Repeat(unit, 1+(1<<17)/len(unit))), Roots: product}
		start := time.Now()
		checkVerdict(t, c.Classify(in), nil)
		if d := time.Since(start); d > 30*time.Second {
			t.Errorf("%s: a hostile tail takes %s", name, d)
		}
	}
}

// plainRuntime is the Python runtime without its optional powers.
type plainRuntime struct{ r python.Runtime }

func (p plainRuntime) Name() string                          { return p.r.Name() }
func (p plainRuntime) Parse(log *text.Log) *classify.Failure { return p.r.Parse(log) }
func (p plainRuntime) Module(path string) string             { return p.r.Module(path) }

// TestHintIsCertain holds that the quick search never hides a failure.
func TestHintIsCertain(t *testing.T) {
	t.Parallel()
	c := newClassifier(t)
	slow, err := classify.New(classify.Config{Runtimes: []classify.Runtime{plainRuntime{}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"testdata/vectors/captured.jsonl", "testdata/vectors/imitated.jsonl"} {
		for _, line := range vectortest.Lines(t, file) {
			k, err := classify.DecodeCase(line)
			if err != nil {
				t.Fatal(err)
			}
			log := text.Read(k.Input.Text, classify.TailLimit)
			if python.New().Parse(log) != nil && !python.New().Hint([]byte(strings.Join(log.Lines, "\n"))) {
				t.Errorf("%s: a failure is found, and no hint of it", k.ID)
			}
			quick, full := c.Classify(k.Input), slow.Classify(k.Input)
			if !strings.HasPrefix(k.ID, "st-imp") && (quick.Disposition != full.Disposition || quick.Reason != full.Reason || quick.Module != full.Module) {
				t.Errorf("%s: %s/%s with the hint, %s/%s without", k.ID, quick.Disposition, quick.Reason, full.Disposition, full.Reason)
			}
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	c := newClassifier(b)
	clean := strings.Repeat("2026-11-30 08:00:00,123 INFO kes.loop: step 9 of turn 4 done in 18 ms\n", classify.TailLimit/70+1)
	death, err := os.ReadFile("testdata/corpus/py-002-boot-missing-submodule.json")
	if err != nil {
		b.Fatal(err)
	}
	k, err := classify.DecodeCase(death)
	if err != nil {
		b.Fatal(err)
	}
	for name, in := range map[string]classify.Input{
		"clean 64 KiB": {Text: []byte(clean), Roots: product}, "death alone": k.Input,
		"death at the end": {Text: append([]byte(clean), []byte("Traceback (most recent call last):\n  File \"/opt/kestrel/lib/kestrel/app.py\", line 3, in <module>\n    import kestrel.pens\nModuleNotFoundError: No module named 'kestrel.pens'\n")...), Roots: product},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(min(len(in.Text), classify.TailLimit)))
			b.ReportAllocs()
			for b.Loop() {
				c.Classify(in)
			}
		})
	}
	b.Run("undress alone", func(b *testing.B) {
		b.SetBytes(classify.TailLimit)
		for b.Loop() {
			text.Read([]byte(clean), classify.TailLimit)
		}
	})
}
