package e2e

import (
	"strings"
	"testing"
)

// TestRelaunch is the promise itself: broken by an update before any work, put back once, unchanged, under its name.
func TestRelaunch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout := w.broken("scout")
	if row := w.update("v2"); row.Status != "updated" {
		t.Fatalf("the update is %s: %s", row.Status, row.Stderr)
	}
	w.tell("update")
	scout.dies()
	w.passUntil("scout to be settled", func() bool { return strings.HasPrefix(w.stands(scout), "settled") })
	w.wantStands(scout, "settled_ok replacement_ok")
	t.Log(w.rows.Text())
}
