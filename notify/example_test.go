package notify_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/notify"
)

func Example() {
	facts := notify.EpisodeFacts{
		ID: "c-4f1e2d3c4b5a-acme-0badcafe", Root: "acme", Commit: "4f1e2d3c4b5a69788796a5b4c3d2e1f001122334", Subject: "drop the old frame",
		Agents: []notify.Agent{{Project: "web", Lineage: "lin-a", Name: "coder", Now: "running again", Message: "ImportError: cannot import name 'Frame'"}},
	}
	held := notify.Merge(notify.Row{}, notify.EpisodeRow(facts))
	fmt.Println(held.Glyph, held.Title, held.Toast)

	// A second agent of the same update: the same row, a note more, no second toast.
	facts.Agents = append(facts.Agents, notify.Agent{Project: "web", Lineage: "lin-b", Name: "failover-error", Now: "running again"})
	held = notify.Merge(held, notify.EpisodeRow(facts))
	fmt.Println(held.Glyph, held.Title, held.Toast)
	for _, n := range held.Notes {
		fmt.Println("  ", n.Text)
	}
	// Output:
	// ↻ coder put back after an update of acme true
	// ↻ 2 agents put back after an update of acme false
	//    Update 4f1e2d3c4b5a of acme: drop the old frame
	//    coder: running again; it had ended on ImportError: cannot import name 'Frame'
	//    +1 failover-error: running again
}

func ExampleReason() {
	i := notify.Reason("not_quiet")
	fmt.Printf("%s (%s)\n%s\n", i.Title, i.Severity, i.Text)
	// Output:
	// The code is still changing (low)
	// An update is under way, or its end is too recent or cannot be told. The run is put back once the code is quiet.
}

func ExampleRedact() {
	fmt.Println(notify.Redact("connect postgres://ann:hunter2@db/x with API_KEY=abc123"))
	// Output: connect postgres://[redacted]@db/x with API_KEY=[redacted]
}

func ExampleEscalation() {
	row := notify.Escalation(notify.EscalationFacts{
		Project: "web", Lineage: "lin-a", Name: "coder", Reason: "notify_post_provider", Workspace: "/srv/work/lin-a",
	})
	fmt.Println(row.Title)
	for _, n := range row.Notes[1:] {
		fmt.Println("  ", n.Text)
	}
	// Output:
	// coder: work had begun
	//    Agent coder of project web
	//    The workspace is held as it was left: /srv/work/lin-a
	//    To go on, look at it with: cd /srv/work/lin-a; then start it again: mulligan retry lin-a
}
