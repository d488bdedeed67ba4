package python_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/classify/python"
)

func TestModule(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a.py": "a", "a/b.py": "a.b", "a/b/__init__.py": "a.b", `a\b.py`: "a.b", "/a/b.py": "a.b", "a/b.pyc": "a.b", "a/__pycache__/b.cpython-311.pyc": "a.b",
		"a/__pycache__/__init__.cpython-38.pyc": "a", "a/b.cpython-311-darwin.so": "a.b", "a/b.abi3.so": "a.b", "a/b.so": "a.b", "a/b.cp311-win_amd64.pyd": "a.b",
		"a/b.pypy39-pp73-x86_64-linux-gnu.so": "a.b", "a.pyz": "a", "a/b": "a.b", "a/__main__.py": "a.__main__", "a/b.pyx": "a.b",
		"": "", "a-b/c.py": "", "a/b.txt": "", "a/1b.py": "", "__init__.py": "", "a b.py": "", "a/b.tar.py": "",
	} {
		if got := python.Module(path); got != want {
			t.Errorf("Module(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestFilesAndModuleAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z_][a-z0-9_]{0,6}(\.[a-z][a-z0-9_]{0,6}){0,3}`).Draw(t, "module")
		files := python.Files(name)
		if len(files) == 0 {
			t.Fatalf("Files(%q) is empty", name)
		}
		for _, f := range files {
			if got := python.Module(f); got != name {
				t.Fatalf("Module(%q) = %q, but it is a file of %q", f, got, name)
			}
		}
	})
	for _, bad := range []string{"", ".a", "a.", "a..b", "a/b", "a b", "1a"} {
		if f := python.Files(bad); f != nil {
			t.Errorf("Files(%q) = %q", bad, f)
		}
	}
}
