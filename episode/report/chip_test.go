package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/episode/report"
	"github.com/mulligan-dev/mulligan/ledger"
)

// TestChips goes over every state, for the run that broke and for its replacement.
func TestChips(t *testing.T) {
	t.Parallel()
	for state, want := range map[ledger.State][2]string{
		ledger.Claimed: {"↻ RESTARTING", ""}, ledger.Deferred: {"↻ RESTARTING", ""}, ledger.Launching: {"↻ RESTARTING", ""},
		ledger.Launched: {"↻ RESTARTED", "↻ "}, ledger.SettledOK: {"↻ RESTARTED", "↻ "},
		ledger.SettledFailed: {"", "↻ "}, ledger.Declined: {"", ""},
	} {
		r := agent("lin-a", "coder", oldRev, state, "not_quiet", clock(2, 0))
		for i, run := range []string{"run-lin-a", "new-lin-a"} {
			c, ok := report.BuildChip(r, run, options())
			got := ""
			if ok {
				got = c.Glyph + " " + c.Label
			}
			if got != want[i] {
				t.Errorf("%s, run %s: %q, want %q", state, run, got, want[i])
			}
			if ok && (len(c.Provenance) > 0) != (i == 1) {
				t.Errorf("%s, run %s: provenance %v", state, run, c.Provenance)
			}
		}
		if _, ok := report.BuildChip(r, "somebody-else", options()); ok {
			t.Errorf("%s marks a run that it does not know", state)
		}
	}
}

// TestDeathWithoutExit: of a death that nobody saw, or of a run inside its host, there is no exit code to tell.
func TestDeathWithoutExit(t *testing.T) {
	t.Parallel()
	r := agent("lin-a", "coder", oldRev, ledger.Declined, "runner_lost", clock(2, 0))
	r.Facts.Death.Exit = 0
	if got := report.BuildCard(r, options()).Death; strings.Contains(got, "exit code") {
		t.Errorf("the death: %s", got)
	}
}

func ExampleBuildChip() {
	r := story()[1]
	c, _ := report.BuildChip(r, "new-lin-b", report.Options{Now: clock(20, 0)})
	for _, p := range c.Provenance {
		fmt.Printf("%s %s: %s\n", c.Glyph, p[0], p[1])
	}
	// Output:
	// ↻ Replaces: run run-lin-b, which broke at 14:02:15 during booting, exit code 1, 3s after it started
	// ↻ Broke on: torn import: acme.wire:Frame
	// ↻ Update: 4f1e2d3c4b5a wire: drop the old frame
	// ↻ Episode: c-4f1e2d3c4b5a-acme-0badcafe
	// ↻ Evidence: evidence/web__lin-b
}
