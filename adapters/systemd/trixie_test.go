package systemd

import (
	"testing"

	"github.com/mulligan-dev/mulligan/internal/require"
)

func TestUnderTrixie(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.SystemManager, "--suite", "trixie") {
		inside(t)
		t.Run("ExecStart", execStartIsWordByWord)
		t.Run("Results", results)
		t.Run("StartLimit", startLimit)
		t.Run("Notify", notifies)
		t.Run("PrivateSocket", privateSocket)
		t.Run("Handoff", handsOff)
	}
}
