package gem_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/gem"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

func newSource(t testing.TB, cfg gem.Config) *gem.Source {
	t.Helper()
	s, err := gem.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// home is a gem home with files as RubyGems puts them there.
type home struct {
	t   testing.TB
	dir string
}

func (h home) write(name, text string) {
	h.t.Helper()
	at := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h home) remove(name string) {
	h.t.Helper()
	if err := os.RemoveAll(filepath.Join(h.dir, name)); err != nil {
		h.t.Fatal(err)
	}
}

func (h home) install(name, version, code string) {
	h.t.Helper()
	full := name + "-" + version
	h.write("gems/"+full+"/lib/acme_wire.rb", code)
	h.write("gems/"+full+"/README.md", "words")
	h.write("gems/"+full+"/exe/acme", "#!/usr/bin/env ruby\n")
	h.write("specifications/"+full+".gemspec", "Gem::Specification.new do |s|\n  s.name = \""+name+"\".freeze\n  s.version = \""+version+"\"\nend\n")
}

func newHome(t testing.TB) home {
	t.Helper()
	h := home{t, t.TempDir()}
	h.install("acme-wire", "1.0", "X = 1\n")
	return h
}

func (h home) root() witness.Root {
	return witness.Root{Root: classify.Root{Name: "wire", Dirs: []string{h.dir}, Modules: []string{"acme_wire"}}, Kind: gem.Kind, Package: "acme-wire"}
}

func (h home) identify() witness.Identity {
	h.t.Helper()
	id, err := newSource(h.t, gem.Config{}).Identify(h.t.Context(), h.root())
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

func TestSource(t *testing.T) {
	t.Parallel()
	witnesstest.Run(t, func(t testing.TB) witnesstest.World {
		h := newHome(t)
		n := 0
		return witnesstest.World{
			Source: newSource(t, gem.Config{}), Root: h.root(),
			Change: func() { n++; h.install("acme-wire", "1.0", strings.Repeat("# ", n)) },
			Noise: func() {
				h.write("gems/acme-wire-1.0/run.log", "noise")
				h.write("gems/acme-wire-1.0/README.md", "other words")
				h.install("other", "1.0", "Y = 1\n")
			},
			Break: func() { h.remove("specifications/acme-wire-1.0.gemspec") },
		}
	})
}

func TestWhatCounts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	tests := []struct {
		name   string
		change func()
		moves  bool
	}{
		{"the same again", func() { h.install("acme-wire", "1.0", "X = 1\n") }, false},
		{"a gem with a longer name", func() { h.install("acme-wire-extra", "1.0", "Y = 1\n") }, false},
		{"a gem whose name ends in a number", func() { h.install("acme-wire-2", "1.0", "Y = 1\n") }, false},
		{"code", func() { h.write("gems/acme-wire-1.0/lib/acme_wire.rb", "X = 2\n") }, true},
		{"a command", func() { h.write("gems/acme-wire-1.0/exe/acme", "#!/usr/bin/ruby\n") }, true},
		{"an extension", func() { h.write("extensions/x86_64-linux/3.1.0/acme-wire-1.0/acme_wire.so", "so") }, true},
		{"the log of its build", func() { h.write("extensions/x86_64-linux/3.1.0/acme-wire-1.0/gem_make.out", "log") }, false},
		{"a line in the gemspec", func() {
			h.write("specifications/acme-wire-1.0.gemspec", "Gem::Specification.new do |s|\n  s.name = \"acme-wire\".freeze\n  s.version = \"1.0\"\n  s.installed_by_version = \"3.3.15\"\nend\n")
		}, true},
		{"another RubyGems that installed it", func() {
			h.write("specifications/acme-wire-1.0.gemspec", "Gem::Specification.new do |s|\n  s.name = \"acme-wire\".freeze\n  s.version = \"1.0\"\n  s.installed_by_version = \"3.4.1\"\nend\n")
		}, false},
		{"a version beside it", func() { h.install("acme-wire", "1.1", "X = 1\n") }, true},
		{"the first version gone", func() { h.remove("specifications/acme-wire-1.0.gemspec"); h.remove("gems/acme-wire-1.0") }, true},
	}
	for _, tt := range tests {
		before := h.identify()
		tt.change()
		after := h.identify()
		if moved := before.Key() != after.Key(); !after.Known() || moved != tt.moves {
			t.Errorf("%s: the key went from %s to %s, want a move: %v (%s)", tt.name, before.Key(), after.Key(), tt.moves, after.Unknown)
		}
	}
	if id := h.identify(); !strings.HasPrefix(id.Revision, "1.1@") {
		t.Errorf("identity is %+v", id)
	}
}

// TestDeletionIsAChange: of a folder of code, and of a whole version.
func TestDeletionIsAChange(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ put, remove func(h home) }{
		"a folder": {
			func(h home) { h.write("gems/acme-wire-1.0/ext/a/b.rb", "") },
			func(h home) { h.remove("gems/acme-wire-1.0/ext") },
		},
		"a version": {
			func(h home) { h.install("acme-wire", "0.9", "") },
			func(h home) {
				h.remove("gems/acme-wire-0.9")
				h.remove("specifications/acme-wire-0.9.gemspec")
			},
		},
	} {
		h := newHome(t)
		h.write("gems/acme-wire-1.0/lib/a/b.rb", "")
		rose := false
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
			tt.put(h)
			before, err := newSource(t, gem.Config{}).LastChange(t.Context(), h.root())
			if err != nil {
				t.Fatal(err)
			}
			tt.remove(h)
			after, err := newSource(t, gem.Config{}).LastChange(t.Context(), h.root())
			if err != nil {
				t.Fatal(err)
			}
			if rose = after.Sub(before) > 0; rose {
				break
			}
		}
		if !rose {
			t.Errorf("no deletion of %s moved the last change", name)
		}
	}
}

func TestUnknownSaysWhy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg   gem.Config
		spoil func(h home)
		want  string
	}{
		"no gemspec":             {gem.Config{}, func(h home) { h.remove("specifications/acme-wire-1.0.gemspec") }, "a folder and no gemspec"},
		"no folder":              {gem.Config{}, func(h home) { h.remove("gems/acme-wire-1.0") }, "a gemspec and no folder"},
		"half a gemspec":         {gem.Config{}, func(h home) { h.write("specifications/acme-wire-1.0.gemspec", "# -*-") }, "does not name its gem"},
		"the next one half done": {gem.Config{}, func(h home) { h.write("gems/acme-wire-1.1/lib/acme_wire.rb", "") }, "acme-wire-1.1 has a folder and no gemspec"},
		"not installed":          {gem.Config{}, func(h home) { h.remove("gems"); h.remove("specifications") }, "is not installed"},
		"too many files":         {gem.Config{MaxFiles: 2}, func(home) {}, "more than 2 files"},
		"too many bytes":         {gem.Config{MaxBytes: 3}, func(home) {}, "larger than 3 bytes"},
	} {
		h := newHome(t)
		tt.spoil(h)
		id, err := newSource(t, tt.cfg).Identify(t.Context(), h.root())
		if err != nil || id.Known() || !strings.Contains(id.Unknown, tt.want) {
			t.Errorf("%s: %+v, %v; want unknown with %q", name, id, err, tt.want)
		}
	}
	r := newHome(t).root()
	r.Package = "../x"
	if id, err := newSource(t, gem.Config{}).Identify(t.Context(), r); err != nil || !strings.Contains(id.Unknown, "names no gem") {
		t.Errorf("identity is %+v, %v", id, err)
	}
	if _, err := gem.New(gem.Config{MaxFiles: -1, MaxBytes: -1}); err == nil || !strings.Contains(err.Error(), "MaxFiles") || !strings.Contains(err.Error(), "MaxBytes") {
		t.Errorf("negative bounds: %v, want both reported", err)
	}
}

// TestRubyGems: what RubyGems really writes is what the source understands.
func TestRubyGems(t *testing.T) {
	t.Parallel()
	require.Works(t, "apt-get install ruby", "gem", "--version")
	dir := t.TempDir()
	h := home{t, filepath.Join(dir, "home")}
	src := home{t, filepath.Join(dir, "src")}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("gem", args...)
		cmd.Dir = src.dir
		// The date of a gemspec is that of the build; it must not change at midnight.
		cmd.Env = append(os.Environ(), "GEM_HOME="+h.dir, "GEM_SPEC_CACHE="+dir, "HOME="+dir, "SOURCE_DATE_EPOCH=1700000000")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("gem %v: %v\n%s", args, err, out)
		}
	}
	install := func(version, code string) witness.Identity {
		t.Helper()
		src.write("lib/acme_wire.rb", code)
		src.write("acme.gemspec", "Gem::Specification.new do |s|\n  s.name = 'acme-wire'\n  s.version = '"+version+"'\n  s.summary = 'wire'\n  s.authors = ['Ada']\n  s.files = ['lib/acme_wire.rb']\nend\n")
		run("build", "acme.gemspec")
		run("install", "--local", "--force", "--no-document", "--install-dir", h.dir, "acme-wire-"+version+".gem")
		return h.identify()
	}
	one := install("1.0", "X = 1\n")
	if !strings.HasPrefix(one.Revision, "1.0@") {
		t.Fatalf("identity is %+v", one)
	}
	if again := install("1.0", "X = 1\n"); again.Key() != one.Key() {
		t.Errorf("the same gem installed again has the key %s, it was %s", again.Key(), one.Key())
	}
	if other := install("1.0", "X = 2\n"); !other.Known() || other.Key() == one.Key() {
		t.Errorf("another build of the version has the key %q, it was %s", other.Key(), one.Key())
	}
	if two := install("2.0", "X = 2\n"); !strings.HasPrefix(two.Revision, "1.0,2.0@") {
		t.Errorf("identity with two versions is %+v", two)
	}
	now, since, err := newSource(t, gem.Config{}).InForce(t.Context(), h.root())
	if err != nil || since.Sub(now.At) > 0 || since.Sub(one.At) < 0 {
		t.Errorf("in force since %s, %v; read at %s, the first version at %s", since, err, now.At, one.At)
	}
	run("uninstall", "--all", "--executables", "--install-dir", h.dir, "acme-wire")
	if id := h.identify(); id.Known() || !strings.Contains(id.Unknown, "is not installed") {
		t.Errorf("after gem uninstall the identity is %+v", id)
	}
}

func ExampleNew() {
	src, err := gem.New(gem.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	root := witness.Root{
		Root: classify.Root{Name: "wire", Dirs: []string{"/nowhere/gems"}, Modules: []string{"acme_wire"}},
		Kind: gem.Kind, Package: "acme-wire",
	}
	id, err := src.Identify(context.Background(), root)
	fmt.Println(id.Known(), id.Unknown, err)
	// Output: false gem acme-wire is not installed in /nowhere/gems <nil>
}
