package boot

import (
	"context"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/faultfs"
)

// TestHeldForEver: whoever is stopped in the middle of a change holds up the others for a minute, and then they say which lock
// it is.
//
// Seen to fail: without the bound.
func TestHeldForEver(t *testing.T) {
	t.Parallel()
	faultfs.GivesUp(t, "outbox.lock", func(ctx context.Context, dir string) error {
		box, err := OpenOutbox(dir)
		if err != nil {
			return err
		}
		defer box.Close()
		return box.Withdraw(ctx, "r1")
	})
}
