package restart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/quiet"
)

// Past is one death of the history and what the decision path says of it today.
type Past struct {
	Outcome
	Died time.Time `json:"died"`
	// Was is what was really decided, as the state and reason of the record or the reason of the answer; empty for a
	// death that nobody decided.
	Was string `json:"was,omitempty"`
}

// Scan replays the decision path over the bad ends of the last time span, newest first, at most limit of them (zero: all).
// It writes nothing and runs no probe: a death that would need one gets the code would_probe. A run that cannot be read
// is an outcome with an error. The tree is taken as
// quiet, since a replay asks what the update did, not when.
func (h *Healer) Scan(ctx context.Context, since time.Duration, limit int) ([]Past, error) {
	dry := h.DryRun()
	p := &pass{h: dry, now: h.cfg.Now(), seenRoots: map[string]witness.Observation{}, touched: map[ledger.Key]bool{}}
	// A history may be long. Only when each run ended is kept, and the run is read again when its turn comes.
	var dead []ended
	out := []Past{}
	for r, err := range h.cfg.Stores.Runs.List(ctx) {
		if err != nil {
			out = append(out, Past{Outcome: Outcome{Error: err.Error()}})
			continue
		}
		if r.Ended != nil && !r.Ended.OK && (since == 0 || p.now.Sub(r.Ended.At) <= since) {
			dead = append(dead, ended{r.ID, r.Ended.At})
			if limit > 0 && len(dead) >= 2*limit+1024 {
				dead = newest(dead, limit)
			}
		}
	}
	dead = newest(dead, limit)
	for r, err := range h.cfg.Stores.Journal.Rows(ctx) {
		if err == nil {
			p.rows = append(p.rows, r)
		}
	}
	for _, e := range dead {
		if err := ctx.Err(); err != nil {
			return out, fmt.Errorf("scan: %w", err)
		}
		r, err := h.cfg.Stores.Runs.Get(ctx, e.id)
		if err != nil || r.Ended == nil {
			// It was removed or started anew since it was listed.
			out = append(out, Past{Died: e.at.Wall, Outcome: Outcome{Run: e.id, Error: fmt.Sprintf("read run %s again: %v", e.id, cmp.Or(err, errNotEnded))}})
			continue
		}
		past, err := p.replay(ctx, r)
		if err != nil {
			past.Error = err.Error()
		}
		out = append(out, past)
	}
	return out, nil
}

// errNotEnded is a run that was dead a moment ago.
var errNotEnded = errors.New("it has no end any more")

// ended is one bad end of the history.
type ended struct {
	id string
	at stamp.Time
}

// newest puts ends in order, the newest first, and keeps limit of them; all where limit is zero.
func newest(ends []ended, limit int) []ended {
	slices.SortFunc(ends, func(a, b ended) int { return cmp.Compare(b.at.Sub(a.at), 0) })
	if limit > 0 && len(ends) > limit {
		ends = ends[:limit]
	}
	return ends
}

func (p *pass) replay(ctx context.Context, r run.Run) (Past, error) {
	past := Past{Died: r.Ended.At.Wall, Outcome: Outcome{Project: r.Project, Name: r.Name, Run: r.ID, Lineage: r.Lineage}}
	was, state, err := p.decided(ctx, r)
	if err != nil {
		return past, err
	}
	past.Was, past.State = was, state
	d := &death{run: r, note: doorbell.Note{Run: r.ID, At: r.Ended.At, Exit: r.Ended.Exit, Cause: r.Ended.Cause, Phase: r.Phase,
		Identities: r.Ended.Identities, Silenced: r.Silenced, Text: p.text(ctx, r)}}
	f := &d.facts
	f.Phase, f.Marking, f.Silenced = r.Phase, r.Recipe.Marking, r.Silenced
	f.Replacement, f.Seen = r.Launch != "", true
	heard(f, r)
	f.Signature = p.h.cfg.Classifier.Classify(classify.Input{Text: d.note.Text, Exit: r.Ended.Exit, Cause: r.Ended.Cause,
		Roots: roots(r.Roots), Workspaces: r.Workspaces})
	p.probeable(d)
	f.Quiet = &quiet.Result{Quiet: true}
	if err := p.advance(ctx, d); err != nil {
		return past, err
	}
	past.Verdict, past.Code, past.Text = d.decision.Verdict, d.decision.Code, d.decision.Text
	if d.decision.Need == policy.NeedProbe {
		past.Code, past.Text = policy.WouldProbe, "An update broke it before it did any work; the new tree would be probed now."
	}
	return past, nil
}

// decided is what became of a run's death.
func (p *pass) decided(ctx context.Context, r run.Run) (was string, state ledger.State, err error) {
	if a, ok, err := p.h.cfg.Stores.Answers.Answer(ctx, r.ID); err != nil || ok {
		return a.Reason, "", err
	}
	rec, err := p.h.cfg.Stores.Ledger.Get(ctx, r.Key())
	if err != nil {
		return "", "", nil //nolint:nilerr // no record, or one that `doctor` reports: nothing was decided that can be shown
	}
	return rec.Reason, rec.State, nil
}

// text is the failure text of a past run: its evidence, else the end of its log.
func (p *pass) text(ctx context.Context, r run.Run) []byte {
	if files, err := p.h.cfg.Stores.Evidence.Get(ctx, r.Key()); err == nil && len(files["failure.txt"]) > 0 && r.Launch == "" {
		return files["failure.txt"]
	}
	return logTail(r.Log, doorbell.TextLimit)
}

// logTail is the end of a run's log, nothing when there is none.
func logTail(path string, limit int64) []byte {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil
	}
	b := make([]byte, min(limit, st.Size()))
	n, err := f.ReadAt(b, st.Size()-int64(len(b)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return b[:n]
}
