package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// slowUpdate is an update in two steps: the new files come, it waits, and only then HEAD moves.
func (w *world) slowUpdate(branch string) []string {
	return []string{"sh", "-c", fmt.Sprintf(
		`cd %q && git checkout -q %s -- acme && touch %q && while [ ! -e %q ]; do sleep 0.01; done && git reset -q --hard %s`,
		w.repo.Dir, branch, filepath.Join(w.state, "half"), filepath.Join(w.state, "finish"), branch)}
}

// journal is the one row of the update journal.
func (w *world) journal() journal.Row {
	w.t.Helper()
	var rows []journal.Row
	for r, err := range w.home.Updates().Rows(w.ctx) {
		if err != nil {
			w.t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if len(rows) != 1 {
		w.t.Fatalf("the journal has %d rows: %+v", len(rows), rows)
	}
	return rows[0]
}

// TestDeathInTheMiddleOfAnUpdate: it is rung before the journal's row closes and before HEAD moves. It waits and is put
// back, and is not declined for want of a witness.
func TestDeathInTheMiddleOfAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout := w.broken("scout")
	updated := make(chan journal.Row)
	go func() {
		row, err := w.updater.Run(w.ctx, []witness.Root{w.root}, w.command(w.slowUpdate("v2")...), patience)
		if err != nil {
			row.Stderr += err.Error()
		}
		updated <- row
	}()
	w.until("half of the update", func() bool { return w.has("half") })
	w.tell("update")
	scout.dies()
	old := w.repo.Head()
	for range 3 {
		w.pass()
		w.wantStands(scout, "deferred not_quiet")
	}
	if note := w.record(scout).Note; !strings.Contains(note, "writer lock is held by sh") {
		t.Errorf("the note is %q, want who updates", note)
	}
	if w.repo.Head() != old || !w.journal().Open() {
		t.Fatal("the story is wrong: the update has ended")
	}
	w.tell("finish")
	if row := <-updated; row.Status != journal.Updated {
		t.Fatalf("the update is %s: %s", row.Status, row.Stderr)
	}
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
	if got := w.record(scout).Facts.Culprit; got == nil || got.Commit != w.repo.Head() {
		t.Errorf("the culprit is %+v, want the commit that the update brought", got)
	}
}

// TestKilledUpdater: the updater is killed while its command lives. The tree is not quiet until the command ends, and
// the next holder of the lock closes the row.
func TestKilledUpdater(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"healer", "update"} {
		t.Run("closed by the next "+next, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			w.branch("v2", renamed...)
			scout := w.broken("scout")
			updater := w.play(role{Play: "updater", Root: w.root, Command: w.slowUpdate("v2"), Env: w.env})
			w.until("half of the update", func() bool { return w.has("half") })
			w.tell("update")
			scout.dies()
			updater.kill()
			for range 3 {
				w.pass()
				w.wantStands(scout, "deferred not_quiet")
			}
			if note := w.record(scout).Note; !strings.Contains(note, "is under way") {
				t.Errorf("the note is %q, want that the update is under way", note)
			}
			if !w.journal().Open() {
				t.Fatalf("the row was closed while the command lives: %+v", w.journal())
			}
			w.tell("finish")
			if next == "update" {
				w.until("the command to end", func() bool { return w.repo.Head() == w.repo.Git("rev-parse", "v2") })
				w.until("its row to be closed", func() bool {
					if _, err := w.updater.Do(w.ctx, nil, "nothing at all", patience, nothing); err != nil {
						t.Fatal(err)
					}
					return !w.first().Open()
				})
			}
			w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
			row := w.first()
			if row.Status != journal.Partial || !row.Roots[0].Changed() || !strings.Contains(row.ClosedBy, next) {
				t.Errorf("the row is %s, changed %v, closed by %q; want partial, true, the %s", row.Status, row.Roots[0].Changed(), row.ClosedBy, next)
			}
		})
	}
}

// TestUpdatesOfFunctions: an update that is a function of the host has a row and a witness as well.
func TestUpdatesOfFunctions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	scout := w.broken("scout")
	row, err := w.updater.Do(w.ctx, []witness.Root{w.root}, "install v2", patience, func(context.Context) error {
		w.repo.Commit("v2", renamed...)
		return nil
	})
	if err != nil || row.Status != journal.Updated {
		t.Fatalf("the update is %s: %v", row.Status, err)
	}
	w.tell("update")
	scout.dies()
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
}

// TestUpdateNobodyWatched: a pull without swap has no row; the identities and the history prove it all the same.
func TestUpdateNobodyWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout := w.broken("scout")
	w.repo.Git("merge", "-q", "--ff-only", "v2")
	w.tell("update")
	scout.dies()
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
	for _, x := range w.record(scout).Facts.Witnesses {
		if x.Kind == string(witness.UpdateJournal) {
			t.Errorf("there is a journal witness without a row: %+v", x)
		}
	}
}
