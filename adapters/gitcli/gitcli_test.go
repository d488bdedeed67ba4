package gitcli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/gitcli"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/witness"
)

func newSource(t testing.TB) *gitcli.Source {
	t.Helper()
	s, err := gitcli.New(gitcli.Config{Timeout: time.Minute}) // a busy machine
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rootOf declares the whole working tree as the root "acme" with module acme.
func rootOf(r *require.Repo) witness.Root {
	return witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{r.Dir}, Modules: []string{"acme"}}, Kind: gitcli.Kind, Runtime: "python"}
}

func identify(t testing.TB, root witness.Root) witness.Identity {
	t.Helper()
	id, err := newSource(t).Identify(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func paths(id witness.Identity) string {
	var names []string
	for _, f := range id.Dirty {
		name := f.Path
		if f.Digest == "" {
			name += "(gone)"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestIdentityIsTheCommitAndWhatDiffersFromIt(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	head := r.Commit("one", "acme/wire.py", "A = 1\n", "acme/old.py", "", "README", "hello\n")
	clean := identify(t, rootOf(r))
	if clean.Revision != head || len(clean.Dirty) != 0 || clean.Key() != head {
		t.Fatalf("clean tree: %+v, want revision %s alone", clean, head)
	}

	tests := []struct {
		name   string
		change func()
		want   string
	}{
		{"a log file beside the code changes nothing", func() { r.Write("acme/debug.log", "x", "run.log", "y") }, ""},
		{"an untracked file outside the module changes nothing", func() { r.Write("scripts/tool.py", "x") }, ""},
		{"an untracked module counts", func() { r.Write("acme/new.py", "x") }, "acme/new.py"},
		{"a tracked change counts", func() { r.Write("acme/wire.py", "A = 2\n") }, "acme/new.py acme/wire.py"},
		{"a deletion counts", func() { r.Remove("acme/old.py") }, "acme/new.py acme/old.py(gone) acme/wire.py"},
		{"a staged deletion of a file that is there again counts once", func() { r.Git("rm", "-q", "--cached", "acme/wire.py") }, "acme/new.py acme/old.py(gone) acme/wire.py"},
	}
	for _, tt := range tests {
		before := identify(t, rootOf(r)).Key()
		tt.change()
		after := identify(t, rootOf(r))
		if got := paths(after); got != tt.want {
			t.Errorf("%s: dirty files are %q, want %q", tt.name, got, tt.want)
		}
		if strings.HasSuffix(tt.name, "counts") == (before == after.Key()) {
			t.Errorf("%s: key went from %s to %s", tt.name, before, after.Key())
		}
	}
}

func TestIdentityIsLimitedToTheFolders(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	r.Commit("one", "a/acme/wire.py", "", "b/other.py", "", "c/x.py", "")
	root := rootOf(r)
	root.Dirs = []string{filepath.Join(r.Dir, "a"), filepath.Join(r.Dir, "c")}
	r.Write("a/acme/wire.py", "1", "b/other.py", "1", "c/x.py", "1")
	if got := paths(identify(t, root)); got != "../c/x.py acme/wire.py" {
		t.Errorf("dirty files are %q; want those of a and c, relative to a", got)
	}
}

func TestFolderNamesAreNoPatterns(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	r.Commit("one", "p[1]/a.py", "", "p1/b.py", "", ":!p/c.py", "")
	root := rootOf(r)
	root.Dirs = []string{filepath.Join(r.Dir, "p[1]"), filepath.Join(r.Dir, ":!p")}
	r.Write("p[1]/a.py", "1", "p1/b.py", "1", ":!p/c.py", "1")
	if got := paths(identify(t, root)); got != "../:!p/c.py a.py" {
		t.Errorf("dirty files are %q; want those of the two folders alone", got)
	}
}

func TestUnknownSaysWhy(t *testing.T) {
	t.Parallel()
	plain := t.TempDir()
	unborn := require.NewRepo(t)
	corrupt := require.NewRepo(t)
	corrupt.Commit("one", "acme/a.py", "")
	corrupt.Write(".git/index", "not an index")
	gone := require.NewRepo(t)
	a, b := require.NewRepo(t), require.NewRepo(t)

	tests := []struct {
		name string
		dirs []string
		want string
	}{
		{"no repository", []string{plain}, "is not in a git repository"},
		{"no commit", []string{unborn.Dir}, "the repository has no commit yet"},
		{"corrupt index", []string{corrupt.Dir}, "git status failed: "},
		{"no folder", []string{gone.Dir + "/nowhere"}, "does not exist"},
		{"no folders", nil, "the root has no folder"},
		{"two repositories", []string{a.Dir, b.Dir}, "lie in two repositories"},
	}
	for _, tt := range tests {
		root := rootOf(unborn)
		root.Dirs = tt.dirs
		id := identify(t, root)
		if id.Known() || !strings.Contains(id.Unknown, tt.want) {
			t.Errorf("%s: identity is %+v, want unknown because %q", tt.name, id, tt.want)
		}
		if _, err := newSource(t).LastChange(t.Context(), root); err == nil {
			t.Errorf("%s: LastChange found a signal", tt.name)
		}
	}
}

func TestNoGitIsUnknown(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	r.Commit("one", "acme/a.py", "")
	s, err := gitcli.New(gitcli.Config{Git: filepath.Join(t.TempDir(), "no-such-git")})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Identify(context.Background(), rootOf(r))
	if err != nil || !strings.Contains(id.Unknown, "cannot be run") {
		t.Errorf("identity is %+v, %v; want unknown because git cannot be run", id, err)
	}
}

func TestSourceWritesNothing(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	r.Commit("one", "acme/a.py", "1\n", "acme/b.py", "1\n")
	// Same content, other times: git would refresh its index here if it were allowed to.
	r.Write("acme/a.py", "1\n")
	index := filepath.Join(r.Dir, ".git", "index")
	before, err := os.Stat(index)
	if err != nil {
		t.Fatal(err)
	}
	identify(t, rootOf(r))
	after, err := os.Stat(index)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) || before.ModTime() != after.ModTime() {
		t.Error("reading the identity wrote the index")
	}
}
