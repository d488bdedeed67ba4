package restart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// dossier is the machine-readable part of the evidence: everything that the decision rested on.
type dossier struct {
	Schema     int                `json:"schema"`
	Key        ledger.Key         `json:"key"`
	Episode    string             `json:"episode"`
	Decided    stamp.Time         `json:"decided"`
	Verdict    string             `json:"verdict"`
	Code       string             `json:"code"`
	Text       string             `json:"text"`
	Facts      ledger.Facts       `json:"facts"`
	Boot       []witness.Identity `json:"boot_identities"`
	Death      []witness.Identity `json:"death_identities"`
	Now        []witness.Identity `json:"identities_now"`
	Witnesses  witness.Findings   `json:"witnesses"`
	Updates    []journal.Row      `json:"updates,omitempty"`
	Recipe     []string           `json:"command"`
	RecipeDir  string             `json:"folder"`
	Quiet      string             `json:"quiet,omitempty"`
	ProbeSaid  string             `json:"probe_said,omitempty"`
	Supersedes string             `json:"run"`
}

// logKept bounds the end of the run's log that is kept beside the failure text.
const logKept = 16 << 10

// evidence puts on disk what the launch is based on. A lineage that has evidence already keeps it: an earlier try got
// as far as this.
func (p *pass) evidence(ctx context.Context, d *death, f ledger.Facts, ep string) (string, error) {
	doc := dossier{
		Schema: 1, Key: d.run.Key(), Episode: ep, Decided: p.now, Verdict: string(d.decision.Verdict), Code: d.decision.Code,
		Text: d.decision.Text, Facts: f, Boot: d.run.Boot, Death: d.note.Identities, Recipe: d.run.Recipe.Command,
		RecipeDir: d.run.Recipe.Dir, Quiet: d.facts.Quiet.Why, Supersedes: d.run.ID, Witnesses: *d.facts.Witnesses,
	}
	for _, r := range d.involved() {
		if o, ok := p.looked(r); ok {
			doc.Now = append(doc.Now, o.Identity)
		}
	}
	for _, row := range p.rows {
		if row.Span().Meets(d.window()) {
			doc.Updates = append(doc.Updates, row)
		}
	}
	if r := d.facts.Probe.Result; r != nil {
		doc.ProbeSaid = r.Detail
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write down what was found: %w", err)
	}
	files := map[string][]byte{"facts.json": append(b, '\n'), "failure.txt": d.note.Text}
	if log := logTail(d.run.Log, logKept); len(log) > 0 {
		files["log.txt"] = log
	}
	path, err := p.h.cfg.Stores.Evidence.Put(ctx, d.run.Key(), files)
	if errors.Is(err, ledger.ErrExists) && path != "" {
		return path, nil
	}
	return path, err
}
