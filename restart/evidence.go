package restart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// dossier is the machine-readable part of the evidence: everything that the decision rested on, but for the outcome of
// the probe, which comes later and stands in the record: so the verdict has a condition.
type dossier struct {
	Schema    int                `json:"schema"`
	Key       ledger.Key         `json:"key"`
	Run       string             `json:"run"`
	Episode   string             `json:"episode"`
	Found     stamp.Time         `json:"found"`
	Verdict   string             `json:"verdict"`
	Condition string             `json:"condition"`
	Facts     ledger.Facts       `json:"facts"`
	Boot      []witness.Identity `json:"boot_identities"`
	Death     []witness.Identity `json:"death_identities"`
	Now       []witness.Identity `json:"identities_now"`
	Witnesses witness.Findings   `json:"witnesses"`
	Updates   []journal.Row      `json:"updates,omitempty"`
	Recipe    []string           `json:"command"`
	RecipeDir string             `json:"folder"`
}

// logKept bounds the end of the run's log that is kept beside the failure text.
const logKept = 16 << 10

// filing is evidence on its way to the disk.
type filing struct {
	done chan struct{}
	path string
	err  error
}

// file begins to put on disk what a launch of d would be based on. It goes on beside the probe, which takes longer: what
// it costs is then nothing.
func (p *pass) file(ctx context.Context, d *death) {
	if d.filing != nil {
		return
	}
	f := &filing{done: make(chan struct{})}
	d.filing = f
	files, err := p.evidence(d)
	if err != nil {
		f.err = err
		close(f.done)
		return
	}
	go func() {
		defer close(f.done)
		f.path, f.err = p.put(ctx, d.run.Key(), files)
	}()
}

// maxTries bounds how often a lineage may get as far as its evidence; a deferral ends long before.
const maxTries = 1000

// put writes evidence. What an earlier try left, when the tree did not load yet, stays as it is, and this one goes beside
// it: a launch is never told by the evidence of another moment.
func (p *pass) put(ctx context.Context, k ledger.Key, files map[string][]byte) (path string, err error) {
	at := k
	for try := 2; try < maxTries; try++ {
		if path, err = p.h.cfg.Stores.Evidence.Put(ctx, at, files); !errors.Is(err, ledger.ErrExists) {
			return path, err
		}
		at = tryKey(k, try)
	}
	return path, err
}

// tryKey is where the evidence of a lineage's later try lies, from the second on.
func tryKey(k ledger.Key, try int) ledger.Key {
	k.Lineage = fmt.Sprintf("%s try %d", k.Lineage, try)
	return k
}

// filed waits until the evidence is on disk, and is where it lies.
func (p *pass) filed(ctx context.Context, d *death) (string, error) {
	p.file(ctx, d)
	<-d.filing.done
	return d.filing.path, d.filing.err
}

// evidence are the files about one death.
func (p *pass) evidence(d *death) (map[string][]byte, error) {
	if d.episode = d.rec.Episode; d.episode == "" {
		d.episode = p.episode(d)
	}
	doc := dossier{
		Schema: 1, Key: d.run.Key(), Run: d.run.ID, Episode: d.episode, Found: p.now, Verdict: string(policy.Relaunch),
		Condition: "the present tree loads", Facts: d.record(), Boot: d.run.Boot, Death: d.note.Identities,
		Recipe: d.run.Recipe.Command, RecipeDir: d.run.Recipe.Dir, Witnesses: *d.facts.Witnesses,
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
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write down what was found: %w", err)
	}
	files := map[string][]byte{"facts.json": append(b, '\n'), "failure.txt": d.note.Text}
	if log := logTail(d.run.Log, logKept); len(log) > 0 {
		files["log.txt"] = log
	}
	return files, nil
}
