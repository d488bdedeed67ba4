package inbox_test

import (
	"context"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/inbox"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/notify"
)

// TestHeldForEver: the inbox is given up like every other file that a stopped process keeps.
//
// Seen to fail: without the bound.
func TestHeldForEver(t *testing.T) {
	t.Parallel()
	faultfs.GivesUp(t, ".lock", func(ctx context.Context, dir string) error {
		box, err := inbox.New(inbox.Config{Dir: dir})
		if err != nil {
			return err
		}
		defer box.Close()
		return box.Notify(ctx, notify.PauseRow(notify.PauseFacts{Reason: "storm_loop"}))
	})
}
