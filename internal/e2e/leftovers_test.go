package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/episode/report"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger"
)

// leftovers reports what a killed healer or runner has left in a state folder that another one has put in order since:
// a lock that somebody holds, a file or folder on its way to its name, evidence without its manifest, an update that is
// never closed, a report that tells of an earlier state. Only home's own instance may be alive.
//
// Spares (".swap-…") stay by design: each shard keeps one file of the past for its next write.
func leftovers(t *testing.T, home *files.Home) {
	t.Helper()
	err := filepath.WalkDir(home.Dir(), func(path string, e fs.DirEntry, err error) error {
		name := e.Name()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && (strings.HasPrefix(name, ".") && !strings.HasPrefix(name, ".swap-") && name != ".newest" || strings.HasSuffix(name, ".new")) {
			t.Errorf("left behind: %s", strings.TrimPrefix(path, home.Dir()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"locks", "instances"} {
		noLockIsHeld(t, filepath.Join(home.Dir(), folder), home.Instances().Self().ID)
	}
	holders, err := filepath.Glob(filepath.Join(home.Dir(), "evidence", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range holders {
		if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err != nil {
			t.Errorf("half evidence is left: %v", err)
		}
	}
	for row, err := range home.Updates().Rows(t.Context()) {
		if err != nil || row.Open() {
			t.Errorf("an update is never closed: %+v, %v", row, err)
		}
	}
	listed := 0
	for rec, err := range home.Ledger().List(t.Context()) {
		if err != nil {
			t.Errorf("the ledger: %v", err)
			continue
		}
		listed++
		reportTells(t, home, rec)
	}
	// The index is a hint, and shows all there is whatever its writer came to.
	if newest, err := home.Ledger().(ledger.Newest).Newest(t.Context(), listed+1); err != nil || len(newest) != listed {
		t.Errorf("the index leads to %d of %d records (%v)", len(newest), listed, err)
	}
}

// noLockIsHeld tries every lock file of a folder. A process that is killed has no environment any more, and so counts as
// gone, a moment before the kernel closes its files.
func noLockIsHeld(t *testing.T, dir, self string) {
	t.Helper()
	d, err := durable.System{}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	names, err := d.Names(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name == self {
			continue
		}
		l, err := d.Lock(name)
		if err != nil {
			t.Errorf("lock %s: %v", name, err)
			continue
		}
		until(t, fmt.Sprintf("lock %s in %s to be nobody's", name, filepath.Base(dir)), func() bool {
			ok, err := l.Try(false)
			if err != nil {
				t.Fatal(err)
			}
			return ok
		})
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// reportTells is that the episode's report shows a record as it stands.
func reportTells(t *testing.T, home *files.Home, rec ledger.Record) {
	t.Helper()
	if rec.Episode == "" {
		return
	}
	got, err := home.Reports().GetReport(t.Context(), rec.Episode)
	if err != nil {
		t.Errorf("the report: %v", err)
		return
	}
	var r report.Report
	if err := json.Unmarshal(got["report.json"], &r); err != nil {
		t.Errorf("the report: %v", err)
		return
	}
	shown := slices.ContainsFunc(r.Agents, func(a report.Agent) bool { return a.Lineage == rec.Lineage && a.State == string(rec.State) }) ||
		rec.State == ledger.Declined && slices.ContainsFunc(r.LeftAlone, func(l report.LeftAlone) bool { return l.Lineage == rec.Lineage && l.Reason == rec.Reason })
	if !shown {
		t.Errorf("the report of %s does not show that it is %s %s: %+v %+v", rec.Key, rec.State, rec.Reason, r.Agents, r.LeftAlone)
	}
}
