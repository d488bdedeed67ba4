package handoff_test

import (
	"context"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/restart/handoff"
)

// TestHeldForEver: the history of restarts is given up like every other file that a stopped process keeps.
//
// Seen to fail: without the bound.
func TestHeldForEver(t *testing.T) {
	t.Parallel()
	faultfs.GivesUp(t, "restarts.lock", func(ctx context.Context, dir string) error {
		history, err := handoff.OpenHistory(dir)
		if err != nil {
			return err
		}
		defer history.Close()
		return history.Withdraw(ctx, "r1")
	})
}
