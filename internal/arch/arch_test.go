package arch

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// TestRepository holds the whole repository to the rules.
func TestRepository(t *testing.T) {
	t.Parallel()
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if tree.Module != "github.com/mulligan-dev/mulligan" || len(tree.Packages) < 10 {
		t.Fatalf("this is not the repository: module %q with %d packages", tree.Module, len(tree.Packages))
	}
	for _, r := range Rules() {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			for _, f := range r.Check(tree) {
				t.Errorf("%s\n\tbecause %s", f, r.Why)
			}
		})
	}
}

// TestEachRuleCatches shows each rule a small tree that breaks it, in testdata/RULE.txt, and expects exactly the
// findings in the file's first section. What the tree holds beside them is allowed, and proves that the rule is no
// stricter than it says.
func TestEachRuleCatches(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range Rules() {
		seen[r.Name+".txt"] = true
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			want, tree := broken(t, "testdata/"+r.Name+".txt")
			var got []string
			for _, f := range sorted(r.Check(tree)) {
				got = append(got, f.String())
			}
			if len(want) == 0 {
				t.Fatal("the example breaks nothing")
			}
			for _, line := range want {
				if !slices.Contains(got, line) {
					t.Errorf("not caught: %s", line)
				}
			}
			for _, line := range got {
				if !slices.Contains(want, line) {
					t.Errorf("caught, though allowed: %s", line)
				}
			}
			if r.Why == "" {
				t.Error("the rule does not say what it protects")
			}
		})
	}
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[f.Name()] {
			t.Errorf("testdata/%s is the example of no rule", f.Name())
		}
	}
}

// broken reads an example: the expected findings, then files, each after a line "-- path --" or, for a file that N empty
// lines are to follow, "-- path +N --".
func broken(t *testing.T, name string) (want []string, tree *Tree) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	fsys, current := fstest.MapFS{}, ""
	padding := map[string]int{}
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(trimmed, "-- "); ok && strings.HasSuffix(rest, " --") {
			rest, pad, _ := strings.Cut(strings.TrimSuffix(rest, " --"), " +")
			current = rest
			fsys[current] = &fstest.MapFile{}
			if pad != "" {
				if padding[current], err = strconv.Atoi(pad); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		switch {
		case current != "":
			fsys[current].Data = append(fsys[current].Data, line...)
		case trimmed != "" && !strings.HasPrefix(trimmed, "#"):
			want = append(want, trimmed)
		}
	}
	for file, n := range padding {
		fsys[file].Data = append(fsys[file].Data, strings.Repeat("\n", n)...)
	}
	if _, ok := fsys["go.mod"]; !ok {
		fsys["go.mod"] = &fstest.MapFile{Data: []byte("module example.org/m\n")}
	}
	tree, err = Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return want, tree
}

func TestLoadLeavesOutWhatTheGoCommandLeavesOut(t *testing.T) {
	t.Parallel()
	src := &fstest.MapFile{Data: []byte("package p\n")}
	tree, err := Load(fstest.MapFS{
		"go.mod": {Data: []byte("module example.org/m\n")}, "a/p.go": src, "a/testdata/p.go": src, "_b/p.go": src, ".c/p.go": src,
		"d/vendor/p.go": src, "e/go.mod": {Data: []byte("module example.org/m/e\n")}, "e/f/p.go": src,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range tree.Packages {
		got[p.Path] = p.Module
	}
	if want := map[string]string{"a": ".", "e/f": "e"}; !maps.Equal(got, want) {
		t.Errorf("packages and their modules: got %v, want %v", got, want)
	}
}

func TestLoadNamesTheFileThatDoesNotParse(t *testing.T) {
	t.Parallel()
	_, err := Load(fstest.MapFS{"a/p.go": {Data: []byte("package")}})
	if err == nil || !strings.Contains(err.Error(), "a/p.go") {
		t.Errorf("got %v, want an error that names a/p.go", err)
	}
}

// TestEveryPlaceIsReached guards the map against a pattern that an earlier one swallows: its rules would never apply.
func TestEveryPlaceIsReached(t *testing.T) {
	t.Parallel()
	for i, l := range Layers {
		for _, pattern := range l.Packages {
			dir := strings.TrimSuffix(pattern, "/...")
			for _, earlier := range Layers[:i] {
				if matchAny(earlier.Packages, dir) {
					t.Errorf("%s is swallowed by an earlier place: %v", pattern, earlier.Packages)
				}
			}
		}
	}
}

// TestTheMapHasNoCircle checks that the directions which the map allows could all be used at once.
func TestTheMapHasNoCircle(t *testing.T) {
	t.Parallel()
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(dir string, trail []string)
	visit = func(dir string, trail []string) {
		switch state[dir] {
		case done:
			return
		case visiting:
			t.Errorf("the map allows a circle: %s", strings.Join(append(trail, dir), " -> "))
			return
		}
		state[dir] = visiting
		l, _ := layerOf(dir)
		for _, next := range l.May {
			if !strings.Contains(next, "...") {
				visit(next, append(trail, dir))
			}
		}
		state[dir] = done
	}
	for _, l := range Layers {
		for _, pattern := range l.Packages {
			visit(strings.TrimSuffix(pattern, "/..."), nil)
		}
	}
}

func TestExceptionsNameARealPlace(t *testing.T) {
	t.Parallel()
	for _, w := range writers {
		if _, ok := layerOf(strings.TrimSuffix(w.Package, "/...")); !ok || w.Why == "" {
			t.Errorf("the exception of %s needs a place on the map and a reason", w.Package)
		}
	}
	for dir, needs := range notRun {
		if _, ok := layerOf(dir); !ok || needs == "" {
			t.Errorf("the exception of %s needs a place on the map and a reason", dir)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, dir string
		want         bool
	}{
		{"ledger", "ledger", true}, {"ledger", "ledger/stamp", false},
		{"adapters/web/...", "adapters/web", true}, {"adapters/web/...", "adapters/web/static", true},
		{"adapters/web/...", "adapters/webhook", false},
	} {
		if got := match(c.pattern, c.dir); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.dir, got)
		}
	}
}
