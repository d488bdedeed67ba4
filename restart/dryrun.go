package restart

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// DryRun is a healer that takes the very same path and changes nothing: what it would write is kept in memory and
// forgotten with it, nothing is launched, nobody is told, and its probes write no bytecode. One Pass of it shows what a
// Pass of h would do now.
func (h *Healer) DryRun() *Healer {
	cfg := h.cfg
	cfg.Notifiers = []notify.Notifier{}
	s := cfg.Stores
	cfg.Stores.Ledger = &dryLedger{base: s.Ledger, now: h.cfg.Now, over: map[ledger.Key]ledger.Record{}}
	cfg.Stores.Storm = &dryStorm{base: s.Storm, now: h.cfg.Now}
	cfg.Stores.Answers = dryAnswers{s.Answers}
	cfg.Stores.Doorbells = dryBells{s.Doorbells}
	cfg.Stores.Journal = dryJournal{s.Journal}
	cfg.Stores.Evidence, cfg.Stores.Reports, cfg.Stores.Runs = dryEvidence{}, dryReports{}, dryRuns{s.Runs}
	return &Healer{cfg: cfg, set: h.set, log: h.log, self: h.self, dry: true, seen: map[ledger.Key]ledger.Record{},
		shown: map[string]bool{}, changes: map[string]change{}, lingering: map[string]stamp.Time{}}
}

// errDry is what a write gets that a dry run has no place for. It never reaches a caller: the path ends before.
var errDry = errors.New("a dry run writes nothing")

// dryLedger shows the base with what this dry run would have written on top.
type dryLedger struct {
	base ledger.Store
	now  func() stamp.Time
	mu   sync.Mutex // lineages are claimed and launched side by side
	over map[ledger.Key]ledger.Record
}

func (d *dryLedger) Create(ctx context.Context, r ledger.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.get(ctx, r.Key); !errors.Is(err, ledger.ErrNotFound) {
		if err == nil {
			return ledger.ErrExists
		}
		return err
	}
	d.over[r.Key] = r
	return nil
}

func (d *dryLedger) Get(ctx context.Context, k ledger.Key) (ledger.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.get(ctx, k)
}

func (d *dryLedger) get(ctx context.Context, k ledger.Key) (ledger.Record, error) {
	if r, ok := d.over[k]; ok {
		return r, nil
	}
	return d.base.Get(ctx, k)
}

func (d *dryLedger) Update(ctx context.Context, k ledger.Key, f func(ledger.Record, stamp.Time) (ledger.Record, error)) (ledger.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cur, err := d.get(ctx, k)
	if err != nil {
		return cur, err
	}
	next, err := f(cur, d.now())
	if err != nil {
		return cur, err
	}
	d.over[k] = next
	return next, nil
}

func (d *dryLedger) List(ctx context.Context) iter.Seq2[ledger.Record, error] {
	return d.base.List(ctx)
}

type dryStorm struct {
	base storm.Store
	now  func() stamp.Time
	over *storm.State
}

func (d *dryStorm) State(ctx context.Context) (storm.State, error) {
	if d.over != nil {
		return *d.over, nil
	}
	return d.base.State(ctx)
}

func (d *dryStorm) UpdateState(ctx context.Context, f func(storm.State, stamp.Time) (storm.State, error)) (storm.State, error) {
	cur, err := d.State(ctx)
	if err != nil {
		return cur, err
	}
	next, err := f(cur, d.now())
	if err != nil {
		return cur, err
	}
	d.over = &next
	return next, nil
}

type dryAnswers struct{ base ledger.Answers }

func (dryAnswers) Append(context.Context, ledger.Answer) error { return nil }
func (d dryAnswers) Answer(ctx context.Context, run string) (ledger.Answer, bool, error) {
	return d.base.Answer(ctx, run)
}
func (d dryAnswers) Answers(ctx context.Context) iter.Seq2[ledger.Answer, error] {
	return d.base.Answers(ctx)
}

type dryBells struct{ doorbell.Box }

func (dryBells) Ring(context.Context, doorbell.Note) error { return errDry }
func (dryBells) Remove(context.Context, string) error      { return nil }

type dryJournal struct{ journal.Store }

func (dryJournal) Append(context.Context, journal.Row) error { return nil }

type dryEvidence struct{}

func (dryEvidence) Put(context.Context, ledger.Key, map[string][]byte) (string, error) {
	return "not written (dry run)", nil
}
func (dryEvidence) Get(context.Context, ledger.Key) (map[string][]byte, error) {
	return nil, ledger.ErrNotFound
}

type dryReports struct{}

func (dryReports) PutReport(context.Context, string, map[string][]byte) error { return nil }
func (dryReports) GetReport(context.Context, string) (map[string][]byte, error) {
	return nil, ledger.ErrNotFound
}

type dryRuns struct{ run.Store }

func (dryRuns) Start(context.Context, run.Run, func(*run.Run) error) error { return errDry }
func (d dryRuns) Update(ctx context.Context, id string, f func(run.Run) (run.Run, error)) (run.Run, error) {
	cur, err := d.Get(ctx, id)
	if err != nil {
		return cur, err
	}
	return f(cur)
}
