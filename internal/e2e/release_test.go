package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/folder"
	"github.com/mulligan-dev/mulligan/adapters/gitcli"
	"github.com/mulligan-dev/mulligan/witness"
)

// released puts the agents' code in place the way deployments do: releases beside each other, and a link that says which
// of them is current. It returns the switch to release 8, which is complete before it is current.
func (w *world) released(kind string) (switchTo func(release string)) {
	w.t.Helper()
	w.branch("v2", renamed...)
	releases, current := filepath.Join(w.dir, "releases"), filepath.Join(w.dir, "current")
	for release, rev := range map[string]string{"7": "main", "8": "v2"} {
		at := filepath.Join(releases, release)
		w.repo.Git("clone", "-q", "-b", rev, w.repo.Dir, at)
		if kind == folder.Kind {
			if err := os.RemoveAll(filepath.Join(at, ".git")); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	switchTo = func(release string) {
		w.t.Helper()
		next := current + ".next"
		if err := os.Symlink(filepath.Join("releases", release), next); err != nil {
			w.t.Fatal(err)
		}
		if err := os.Rename(next, current); err != nil {
			w.t.Fatal(err)
		}
	}
	switchTo("7")
	w.root.Kind = kind
	w.root.Dirs, w.root.Declared = []string{filepath.Join(releases, "7")}, []string{current}
	for i, e := range w.env {
		w.env[i] = strings.ReplaceAll(e, w.repo.Dir, current)
	}
	return switchTo
}

// TestReleaseSwitchedByLink: a release that becomes current while an agent runs is the update that it is, found by the
// identities at boot and at death alone; nobody wrote a journal. The agent is put back on the new release.
func TestReleaseSwitchedByLink(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{gitcli.Kind, folder.Kind} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			switchTo := w.released(kind)
			scout := w.broken("scout", "mark:preparing")
			switchTo("8")
			w.tell("update")
			scout.dies()
			w.passUntil("scout to be put back and to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
			found := w.record(scout).Facts.Witnesses
			if len(found) == 0 || found[0].Kind != string(witness.BootIdentity) || found[0].Root != "acme" || found[0].From == found[0].To {
				t.Errorf("the witnesses are %+v, want the identity of root acme before and after the switch", found)
			}
		})
	}
}

// TestReleaseSwitchIsNoRest: the switch itself is the last change of the tree, however long ago the release was made.
func TestReleaseSwitchIsNoRest(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{gitcli.Kind, folder.Kind} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			switchTo := w.released(kind)
			time.Sleep(20 * time.Millisecond) // so that the clock of the files has gone on
			before := time.Now()
			time.Sleep(20 * time.Millisecond)
			switchTo("8")
			at, err := w.sources[kind].LastChange(w.ctx, w.root)
			if err != nil || at.Wall.Before(before) {
				t.Errorf("the last change is %s (%v), want the switch after %s", at.Wall, err, before)
			}
		})
	}
}

// TestReleaseSwitchAfterTheDeath: where the run's side recorded nothing at the death, a release that became current later
// is no witness, though its own history is older.
func TestReleaseSwitchAfterTheDeath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	switchTo := w.released(gitcli.Kind)
	time.Sleep(1100 * time.Millisecond) // a reflog knows seconds
	died := w.clock.now()
	time.Sleep(20 * time.Millisecond)
	switchTo("8")
	rev, _, ok, err := w.sources[gitcli.Kind].(witness.History).At(w.ctx, w.root, died)
	if err != nil || ok {
		t.Errorf("at the death it was %q (%v, %v), want that nothing is known: the link led elsewhere", rev, ok, err)
	}
}
