package folder_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/folder"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

func newSource(t testing.TB, cfg folder.Config) *folder.Source {
	t.Helper()
	s, err := folder.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, dir string, pathsAndContents ...string) {
	t.Helper()
	for i := 0; i < len(pathsAndContents); i += 2 {
		name := filepath.Join(dir, pathsAndContents[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(pathsAndContents[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func rootAt(dirs ...string) witness.Root {
	return witness.Root{Root: classify.Root{Name: "acme", Dirs: dirs, Modules: []string{"acme"}}, Kind: folder.Kind}
}

func identify(t testing.TB, s *folder.Source, r witness.Root) witness.Identity {
	t.Helper()
	id, err := s.Identify(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSource(t *testing.T) {
	t.Parallel()
	witnesstest.Run(t, func(t testing.TB) witnesstest.World {
		dir := t.TempDir()
		write(t, dir, "acme/a.py", "1", "acme/b.py", "1", "acme/run.log", "")
		n := 0
		return witnesstest.World{
			Source: newSource(t, folder.Config{}), Root: rootAt(dir),
			Change: func() {
				n++
				write(t, dir, "acme/a.py", strings.Repeat("x", n+1))
			},
			Noise: func() { write(t, dir, "acme/run.log", "noise", "acme/other.log", "", "scripts/tool.py", "") },
			Break: func() {
				if err := os.RemoveAll(filepath.Join(dir, "acme")); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func TestManifest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "acme/a.py", "1", "acme/b.py", "1", "acme/__pycache__/a.py", "", "acme/.cache/x.py", "", "node_modules/acme/x.js", "")
	s, r := newSource(t, folder.Config{}), rootAt(dir)
	tests := []struct {
		name   string
		change func() error
		moves  bool
	}{
		{"nothing", func() error { return nil }, false},
		{"a compiled cache", func() error { write(t, dir, "acme/__pycache__/b.py", ""); return nil }, false},
		{"a hidden folder", func() error { write(t, dir, "acme/.cache/y.py", ""); return nil }, false},
		{"a dependency", func() error { write(t, dir, "node_modules/acme/y.js", ""); return nil }, false},
		{"a deletion", func() error { return os.Remove(filepath.Join(dir, "acme/b.py")) }, true},
		{"a new module", func() error { write(t, dir, "acme/sub/c.py", ""); return nil }, true},
		{"a rename", func() error { return os.Rename(filepath.Join(dir, "acme/a.py"), filepath.Join(dir, "acme/d.py")) }, true},
		{"a new time alone", func() error {
			at := time.Now().Add(-time.Hour)
			return os.Chtimes(filepath.Join(dir, "acme/d.py"), at, at)
		}, true},
	}
	for _, tt := range tests {
		before := identify(t, s, r)
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		after := identify(t, s, r)
		if moved := before.Key() != after.Key(); !after.Known() || moved != tt.moves {
			t.Errorf("%s: the key moved: %v, want %v (%+v)", tt.name, moved, tt.moves, after)
		}
	}
}

func TestDeletionIsAChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, r := newSource(t, folder.Config{}), rootAt(dir)
	write(t, dir, "acme/keep.py", "")
	for i, deadline := 0, time.Now().Add(time.Minute); time.Now().Before(deadline); i++ {
		name := fmt.Sprintf("acme/m%d.py", i)
		write(t, dir, name, "")
		before, err := s.LastChange(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		after, err := s.LastChange(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if after.Sub(before) > 0 {
			return
		}
	}
	t.Error("no deletion moved the last change")
}

// TestDeletionOfAFolderIsAChange: also where the folder above holds no code of its own.
func TestDeletionOfAFolderIsAChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, r := newSource(t, folder.Config{}), rootAt(dir)
	write(t, dir, "acme/keep/a.py", "")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		write(t, dir, "acme/gone/b.py", "")
		before, err := s.LastChange(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "acme/gone")); err != nil {
			t.Fatal(err)
		}
		after, err := s.LastChange(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if after.Sub(before) > 0 {
			return
		}
	}
	t.Error("no deletion of a folder moved the last change")
}

func TestReleaseSwitchedByALink(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	write(t, base, "1/acme/a.py", "1", "2/acme/a.py", "1")
	at := time.Now().Add(-time.Hour)
	for _, n := range []string{"1", "2"} {
		if err := os.Chtimes(filepath.Join(base, n, "acme/a.py"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	current := filepath.Join(base, "current")
	s, r := newSource(t, folder.Config{}), rootAt(current)
	link := func(to string) witness.Identity {
		t.Helper()
		if err := os.Remove(current); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(base, to), current); err != nil {
			t.Fatal(err)
		}
		return identify(t, s, r)
	}
	one, two := link("1"), link("2")
	if !one.Known() || one.Key() == two.Key() {
		t.Errorf("identities are %+v and %+v, want two", one, two)
	}
}

func TestUnknownSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "acme/a.py", "", "acme/b.py", "", "acme/c.py", "")
	empty := t.TempDir()
	tests := []struct {
		name string
		cfg  folder.Config
		dirs []string
		want string
	}{
		{"too many files", folder.Config{MaxFiles: 3}, []string{dir}, "more than 3 files"},
		{"no code", folder.Config{}, []string{empty}, "no code of the root's modules"},
		{"no folder", folder.Config{}, []string{empty + "/x"}, "does not exist"},
		{"no folders", folder.Config{}, nil, "has no folder"},
	}
	for _, tt := range tests {
		if id := identify(t, newSource(t, tt.cfg), rootAt(tt.dirs...)); id.Known() || !strings.Contains(id.Unknown, tt.want) {
			t.Errorf("%s: %+v, want unknown with %q", tt.name, id, tt.want)
		}
	}
	if _, err := folder.New(folder.Config{MaxFiles: -1}); err == nil {
		t.Error("a negative bound was accepted")
	}
}

func ExampleNew() {
	src, err := folder.New(folder.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	root := witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{"/nowhere/acme"}}, Kind: folder.Kind}
	fmt.Println(src.LastChange(context.Background(), root))
	// Output: unknown read the last change of root acme: folder /nowhere/acme does not exist
}
