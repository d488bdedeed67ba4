package sqlite

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// TestCanaryOpensItsOwnAlone opens databases inside a canary: the service's is not even made.
func TestCanaryOpensItsOwnAlone(t *testing.T) { // the environment is the process's: not parallel
	own, live := t.TempDir(), filepath.Join(t.TempDir(), "live.db")
	t.Setenv(inside.Var, "c1")
	t.Setenv(inside.DirVar, own)
	if _, err := Open(t.Context(), Config{Path: live}); !errors.Is(err, inside.ErrOutside) {
		t.Errorf("the service's: %v", err)
	}
	if _, err := os.Stat(live); !os.IsNotExist(err) {
		t.Errorf("it was made: %v", err)
	}
	db, err := Open(t.Context(), Config{Path: filepath.Join(own, "own.db")})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestCanaryLeavesTheServicesAlone has a database with a session in it that was cut off: opening it inside a canary is
// refused, and nothing in its folder changes, which even reading through SQLite would do.
func TestCanaryLeavesTheServicesAlone(t *testing.T) { // the environment is the process's: not parallel
	path := filepath.Join(t.TempDir(), "live.db")
	db, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Sessions().Append(t.Context(), "s1", []session.Draft{session.NewAbort(stamp.Time{Wall: time.Unix(1, 0)}, "x", "by a person")}); err != nil {
		t.Fatal(err)
	}
	look := func() (out string) {
		t.Helper()
		files, err := filepath.Glob(path + "*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			in, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			out += fmt.Sprintf("%s %x %v\n", f, sha256.Sum256(b), in.ModTime())
		}
		return out
	}
	before := look() // the service has it open
	t.Setenv(inside.Var, "c1")
	t.Setenv(inside.DirVar, t.TempDir())
	if _, err := Open(t.Context(), Config{Path: path}); !errors.Is(err, inside.ErrOutside) || !strings.Contains(err.Error(), "override") {
		t.Errorf("it does not say what to do: %v", err)
	}
	if after := look(); after != before {
		t.Errorf("the database changed:\n%s\n%s", before, after)
	}
	t.Setenv(inside.Var, "")
	if h, err := db.Sessions().Head(t.Context(), "s1"); err != nil || h.Last != 1 {
		t.Errorf("%+v, %v", h, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
