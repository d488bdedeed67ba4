package restart

import (
	"context"
	"io"
	"iter"
	"os"

	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
)

// lostRuns finds the first runs that nobody will ring for: their runner was killed, or the host whose own work they were.
// Each stands for a doorbell that says nothing but how far the run had come, so that its end is shown; with no text there
// is nothing that could put it back, whatever is said of how its runner ended. When it ended nobody knows: it counts from when it was found. A replacement is not
// looked for here, since its record waits for its end.
//
// Every run is read once in a healer's life, and from then on only those that are under way, where the store can do that.
func (p *pass) lostRuns(ctx context.Context) []*ring {
	over := map[string]bool{}
	var lost []run.Run
	for r, err := range p.unended(ctx, func(id string) bool {
		if p.h.over[id] {
			over[id] = true
		}
		return over[id]
	}) {
		switch {
		case err != nil:
			// Whether it is lost cannot be told; the doctor names it.
		case r.Ended != nil, r.Launch != "":
			over[r.ID] = true
		case Lost(p.h.cfg.Stores.Instances, r):
			lost = append(lost, r)
		}
	}
	p.h.over = over
	if len(lost) == 0 {
		return nil
	}
	// Whoever ran it may have rung, and recorded the end, between the look at the doorbells and its own end.
	rang, err := p.listen(ctx)
	if err != nil {
		p.h.log.Warn("the doorbells could not be read again, so no run is taken for lost", "error", err)
		return nil
	}
	for _, r := range lost {
		cur, err := p.h.cfg.Stores.Runs.Get(ctx, r.ID)
		if err != nil || cur.Ended != nil || p.rang[r.ID] {
			continue
		}
		if _, answered, err := p.h.cfg.Stores.Answers.Answer(ctx, r.ID); err == nil && answered {
			over[r.ID] = true
			continue
		}
		p.rang[r.ID] = true
		end := p.ended(ctx, cur)
		n := doorbell.Note{Schema: doorbell.Schema, Run: r.ID, At: p.now, Silenced: true, Cause: end.Cause}
		if cur.Recipe.Marking == run.Phases && cur.PhaseFile != "" {
			n.Phase = readMarks(cur.PhaseFile)
		}
		rang = append(rang, &ring{note: n, lost: true, ending: end.Text})
	}
	return rang
}

// unended lists the runs that may be under way, all of them where the store knows no better.
func (p *pass) unended(ctx context.Context, over func(id string) bool) iter.Seq2[run.Run, error] {
	if s, ok := p.h.cfg.Stores.Runs.(run.Skipping); ok {
		return s.ListBut(ctx, over)
	}
	return p.h.cfg.Stores.Runs.List(ctx)
}

// readMarks is the high-water mark of the file in which a program marked its phases.
func readMarks(path string) run.Phase {
	f, err := os.Open(path)
	if err != nil {
		return run.UnknownPhase
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, run.MarksLimit+1))
	if err != nil {
		return run.UnknownPhase
	}
	return run.ReadMarks(text)
}
