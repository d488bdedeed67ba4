package gitcli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/culprit"
)

// find asks for the culprit between two commits.
func find(t *testing.T, r *require.Repo, name, from, to string) culprit.Answer {
	t.Helper()
	module, symbol, _ := strings.Cut(name, ":")
	a, err := culprit.Find(t.Context(), culprit.Query{Root: rootOf(r), Source: newSource(t), Modules: python.New(), Module: module, Symbol: symbol, From: from, To: to})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func wantCulprit(t *testing.T, r *require.Repo, name, from, to, want string) {
	t.Helper()
	a := find(t, r, name, from, to)
	if a.Culprit == nil {
		t.Fatalf("%s from %.7s to %.7s: no culprit (%s), want %s", name, from, to, a.Detail, r.Git("log", "-1", "--format=%h %s", want))
	}
	if a.Culprit.Commit != want {
		t.Fatalf("%s from %.7s to %.7s: culprit is %q, want %q", name, from, to, a.Culprit.Subject, r.Git("log", "-1", "--format=%s", want))
	}
}

func TestCulpritOfADeletedModule(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	a := r.Commit("a", "acme/__init__.py", "", "acme/wire.py", withFrame)
	r.Git("rm", "-q", "acme/wire.py")
	gone := r.Commit("delete wire")
	end := r.Commit("later", "acme/x.py", "")
	wantCulprit(t, r, "acme.wire", a, end, gone)
	wantCulprit(t, r, "acme.wire:Frame", a, end, gone)
	// "from acme import wire" asks for a symbol that is a module.
	wantCulprit(t, r, "acme:wire", a, end, gone)
}

func TestCulpritOfARename(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	a := r.Commit("a", "acme/wire.py", strings.Repeat(withFrame, 20), "acme/cli.py", "")
	r.Write("acme/net/__init__.py", "")
	r.Git("mv", "acme/wire.py", "acme/net/wire.py")
	moved := r.Commit("move wire")
	end := r.Commit("later", "acme/x.py", "")
	wantCulprit(t, r, "acme.wire", a, end, moved)
	wantCulprit(t, r, "acme.net.wire", a, end, moved)
}

func TestModuleThatBecomesAPackageIsStillThere(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	a := r.Commit("a", "acme/wire.py", withFrame)
	r.Write("acme/wire/__init__.py", withFrame)
	r.Git("rm", "-q", "acme/wire.py")
	b := r.Commit("package")
	for _, name := range []string{"acme.wire", "acme.wire:Frame"} {
		if ans := find(t, r, name, a, b); ans.Culprit != nil || !strings.Contains(ans.Detail, "existed at the boot and at the death") {
			t.Errorf("%s: %+v", name, ans)
		}
	}
}

func TestCulpritIsTheNewestThatDecided(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	a := r.Commit("a", "acme/wire.py", withFrame)
	r.Commit("drop", "acme/wire.py", withoutFrame)
	r.Commit("bring back", "acme/wire.py", withFrame)
	again := r.Commit("drop again", "acme/wire.py", withoutFrame)
	end := r.Commit("touch", "acme/wire.py", withoutFrame+"x = 1\n")
	wantCulprit(t, r, "acme.wire:Frame", a, end, again)
}

func TestCulpritAppeared(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	a := r.Commit("a", "acme/wire.py", withoutFrame)
	brought := r.Commit("bring Frame", "acme/wire.py", withFrame)
	end := r.Commit("use it", "acme/cli.py", "from acme.wire import Frame\n")
	// A process with the old acme.wire in memory imported the new acme.cli.
	wantCulprit(t, r, "acme.wire:Frame", a, end, brought)
}

func TestPullingAnOldCommitIsAFreshChange(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	old := s.repo.Commit("without", "acme/wire.py", withoutFrame)
	brought := s.repo.Commit("with", "acme/wire.py", withFrame)
	s.repo.Commit("more", "acme/other.py", "x = 1\n")
	s.boots(-30 * time.Minute)
	s.clock(-20 * time.Minute)
	s.repo.Git("checkout", "-q", "--detach", old)
	s.dies(-10 * time.Minute)
	f := s.expect(w1, w3)
	s.culprit(f, brought)
	if d := f.Evidence[1].Detail; !strings.Contains(d, "went away") || !strings.Contains(d, "the tree left commit") {
		t.Errorf("detail is %q", d)
	}
}

func TestBootedAtDifferentCommitsBrokenByTheSame(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	var boots []string
	boots = append(boots, r.Commit("a", "acme/wire.py", withFrame))
	boots = append(boots, r.Commit("b", "acme/wire.py", withFrame+"x = 1\n"))
	boots = append(boots, r.Commit("c", "acme/cli.py", ""))
	broke := r.Commit("drop", "acme/wire.py", withoutFrame)
	ends := []string{broke, r.Commit("later", "acme/wire.py", withoutFrame+"x = 1\n")}
	for _, from := range boots {
		for _, to := range ends {
			wantCulprit(t, r, "acme.wire:Frame", from, to, broke)
			// And the way back over the same commit.
			wantCulprit(t, r, "acme.wire:Frame", to, from, broke)
		}
	}
}

func TestCulpritOnDivergedLines(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	base := r.Commit("base", "acme/wire.py", withoutFrame)
	brought := r.Commit("bring Frame", "acme/wire.py", withFrame)
	left := r.Commit("left", "acme/cli.py", "")
	r.Git("checkout", "-q", "-b", "other", base)
	right := r.Commit("right", "acme/other.py", "")
	// The other line never had it: leaving the commit that brought it is what took it away.
	wantCulprit(t, r, "acme.wire:Frame", left, right, brought)
	wantCulprit(t, r, "acme.wire:Frame", right, left, brought)

	// Both lines had the name, and the new one dropped it.
	r.Git("checkout", "-q", "-b", "third", brought)
	dropped := r.Commit("drop Frame", "acme/wire.py", withoutFrame)
	wantCulprit(t, r, "acme.wire:Frame", left, dropped, dropped)
}

func TestCulpritBehindAMerge(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	a := r.Commit("a", "acme/wire.py", "import os\n\n\n"+withFrame+"\n\n\nx = 1\n")
	r.Git("checkout", "-q", "-b", "side")
	dropped := r.Commit("drop Frame on the side", "acme/wire.py", "import os\n\n\n"+withoutFrame+"\n\n\nx = 1\n")
	r.Git("checkout", "-q", "main")
	r.Commit("main goes on in the same file", "acme/wire.py", "import os, sys\n\n\n"+withFrame+"\n\n\nx = 1\n")
	r.Git("merge", "-q", "--no-ff", "-m", "merge side", "side")
	wantCulprit(t, r, "acme.wire:Frame", a, r.Head(), dropped)

	// A merge that itself dropped the name is the culprit.
	b := r.Commit("back", "acme/wire.py", withFrame)
	r.Git("checkout", "-q", "-b", "side2")
	r.Commit("side2", "acme/other.py", "")
	r.Git("checkout", "-q", "main")
	r.Commit("main2", "acme/cli.py", "")
	r.Git("merge", "-q", "--no-commit", "--no-ff", "side2")
	evil := r.Commit("merge with a change of its own", "acme/wire.py", withoutFrame)
	wantCulprit(t, r, "acme.wire:Frame", b, evil, evil)
}

func TestNoCulpritIsSaid(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	a := r.Commit("a", "acme/wire.py", withFrame)
	b := r.Commit("b", "acme/other.py", "")
	nowhere := strings.Repeat("12", 20)
	tests := []struct{ name, from, to, want string }{
		{"acme.wire:Frame", a, b, "existed at the boot and at the death"},
		{"acme.nothing", a, b, "existed neither"},
		{"acme.wire:Frame", a, nowhere, "the commit is not in the repository"},
		{"acme.wire:Frame", a, "--help", "not a full commit name"},
	}
	for _, tt := range tests {
		if ans := find(t, r, tt.name, tt.from, tt.to); ans.Culprit != nil || !strings.Contains(ans.Detail, tt.want) {
			t.Errorf("%s from %.7s to %.7s: %+v, want %q", tt.name, tt.from, tt.to, ans, tt.want)
		}
	}
}

func TestShallowCloneSaysSo(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	first := s.repo.Head()
	s.repo.Commit("drop", "acme/wire.py", withoutFrame)
	dir := t.TempDir() + "/clone"
	s.repo.Git("clone", "-q", "--depth=1", "file://"+s.repo.Dir, dir)
	clone := s.repo.At(dir)
	s.root = rootOf(clone)
	s.req.Roots = []witness.Root{s.root}
	s.boots(-30 * time.Minute)
	s.req.Boot[0].Revision = first
	s.diesReading(-10 * time.Minute)
	// That the revisions differ is certain; which file changed is not.
	s.because(s.expect(w1), w3, "the commit is not in the repository")
}

// A clock that was wrong when a commit was made does not put a parent before its child.
func TestCommitsInOrderOfDescent(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	at := func(hours int) { r.Clock = time.Date(2026, 1, 1, hours, 0, 0, 0, time.UTC) }
	at(1)
	base := r.Commit("base", "acme/a.py", "0\n")
	at(10)
	r.Commit("fork", "acme/a.py", "1\n")
	r.Git("checkout", "-q", "-b", "side")
	at(2) // this machine's clock is behind
	r.Commit("side", "acme/side.py", "1\n")
	r.Git("checkout", "-q", "main")
	at(20)
	r.Commit("main", "acme/main.py", "1\n")
	r.Git("merge", "-q", "--no-ff", "-m", "merge", "side")
	got, err := newSource(t).Commits(t.Context(), rootOf(r), base, r.Head(), []string{"acme/a.py", "acme/side.py", "acme/main.py"}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var subjects []string
	for _, c := range got {
		subjects = append(subjects, c.Subject)
	}
	if s := strings.Join(subjects, ","); !strings.HasSuffix(s, "main,side,fork") {
		t.Errorf("commits are %s, want main, side, fork", s)
	}
}

func TestCommitsFollowRenames(t *testing.T) {
	t.Parallel()
	r := require.NewRepo(t)
	base := r.Commit("base", "README", "")
	text := strings.Repeat("line\n", 40)
	r.Commit("add", "acme/old name.py", text)
	r.Commit("edit", "acme/old name.py", text+"more\n")
	r.Git("mv", "acme/old name.py", "acme/new.py")
	r.Commit("rename")
	r.Commit("elsewhere", "README", "x")
	got, err := newSource(t).Commits(t.Context(), rootOf(r), base, r.Head(), []string{"acme/new.py"}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var subjects []string
	for _, c := range got {
		subjects = append(subjects, c.Subject)
		if len(c.Parents) != 1 || c.When.IsZero() || c.When.Grain != time.Second {
			t.Errorf("commit is %+v", c)
		}
	}
	if s := strings.Join(subjects, ","); s != "rename,edit,add" {
		t.Errorf("commits are %s, want rename,edit,add", s)
	}
	if got, _ := newSource(t).Commits(t.Context(), rootOf(r), base, r.Head(), []string{"acme/new.py"}, 1); len(got) != 1 {
		t.Errorf("with limit 1 there are %d commits", len(got))
	}
}
