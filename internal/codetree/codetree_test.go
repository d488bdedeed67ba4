package codetree_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/witness"
)

func TestMatcher(t *testing.T) {
	t.Parallel()
	checkout := map[string]bool{"/srv/acme/acme": true, "/srv/lib/src/acme": true}
	exists := func(p string) bool { return checkout[p] }
	tests := []struct {
		modules string
		dir     string
		path    string
		want    bool
	}{
		{"acme", "/srv/x", "acme/wire.py", true},
		{"acme", "/srv/x", "src/acme/deep/wire.py", true},
		{"acme", "/srv/x", "acme.py", true},
		{"acme", "/srv/x", "acme.cpython-312-x86_64-linux-gnu.so", true},
		{"acme", "/srv/x", "acme/libacme.so.1.2", true},
		{"acme", "/srv/x", "acme/WIRE.PY", true},
		{"acme", "/srv/x", "acme_theme/wire.py", false},
		{"acme", "/srv/x", "scripts/tool.py", false},
		{"acme", "/srv/x", "acme/debug.log", false},
		{"acme", "/srv/x", "acme/data.json", false},
		{"acme.wire", "/srv/x", "acme/wire/codec.py", true},
		{"acme.wire", "/srv/x", "acme/wire.py", true},
		{"acme.wire", "/srv/x", "acme/cli.py", false},
		{"acme.wire", "/srv/x", "wire.py", false},
		{"Acme::Wire", "/srv/x", "lib/Acme/Wire.pm", true},
		{"@acme/wire", "/srv/x", "packages/@acme/wire/index.js", true},
		{"acme other", "/srv/x", "other/x.py", true},
		{"", "/srv/x", "anything/x.py", true},
		{"", "/srv/x", "anything/x.log", false},
		// The folder is a checkout that has the package's name.
		{"acme", "/srv/acme", "scripts/tool.py", false},
		{"acme", "/srv/acme", "acme/wire.py", true},
		// The folder is the package itself, or one in it.
		{"acme", "/srv/lib/acme", "wire.py", true},
		{"acme.wire", "/srv/lib/acme", "wire/codec.py", true},
		{"acme.wire", "/srv/lib/acme", "cli.py", false},
		{"acme.wire", "/srv/lib/acme/wire", "codec.py", true},
	}
	for _, tt := range tests {
		r := witness.Root{Root: classify.Root{Modules: strings.Fields(tt.modules)}}
		if got := codetree.NewMatcher(r, tt.dir, exists).Match(tt.path); got != tt.want {
			t.Errorf("modules %q in %s: %s is code: %v, want %v", tt.modules, tt.dir, tt.path, got, tt.want)
		}
	}
}

// TestMatcherOfFiles: a root of Node.js, Ruby, PHP, an object or a script is its files, whatever its packages and
// namespaces are called. What was installed into it is its own only by name.
//
// Seen to fail: with the patterns alone, and for archives without their rule.
func TestMatcherOfFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		runtime, modules, path string
		want                   bool
	}{
		{"node", "acme", "lib/jobs.js", true},
		{"node", "acme", "lib/run.log", false},
		{"node", "acme @acme", "node_modules/left-pad/index.js", false},
		{"node", "acme @acme", "node_modules/@acme/wire/index.js", true},
		{"php", "Acme", "src/Jobs.php", true},
		{"php", "Acme", "vendor/other/x.php", false},
		{"ruby", "Acme", "lib/acme/jobs.rb", true},
		{"command", "acme", "bin/agent.sh", true},
		{"elf", "acme", "lib/libwire.so.2", true},
		{"python", "acme", "scripts/tool.py", false},
		{"jvm", "com.acme", "org/other/X.class", false},
		{"jvm", "com.acme", "lib/worker-1.2.jar", true},
		{"python", "acme", "lib/worker-1.2.jar", false},
		{"", "acme", "lib/jobs.js", false},
	} {
		r := witness.Root{Root: classify.Root{Modules: strings.Fields(tt.modules)}, Runtime: tt.runtime}
		if got := codetree.NewMatcher(r, "/srv/x", func(string) bool { return false }).Match(tt.path); got != tt.want {
			t.Errorf("modules %q of %s: %s is code: %v, want %v", tt.modules, tt.runtime, tt.path, got, tt.want)
		}
	}
}

func write(t *testing.T, name, text string) os.FileInfo {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return stat(t, name)
}

func stat(t *testing.T, name string) os.FileInfo {
	t.Helper()
	fi, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return fi
}

func digest(t *testing.T, name string) string {
	t.Helper()
	d, err := codetree.Digest(name, stat(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDigest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b, link := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "link")
	write(t, a, "x")
	write(t, b, "x")
	// sha256 of "x": what a commit that holds the file would be compared with.
	const want = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
	if digest(t, a) != want || digest(t, b) != want {
		t.Errorf("digests are %s and %s, want %s", digest(t, a), digest(t, b), want)
	}
	if err := os.Symlink("x", link); err != nil {
		t.Fatal(err)
	}
	if digest(t, link) != want {
		t.Errorf("a link to x has the digest %s, want that of its target's name", digest(t, link))
	}
	if err := os.Truncate(a, codetree.DigestLimit+1); err != nil {
		t.Fatal(err)
	}
	large := digest(t, a)
	at := time.Now().Add(time.Hour)
	if err := os.Chtimes(a, at, at); err != nil {
		t.Fatal(err)
	}
	if digest(t, a) == large {
		t.Error("a large file with another time has the same digest")
	}
}

func TestChangeTimeCannotBeSetBack(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a")
	write(t, name, "x")
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(name, old, old); err != nil {
		t.Fatal(err)
	}
	if age := time.Since(codetree.ChangeTime(stat(t, name))); age > time.Hour {
		t.Skipf("the system has no change time (%v)", age)
	}
}

func TestBindings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"acme/_native.cpython-312-x86_64-linux-gnu.so", "acme/_native2.so", "src/acme/_fast.abi3.so", "lib/libacme.so", "pkg/pkg.abi3.so", "plugins/a.so", "plugins/b.so"} {
		write(t, filepath.Join(dir, name), "not an ELF file")
	}
	tests := []struct {
		declared string
		want     []string // "-" before what is missing
	}{
		{"acme._native", []string{"acme/_native.cpython-312-x86_64-linux-gnu.so"}},
		{"acme._fast", []string{"src/acme/_fast.abi3.so"}},
		{"libacme.so", []string{"lib/libacme.so"}},
		{"pkg", []string{"pkg/pkg.abi3.so"}},
		{"plugins/*.so", []string{"plugins/a.so", "plugins/b.so"}},
		{filepath.Join(dir, "plugins/a.so"), []string{"plugins/a.so"}},
		{"acme._gone", []string{"-acme._gone"}},
		{"[", []string{"-["}},
	}
	for _, tt := range tests {
		r := witness.Root{Root: classify.Root{Dirs: []string{dir}, Bindings: []string{tt.declared}}}
		var got []string
		for _, b := range codetree.Bindings(r) {
			if b.Size == codetree.Missing {
				got = append(got, "-"+b.Path)
				continue
			}
			rel, err := filepath.Rel(dir, b.Path)
			if err != nil || b.MTime == 0 || b.Size != int64(len("not an ELF file")) {
				t.Errorf("%s: binding is %+v, %v", tt.declared, b, err)
			}
			got = append(got, rel)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.declared, diff)
		}
	}
}

func TestBuildID(t *testing.T) {
	t.Parallel()
	// Any program of the system that carries one will do.
	for _, name := range []string{"/bin/sh", "/bin/ls", "/usr/bin/env"} {
		f, err := elf.Open(name)
		if err != nil {
			continue
		}
		has := f.Section(".note.gnu.build-id") != nil
		f.Close()
		if !has {
			continue
		}
		r := witness.Root{Root: classify.Root{Bindings: []string{name}}}
		got := codetree.Bindings(r)
		if len(got) != 1 || len(got[0].BuildID) < 16 || strings.Trim(got[0].BuildID, "0123456789abcdef") != "" {
			t.Errorf("binding is %+v, want a build id in hex", got)
		}
		return
	}
	t.Skip("no program of this system carries a build id")
}
