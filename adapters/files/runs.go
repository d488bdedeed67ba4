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
	"github.com/mulligan-dev/mulligan/ledger/run"
)

// runs is the registry: runs/<id>.json for each run, and runs/names/<project>__<name>.json that says which run took the
// name last.
type runs struct {
	h          *Home
	dir, names durable.Dir
	create     *durable.Creator
}

// pointer is who took a name. It is written before the run's own file, which decides: while that file is not there the
// run never started, and Before still has the name.
type pointer struct {
	Schema  int    `json:"schema"`
	Project string `json:"project"`
	Name    string `json:"name"`
	Run     string `json:"run"`
	Before  string `json:"before,omitempty"`
}

// Start implements run.Store.
func (s *runs) Start(ctx context.Context, r run.Run, allow func(*run.Run) error) error {
	if r.ID == "" || r.Name == "" {
		return fmt.Errorf("start run %q: it needs an id and a name, and has the name %q", r.ID, r.Name)
	}
	if r.Schema == 0 {
		r.Schema = run.Schema
	}
	r.Revision = 1
	envelope, _, err := sealed(r)
	if err != nil {
		return fmt.Errorf("start run %s: %w", r.ID, err)
	}
	file := durable.Escape(r.ID) + recordSuffix
	at := durable.Escape(r.Project, r.Name) + recordSuffix
	sh := shard("names", at)
	err = s.h.locks.with(ctx, sh, func() error {
		if _, err := s.dir.Stat(file); err == nil {
			return run.ErrExists
		}
		holder, err := s.holder(r.Project, r.Name)
		if err != nil && !errors.Is(err, run.ErrNotFound) {
			return err
		}
		p := pointer{Schema: run.Schema, Project: r.Project, Name: r.Name, Run: r.ID}
		if err == nil {
			p.Before = holder.ID
			err = allow(&holder)
		} else {
			err = allow(nil)
		}
		if err != nil {
			return err
		}
		to, _, err := sealed(p)
		if err != nil {
			return err
		}
		if err := durable.Rewrite(s.names, ".swap-"+sh, at, to, nil); err != nil {
			return err
		}
		// Whole: the name leads to this file, and one that a power cut had torn would block the name for ever.
		err = s.create.CreateWhole(file, durable.Pad(envelope))
		if errors.Is(err, fs.ErrExist) {
			return run.ErrExists
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("start run %s as %q: %w", r.ID, r.Name, err)
	}
	return nil
}

// Get implements run.Store.
func (s *runs) Get(_ context.Context, id string) (run.Run, error) {
	name := durable.Escape(id) + recordSuffix
	r, err := s.read(name)
	if err == nil && r.ID != id {
		return run.Run{}, damaged(&ledger.DamageError{Why: "it is run " + r.ID}, s.dir, name, ledger.Key{})
	}
	return r, err
}

func (s *runs) read(name string) (r run.Run, err error) {
	b, _, err := durable.ReadPublished(s.dir, name, recordLimit, sound)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("run file %s: %w", name, run.ErrNotFound)
	case unusable(err):
		return r, damaged(&ledger.DamageError{Why: err.Error()}, s.dir, name, ledger.Key{})
	case err != nil:
		return r, fmt.Errorf("read run file %s: %w", name, err)
	}
	if bad := open(b, &r, func() int { return r.Schema }, run.Schema); bad != nil {
		return run.Run{}, damaged(bad, s.dir, name, ledger.Key{})
	}
	return r, nil
}

// Holder implements run.Store.
func (s *runs) Holder(_ context.Context, project, name string) (run.Run, error) {
	return s.holder(project, name)
}

func (s *runs) holder(project, name string) (run.Run, error) {
	at := durable.Escape(project, name) + recordSuffix
	p, err := s.pointer(at)
	if err != nil {
		return run.Run{}, fmt.Errorf("name %q of project %q: %w", name, project, err)
	}
	if p.Project != project || p.Name != name {
		return run.Run{}, damaged(&ledger.DamageError{Why: "it is of the name " + p.Name}, s.names, at, ledger.Key{})
	}
	for _, id := range []string{p.Run, p.Before} {
		if id == "" {
			continue
		}
		r, err := s.Get(context.Background(), id)
		if err == nil && r.Project == project && r.Name == name {
			return r, nil
		}
		if err != nil && !errors.Is(err, run.ErrNotFound) {
			return run.Run{}, err
		}
	}
	return run.Run{}, fmt.Errorf("name %q of project %q: %w", name, project, run.ErrNotFound)
}

// pointer is who took a name, by its file.
func (s *runs) pointer(at string) (p pointer, err error) {
	b, _, err := durable.ReadPublished(s.names, at, recordLimit, sound)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, run.ErrNotFound
	case err != nil:
		return p, err
	}
	if bad := open(b, &p, func() int { return p.Schema }, run.Schema); bad != nil {
		return p, damaged(bad, s.names, at, ledger.Key{})
	}
	return p, nil
}

// Update implements run.Store. The revision is counted here, whatever f makes of it.
func (s *runs) Update(ctx context.Context, id string, f func(run.Run) (run.Run, error)) (out run.Run, err error) {
	name := durable.Escape(id) + recordSuffix
	sh := shard("runs", name)
	err = s.h.locks.with(ctx, sh, func() error {
		cur, err := s.Get(ctx, id)
		if err != nil {
			return err
		}
		next, err := f(cur)
		if err != nil {
			return err
		}
		if next.ID != id || next.Project != cur.Project || next.Name != cur.Name {
			return errors.New("the change gives the run another id, project or name")
		}
		next.Revision = cur.Revision + 1
		envelope, _, err := sealed(next)
		if err != nil {
			return err
		}
		out = next
		return durable.Rewrite(s.dir, ".swap-"+sh, name, envelope, nil)
	})
	if err != nil {
		return run.Run{}, fmt.Errorf("update run %s: %w", id, err)
	}
	return out, nil
}

// List implements run.Store.
func (s *runs) List(ctx context.Context) iter.Seq2[run.Run, error] {
	return s.list(ctx, func(string) bool { return false })
}

// Unended implements run.Skipping.
func (s *runs) ListBut(ctx context.Context, knows func(id string) bool) iter.Seq2[run.Run, error] {
	// A file's name says which run it is where the id needed no escape, as those that we make need none.
	return s.list(ctx, func(name string) bool {
		id := strings.TrimSuffix(name, recordSuffix)
		return durable.Escape(id) == id && knows(id)
	})
}

// list yields the runs of all files but those that are skipped by their names.
func (s *runs) list(ctx context.Context, skip func(name string) bool) iter.Seq2[run.Run, error] {
	return func(yield func(run.Run, error) bool) {
		names, err := s.dir.Names(0)
		if err != nil {
			yield(run.Run{}, fmt.Errorf("list runs: %w", err))
			return
		}
		for _, name := range names {
			if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, recordSuffix) || skip(name) {
				continue
			}
			if ctx.Err() != nil {
				yield(run.Run{}, context.Cause(ctx))
				return
			}
			r, err := s.read(name)
			if errors.Is(err, run.ErrNotFound) {
				continue
			}
			if err == nil && durable.Escape(r.ID)+recordSuffix != name {
				r, err = run.Run{}, damaged(&ledger.DamageError{Why: "it is run " + r.ID}, s.dir, name, ledger.Key{})
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
