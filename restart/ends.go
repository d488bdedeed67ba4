package restart

import (
	"context"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
)

// Ends tells how runners ended that left no word themselves, as whatever they ran under saw it: a service manager, a
// container engine. It is asked about a run only once nobody else can tell, and what it says decides nothing but how the
// end is shown: no run is started on it.
type Ends interface {
	// End is how the runner of r ended, which is proven dead and has recorded no end. The zero End says that nothing is
	// known. It is read before it is recorded, and may be asked for again until then.
	End(ctx context.Context, r run.Run) (End, error)
	// Release lets go of what is kept to tell how launches ended, of those of which over is true: their records are
	// settled. over is false for what is not in this healer's ledger.
	Release(ctx context.Context, over func(launch string) bool) error
}

// End is how a runner ended.
type End struct {
	// Cause is known for certain: classify.OOM, classify.Timeout, classify.Killed; empty for none of them.
	Cause classify.Reason
	// Text is a sentence for people that names who says so, empty when nothing is known.
	Text string
}

// endsWithin bounds a question to Ends: a manager that hangs must not hold up what is to be decided.
const endsWithin = 10 * time.Second

// ended asks how a run ended that left no word. Not to know is no failure: it was so before anybody could be asked.
func (p *pass) ended(ctx context.Context, r run.Run) End {
	if p.h.cfg.Ends == nil {
		return End{}
	}
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	e, err := p.h.cfg.Ends.End(ctx, r)
	if err != nil {
		p.h.log.Warn("how a run ended that left no word could not be asked", "run", r.ID, "error", err)
		return End{}
	}
	return e
}

// letGo has the ends forgotten of launches whose records are settled, so that what keeps them does not pile up. A launch
// that ended only after its record was settled is found by the next full pass, whichever healer makes it.
func (p *pass) letGo(ctx context.Context) {
	if p.h.cfg.Ends == nil || p.h.dry {
		return
	}
	asking, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	var launches map[string]bool // of the whole ledger, with whether they are over
	whole := true                // nothing of it was unreadable
	err := p.h.cfg.Ends.Release(asking, func(launch string) bool {
		// A record is there before its launch is, so one that was missing once is another ledger's for good.
		if p.h.strange[launch] {
			return false
		}
		for _, rec := range p.h.seen {
			if rec.Launch != nil && rec.Launch.ID == launch {
				return rec.State.Final()
			}
		}
		if launches == nil { // its record is at rest
			launches, whole = p.launches(ctx)
		}
		over, ours := launches[launch]
		if !ours && whole {
			p.h.strange[launch] = true
		}
		return over
	})
	if err != nil {
		p.h.log.Warn("what is kept of launches that are over could not be let go", "error", err)
	}
}

// launches are those of every record that can be read, with whether they are over, and whether that is all of them.
func (p *pass) launches(ctx context.Context) (over map[string]bool, whole bool) {
	over, whole = map[string]bool{}, true
	for rec, err := range p.h.cfg.Stores.Ledger.List(ctx) {
		switch {
		case err != nil:
			whole = false // what is damaged is an outcome of the pass already
		case rec.Launch != nil:
			over[rec.Launch.ID] = rec.State.Final()
		}
	}
	return over, whole
}
