package jar_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/jar"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

func newSource(t testing.TB, cfg jar.Config) *jar.Source {
	t.Helper()
	s, err := jar.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// archive is a jar with one class and a manifest.
func archive(t testing.TB, class, manifest string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range [][2]string{{"META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n" + manifest + "\r\n"}, {"com/acme/Wire.class", class}} {
		w, err := z.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func rootAt(pkg string, dirs ...string) witness.Root {
	return witness.Root{Root: classify.Root{Name: "acme", Dirs: dirs, Modules: []string{"com.acme"}}, Kind: jar.Kind, Package: pkg}
}

func identify(t testing.TB, r witness.Root) witness.Identity {
	t.Helper()
	id, err := newSource(t, jar.Config{}).Identify(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSource(t *testing.T) {
	t.Parallel()
	for name, pkg := range map[string]string{"one archive": "acme-*.jar", "class path": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			witnesstest.Run(t, func(t testing.TB) witnesstest.World {
				dir := t.TempDir()
				n := 1
				write(t, dir, "acme-1.jar", archive(t, "1", ""))
				return witnesstest.World{
					Source: newSource(t, jar.Config{}), Root: rootAt(pkg, dir),
					Change: func() { n++; write(t, dir, "acme-1.jar", archive(t, strings.Repeat("x", n), "")) },
					Noise: func() {
						write(t, dir, "acme.log", "noise")
						write(t, dir, "org/other/X.class", "not ours")
						write(t, dir, ".cache/x.jar", "hidden")
					},
					Break: func() { write(t, dir, "acme-1.jar", archive(t, "1", "")[:40]) },
				}
			})
		})
	}
}

func TestWhatCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "acme-1.jar", archive(t, "1", "Implementation-Version: 1.4\r\n"))
	write(t, dir, "com/acme/Extra.class", "1")
	all, one := rootAt("", dir), rootAt("acme-*.jar", dir)
	if id := identify(t, one); !strings.HasPrefix(id.Revision, "1.4@") {
		t.Errorf("identity is %+v, want the version of the manifest", id)
	}
	old := time.Now().Add(-time.Hour)
	steps := []struct {
		name              string
		change            func()
		movesAll, movesIt bool
	}{
		{"nothing", func() {}, false, false},
		{"another time", func() {
			if err := os.Chtimes(filepath.Join(dir, "acme-1.jar"), old, old); err != nil {
				t.Fatal(err)
			}
		}, false, false},
		{"the same content again", func() {
			write(t, dir, "acme-1.jar", archive(t, "1", "Implementation-Version: 1.4\r\n"))
		}, false, false},
		{"a class beside it", func() { write(t, dir, "com/acme/Extra.class", "2") }, true, false},
		{"another archive", func() { write(t, dir, "lib/other.jar", archive(t, "1", "")) }, true, false},
		{"a class inside", func() { write(t, dir, "acme-1.jar", archive(t, "2", "Implementation-Version: 1.4\r\n")) }, true, true},
		{"the manifest alone", func() { write(t, dir, "acme-1.jar", archive(t, "2", "Implementation-Version: 1.5\r\n")) }, true, true},
		{"another name", func() {
			if err := os.Rename(filepath.Join(dir, "acme-1.jar"), filepath.Join(dir, "acme-2.jar")); err != nil {
				t.Fatal(err)
			}
		}, true, true},
	}
	for _, s := range steps {
		a, i := identify(t, all), identify(t, one)
		s.change()
		b, j := identify(t, all), identify(t, one)
		if !b.Known() || !j.Known() || (a.Key() != b.Key()) != s.movesAll || (i.Key() != j.Key()) != s.movesIt {
			t.Errorf("%s: the class path went from %s to %s (want a move: %v), the archive from %s to %s (want a move: %v)",
				s.name, a.Key(), b.Key(), s.movesAll, i.Key(), j.Key(), s.movesIt)
		}
	}
}

// TestLinkedArchive: the way of packages that link acme.jar to a version.
func TestLinkedArchive(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), t.TempDir()
	write(t, store, "acme-1.jar", archive(t, "1", ""))
	write(t, store, "acme-2.jar", archive(t, "2", ""))
	var keys []string
	for _, to := range []string{"acme-1.jar", "acme-2.jar"} {
		at := filepath.Join(dir, "acme.jar")
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(store, to), at); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, identify(t, rootAt("acme.jar", dir)).Key())
	}
	if keys[0] == "" || keys[0] == keys[1] {
		t.Errorf("keys are %q, want two", keys)
	}
}

func TestUnknownSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole := archive(t, strings.Repeat("class", 100), "")
	for n := 0; n < len(whole); n += 50 {
		write(t, dir, "acme.jar", whole[:n])
		if id := identify(t, rootAt("", dir)); id.Known() || !strings.Contains(id.Unknown, "half written") {
			t.Fatalf("%d of %d bytes are there: %+v, want unknown", n, len(whole), id)
		}
	}
	write(t, dir, "acme.jar", whole)
	write(t, dir, "b.jar", whole)
	for name, tt := range map[string]struct {
		cfg  jar.Config
		root witness.Root
		want string
	}{
		"too many files": {jar.Config{MaxFiles: 2}, rootAt("", dir), "more than 2 files"},
		"too many bytes": {jar.Config{MaxBytes: int64(len(whole) + 10)}, rootAt("", dir), "larger than"},
		"no such file":   {jar.Config{}, rootAt("x.jar", dir), "no archive x.jar"},
		"a path":         {jar.Config{}, rootAt("lib/x.jar", dir), "is no file name"},
		"a bad pattern":  {jar.Config{}, rootAt("[", dir), "is no pattern"},
		"no code":        {jar.Config{}, rootAt("", t.TempDir()), "no archive and no class"},
		"no folder":      {jar.Config{}, rootAt("", filepath.Join(dir, "gone")), "does not exist"},
		"no folders":     {jar.Config{}, rootAt(""), "has no folder"},
	} {
		id, err := newSource(t, tt.cfg).Identify(t.Context(), tt.root)
		if err != nil || id.Known() || !strings.Contains(id.Unknown, tt.want) {
			t.Errorf("%s: %+v, %v; want unknown with %q", name, id, err, tt.want)
		}
	}
	if _, err := jar.New(jar.Config{MaxFiles: -1, MaxBytes: -1}); err == nil || !strings.Contains(err.Error(), "MaxFiles") || !strings.Contains(err.Error(), "MaxBytes") {
		t.Errorf("negative bounds: %v, want both reported", err)
	}
}

// TestRealJar: what the compiler and the archiver of a JDK write is understood, and a rebuild is seen.
func TestRealJar(t *testing.T) {
	t.Parallel()
	const hint = "apt-get install default-jdk-headless"
	require.Program(t, "javac", hint)
	require.Program(t, "jar", hint)
	dir, lib := t.TempDir(), t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	write(t, dir, "manifest", "Implementation-Version: 2.1\n")
	var ids []witness.Identity
	for _, method := range []string{"encode", "decode"} {
		write(t, dir, "src/com/acme/Wire.java", "package com.acme; public class Wire { public int "+method+"() { return 1; } }")
		run("javac", "-d", "classes", "src/com/acme/Wire.java")
		run("jar", "cfm", filepath.Join(lib, "acme-wire.jar"), "manifest", "-C", "classes", ".")
		ids = append(ids, identify(t, rootAt("acme-wire.jar", lib)))
	}
	if !strings.HasPrefix(ids[0].Revision, "2.1@") || !ids[1].Known() || ids[0].Key() == ids[1].Key() {
		t.Errorf("two builds are %+v and %+v", ids[0], ids[1])
	}
	// The classes that javac wrote, as a folder of the class path.
	one := identify(t, rootAt("", filepath.Join(dir, "classes")))
	write(t, dir, "src/com/acme/Wire.java", "package com.acme; public class Wire { }")
	run("javac", "-d", "classes", "src/com/acme/Wire.java")
	if two := identify(t, rootAt("", filepath.Join(dir, "classes"))); !one.Known() || !two.Known() || one.Key() == two.Key() {
		t.Errorf("two compilations are %+v and %+v", one, two)
	}
}

func ExampleNew() {
	src, err := jar.New(jar.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	root := witness.Root{
		Root: classify.Root{Name: "acme", Dirs: []string{"/nowhere/lib"}, Modules: []string{"com.acme"}},
		Kind: jar.Kind, Package: "acme-wire-*.jar",
	}
	id, err := src.Identify(context.Background(), root)
	fmt.Println(id.Known(), id.Unknown, err)
	// Output: false /nowhere/lib does not exist <nil>
}
