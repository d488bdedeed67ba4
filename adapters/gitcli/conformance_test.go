package gitcli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

func TestSource(t *testing.T) {
	t.Parallel()
	witnesstest.Run(t, newWorld)
}

func newWorld(t testing.TB) witnesstest.World {
	t.Helper()
	r := require.NewRepo(t)
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	w := witnesstest.World{Source: newSource(t), Root: rootOf(r)}
	for i, files := range []map[string]string{
		{"acme/wire.py": "1\n", "acme/cli.py": "1\n", "README": "1\n"},
		{"acme/wire.py": "2\n", "acme/cli.py": "1\n", "README": "1\n", "acme/my file.py": "new\n"},
		{"acme/wire.py": "2\n", "README": "1\n", "acme/my file.py": "new\n"},
		{"acme/wire.py": "2\n", "README": "2\n", "acme/my file.py": "newer\n", "acme/cli.py": "again\n"},
	} {
		r.Clock = start.Add(time.Duration(i) * time.Minute)
		for _, old := range []string{"acme", "README"} {
			r.Remove(old)
		}
		var all []string
		for p, text := range files {
			all = append(all, p, text)
		}
		rev := r.Commit(fmt.Sprintf("step %d", i), all...)
		w.Past = append(w.Past, witnesstest.Step{Revision: rev, From: stamp.Wall(r.Clock, time.Second), Files: files})
	}
	n := 0
	w.Change = func() {
		n++
		r.Write("acme/wire.py", fmt.Sprintf("changed %d\n", n))
	}
	w.Noise = func() { r.Write("acme/run.log", "noise\n") }
	w.Break = func() {
		if err := os.RemoveAll(filepath.Join(r.Dir, ".git")); err != nil {
			t.Fatal(err)
		}
	}
	return w
}
