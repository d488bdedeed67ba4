package files

import (
	"context"
	"iter"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

const (
	// answerSchema and updateSchema are the versions of the entries that are written.
	answerSchema = 1
	updateSchema = 1
)

// answers is answers.jsonl.
type answers struct{ log lines[ledger.Answer] }

func newAnswers(h *Home) *answers {
	return &answers{lines[ledger.Answer]{
		h: h, name: "answers.jsonl", id: func(a ledger.Answer) string { return a.Run },
		read: func(b []byte) (a ledger.Answer, bad *ledger.DamageError) {
			bad = decode(b, &a, func() int { return a.Schema }, answerSchema)
			return a, bad
		},
		wanted: func(a ledger.Answer) bool { return a.Loud && !a.Told },
	}}
}

// Append implements ledger.Answers.
func (s *answers) Append(ctx context.Context, a ledger.Answer) error {
	if a.Schema == 0 {
		a.Schema = answerSchema
	}
	return s.log.append(ctx, a)
}

// Answer implements ledger.Answers. Lines that cannot be read are reported by Answers alone: to answer a death again
// does no harm.
func (s *answers) Answer(_ context.Context, run string) (ledger.Answer, bool, error) {
	return s.log.entry(run)
}

// Answers implements ledger.Answers; what cannot be read comes last.
func (s *answers) Answers(ctx context.Context) iter.Seq2[ledger.Answer, error] {
	return each(ctx, s.log.entries)
}

// Untold implements ledger.Untold.
func (s *answers) Untold(ctx context.Context) iter.Seq2[ledger.Answer, error] {
	return each(ctx, s.log.atHand)
}

// updates is updates.jsonl.
type updates struct{ log lines[journal.Row] }

func newUpdates(h *Home) *updates {
	return &updates{lines[journal.Row]{
		h: h, name: "updates.jsonl", id: func(r journal.Row) string { return r.ID },
		read: func(b []byte) (r journal.Row, bad *ledger.DamageError) {
			bad = decode(b, &r, func() int { return r.Schema }, updateSchema)
			return r, bad
		},
	}}
}

// Append implements journal.Store.
func (s *updates) Append(ctx context.Context, r journal.Row) error {
	if r.Schema == 0 {
		r.Schema = updateSchema
	}
	return s.log.append(ctx, r)
}

// Rows implements journal.Store; what cannot be read comes last.
func (s *updates) Rows(ctx context.Context) iter.Seq2[journal.Row, error] {
	return each(ctx, s.log.entries)
}

func each[T any](ctx context.Context, entries func() ([]T, []error, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		all, bad, err := entries()
		if err != nil {
			yield(zero, err)
			return
		}
		for _, v := range all {
			if ctx.Err() != nil {
				yield(zero, context.Cause(ctx))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
		for _, err := range bad {
			if !yield(zero, err) {
				return
			}
		}
	}
}
