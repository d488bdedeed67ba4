package binary_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/binary"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

func newSource(t testing.TB) *binary.Source {
	t.Helper()
	s, err := binary.New(binary.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func rootAt(dir string) witness.Root {
	return witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{dir}, Modules: []string{"acme"}}, Kind: binary.Kind, Package: "worker"}
}

func identify(t testing.TB, r witness.Root) witness.Identity {
	t.Helper()
	id, err := newSource(t).Identify(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func run(t testing.TB, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// compileC puts a program that prints n at dir/worker.
func compileC(t testing.TB, dir string, n int, flags ...string) {
	t.Helper()
	require.Program(t, "gcc", "apt-get install gcc libc6-dev")
	src := t.TempDir()
	write(t, filepath.Join(src, "main.c"), fmt.Sprintf("int main(void) { return %d; }\n", n))
	run(t, src, "gcc", append(append([]string{"-o", filepath.Join(dir, "worker")}, flags...), "main.c")...)
}

// TestSource runs the suite on a script, which has no build id; TestBuildIDs shows those.
func TestSource(t *testing.T) {
	t.Parallel()
	witnesstest.Run(t, func(t testing.TB) witnesstest.World {
		dir := t.TempDir()
		file := filepath.Join(dir, "worker")
		write(t, file, "#!/bin/sh\n")
		n := 0
		return witnesstest.World{
			Source: newSource(t), Root: rootAt(dir),
			Change: func() { n++; write(t, file, "#!/bin/sh\n"+strings.Repeat("#", n)) },
			Noise:  func() { write(t, filepath.Join(dir, "worker.log"), "noise") },
			Break:  func() { write(t, file, "") },
		}
	})
}

// TestBuildIDs: what the real linkers write is what tells builds apart, and nothing else does.
func TestBuildIDs(t *testing.T) {
	t.Parallel()
	goBuild := func(flags ...string) func(t testing.TB, dir string, n int) {
		return func(t testing.TB, dir string, n int) {
			t.Helper()
			require.Program(t, "go", "install Go")
			src := t.TempDir()
			write(t, filepath.Join(src, "go.mod"), "module worker\n")
			write(t, filepath.Join(src, "main.go"), fmt.Sprintf("package main\n\nfunc main() { println(%d) }\n", n))
			run(t, src, "go", append(append([]string{"build", "-trimpath", "-o", filepath.Join(dir, "worker")}, flags...), ".")...)
		}
	}
	for name, tt := range map[string]struct {
		build func(t testing.TB, dir string, n int)
		want  string
	}{
		"gcc":            {func(t testing.TB, dir string, n int) { t.Helper(); compileC(t, dir, n, "-Wl,--build-id") }, "gnu:"},
		"gcc, no id":     {func(t testing.TB, dir string, n int) { t.Helper(); compileC(t, dir, n, "-Wl,--build-id=none") }, "stat:"},
		"go":             {goBuild("-ldflags=-B=gobuildid"), "gnu:"},
		"go, its own id": {goBuild("-ldflags=-B=none"), "go:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tt.build(t, dir, 1)
			one := identify(t, rootAt(dir))
			if !strings.HasPrefix(one.Revision, tt.want) || len(one.Revision) < len(tt.want)+8 {
				t.Fatalf("identity is %+v, want a revision with %q", one, tt.want)
			}
			// The same build again, with another time: the same tree, where there is an id.
			tt.build(t, dir, 1)
			at := time.Now().Add(-time.Hour)
			if err := os.Chtimes(filepath.Join(dir, "worker"), at, at); err != nil {
				t.Fatal(err)
			}
			if again := identify(t, rootAt(dir)); (again.Key() == one.Key()) != (tt.want != "stat:") {
				t.Errorf("the same build put there again has the key %s, it was %s", again.Key(), one.Key())
			}
			tt.build(t, dir, 2)
			two := identify(t, rootAt(dir))
			if !two.Known() || two.Key() == one.Key() {
				t.Errorf("another build is %+v, it was %s", two, one.Key())
			}
			halfWritten(t, filepath.Join(dir, "worker"), rootAt(dir))
		})
	}
}

// halfWritten cuts the program off at many places: it has no identity then, or at least not that of a whole one.
func halfWritten(t *testing.T, file string, r witness.Root) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := os.Truncate(file, int64(len(text)-1-i*len(text)/21)); err != nil {
			t.Fatal(err)
		}
		if id := identify(t, r); id.Known() || !strings.Contains(id.Unknown, "half written") {
			t.Fatalf("%d bytes less: %+v, want unknown", 1+i*len(text)/21, id)
		}
	}
}

// TestWithoutSections: a program that was stripped of its section table is told by what is loaded of it.
func TestWithoutSections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	compileC(t, dir, 1)
	file := filepath.Join(dir, "worker")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text[4] != 2 {
		t.Skip("the program is not a 64 bit one; the offsets below are")
	}
	clear(text[0x28:0x30]) // where the table is, how many entries it has, which one holds the names
	clear(text[0x3c:0x40])
	write(t, file, string(text))
	if id := identify(t, rootAt(dir)); !strings.HasPrefix(id.Revision, "stat:") {
		t.Errorf("identity is %+v", id)
	}
	write(t, file, string(text[:len(text)/4]))
	if id := identify(t, rootAt(dir)); id.Known() || !strings.Contains(id.Unknown, "half written") {
		t.Errorf("a quarter of it is %+v, want unknown", id)
	}
}

// TestLink: a program that is switched by a link is in force since the switch at the earliest.
func TestLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "worker")
	write(t, filepath.Join(dir, "one"), "#!/bin/sh\n")
	// The link must be younger than the program by the clock of the file system.
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if err := os.RemoveAll(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("one", link); err != nil {
			t.Fatal(err)
		}
		made, program := stat(t, os.Lstat, link), stat(t, os.Stat, link)
		if !made.After(program) {
			continue
		}
		id, since, err := newSource(t).InForce(t.Context(), rootAt(dir))
		if err != nil || since.Wall.Before(made) {
			t.Errorf("%+v is in force since %s, %v; the link was made at %s", id, since, err, made)
		}
		return
	}
	t.Error("no link was younger than the program")
}

func stat(t *testing.T, how func(string) (os.FileInfo, error), name string) time.Time {
	t.Helper()
	fi, err := how(name)
	if err != nil {
		t.Fatal(err)
	}
	return fi.ModTime()
}

func TestUnknownSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := rootAt(dir)
	if id := identify(t, r); id.Known() || !strings.Contains(id.Unknown, "does not exist") {
		t.Errorf("nothing there: %+v", id)
	}
	write(t, filepath.Join(dir, "worker"), "\x7fELF and nothing more")
	if id := identify(t, r); id.Known() || !strings.Contains(id.Unknown, "damaged") {
		t.Errorf("half a header: %+v", id)
	}
	write(t, filepath.Join(dir, "worker"), "")
	if id := identify(t, r); id.Known() || !strings.Contains(id.Unknown, "is empty") {
		t.Errorf("an empty file: %+v", id)
	}
}

func ExampleNew() {
	src, err := binary.New(binary.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	root := witness.Root{
		Root: classify.Root{Name: "acme", Dirs: []string{"/nowhere/bin"}, Modules: []string{"acme"}},
		Kind: binary.Kind, Package: "worker",
	}
	id, err := src.Identify(context.Background(), root)
	fmt.Println(id.Known(), id.Unknown, err)
	// Output: false file /nowhere/bin/worker does not exist <nil>
}
