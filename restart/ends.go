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
	over := map[string]bool{}
	for _, rec := range p.h.seen {
		if rec.Launch != nil && rec.State.Final() {
			over[rec.Launch.ID] = true
		}
	}
	if len(over) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	if err := p.h.cfg.Ends.Release(ctx, func(launch string) bool { return over[launch] }); err != nil {
		p.h.log.Warn("what is kept of launches that are over could not be let go", "error", err)
	}
}
