package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// labelled is a labelled text of a runtime.
type labelled struct {
	runtime string
	c       classify.Case
	expect  struct {
		Disposition classify.Disposition `json:"disposition"`
		Family      classify.Family      `json:"family"`
		Reason      classify.Reason      `json:"reason"`
	}
}

// corpus are the labelled texts of all runtimes.
func corpus(t testing.TB) []labelled {
	t.Helper()
	var out []labelled
	for _, pattern := range []string{"../../classify/*/testdata/corpus/*.json", "../../classify/*/testdata/corpus/*/*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var l labelled
			wrapped := struct {
				Runtime string `json:"runtime"`
				Expect  any    `json:"expect"`
			}{Expect: &l.expect}
			if json.Unmarshal(b, &wrapped) != nil || l.expect.Disposition == "" {
				continue
			}
			if l.c, err = classify.DecodeCase(b); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			l.runtime = wrapped.Runtime
			out = append(out, l)
		}
	}
	if len(out) < 300 {
		t.Fatalf("%d labelled texts, want all of them", len(out))
	}
	return out
}

// TestConfusion prints for each runtime what its labelled texts were taken for: a line is what they are, a column what they
// were called. None that is no update's may be called one.
func TestConfusion(t *testing.T) {
	t.Parallel()
	allTexts(t)
	judge, err := classifier()
	if err != nil {
		t.Fatal(err)
	}
	name := func(d classify.Disposition, f classify.Family) string {
		if d == classify.Skew {
			return string(f)
		}
		return string(d)
	}
	columns := []string{"torn_import", "stale_binding", "wire_schema", "data_format", "torn_file", "annotate", "never", "unknown"}
	tables := map[string]map[string]map[string]int{}
	for _, l := range corpus(t) {
		v := judge.Classify(l.c.Input)
		row, column := name(l.expect.Disposition, l.expect.Family), name(v.Disposition, v.Family)
		if tables[l.runtime] == nil {
			tables[l.runtime] = map[string]map[string]int{}
		}
		if tables[l.runtime][row] == nil {
			tables[l.runtime][row] = map[string]int{}
		}
		tables[l.runtime][row][column]++
		if l.expect.Disposition != classify.Skew && v.Disposition == classify.Skew {
			t.Errorf("%s: %s is taken for %s", l.c.ID, row, column)
		}
	}
	for _, rt := range slices.Sorted(func(yield func(string) bool) {
		for k := range tables {
			if !yield(k) {
				return
			}
		}
	}) {
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n%-14s", rt, "")
		for _, c := range columns {
			fmt.Fprintf(&b, "%14s", c)
		}
		for _, row := range columns {
			if tables[rt][row] == nil {
				continue
			}
			fmt.Fprintf(&b, "\n%-14s", row)
			for _, c := range columns {
				fmt.Fprintf(&b, "%14d", tables[rt][row][c])
			}
		}
		t.Log(b.String())
	}
}

// TestEveryFailureIsHeard: the words that are looked for before a text is read miss no failure that reading it would find.
func TestEveryFailureIsHeard(t *testing.T) {
	t.Parallel()
	allTexts(t)
	judge, err := classifier()
	if err != nil {
		t.Fatal(err)
	}
	heard := 0
	for _, l := range corpus(t) {
		_, e := judge.Explain(l.c.Input)
		silent := map[string]bool{}
		for _, r := range e.RuledOut {
			silent[r.Runtime] = r.Why == classify.NoWord
		}
		for _, r := range runtimes() {
			if f := r.Parse(text.Read(l.c.Input.Text, classify.TailLimit)); f == nil {
				continue
			}
			if heard++; silent[r.Name()] {
				t.Errorf("%s: %s finds a failure and has no word in the text", l.c.ID, r.Name())
			}
		}
	}
	if heard < 200 {
		t.Errorf("%d failures are heard of, want more", heard)
	}
}

// everyHost is what the texts of the corpus declare together.
func everyHost(texts []labelled) (roots []classify.Root, workspaces []string) {
	all := classify.Root{Name: "managed"}
	for _, l := range texts {
		for _, r := range l.c.Input.Roots {
			all.Dirs, all.Modules, all.Bindings = append(all.Dirs, r.Dirs...), append(all.Modules, r.Modules...), append(all.Bindings, r.Bindings...)
		}
		workspaces = append(workspaces, l.c.Input.Workspaces...)
	}
	for _, list := range []*[]string{&all.Dirs, &all.Modules, &all.Bindings, &workspaces} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return []classify.Root{all}, workspaces
}

// hold is what must be true of a verdict on any text whatever.
func hold(t interface {
	Errorf(format string, args ...any)
}, judge *classify.Classifier, in classify.Input) {
	v, e := judge.Explain(in)
	again := judge.Classify(in)
	if v.Disposition != again.Disposition || v.Reason != again.Reason || v.Module != again.Module {
		t.Errorf("Explain says %s %s, Classify %s %s", v.Disposition, v.Reason, again.Disposition, again.Reason)
	}
	switch {
	case v.Disposition == classify.Skew && (v.Module == "" || v.Root == "" || v.Family == classify.NoFamily || v.Reason != ""):
		t.Errorf("skew without a managed unit: %+v on %q", v, in.Text)
	case v.Disposition == classify.Skew && e.Decision != classify.ByFailure && e.Decision != classify.ByStatement:
		t.Errorf("skew by %s on %q", e.Decision, in.Text)
	case v.Disposition != classify.Skew && v.Reason == "":
		t.Errorf("%s without a reason on %q", v.Disposition, in.Text)
	}
	for _, s := range e.Deciding {
		if s.From < 0 || s.To <= s.From || s.To > len(in.Text) {
			t.Errorf("span %+v of %d bytes", s, len(in.Text))
		}
	}
	in.Roots = nil
	if v := judge.Classify(in); v.Disposition == classify.Skew {
		t.Errorf("skew although nothing is managed: %+v on %q", v, in.Text)
	}
}

// TestAnyText: no mixture of what all runtimes print makes the classifier panic, take long, take memory without bound, or see
// an update's doing in code that nobody manages.
func TestAnyText(t *testing.T) {
	allTexts(t)
	judge, err := classifier()
	if err != nil {
		t.Fatal(err)
	}
	texts := corpus(t)
	roots, workspaces := everyHost(texts)
	var lines []string
	for _, l := range texts {
		lines = append(lines, strings.SplitAfter(string(l.c.Input.Text), "\n")...)
	}
	rapid.Check(t, func(rt *rapid.T) {
		var b bytes.Buffer
		for range rapid.IntRange(0, 24).Draw(rt, "pieces") {
			switch rapid.IntRange(0, 4).Draw(rt, "kind") {
			case 0: // a whole text
				b.Write(texts[rapid.IntRange(0, len(texts)-1).Draw(rt, "text")].c.Input.Text)
			case 1, 2: // one of its lines
				b.WriteString(lines[rapid.IntRange(0, len(lines)-1).Draw(rt, "line")])
			case 3: // half a line
				l := lines[rapid.IntRange(0, len(lines)-1).Draw(rt, "line")]
				b.WriteString(l[rapid.IntRange(0, len(l)).Draw(rt, "from"):])
			case 4:
				b.Write(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, "bytes"))
			}
		}
		in := classify.Input{Text: b.Bytes(), Exit: classify.Exit{Code: rapid.SampledFrom([]int{0, 1, 2, 137, 139, -1}).Draw(rt, "code")}, Roots: roots, Workspaces: workspaces}
		hold(rt, judge, in)
	})
}

// TestMemoryIsBounded: a text of whatever is worst for a parser costs no more memory than a fixed multiple of what is read.
func TestMemoryIsBounded(t *testing.T) {
	allTexts(t)
	judge, err := classifier()
	if err != nil {
		t.Fatal(err)
	}
	roots, workspaces := everyHost(corpus(t))
	fill := func(s string) []byte { return []byte(strings.Repeat(s, 4*classify.TailLimit/len(s))) }
	for name, text := range map[string][]byte{
		"line feeds": fill("\n"), "tracebacks": fill("Traceback (most recent call last):\n"), "panics": fill("panic: x\n\ngoroutine 1 [running]:\n"), "frames": fill("    at x (y.js:1:1)\n"),
		"causes": fill("Caused by: a.B: c\n"), "records": fill("{\"log\":\"a\\n\"}\n"), "escapes": fill("\x1b[0m"), "sources": fill("a | x\nb | y\n"), "brackets": fill("({["),
		"shell": fill("/a: 1: b: not found\n"), "colons": fill(": "), "refusals": fill("429 too many requests\n"), "one line": fill("Error: "),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		judge.Classify(classify.Input{Text: text, Exit: classify.Exit{Code: 1}, Roots: roots, Workspaces: workspaces})
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 || used > math.MaxInt32 {
			t.Errorf("%s: %d KiB were allocated for %d KiB", name, used>>10, classify.TailLimit>>10)
		} else {
			t.Logf("%-12s %6d KiB", name, used>>10)
		}
	}
}

// FuzzEveryRuntime feeds any text to all runtimes together, with the labelled texts as seeds.
func FuzzEveryRuntime(f *testing.F) {
	judge, err := classifier()
	if err != nil {
		f.Fatal(err)
	}
	texts := corpus(f)
	roots, workspaces := everyHost(texts)
	for _, l := range texts {
		f.Add(l.c.Input.Text, l.c.Input.Exit.Code, l.c.Input.Exit.Signal)
	}
	f.Fuzz(func(t *testing.T, text []byte, code int, signal string) {
		hold(t, judge, classify.Input{Text: text, Exit: classify.Exit{Code: code, Signal: signal}, Roots: roots, Workspaces: workspaces})
	})
}

// allTexts skips what judges every text there is, one after the other, where only a look at the rest is wanted.
func allTexts(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("judges every text there is")
	}
}
