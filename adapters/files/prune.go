package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
)

// discard takes a folder away: it is hidden as a whole first, durably, so that nobody ever finds a part of it. What a
// killed process left hidden goes with the next one.
func discard(d durable.Dir, name, hidden string) (gone bool, err error) {
	if err := durable.RemoveAll(d, hidden); err != nil {
		return false, err
	}
	switch _, err := d.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	if err := d.Rename(name, hidden); err != nil {
		return false, err
	}
	if err := d.Sync(); err != nil {
		return false, err
	}
	return true, durable.RemoveAll(d, hidden)
}

// DiscardEvidence implements ledger.EvidenceDiscarder.
func (s *evidence) DiscardEvidence(ctx context.Context, k ledger.Key) (gone bool, err error) {
	name := fileName(k)
	if _, err := s.dir.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	sh := shard("evidence", name)
	err = s.h.locks.with(ctx, sh, func() (err error) {
		gone, err = discard(s.dir, name, ".old-"+sh)
		return err
	})
	if err != nil {
		return gone, fmt.Errorf("discard evidence of %s: %w", k, err)
	}
	return gone, nil
}

// DiscardReport implements ledger.ReportDiscarder.
func (s *reports) DiscardReport(ctx context.Context, episode string) (gone bool, err error) {
	name := durable.Escape(episode)
	if _, err := s.dir.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	sh := shard("episodes", name)
	err = s.h.locks.with(ctx, sh, func() (err error) {
		gone, err = discard(s.dir, name, ".old-"+sh)
		return err
	})
	if err != nil {
		return gone, fmt.Errorf("discard the report of episode %s: %w", episode, err)
	}
	return gone, nil
}

// PruneAnswers implements ledger.AnswerPruner.
func (s *answers) PruneAnswers(ctx context.Context, old func(ledger.Answer) bool) (int, error) {
	return s.log.prune(ctx, old)
}

// prune writes the log anew without the ids whose last entry is old. Lines that cannot be read are kept as they are.
// Nothing is written when nothing is old.
func (l *lines[T]) prune(ctx context.Context, old func(T) bool) (n int, err error) {
	err = l.h.locks.with(ctx, l.name, func() error {
		n = 0
		gone := map[string]bool{}
		all, _, err := l.entries()
		if err != nil {
			return err
		}
		for _, v := range all {
			if old(v) {
				gone[l.id(v)] = true
			}
		}
		if len(gone) == 0 {
			return nil
		}
		b, err := l.kept(gone)
		if err != nil {
			return err
		}
		if err := durable.Replace(l.h.root, "."+l.name+"-new", l.name, b, nil); err != nil {
			return err
		}
		n = len(gone)
		return nil
	})
	if err != nil {
		return n, fmt.Errorf("prune %s: %w", l.name, err)
	}
	return n, nil
}

// kept is the log without some ids. It is called under the log's lock, so that nobody appends.
func (l *lines[T]) kept(gone map[string]bool) ([]byte, error) {
	f, err := l.h.root.Open(l.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, in.Size)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1] // what is left of a killed writer was never acknowledged
	out := make([]byte, 0, len(b))
	for line := range bytes.Lines(b) {
		v, bad := l.decode(bytes.TrimSuffix(line, []byte{'\n'}), len(line) > lineLimit+1)
		if bad != nil || !gone[l.id(v)] {
			out = append(out, line...)
		}
	}
	return out, nil
}

// Discard implements run.Discarder. The name goes first, then the files beside the run, and the run itself last: whoever
// is killed in between leaves a run that the next call finds.
func (s *runs) Discard(ctx context.Context, id string, may func(run.Run) bool) (gone bool, err error) {
	file := durable.Escape(id) + recordSuffix
	r, err := s.Get(ctx, id)
	if errors.Is(err, run.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("discard run %s: %w", id, err)
	}
	at := durable.Escape(r.Project, r.Name) + recordSuffix
	// The name's lock keeps others from starting under it, the run's from changing it.
	err = s.h.locks.with(ctx, shard("names", at), func() error {
		return s.h.locks.with(ctx, shard("runs", file), func() error {
			if r, err = s.Get(ctx, id); err != nil {
				return err
			}
			if r.Ended == nil || !may(r) {
				return nil
			}
			if ok, err := s.giveUp(ctx, at, r); err != nil || !ok {
				return err
			}
			for _, path := range []string{r.Log, r.PhaseFile} {
				if base := filepath.Base(path); filepath.Dir(path) == s.dir.Path() && strings.HasPrefix(base, r.ID+".") && base != file {
					if err := s.dir.Remove(base); err != nil && !errors.Is(err, fs.ErrNotExist) {
						return err
					}
				}
			}
			gone = true
			return durable.Remove(s.dir, file)
		})
	})
	if err != nil {
		return false, fmt.Errorf("discard run %s: %w", id, err)
	}
	return gone, nil
}

// giveUp frees the name of a run, when it has it. ok is false while the run that had it before is there.
func (s *runs) giveUp(ctx context.Context, at string, r run.Run) (ok bool, err error) {
	p, err := s.pointer(at)
	switch {
	case errors.Is(err, run.ErrNotFound):
		return true, nil
	case err != nil:
		return false, err
	case p.Run != r.ID:
		// Somebody else has the name. Before is only asked where that run never started.
		if p.Before != r.ID {
			return true, nil
		}
		_, err := s.Get(ctx, p.Run)
		if errors.Is(err, run.ErrNotFound) {
			return false, nil // the name is this run's still
		}
		return err == nil, err
	}
	if p.Before != "" {
		if _, err := s.Get(ctx, p.Before); !errors.Is(err, run.ErrNotFound) {
			return false, err
		}
	}
	return true, durable.Remove(s.names, at)
}
