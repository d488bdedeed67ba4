package notify_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/notify"
)

var rewrite = flag.Bool("update", false, "rewrite reasons.md from the catalogue")

// TestReasonsPage keeps the page that every reason points at the same as the catalogue.
func TestReasonsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Reasons\n\nEvery decision carries one of these codes. The same code stands in the ledger, in reports, in notices and in JSON.\n")
	for _, r := range notify.Reasons() {
		b.WriteString("\n## " + r.Code + "\n\n**" + r.Title + ".** " + r.Text + "\n\nSeverity: " + string(r.Severity) + ".\n")
	}
	b.WriteString("\n## other\n\nA code that this version does not know: from a host's own launcher, or from a newer version.\n")
	if *rewrite {
		if err := os.WriteFile("reasons.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile("reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), b.String()); diff != "" {
		t.Errorf("reasons.md is not the catalogue; run the test with -update (-page +catalogue):\n%s", diff)
	}
}
