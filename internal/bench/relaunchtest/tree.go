package relaunchtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/internal/require"
)

// Tree is a repository with two commits, between which a name goes away.
func Tree(tb testing.TB) *require.Repo {
	tb.Helper()
	r := require.NewRepo(tb)
	put := func(name, text string) {
		path := filepath.Join(r.Dir, "acme", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	commit := func(message string) {
		r.Git("add", "-A")
		r.Git("-c", "user.name=acme", "-c", "user.email=acme@localhost", "commit", "-qm", message)
	}
	put("__init__.py", "")
	put("agent.py", "def run():\n    from acme.wire import Frame\n")
	put("wire.py", "class Frame:\n    pass\n")
	commit("first")
	put("agent.py", "def run():\n    from acme.wire import Packet\n")
	put("wire.py", "class Packet:\n    pass\n")
	commit("second")
	return r
}

// Update takes the tree from the first commit to the second, around the start of the first lives.
func Update(repo *require.Repo, start func() ([]string, string)) ([]string, string) {
	repo.Git("checkout", "-q", "HEAD~1")
	beats, goFile := start()
	repo.Git("checkout", "-q", "main")
	return beats, goFile
}

// Back is the time from the death to the last replacement's first instruction, after an update. The update is one that
// nobody has seen yet: what is known of a commit is not read again.
func Back(tb testing.TB, repo *require.Repo, start func() (beats []string, goFile string)) time.Duration {
	tb.Helper()
	repo.Git("-c", "user.name=acme", "-c", "user.email=acme@localhost", "commit", "-q", "--amend", "-m", "second, "+uuid.NewString())
	beats, goFile := Update(repo, start)
	return slices.Max(Gaps(tb, beats, goFile))
}
