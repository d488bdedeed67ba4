package inbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/inbox"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// TestCanaryOpensItsOwnAlone opens inboxes inside a canary: the service's is not even made.
func TestCanaryOpensItsOwnAlone(t *testing.T) { // the environment is the process's: not parallel
	own, live := t.TempDir(), filepath.Join(t.TempDir(), "live")
	t.Setenv(inside.Var, "c1")
	t.Setenv(inside.DirVar, own)
	if _, err := inbox.New(inbox.Config{Dir: live}); !errors.Is(err, inside.ErrOutside) {
		t.Errorf("the service's: %v", err)
	}
	if _, err := os.Stat(live); !os.IsNotExist(err) {
		t.Errorf("it was made: %v", err)
	}
	open(t, filepath.Join(own, "inbox"))
}
