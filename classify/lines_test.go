package classify

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinesAreHeard: what is heard in a line by one search is what looking for each word gives, in every line of the labelled
// texts and with its case changed.
func TestLinesAreHeard(t *testing.T) {
	t.Parallel()
	var files []string
	for _, p := range []string{"*/testdata/*.json*", "*/testdata/*/*.json*"} {
		found, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	ear := lineEar{filter: newFilter(lineWords(), newUsage(usual), 1)}
	lines, ends := 0, 0
	seen := map[string]bool{}
	check := func(l string) {
		if seen[l] {
			return
		}
		seen[l] = true
		lines++
		h := ear.hear(l)
		if got, want := h.terminalReason(l), terminalReason(l); got != want {
			t.Errorf("%q: reason %q is heard, and %q is there", l, got, want)
		} else if want != "" {
			ends++
		}
		if got, want := h.active(l), active(l); got != want {
			t.Errorf("%q: bearing %d is heard, and %d is there", l, got, want)
		}
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for c := range bytes.Lines(b) {
			k, err := DecodeCase(c)
			if err != nil {
				if k, err = DecodeCase(b); err != nil {
					continue
				}
			}
			for l := range strings.Lines(string(k.Input.Text)) {
				l = strings.TrimSpace(l)
				check(l)
				check(strings.ToUpper(l))
				check("2026-11-30 12:00:00 INFO " + l + ".")
			}
			if !strings.HasSuffix(file, "l") {
				break
			}
		}
	}
	for _, p := range phrases {
		for _, w := range p.words {
			check(w)
			check("x" + w)
			check("xy" + w + "z")
		}
	}
	for _, w := range append(append([]string{}, downs...), works...) {
		for _, l := range []string{w, "x" + w, "xy" + w + "z", "INFO " + strings.ToUpper(w)} {
			check(l)
		}
	}
	if lines < 10000 || ends < 500 {
		t.Errorf("%d lines, %d of them state an end: want more", lines, ends)
	}
}
