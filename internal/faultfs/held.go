package faultfs

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// GivesUp asks of a change that needs a lock of its folder to end with an error that names the lock, when whoever has it is
// stopped and keeps it for ever.
func GivesUp(t *testing.T, name string, change func(ctx context.Context, dir string) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d, err := durable.System{}.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		lock, err := d.Lock(name)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if ok, err := lock.Try(false); err != nil || !ok {
			t.Fatal(ok, err)
		}
		err = change(t.Context(), dir)
		var held *durable.HeldError
		if !errors.As(err, &held) || held.Path != filepath.Join(dir, name) {
			t.Errorf("the change ended with %v", err)
		}
	})
}
