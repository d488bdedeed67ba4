package boot

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mulligan-dev/mulligan/internal/durable"
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
		lock, err := d.Lock("outbox.lock")
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if ok, err := lock.Try(false); err != nil || !ok {
			t.Fatal(ok, err)
		}
		box, err := OpenOutbox(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer box.Close()
		err = box.Withdraw(t.Context(), "r1")
		var held *durable.HeldError
		if !errors.As(err, &held) || held.Path != dir+"/outbox.lock" {
			t.Errorf("%v", err)
		}
	})
}
