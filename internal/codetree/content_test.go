package codetree_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/witness"
)

func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

func roomy() *codetree.Content {
	return codetree.NewContent(codetree.Limits{Files: 1000, Bytes: 1 << 20})
}

// TestFileThatIsBeingWritten: half of what was read may be old, so there is no digest.
func TestFileThatIsBeingWritten(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(at string) error{
		"it grows":   func(at string) error { return os.WriteFile(at, []byte("one and two"), 0o600) },
		"it shrinks": func(at string) error { return os.Truncate(at, 1) },
	} {
		at := put(t, t.TempDir(), "a.py", "one")
		err := roomy().File(t.Context(), at, "a.py", func(io.ReaderAt, int64) error { return write(at) })
		if err == nil || !strings.Contains(err.Error(), "is being written") {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	at := put(t, t.TempDir(), "image.digest", "one")
	before, err := os.Stat(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte("one and two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if look, err := codetree.Dated(at, "one", before); err == nil {
		t.Errorf("a file that changed after it was read is dated %+v", look)
	}
}

func TestTreeTellsFilesApart(t *testing.T) {
	t.Parallel()
	sum := func(paths ...string) string {
		t.Helper()
		dir := t.TempDir()
		for i := 0; i < len(paths); i += 2 {
			put(t, dir, paths[i], paths[i+1])
		}
		c := roomy()
		if err := c.Tree(t.Context(), dir, "", codetree.IsCode, "skipped"); err != nil {
			t.Fatal(err)
		}
		return c.Sum()
	}
	one := sum("a.py", "1", "b/c.py", "2")
	for name, tt := range map[string]struct {
		sum  string
		same bool
	}{
		"the same":           {sum("b/c.py", "2", "a.py", "1"), true},
		"what is no code":    {sum("a.py", "1", "b/c.py", "2", "b/log", "x", ".git/x.py", "", "skipped/x.py", ""), true},
		"other content":      {sum("a.py", "1", "b/c.py", "3"), false},
		"content exchanged":  {sum("a.py", "2", "b/c.py", "1"), false},
		"another name":       {sum("a.py", "1", "b/d.py", "2"), false},
		"one file less":      {sum("a.py", "1"), false},
		"one empty one more": {sum("a.py", "1", "b/c.py", "2", "b/d.py", ""), false},
	} {
		if (tt.sum == one) != tt.same {
			t.Errorf("%s: the digests are %s and %s, want them equal: %v", name, one, tt.sum, tt.same)
		}
	}
}

func TestContentIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a.py", "123")
	put(t, dir, "b.py", "123")
	for want, l := range map[string]codetree.Limits{"more than 2 files": {Files: 2, Bytes: 9}, "larger than 5 bytes": {Files: 9, Bytes: 5}} {
		if err := codetree.NewContent(l).Tree(t.Context(), dir, "", codetree.IsCode); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %+v: %v, want %q", l, err, want)
		}
	}
	if err := (codetree.NewContent(codetree.Limits{Files: 9, Bytes: 6})).Tree(t.Context(), dir, "", codetree.IsCode); err != nil {
		t.Errorf("exactly as large as the bound: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := roomy().File(ended, filepath.Join(dir, "a.py"), "a.py", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	if _, err := codetree.ReadFile(filepath.Join(dir, "a.py"), 2); err == nil || !strings.Contains(err.Error(), "more than 2 bytes") {
		t.Errorf("a file above the bound: %v", err)
	}
}

// TestObserveReadsThroughTheLink: a release that was switched is what counts, and it is in force since the switch at the
// earliest, however old its files are.
func TestObserveReadsThroughTheLink(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	put(t, base, "one/a.py", "1")
	current := filepath.Join(base, "current")
	if err := os.Symlink("one", current); err != nil {
		t.Fatal(err)
	}
	r := witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{filepath.Join(base, "one")}}, Declared: []string{current}}
	old := time.Unix(1, 0)
	var read []string
	o, look, err := codetree.Observe(t.Context(), r, host.Now, func(_ context.Context, live witness.Root) (codetree.Look, error) {
		read = live.Dirs
		return codetree.Look{Revision: "1", Since: old}, nil
	})
	if err != nil || len(read) != 1 || read[0] != current {
		t.Fatalf("read %v, %v; want the declared folder", read, err)
	}
	link := codetree.LinkChange(current)
	if !look.Since.Equal(link) || !o.Changed.Wall.Equal(link) {
		t.Errorf("in force since %s and changed at %s, the link was made at %s", look.Since, o.Changed, link)
	}
}

// TestLinkIsSwitchedMeanwhile: what a link leads to is never dated by how the link was before.
func TestLinkIsSwitchedMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	to, link := put(t, dir, "one", "one"), filepath.Join(dir, "link")
	if err := os.Symlink(to, link); err != nil {
		t.Fatal(err)
	}
	was, err := os.Lstat(link)
	if err != nil {
		t.Fatal(err)
	}
	var is os.FileInfo
	c := roomy()
	err = c.File(t.Context(), link, "link", func(io.ReaderAt, int64) error {
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
			if err := errors.Join(os.Remove(link), os.Symlink(to, link)); err != nil {
				return err
			}
			if is, err = os.Lstat(link); err != nil || is.ModTime().After(was.ModTime()) {
				return err
			}
		}
		return errors.New("the clock of the file system stands")
	})
	if err != nil || c.Newest().Before(codetree.ChangeTime(is)) {
		t.Errorf("dated %v, the link is of %v, %v", c.Newest(), is.ModTime(), err)
	}
}
