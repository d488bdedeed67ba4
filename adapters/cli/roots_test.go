package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/witness"
)

func TestParseRoot(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain/acme/__init__.py": "", "plain/tool.py": "", "plain/setup.py": "", "plain/not-a-module.py": "", "plain/data/x.txt": "",
		"plain/src/inner/__init__.py": "", "work/.git/HEAD": "ref", "work/lib/acme.py": "",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("plain", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	in := func(p string) []string { return []string{filepath.Join(dir, p)} }
	s := &shared{env: Env{Dir: dir}.withDefaults()}
	for flag, want := range map[string]witness.Root{
		"lib=plain":                            {Kind: "folder", Root: classify.Root{Name: "lib", Dirs: in("plain"), Modules: []string{"acme", "inner", "tool"}}},
		"lib=link,modules=acme":                {Kind: "folder", Root: classify.Root{Name: "lib", Dirs: in("plain"), Modules: []string{"acme"}}, Declared: in("link")},
		"acme=plain/acme":                      {Kind: "folder", Root: classify.Root{Name: "acme", Dirs: in("plain/acme"), Modules: []string{"acme"}}},
		"w=work/lib":                           {Kind: "git", Root: classify.Root{Name: "w", Dirs: in("work/lib"), Modules: []string{"acme"}}},
		"w=work/lib,kind=folder,third_party":   {Kind: "folder", Root: classify.Root{Name: "w", Dirs: in("work/lib"), Modules: []string{"acme"}, ThirdParty: true}},
		"p=plain,package=acme,modules=a+b":     {Kind: "pypackage", Package: "acme", Root: classify.Root{Name: "p", Dirs: in("plain"), Modules: []string{"a", "b"}}},
		"b=plain,bindings=x_rs,runtime=python": {Kind: "folder", Runtime: "python", Root: classify.Root{Name: "b", Dirs: in("plain"), Bindings: []string{"x_rs"}}},
	} {
		got, err := s.parseRoot(flag)
		if err != nil {
			t.Errorf("--root %s: %v", flag, err)
			continue
		}
		if g, w := show(got), show(want); g != w {
			t.Errorf("--root %s is\n%s, want\n%s", flag, g, w)
		}
	}
}

// show writes a root out for comparison; the command line's module has no comparing library.
func show(r witness.Root) string {
	b := &strings.Builder{}
	if err := printLine(b, r); err != nil {
		return err.Error()
	}
	return b.String()
}

func TestNameOf(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"/usr/bin/worker --fast": "worker", "python3 -u -m acme.agent x": "acme.agent", "python3.12 jobs/nightly.py": "nightly",
		"python3": "python3", "python3 -c print()": "python3", "node --inspect srv/main.js": "main", "sh ./run.sh a": "run",
		"nice -n 5 timeout 2h python3 jobs/nightly.py": "nightly", "env A=1 worker": "worker", "timeout": "timeout",
	} {
		if got := nameOf(strings.Fields(line)); got != want {
			t.Errorf("the name of %q is %q, want %q", line, got, want)
		}
	}
}

func TestParseAge(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "0s": 0, "90m": 90 * time.Minute, "0d": 0} {
		if got, err := parseAge(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-1d", "-5m", "soon", "99999999999d", "5"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

func TestStateDir(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flag string
		env  []string
		want string
	}{
		{"/a", []string{"MULLIGAN_HOME=/b"}, "/a"},
		{"a", nil, "/work/a"},
		{"", []string{"MULLIGAN_HOME=/b", "XDG_STATE_HOME=/c"}, "/b"},
		{"", []string{"MULLIGAN_HOME=", "XDG_STATE_HOME=/c", "HOME=/d"}, "/c/mulligan"},
		{"", []string{"HOME=/x", "HOME=/d"}, "/d/.local/state/mulligan"},
	} {
		if got, err := (Env{Dir: "/work", Environ: c.env}).stateDir(c.flag); err != nil || got != c.want {
			t.Errorf("--home %q with %v: %q, %v; want %q", c.flag, c.env, got, err, c.want)
		}
	}
	for _, env := range [][]string{{}, {"MULLIGAN_HOME=x"}, {"XDG_STATE_HOME=./x"}} {
		if got, err := (Env{Environ: env}).stateDir(""); err == nil {
			t.Errorf("%v: %q, want an error", env, got)
		}
	}
}
