package restarttest

import (
	"context"
	"iter"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// gated are the stores as one process sees them. Each durable step passes the process's gate; reading needs only a
// living process. A ledger keeps its optional powers.
func gated(p *process, s restart.Stores) restart.Stores {
	g := s
	records := gatedLedger{s.Ledger, p}
	g.Ledger = records
	sync, syncs := s.Ledger.(ledger.Syncer)
	claim, claims := s.Ledger.(ledger.Reclaimer)
	if syncs && claims {
		g.Ledger = flushedLedger{records, sync, claim}
	}
	g.Answers, g.Evidence, g.Reports = gatedAnswers{s.Answers, p}, gatedEvidence{s.Evidence, p}, gatedReports{s.Reports, p}
	g.Doorbells, g.Runs, g.Storm = gatedBox{s.Doorbells, p}, gatedRuns{s.Runs, p}, gatedStorm{s.Storm, p}
	g.Journal, g.Lock = gatedJournal{s.Journal, p}, gatedLock{s.Lock, p}
	g.Instances = instances{p, s.Instances}
	return g
}

type gatedLedger struct {
	ledger.Store
	p *process
}

func (g gatedLedger) Create(ctx context.Context, r ledger.Record) error {
	return g.p.step(string(ledger.Claim), func() error { return g.Store.Create(ctx, r) })
}

func (g gatedLedger) Get(ctx context.Context, k ledger.Key) (ledger.Record, error) {
	if err := g.p.poll(); err != nil {
		return ledger.Record{}, err
	}
	return g.Store.Get(ctx, k)
}

func (g gatedLedger) Update(ctx context.Context, k ledger.Key, f func(ledger.Record, stamp.Time) (ledger.Record, error)) (ledger.Record, error) {
	if err := g.p.alive(); err != nil {
		return ledger.Record{}, err
	}
	g.p.waits(false)
	name := ""
	rec, err := g.Store.Update(ctx, k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		next, err := f(cur, now)
		if err != nil || next.Revision == cur.Revision {
			return next, err
		}
		name = stepName(cur, next)
		return next, g.p.before(name)
	})
	if err != nil || name == "" {
		return rec, err
	}
	return rec, g.p.after(name)
}

// stepName is the event that a change of a record was.
func stepName(cur, next ledger.Record) string {
	switch {
	case len(next.History) > len(cur.History):
		return string(next.History[len(next.History)-1].Event)
	case !next.Pruned.IsZero() && cur.Pruned.IsZero():
		return string(ledger.Prune)
	case len(next.Told) > len(cur.Told):
		return "told"
	}
	return string(ledger.Annotate)
}

func (g gatedLedger) List(ctx context.Context) iter.Seq2[ledger.Record, error] {
	if err := g.p.alive(); err != nil {
		return func(yield func(ledger.Record, error) bool) { yield(ledger.Record{}, err) }
	}
	return g.Store.List(ctx)
}

// flushedLedger is a ledger whose records may be torn by a power cut.
type flushedLedger struct {
	gatedLedger
	ledger.Syncer
	under ledger.Reclaimer
}

func (g flushedLedger) Reclaim(ctx context.Context, r ledger.Record) error {
	return g.p.step(string(ledger.Claim), func() error { return g.under.Reclaim(ctx, r) })
}

// answers is ledger.Answers by a name that none of its methods has.
type answers = ledger.Answers

type gatedAnswers struct {
	answers
	p *process
}

func (g gatedAnswers) Append(ctx context.Context, a ledger.Answer) error {
	return g.p.step("answer", func() error { return g.answers.Append(ctx, a) })
}

type gatedEvidence struct {
	ledger.Evidence
	p *process
}

func (g gatedEvidence) Put(ctx context.Context, k ledger.Key, files map[string][]byte) (path string, err error) {
	err = g.p.step("evidence", func() error { path, err = g.Evidence.Put(ctx, k, files); return err })
	return path, err
}

type gatedReports struct {
	ledger.Reports
	p *process
}

func (g gatedReports) PutReport(ctx context.Context, episode string, files map[string][]byte) error {
	return g.p.step("report", func() error { return g.Reports.PutReport(ctx, episode, files) })
}

type gatedBox struct {
	doorbell.Box
	p *process
}

func (g gatedBox) Ring(ctx context.Context, n doorbell.Note) error {
	return g.p.step("ring", func() error { return g.Box.Ring(ctx, n) })
}

func (g gatedBox) Pending(ctx context.Context) ([]doorbell.Item, error) {
	if err := g.p.alive(); err != nil {
		return nil, err
	}
	return g.Box.Pending(ctx)
}

func (g gatedBox) Remove(ctx context.Context, id string) error {
	return g.p.step("bell", func() error { return g.Box.Remove(ctx, id) })
}

type gatedRuns struct {
	run.Store
	p *process
}

func (g gatedRuns) Start(ctx context.Context, r run.Run, allow func(*run.Run) error) error {
	return g.p.step("run", func() error { return g.Store.Start(ctx, r, allow) })
}

func (g gatedRuns) Get(ctx context.Context, id string) (run.Run, error) {
	if err := g.p.alive(); err != nil {
		return run.Run{}, err
	}
	return g.Store.Get(ctx, id)
}

func (g gatedRuns) Update(ctx context.Context, id string, f func(run.Run) (run.Run, error)) (r run.Run, err error) {
	err = g.p.step("run", func() error { r, err = g.Store.Update(ctx, id, f); return err })
	return r, err
}

type gatedStorm struct {
	storm.Store
	p *process
}

func (g gatedStorm) UpdateState(ctx context.Context, f func(storm.State, stamp.Time) (storm.State, error)) (storm.State, error) {
	if err := g.p.alive(); err != nil {
		return storm.State{}, err
	}
	name := ""
	st, err := g.Store.UpdateState(ctx, func(cur storm.State, now stamp.Time) (storm.State, error) {
		next, err := f(cur, now)
		if err != nil || next.Revision == cur.Revision {
			return next, err
		}
		name = "state"
		if len(next.Slots) > 0 && (len(cur.Slots) == 0 || next.Slots[len(next.Slots)-1].Launch != cur.Slots[len(cur.Slots)-1].Launch) {
			name = "slot"
		}
		return next, g.p.before(name)
	})
	if err != nil || name == "" {
		return st, err
	}
	return st, g.p.after(name)
}

type gatedJournal struct {
	journal.Store
	p *process
}

func (g gatedJournal) Append(ctx context.Context, r journal.Row) error {
	return g.p.step("row", func() error { return g.Store.Append(ctx, r) })
}

// gatedLock gives nothing more to a dead process. What it held is released when its pass comes back.
type gatedLock struct {
	journal.Lock
	p *process
}

func (g gatedLock) Shared(ctx context.Context, holder string) (func() error, error) {
	if err := g.p.alive(); err != nil {
		return nil, err
	}
	return g.Lock.Shared(ctx, holder)
}
