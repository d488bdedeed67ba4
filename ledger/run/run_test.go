package run_test

import (
	"fmt"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger/run"
)

func TestHighNeverLowersAMark(t *testing.T) {
	t.Parallel()
	marks := append(run.All[:], run.UnknownPhase, "", "nonsense")
	for i, a := range marks {
		for j, b := range marks {
			got, want := run.High(a, b), run.UnknownPhase
			if max(i, j) < len(run.All) {
				want = marks[max(i, j)]
			}
			if got != want {
				t.Errorf("High(%q, %q) = %q, want %q", a, b, got, want)
			}
			if got.BeforeWork() && (!a.BeforeWork() || !b.BeforeWork()) {
				t.Errorf("%q and %q together are before work", a, b)
			}
		}
	}
}

func TestParsePhase(t *testing.T) {
	t.Parallel()
	for _, p := range run.All {
		if got, err := run.ParsePhase(string(p)); got != p || err != nil {
			t.Errorf("%q: %q, %v", p, got, err)
		}
	}
	for _, s := range []string{"", "unknown", "Booting", "booting "} {
		if got, err := run.ParsePhase(s); got != run.UnknownPhase || err == nil {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
}

func ExampleHigh() {
	mark := run.Booting
	for _, p := range []run.Phase{run.Preparing, run.ProviderRunning, run.Waiting} {
		mark = run.High(mark, p)
	}
	fmt.Println(mark, mark.BeforeWork())
	// Output: provider_running false
}

func ExampleReadMarks() {
	file := run.MarksHead + "\nbooting\nprovider_running\npreparing\n"
	fmt.Println(run.ReadMarks([]byte(file)), run.ReadMarks([]byte("preparing\n")))
	// Output: provider_running unknown
}
