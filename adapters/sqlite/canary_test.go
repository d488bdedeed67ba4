package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

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
