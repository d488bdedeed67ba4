package boot

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger"
)

// TestTurnsAreSeenFromBeside: another process learns from the marker alone who would be cut off.
func TestTurnsAreSeenFromBeside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	box, err := OpenOutbox(dir)
	must(t, err)
	defer box.Close()
	look := func(want []string, over func(ledger.Instance) bool) {
		t.Helper()
		if got, err := box.MidTurn(over); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, want %v: %v", got, want, err)
		}
	}
	is := func(id string) func(ledger.Instance) bool {
		return func(i ledger.Instance) bool { return i.ID == id }
	}
	look(nil, nil) // no host has been here
	k, err := New(t.Context(), Config{Dir: dir, Instance: ledger.Instance{ID: "i1"}, Deliver: &recorder{}})
	must(t, err)
	look(nil, nil)
	idle, err := k.Busy("s2")
	must(t, err)
	_, err = k.Busy("s1")
	must(t, err)
	look([]string{"s1", "s2"}, nil)
	look([]string{"s1", "s2"}, is("another"))
	look(nil, is("i1"))
	must(t, idle())
	look([]string{"s1"}, nil)
	must(t, k.Close())
	look(nil, nil) // an orderly stop cut it off

	must(t, os.WriteFile(filepath.Join(dir, markerName), []byte("{"), 0o600))
	var damage *DamageError
	if got, err := box.MidTurn(nil); !errors.As(err, &damage) {
		t.Errorf("of a marker that nobody can read: %v, %v", got, err)
	}
}
