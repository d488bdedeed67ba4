package gitcli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/gitcli"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

func changed(t testing.TB, root witness.Root) time.Time {
	t.Helper()
	at, err := newSource(t).LastChange(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return at.Wall
}

// tick waits until the file system's clock has moved on, so that two changes in a row have different times.
func tick(t testing.TB, dir string) {
	t.Helper()
	probe := filepath.Join(dir, ".git", "tick")
	stampOf := func() time.Time {
		if err := os.WriteFile(probe, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(probe)
		if err != nil {
			t.Fatal(err)
		}
		return fi.ModTime()
	}
	for first := stampOf(); stampOf().Equal(first); {
	}
}

func TestLastChangeRisesWithTheTree(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	first := r.Commit("one", "acme/a.py", "1\n", "acme/sub/b.py", "1\n", "acme/c.py", "")
	r.Commit("two", "acme/a.py", "2\n")
	root := rootOf(r)
	root.Bindings = []string{"libacme.so"}
	r.Write(".git/info/exclude", "*.so\n*.log\n")

	still := []struct {
		name   string
		change func()
	}{
		{"nothing", func() {}},
		{"a log file beside the code", func() { r.Write("acme/run.log", "x") }},
		{"a fetch", func() { r.Write(".git/FETCH_HEAD", "x") }},
		{"a branch made elsewhere", func() { r.Git("branch", "elsewhere") }},
	}
	for _, tt := range still {
		before := changed(t, root)
		tick(t, r.Dir)
		tt.change()
		if after := changed(t, root); !after.Equal(before) {
			t.Errorf("%s moved the last change from %v to %v", tt.name, before, after)
		}
	}
	moves := []struct {
		name   string
		change func()
	}{
		{"an edit", func() { r.Write("acme/a.py", "3\n") }},
		{"an edit back to what was committed", func() { r.Git("checkout", "-q", "--", "acme/a.py") }},
		{"a deletion", func() { r.Remove("acme/c.py") }},
		{"a deletion with its folder", func() { r.Remove("acme/sub") }},
		{"an untracked module", func() { r.Write("acme/new.py", "") }},
		{"a binding", func() { r.Write("libacme.so", "x") }},
		{"a commit", func() { r.Commit("three") }},
		{"a checkout of an old commit", func() { r.Git("checkout", "-q", "--detach", first) }},
		{"a checkout of a branch", func() {
			r.Git("checkout", "-q", "main")
			r.Git("config", "core.logAllRefUpdates", "false")
			r.Remove(".git/logs")
		}},
		{"a branch that moves without a reflog and is packed", func() {
			r.Git("update-ref", "refs/heads/main", first)
			r.Git("pack-refs", "--all")
		}},
		{"a packed branch that moves", func() {
			r.Git("checkout", "-q", "main")
			r.Git("pack-refs", "--all")
			r.Git("reset", "-q", "--hard", first)
		}},
	}
	for _, tt := range moves {
		before := changed(t, root)
		tick(t, r.Dir)
		tt.change()
		if after := changed(t, root); !after.After(before) {
			t.Errorf("%s left the last change at %v", tt.name, before)
		}
	}
}

func TestChangingNow(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"index.lock", "rebase-merge/done", "rebase-apply/next", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "HEAD.lock"} {
		r := require.NewRepo(t)
		r.Commit("one", "acme/a.py", "1\n")
		r.Write(".git/"+name, r.Head())
		_, err := newSource(t).LastChange(t.Context(), rootOf(r))
		if !errors.Is(err, witness.ErrChanging) || !strings.Contains(err.Error(), strings.Split(name, "/")[0]) {
			t.Errorf("with %s the last change is %v, want ErrChanging that names it", name, err)
		}
		if id := identify(t, rootOf(r)); !id.Known() {
			t.Errorf("with %s the identity is %+v, want it known", name, id)
		}
	}
}

func TestOddNames(t *testing.T) {
	t.Parallel()
	names := []string{"acme/with space.py", "acme/with\nline.py", "acme/ümlaut.py", "acme/quote\"s.py", "acme/-dash.py", "acme/bad\xff.py", "acme/:(top)x.py", "acme/tab\t.py"}
	r := require.NewRepo(t)
	var all []string
	for _, n := range names {
		all = append(all, n, "1\n")
	}
	first := r.Commit("one", all...)
	for i := range all {
		if i%2 == 1 {
			all[i] = "2\n"
		}
	}
	r.Write(all...)
	id := identify(t, rootOf(r))
	want := slices.Clone(names)
	want[5] = `acme/bad\xff.py`
	slices.Sort(want)
	if got := strings.Split(paths(id), " acme/"); len(id.Dirty) != len(want) {
		t.Fatalf("dirty files are %q, want %q", got, want)
	}
	for i, f := range id.Dirty {
		if f.Path != want[i] || f.Digest == "" {
			t.Errorf("dirty file is %q, want %q", f.Path, want[i])
		}
	}
	second := r.Commit("two")
	changes, err := newSource(t).Changed(t.Context(), rootOf(r), first, second)
	if err != nil || len(changes) != len(names) {
		t.Fatalf("changed are %v, %v", changes, err)
	}
	for _, n := range names {
		got, ok, err := newSource(t).Read(t.Context(), rootOf(r), first, n)
		if err != nil || !ok || string(got) != "1\n" {
			t.Errorf("%q was %q, %v, %v", n, got, ok, err)
		}
	}
}

func TestLinkedWorkingTreeSubmoduleAndSymlink(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	r.Commit("one", "acme/a.py", "1\n")
	base := filepath.Dir(r.Dir)

	linked := r.At(filepath.Join(base, "linked"))
	r.Git("worktree", "add", "-q", "-b", "branch", linked.Dir)
	other := require.InitRepo(t, filepath.Join(base, "super"))
	other.Git("submodule", "add", "-q", r.Dir, "vendor/acme")
	other.Commit("add submodule")
	other.Git("config", "diff.ignoreSubmodules", "all")
	sub := r.At(filepath.Join(other.Dir, "vendor", "acme"))
	link := filepath.Join(base, "link")
	if err := os.Symlink(r.Dir, link); err != nil {
		t.Fatal(err)
	}

	for _, tree := range []*require.Repo{linked, sub, r.At(link)} {
		root := rootOf(tree)
		before, id := changed(t, root), identify(t, root)
		if id.Revision != tree.Head() || len(id.Dirty) != 0 {
			t.Fatalf("%s: identity is %+v, want %s", tree.Dir, id, tree.Head())
		}
		tick(t, r.Dir)
		two := tree.Commit("two in "+filepath.Base(tree.Dir), "acme/a.py", "2 "+tree.Dir)
		if after := changed(t, root); !after.After(before) {
			t.Errorf("%s: a commit left the last change at %v", tree.Dir, before)
		}
		rev, _, ok, err := newSource(t).At(t.Context(), root, stamp.Wall(time.Now().Add(time.Minute), 0))
		if err != nil || !ok || rev != two {
			t.Errorf("%s: the reflog says %s, %v, %v; want %s", tree.Dir, rev, ok, err, two)
		}
	}
	// Without a reflog the branch itself tells, and a linked working tree keeps its branches elsewhere.
	r.Git("config", "core.logAllRefUpdates", "false")
	r.Remove(".git/worktrees/linked/logs")
	before := changed(t, rootOf(linked))
	tick(t, r.Dir)
	linked.Git("update-ref", "refs/heads/branch", r.Git("rev-parse", "main~1"))
	if after := changed(t, rootOf(linked)); !after.After(before) {
		t.Errorf("a move of the linked tree's branch left the last change at %v", before)
	}
	// The working trees do not see each other's moves; the outer tree sees the submodule's.
	if id := identify(t, rootOf(other)); paths(id) != "vendor/acme" {
		t.Errorf("outer tree: dirty files are %q, want the submodule", paths(id))
	}
	outer := identify(t, rootOf(other)).Key()
	sub.Commit("three", "acme/a.py", "3")
	if identify(t, rootOf(other)).Key() == outer {
		t.Error("a move of the submodule did not change the outer identity")
	}
}

func TestSHA256Repository(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t, "--object-format=sha256")
	a := r.Commit("a", "acme/wire.py", withFrame)
	b := r.Commit("b", "acme/wire.py", withoutFrame)
	if id := identify(t, rootOf(r)); id.Revision != b || len(b) != 64 {
		t.Errorf("identity is %+v, want %s", id, b)
	}
	wantCulprit(t, r, "acme.wire:Frame", a, b, b)
}

func TestNestedUntrackedRepositoryIsNotLookedInto(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	r.Commit("one", "acme/a.py", "1\n")
	inner := require.InitRepo(t, filepath.Join(r.Dir, "acme", "inner"))
	inner.Commit("inner", "acme/x.py", "")
	if id := identify(t, rootOf(r)); !id.Known() || len(id.Dirty) != 0 {
		t.Errorf("identity is %+v", id)
	}
}

func TestUserSettingsDoNotChangeTheOutput(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	a := r.Commit("one", "acme/a.py", "1\n", "acme/wire.py", withFrame)
	for _, c := range []string{"status.showUntrackedFiles=no", "status.short=true", "status.renames=copies", "core.quotePath=true", "color.ui=always", "color.status=always",
		"log.showSignature=true", "log.follow=true", "log.date=relative", "diff.renames=copies", "diff.noprefix=true", "diff.ignoreSubmodules=all", "format.pretty=oneline",
		"log.decorate=full", "status.showStash=true", "log.diffMerges=separate", "status.relativePaths=true"} {
		k, v, _ := strings.Cut(c, "=")
		r.Git("config", k, v)
	}
	b := r.Commit("two", "acme/wire.py", withoutFrame)
	r.Write("acme/a.py", "2\n", "acme/new.py", "")
	ran := filepath.Join(t.TempDir(), "ran")
	r.Git("config", "core.fsmonitor", script(t, "touch "+ran+"\n"))
	id := identify(t, rootOf(r))
	if id.Revision != b || paths(id) != "acme/a.py acme/new.py" {
		t.Errorf("identity is %+v", id)
	}
	wantCulprit(t, r, "acme.wire:Frame", a, b, b)
	if _, err := os.Stat(ran); err == nil {
		t.Error("reading started the user's file system monitor")
	}
}

// Not parallel: the environment belongs to the process.
func TestRefusalAndEnvironment(t *testing.T) {
	r := require.NewRepo(t)
	head := r.Commit("one", "acme/a.py", "1\n")
	other := require.NewRepo(t)
	other.Commit("other", "x", "")
	t.Setenv("GIT_DIR", filepath.Join(other.Dir, ".git"))
	t.Setenv("GIT_WORK_TREE", other.Dir)
	t.Setenv("GIT_INDEX_FILE", "/nowhere")
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	if id := identify(t, rootOf(r)); id.Revision != head {
		t.Errorf("variables of git led to %+v, want %s", id, head)
	}
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	id := identify(t, rootOf(r))
	if id.Known() || !strings.Contains(id.Unknown, "belongs to another user") || !strings.Contains(id.Unknown, "safe.directory") {
		t.Errorf("identity is %+v, want unknown for safe.directory", id)
	}
}

// script is a program that stands for git.
func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "git")
	require.Executable(t, name, "#!/bin/sh\n"+text)
	return name
}

func TestHungGitIsBounded(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	r.Commit("one", "acme/a.py", "1\n")
	// The helper holds the pipe and would outlive its parent. It is there once its number is written down.
	helper := filepath.Join(t.TempDir(), "helper")
	hung := script(t, "sleep 600 & echo $! > "+helper+".new && mv "+helper+".new "+helper+"; wait\n")

	s, err := gitcli.New(gitcli.Config{Git: hung, Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Identify(context.Background(), rootOf(r))
	if err != nil || !strings.Contains(id.Unknown, "did not answer within 300ms") {
		t.Errorf("identity is %+v, %v; want unknown because git was too slow", id, err)
	}
	if text, err := os.ReadFile(helper); err == nil {
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		// It was sent the signal; on a busy machine it gets it when it runs next.
		state := stateOf(pid)
		for end := time.Now().Add(time.Minute); state != "" && state != "Z" && time.Now().Before(end); time.Sleep(time.Millisecond) {
			state = stateOf(pid)
		}
		if state != "" && state != "Z" {
			t.Errorf("the helper of a git that was given up lives on (state %s)", state)
		}
	}
	s, err = gitcli.New(gitcli.Config{Git: hung})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Identify(ctx, rootOf(r)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want that of the context", err)
	}
	if _, err := s.Changed(ctx, rootOf(r), strings.Repeat("a", 40), strings.Repeat("b", 40)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want that of the context", err)
	}
}

// stateOf is the kernel's letter for a process, empty when there is none or the system does not show it.
func stateOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}

func TestTooMuchIsUnknown(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	r.Commit("one", "acme/a.py", "1\n")
	r.Write("acme/b.py", "12345", "acme/c.py", "12345")
	for _, tt := range []struct {
		cfg  gitcli.Config
		want string
	}{
		{gitcli.Config{MaxFiles: 1}, "more than 1 files"},
		{gitcli.Config{MaxBytes: 9}, "more than 9 bytes"},
	} {
		s, err := gitcli.New(tt.cfg)
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.Identify(t.Context(), rootOf(r))
		if err != nil || !strings.Contains(id.Unknown, tt.want) || len(id.Dirty) != 0 {
			t.Errorf("identity is %+v, %v; want unknown with %q", id, err, tt.want)
		}
	}
}

func TestConfigReportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	_, err := gitcli.New(gitcli.Config{Timeout: -1, MaxFiles: -1, MaxBytes: -1})
	for _, want := range []string{"Timeout", "MaxFiles", "MaxBytes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s in it", err, want)
		}
	}
}

func TestFileThatBecameAFolder(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	r.Commit("one", "acme/a.py", "1\n", "acme/d/x.py", "1\n")
	r.Remove("acme/a.py")
	r.Write("acme/a.py/x.py", "1\n")
	r.Remove("acme/d")
	r.Write("acme/d", "file")
	if got := paths(identify(t, rootOf(r))); got != "acme/a.py(gone) acme/a.py/x.py acme/d/x.py(gone)" {
		t.Errorf("dirty files are %q", got)
	}
	changed(t, rootOf(r))
}

func TestConcurrentReads(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	r.Commit("one", "acme/a.py", "1\n")
	r.Write("acme/a.py", "2\n")
	s, want := newSource(t), identify(t, rootOf(r)).Key()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if id, err := s.Identify(context.Background(), rootOf(r)); err != nil || id.Key() != want {
				t.Errorf("identity is %+v, %v; want %s", id, err, want)
			}
		})
	}
	wg.Wait()
}

func TestOutOfTheTreeIsNothing(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	head := r.Commit("one", "acme/a.py", "1\n")
	for _, p := range []string{"../../etc/passwd", "..", ".", "acme", "nowhere.py"} {
		if _, ok, err := newSource(t).Read(t.Context(), rootOf(r), head, p); ok || err != nil {
			t.Errorf("%q is %v, %v; want no such file", p, ok, err)
		}
	}
	if _, _, err := newSource(t).Read(t.Context(), rootOf(r), strings.Repeat("0", 39)+"1", "acme/a.py"); !errors.Is(err, gitcli.ErrNoRevision) {
		t.Errorf("an unknown commit is %v, want ErrNoRevision", err)
	}
	if _, _, err := newSource(t).Read(t.Context(), witness.Root{Root: classify.Root{Name: "x"}}, head, "acme/a.py"); err == nil {
		t.Error("a root without a folder was read")
	}
}
