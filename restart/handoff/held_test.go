package handoff_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/restart/handoff"
)

// TestHeldForEver: whoever is stopped in the middle of a change holds up the others for a minute, and then they say which lock
// it is.
//
// Seen to fail: without the bound.
func TestHeldForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d, err := durable.System{}.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		lock, err := d.Lock("restarts.lock")
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if ok, err := lock.Try(false); err != nil || !ok {
			t.Fatal(ok, err)
		}
		history, err := handoff.OpenHistory(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer history.Close()
		err = history.Withdraw(t.Context(), "r1")
		var held *durable.HeldError
		if !errors.As(err, &held) || held.Path != dir+"/restarts.lock" {
			t.Errorf("%v", err)
		}
	})
}
