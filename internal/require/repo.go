package require

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Repo is a repository with a working tree at Dir.
type Repo struct {
	t   testing.TB
	Dir string
	// Clock is the time that the next commits and moves of HEAD are stamped with; zero means now.
	Clock time.Time
}

// NewRepo makes an empty repository in a folder of the test.
func NewRepo(t testing.TB, initArgs ...string) *Repo {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return InitRepo(t, filepath.Join(dir, "tree"), initArgs...)
}

// InitRepo makes an empty repository at dir.
func InitRepo(t testing.TB, dir string, initArgs ...string) *Repo {
	t.Helper()
	Program(t, "git", "apt-get install git")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &Repo{t: t, Dir: dir}
	r.Git(append([]string{"init", "-q", "-b", "main"}, initArgs...)...)
	return r
}

// At is another working tree of the same test, a clone or a linked one.
func (r *Repo) At(dir string) *Repo { return &Repo{t: r.t, Dir: dir, Clock: r.Clock} }

// Git runs git in the working tree and returns what it printed, without the last line feed.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	out, err := r.Try(args...)
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Try is Git for a command that may fail.
func (r *Repo) Try(args ...string) (string, error) {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "advice.detachedHead=false"}, args...)...)
	cmd.Dir = r.Dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.Dir, "LC_ALL=C", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org", "GIT_EDITOR=true",
	}
	if !r.Clock.IsZero() {
		at := fmt.Sprintf("%d +0000", r.Clock.Unix())
		cmd.Env = append(cmd.Env, "GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at)
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// Write writes files of the working tree, given as path and content by turns.
func (r *Repo) Write(pathsAndContents ...string) {
	r.t.Helper()
	for i := 0; i+1 < len(pathsAndContents); i += 2 {
		name := filepath.Join(r.Dir, pathsAndContents[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(pathsAndContents[i+1]), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Remove removes a file or folder of the working tree.
func (r *Repo) Remove(path string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.Dir, path)); err != nil {
		r.t.Fatal(err)
	}
}

// Commit commits everything in the working tree, after writing the given files, and returns the commit's name.
func (r *Repo) Commit(subject string, pathsAndContents ...string) string {
	r.t.Helper()
	r.Write(pathsAndContents...)
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", subject)
	return r.Head()
}

// Head is the commit that HEAD stands on.
func (r *Repo) Head() string {
	r.t.Helper()
	return r.Git("rev-parse", "HEAD")
}
