package image_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/image"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

func newSource(t testing.TB) *image.Source {
	t.Helper()
	s, err := image.New(image.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rootAt(dir string) witness.Root {
	return witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{dir}, Modules: []string{"acme"}}, Kind: image.Kind, Package: "image.digest"}
}

func identify(t testing.TB, r witness.Root) witness.Identity {
	t.Helper()
	id, err := newSource(t).Identify(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func digest(n int) string { return fmt.Sprintf("sha256:%064x", n) }

func TestSource(t *testing.T) {
	t.Parallel()
	witnesstest.Run(t, func(t testing.TB) witnesstest.World {
		dir := t.TempDir()
		file := filepath.Join(dir, "image.digest")
		n := 1
		write(t, file, digest(n))
		return witnesstest.World{
			Source: newSource(t), Root: rootAt(dir),
			Change: func() { n++; write(t, file, "registry.example/acme@"+digest(n)+"\n") },
			Noise:  func() { write(t, filepath.Join(dir, "deploy.log"), digest(99)) },
			Break:  func() { write(t, file, "") },
		}
	})
}

// TestOnlyTheDigestCounts: what a deploy step writes beside the digest is no code.
func TestOnlyTheDigestCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "image.digest")
	write(t, file, digest(1))
	one := identify(t, rootAt(dir))
	if one.Revision != digest(1) {
		t.Fatalf("identity is %+v", one)
	}
	for text, same := range map[string]bool{
		digest(1): true, "registry.example/acme:v2@" + digest(1) + "\n# deployed on a Monday\n": true,
		`{"Id": "` + digest(1) + `", "RepoDigests": ["acme@` + digest(1) + `"]}`: true,
		digest(2): false,
	} {
		write(t, file, text)
		if two := identify(t, rootAt(dir)); !two.Known() || (two.Key() == one.Key()) != same {
			t.Errorf("%q: key %q, want it equal: %v", text, two.Key(), same)
		}
	}
}

func TestUnknownSaysWhy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "names no image digest", "v1.2\n": "names no image digest", digest(1)[:70]: "names no image digest", digest(1) + "0": "names no image digest",
		digest(1) + "\n" + digest(2): "names 2 digests", strings.Repeat(" ", 64<<10) + digest(1): "more than 65536 bytes",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "image.digest"), text)
		if id := identify(t, rootAt(dir)); id.Known() || !strings.Contains(id.Unknown, want) {
			t.Errorf("%.80q: %+v, want unknown with %q", text, id, want)
		}
	}
	r := rootAt(t.TempDir())
	for pkg, want := range map[string]string{"": "names no file", "../x": "leads out", "gone": "does not exist", ".": "is no file"} {
		r.Package = pkg
		if id := identify(t, r); id.Known() || !strings.Contains(id.Unknown, want) {
			t.Errorf("file %q: %+v, want unknown with %q", pkg, id, want)
		}
	}
	r.Dirs = nil
	if id := identify(t, r); !strings.Contains(id.Unknown, "has no folder") {
		t.Errorf("no folder: %+v", id)
	}
}

// TestSwitchedByALink: a release that is switched by a link is read through the declared folder, and dated by the link.
func TestSwitchedByALink(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for n, release := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(base, release), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(base, release, "image.digest"), digest(n))
	}
	current := filepath.Join(base, "current")
	point := func(to string) {
		t.Helper()
		if err := os.RemoveAll(current); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, current); err != nil {
			t.Fatal(err)
		}
	}
	point("one")
	r := rootAt(filepath.Join(base, "one"))
	r.Declared = []string{current}
	boot := identify(t, r)
	point("two")
	now, since, err := newSource(t).InForce(t.Context(), r)
	if err != nil || boot.Revision != digest(0) || now.Revision != digest(1) {
		t.Fatalf("identities are %+v and %+v, %v", boot, now, err)
	}
	link, err := os.Lstat(current)
	if err != nil {
		t.Fatal(err)
	}
	if since.Wall.Before(link.ModTime()) {
		t.Errorf("the release is in force since %s, the link was made at %s", since, link.ModTime())
	}
}

func ExampleNew() {
	src, err := image.New(image.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	root := witness.Root{
		Root: classify.Root{Name: "acme", Dirs: []string{"/nowhere/app"}, Modules: []string{"acme"}},
		Kind: image.Kind, Package: "/nowhere/deploy/image.digest",
	}
	id, err := src.Identify(context.Background(), root)
	fmt.Println(id.Known(), id.Unknown, err)
	// Output: false file /nowhere/deploy/image.digest does not exist <nil>
}
