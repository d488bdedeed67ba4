package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A store asks before it opens for writing.
func ExampleRefuse() {
	fmt.Println(Inert(), Refuse("/var/lib/acme"))
	// Output: false <nil>
}

// TestRefuse holds a canary to its folder, by whatever name a path calls it.
func TestRefuse(t *testing.T) { // the environment is the process's: not parallel
	dir, live := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink(live, filepath.Join(dir, "out")))
	must(os.Symlink(dir, filepath.Join(live, "in")))
	must(os.Symlink(filepath.Join(live, "none"), filepath.Join(dir, "dangling")))
	t.Setenv(Var, "c1")
	t.Setenv(DirVar, dir)
	for path, allowed := range map[string]bool{
		dir:                                  true,
		filepath.Join(dir, "new", "deeper"):  true,
		filepath.Join(live, "in", "x"):       true,
		dir + "-beside":                      false,
		live:                                 false,
		filepath.Join(dir, "..", "x"):        false,
		filepath.Join(dir, "out", "x"):       false,
		filepath.Join(dir, "dangling", "x"):  false,
		filepath.Join(dir, "new", "..", "x"): true,
		"":                                   false,
	} {
		if err := Refuse(path); (err == nil) != allowed || err != nil && !errors.Is(err, ErrOutside) {
			t.Errorf("%s: %v, allowed should be %v", path, err, allowed)
		}
	}
	t.Setenv(DirVar, "")
	if Refuse(dir) == nil {
		t.Error("a canary without a folder may write")
	}
	t.Setenv(Var, "")
	if err := Refuse(live); err != nil || Inert() {
		t.Errorf("no canary, and yet %v", err)
	}
}
