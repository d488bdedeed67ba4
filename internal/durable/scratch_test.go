package durable_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// TestScratchSweeps: what a maker that is gone left behind is taken away; what a living one holds, and what merely looks
// alike, is not.
//
// Seen to fail: without the sweep, and without the lock.
func TestScratchSweeps(t *testing.T) {
	t.Parallel()
	in, kept := t.TempDir(), t.TempDir()
	living, remove, err := durable.Scratch(in, "a-")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"a-left/in/deep", "b-other"} {
		if err := os.MkdirAll(filepath.Join(in, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(in, "a-left/in/file"), filepath.Join(in, "a-file"), filepath.Join(kept, "file")} {
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(kept, filepath.Join(in, "a-link")); err != nil {
		t.Fatal(err)
	}
	next, removeNext, err := durable.Scratch(in, "a-")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Base(living), filepath.Base(next), "a-file", "a-link", "b-other"}
	slices.Sort(want)
	if got := listed(t, in); !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	if got := listed(t, kept); len(got) != 1 {
		t.Errorf("behind the link there are %v", got)
	}
	remove()
	removeNext()
	if got := listed(t, in); !slices.Equal(got, []string{"a-file", "a-link", "b-other"}) {
		t.Errorf("in the end there are %v", got)
	}
}

// TestScratchIsNobodyElses: of many who make folders and sweep at a time, none loses its own.
//
// Seen to fail: with a maker that does not look whether it was swept before it had the lock.
func TestScratchIsNobodyElses(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				dir, remove, err := durable.Scratch(in, "a-")
				if err != nil {
					t.Error(err)
					return
				}
				file := filepath.Join(dir, "file")
				if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
					t.Errorf("write in a folder of one's own: %v", err)
				}
				if _, err := os.Stat(file); err != nil {
					t.Errorf("read in a folder of one's own: %v", err)
				}
				remove()
			}
		})
	}
	all.Wait()
	if got := listed(t, in); len(got) > 0 {
		t.Errorf("left behind: %s", strings.Join(got, " "))
	}
}

func listed(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
