package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

const (
	recordSuffix = ".json"
	// recordLimit bounds what is read as one record or run.
	recordLimit = 4 << 20
)

// records is the ledger: a file for each lineage, named by its key.
type records struct {
	h      *Home
	dir    durable.Dir
	create *durable.Creator
	index  *index
	// working is which records are not at rest.
	working *working
}

func newRecords(h *Home, id string) *records {
	dir := h.subs["ledger"]
	s := &records{h: h, dir: dir, create: durable.NewCreator(dir, id)}
	s.index, s.working = newIndex(s), &working{s: s}
	return s
}

// fileName is the name of a lineage's record, and of its evidence without the suffix.
func fileName(k ledger.Key) string { return durable.Escape(k.Project, k.Lineage) }

// Create implements ledger.Store. A lineage that has a record is refused at the price of one look.
func (s *records) Create(ctx context.Context, r ledger.Record) error {
	name := fileName(r.Key) + recordSuffix
	if _, err := s.dir.Stat(name); err == nil {
		return fmt.Errorf("claim %s: %w", r.Key, ledger.ErrExists)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("claim %s: %w", r.Key, context.Cause(ctx))
	}
	if err := first(r); err != nil {
		return err
	}
	envelope, body, err := sealed(r)
	if err != nil {
		return fmt.Errorf("claim %s: %w", r.Key, err)
	}
	note := s.index.note(name, body)
	err = s.create.Create(name, durable.Pad(envelope), note.before)
	note.after()
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("claim %s: %w", r.Key, ledger.ErrExists)
	case err != nil:
		return fmt.Errorf("claim %s: %w", r.Key, err)
	}
	return nil
}

// first refuses what cannot be a lineage's first record.
func first(r ledger.Record) error {
	if r.Revision != 1 || r.Schema != ledger.Schema {
		return fmt.Errorf("claim %s: revision %d and schema %d, want a record made by ledger.New", r.Key, r.Revision, r.Schema)
	}
	return nil
}

// Get implements ledger.Store.
func (s *records) Get(_ context.Context, k ledger.Key) (ledger.Record, error) {
	return s.get(k)
}

func (s *records) get(k ledger.Key) (ledger.Record, error) {
	r, err := s.read(fileName(k)+recordSuffix, k)
	if err == nil && r.Key != k {
		return ledger.Record{}, damaged(&ledger.DamageError{Why: "it is the record of " + r.Key.String()}, s.dir, fileName(k)+recordSuffix, k)
	}
	return r, err
}

// read reads a record by its file name. k is what the caller expects there, for the errors.
func (s *records) read(name string, k ledger.Key) (r ledger.Record, err error) {
	b, _, err := durable.ReadPublished(s.dir, name, recordLimit, sound)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("record %s: %w", k, ledger.ErrNotFound)
	case unusable(err):
		return r, damaged(&ledger.DamageError{Why: err.Error()}, s.dir, name, k)
	case err != nil:
		return r, fmt.Errorf("read record %s: %w", k, err)
	}
	if bad := open(b, &r, func() int { return r.Schema }, ledger.Schema); bad != nil {
		return ledger.Record{}, damaged(bad, s.dir, name, k)
	}
	return r, nil
}

// unusable reports that what lies under a name can never be read as a file of ours.
func unusable(err error) bool {
	var large *durable.TooLargeError
	return errors.As(err, &large) || errors.Is(err, fs.ErrInvalid) || durable.IsSymlink(err)
}

// Update implements ledger.Store.
func (s *records) Update(ctx context.Context, k ledger.Key, f func(ledger.Record, stamp.Time) (ledger.Record, error)) (ledger.Record, error) {
	name := fileName(k) + recordSuffix
	sh := shard("ledger", name)
	var out ledger.Record
	err := s.h.locks.with(ctx, sh, func() error {
		cur, err := s.get(k)
		if err != nil {
			return err
		}
		next, err := f(cur, s.h.now())
		if err != nil {
			return err
		}
		switch {
		case next.Revision == cur.Revision:
			out = cur
			return nil
		case next.Key != k, next.Revision < cur.Revision, next.Schema != ledger.Schema:
			return fmt.Errorf("the change makes revision %d of %s from revision %d of %s", next.Revision, next.Key, cur.Revision, k)
		}
		out = next
		return s.replace(sh, name, next)
	})
	if err != nil {
		return ledger.Record{}, fmt.Errorf("update %s: %w", k, err)
	}
	return out, nil
}

// replace writes a later revision, under the shard's lock.
func (s *records) replace(sh, name string, r ledger.Record) error {
	envelope, body, err := sealed(r)
	if err != nil {
		return err
	}
	note := s.index.note(name, body)
	err = durable.Rewrite(s.dir, ".swap-"+sh, name, envelope, note.before)
	note.after()
	return err
}

// List implements ledger.Store.
func (s *records) List(ctx context.Context) iter.Seq2[ledger.Record, error] {
	return func(yield func(ledger.Record, error) bool) {
		names, err := s.dir.Names(0)
		if err != nil {
			yield(ledger.Record{}, fmt.Errorf("list records: %w", err))
			return
		}
		for _, name := range names {
			if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, recordSuffix) {
				continue
			}
			if ctx.Err() != nil {
				yield(ledger.Record{}, context.Cause(ctx))
				return
			}
			f := s.readNamed(name)
			if errors.Is(f.err, ledger.ErrNotFound) {
				continue
			}
			if !yield(f.rec, f.err) {
				return
			}
		}
	}
}

// Sync implements ledger.Syncer: a claim is visible a little before its claimer has flushed it.
func (s *records) Sync(_ context.Context, k ledger.Key) error {
	f, err := s.dir.Open(fileName(k) + recordSuffix)
	if err == nil {
		err = errors.Join(f.Sync(), s.dir.Sync(), f.Close())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("sync record %s: %w", k, ledger.ErrNotFound)
	case err != nil:
		return fmt.Errorf("sync record %s: %w", k, err)
	}
	return nil
}

// Reclaim implements ledger.Reclaimer.
func (s *records) Reclaim(ctx context.Context, r ledger.Record) error {
	if err := first(r); err != nil {
		return err
	}
	name := fileName(r.Key) + recordSuffix
	sh := shard("ledger", name)
	err := s.h.locks.with(ctx, sh, func() error {
		_, err := s.get(r.Key)
		var bad *ledger.DamageError
		switch {
		case err == nil:
			return ledger.ErrExists
		case !errors.As(err, &bad) || !bad.Torn:
			return err
		}
		more, err := s.traces(ctx, r.Key)
		if err != nil {
			return err
		}
		if more != "" {
			return damaged(&ledger.DamageError{Why: bad.Why + ", and its lineage has " + more + ": it was more than a claim"}, s.dir, name, r.Key)
		}
		return s.replace(sh, name, r)
	})
	if err != nil {
		return fmt.Errorf("reclaim %s: %w", r.Key, err)
	}
	return nil
}

// traces names what shows that a lineage got further than its claim.
func (s *records) traces(ctx context.Context, k ledger.Key) (string, error) {
	switch _, err := s.h.subs["evidence"].Stat(fileName(k)); {
	case err == nil:
		return "evidence", nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	state, err := s.h.breaker.State(ctx)
	if err != nil {
		return "", err
	}
	for _, slot := range state.Slots {
		if at := (ledger.Key{Project: slot.Project, Lineage: slot.Lineage}); at == k || at == (ledger.Key{}) {
			return "a storm slot", nil
		}
	}
	return "", nil
}
