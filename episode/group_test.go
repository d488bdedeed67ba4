package episode_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

var dawn = time.Date(2026, 3, 9, 6, 0, 0, 0, time.UTC)

// second is a moment of one kernel boot.
func second(n int) stamp.Time {
	return stamp.Time{Wall: dawn.Add(time.Duration(n) * time.Second), Boot: "b", Uptime: time.Duration(n) * time.Second}
}

func record(lineage, ep string, died int, state ledger.State) ledger.Record {
	return ledger.Record{
		Key: ledger.Key{Project: "web", Lineage: lineage}, Episode: ep, State: state, First: second(died + 1),
		Facts: ledger.Facts{
			Death:     ledger.Death{Name: lineage, At: second(died), Booted: second(died - 2 - 7*(died%3))},
			Signature: ledger.Signature{Root: "acme", Message: "ImportError: the same words everywhere"},
			Roots:     []ledger.RootChange{{Root: "acme", From: fmt.Sprintf("from-%d", died%2), To: fmt.Sprintf("to-%d", died)}},
		},
		History: []ledger.Entry{{State: state, Event: ledger.Claim, At: second(died + 1)}},
	}
}

// TestGroupAgainstItsTwin compares with the slowest way there is.
func TestGroupAgainstItsTwin(t *testing.T) {
	t.Parallel()
	states := []ledger.State{ledger.Claimed, ledger.Deferred, ledger.Declined, ledger.Launching, ledger.Launched, ledger.SettledOK, ledger.SettledFailed}
	rapid.Check(t, func(t *rapid.T) {
		var records []ledger.Record
		for i := range rapid.IntRange(0, 12).Draw(t, "records") {
			records = append(records, record(
				fmt.Sprintf("lin-%02d", i), rapid.SampledFrom([]string{"", "c-1", "c-2", "q-3"}).Draw(t, "episode"),
				rapid.IntRange(0, 20).Draw(t, "died"), rapid.SampledFrom(states).Draw(t, "state")))
		}
		shuffled := rapid.Permutation(records).Draw(t, "order")
		got := episode.Group(shuffled)

		// Each record is in the one episode of its name, whatever its text says.
		total := 0
		for i, e := range got {
			total += len(e.Members)
			for _, m := range e.Members {
				if m.Episode != e.ID {
					t.Fatalf("%s of episode %q stands in %q", m.Lineage, m.Episode, e.ID)
				}
			}
			if !slices.IsSortedFunc(e.Members, func(a, b ledger.Record) int { return a.Facts.Death.At.Wall.Compare(b.Facts.Death.At.Wall) }) {
				t.Fatalf("members of %q are not in the order of their deaths", e.ID)
			}
			if e.ID == "" && i != len(got)-1 {
				t.Fatal("the records without an episode do not stand last")
			}
			if i > 0 && e.ID != "" && got[i-1].Changed.Wall.Before(e.Changed.Wall) {
				t.Fatal("an older episode stands above a newer one")
			}
			twin(t, e, records)
		}
		if total != len(records) {
			t.Fatalf("%d records grouped of %d", total, len(records))
		}
		if d := cmp.Diff(got, episode.Group(records)); d != "" {
			t.Fatalf("the order of the records shows: %s", d)
		}
	})
}

// twin works the counts, the range and the last change of one episode out by looking at every record for each.
func twin(t *rapid.T, e episode.Episode, records []ledger.Record) {
	var want episode.Counts
	var changed stamp.Time
	from, to, first, firstDied, last := "", "", 1<<30, 0, -1
	boots := map[string]bool{}
	for _, r := range records {
		if r.Episode != e.ID {
			continue
		}
		switch r.State {
		case ledger.Claimed, ledger.Deferred:
			want.Waiting++
		case ledger.Launching:
			want.Launching++
		case ledger.Launched:
			want.Running++
		case ledger.SettledOK:
			want.Finished++
		case ledger.SettledFailed:
			want.Broken++
		case ledger.Declined:
			want.LeftAlone++
		}
		if changed.IsZero() || r.Changed().After(changed) {
			changed = r.Changed()
		}
		died, booted := int(r.Facts.Death.At.Uptime/time.Second), int(r.Facts.Death.Booted.Uptime/time.Second)
		if booted < first || booted == first && died < firstDied {
			first, firstDied, from = booted, died, r.Facts.Roots[0].From
		}
		if died > last {
			last, to = died, r.Facts.Roots[0].To
		}
		boots[r.Facts.Roots[0].From] = true
	}
	if e.Counts != want || want.Total() != len(e.Members) {
		t.Fatalf("%q counts %+v, want %+v", e.ID, e.Counts, want)
	}
	if e.Changed != changed {
		t.Fatalf("%q changed at %v, want %v", e.ID, e.Changed, changed)
	}
	if e.ID == "" {
		if e.From+e.To+e.Root != "" {
			t.Fatalf("records without an episode share %+v", e)
		}
		return
	}
	if e.From != from || e.To != to || e.Boots != len(boots) || e.Root != "acme" {
		t.Fatalf("%q goes from %q to %q over %d boots of %q, want %q to %q over %d", e.ID, e.From, e.To, e.Boots, e.Root, from, to, len(boots))
	}
}

// TestAClockThatWasSetBack holds that within one boot the boot-time clock orders, as everywhere.
func TestAClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	older, newer := record("a", "c-1", 10, ledger.Launched), record("b", "c-2", 20, ledger.Launched)
	newer.History[0].At.Wall = newer.History[0].At.Wall.Add(-time.Hour)
	newer.First, newer.Facts.Death.At = newer.History[0].At, newer.History[0].At
	if got := episode.Group([]ledger.Record{older, newer}); got[0].ID != "c-2" {
		t.Errorf("%s stands first: a set clock turned the order round", got[0].ID)
	}
}

// TestLaterCulpritIsALabel: the id stays, the culprit shows.
func TestLaterCulpritIsALabel(t *testing.T) {
	t.Parallel()
	a, b := record("a", "q-1", 1, ledger.Launched), record("b", "q-1", 2, ledger.Declined)
	b.Facts.Culprit = &ledger.Culprit{Root: "lib", Commit: "abc"}
	b.Facts.Witnesses = []ledger.Witness{{Kind: "update_journal", Root: "acme", Update: "u-7", When: stamp.Window{From: second(-10), To: second(5)}},
		{Kind: "boot_identity", Root: "acme", When: stamp.Window{From: second(-2), To: second(0)}}}
	got := episode.Group([]ledger.Record{a, b})
	if len(got) != 1 || got[0].ID != "q-1" || got[0].Culprit == nil || got[0].Culprit.Commit != "abc" {
		t.Fatalf("got %+v", got)
	}
	if e := got[0]; e.Update != "u-7" || e.When.From != second(-2) || e.Root != "lib" {
		t.Errorf("row %q, span %v, root %q", e.Update, e.When, e.Root)
	}
}

func ExampleGroup() {
	records := []ledger.Record{
		record("coder", "c-1", 1, ledger.SettledOK), record("tester", "c-1", 2, ledger.Launched),
		record("planner", "c-1", 3, ledger.Declined), record("scout", "", 9, ledger.Claimed),
	}
	for _, e := range episode.Group(records) {
		fmt.Printf("%q: %d of %d put back\n", e.ID, e.Counts.PutBack(), e.Counts.Total())
	}
	// Output:
	// "c-1": 2 of 3 put back
	// "": 0 of 1 put back
}
