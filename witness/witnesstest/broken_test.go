package witnesstest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

// mutant is the tree with some of its answers replaced.
type mutant struct {
	*tree
	identify   func(witness.Identity, error) (witness.Identity, error)
	lastChange func(stamp.Time, error) (stamp.Time, error)
	observe    func(witness.Observation) witness.Observation
	inForce    func(witness.Identity, stamp.Time) (witness.Identity, stamp.Time)
	at         func(rev string, in stamp.Window, ok bool, t stamp.Time) (string, stamp.Window, bool)
	changed    func([]witness.Change, error) ([]witness.Change, error)
	read       func([]byte, bool, error) ([]byte, bool, error)
	readAll    func([]witness.Content, error) ([]witness.Content, error)
	commits    func([]witness.Commit, error) ([]witness.Commit, error)
	limitless  bool
}

func (m *mutant) Identify(ctx context.Context, r witness.Root) (witness.Identity, error) {
	id, err := m.tree.Identify(ctx, r)
	if m.identify != nil {
		return m.identify(id, err)
	}
	return id, err
}

func (m *mutant) LastChange(ctx context.Context, r witness.Root) (stamp.Time, error) {
	at, err := m.tree.LastChange(ctx, r)
	if m.lastChange != nil {
		return m.lastChange(at, err)
	}
	return at, err
}

func (m *mutant) Observe(ctx context.Context, r witness.Root) (witness.Observation, error) {
	id, err := m.Identify(ctx, r)
	if err != nil {
		return witness.Observation{}, err
	}
	at, noSignal := m.LastChange(ctx, r)
	o := witness.Observation{Identity: id, Changed: at, NoSignal: noSignal}
	if m.observe != nil {
		return m.observe(o), nil
	}
	return o, nil
}

func (m *mutant) InForce(ctx context.Context, r witness.Root) (witness.Identity, stamp.Time, error) {
	id, err := m.Identify(ctx, r)
	at, _ := m.tree.LastChange(ctx, r)
	if m.inForce != nil {
		id, at = m.inForce(id, at)
	}
	return id, at, err
}

func (m *mutant) At(ctx context.Context, r witness.Root, t stamp.Time) (string, stamp.Window, bool, error) {
	rev, in, ok, err := m.tree.At(ctx, r, t)
	if m.at != nil {
		rev, in, ok = m.at(rev, in, ok, t)
	}
	return rev, in, ok, err
}

func (m *mutant) Changed(ctx context.Context, r witness.Root, from, to string) ([]witness.Change, error) {
	c, err := m.tree.Changed(ctx, r, from, to)
	if m.changed != nil {
		return m.changed(c, err)
	}
	return c, err
}

func (m *mutant) Read(ctx context.Context, r witness.Root, rev, path string) ([]byte, bool, error) {
	data, ok, err := m.tree.Read(ctx, r, rev, path)
	if m.read != nil {
		return m.read(data, ok, err)
	}
	return data, ok, err
}

func (m *mutant) ReadAll(ctx context.Context, r witness.Root, blobs []witness.Blob) ([]witness.Content, error) {
	out := make([]witness.Content, len(blobs))
	for i, b := range blobs {
		data, ok, err := m.Read(ctx, r, b.Revision, b.Path)
		if err != nil {
			return nil, err
		}
		out[i] = witness.Content{Data: data, Exists: ok}
	}
	if m.readAll != nil {
		return m.readAll(out, nil)
	}
	return out, nil
}

func (m *mutant) Commits(ctx context.Context, r witness.Root, from, to string, paths []string, limit int) ([]witness.Commit, error) {
	if m.limitless {
		limit = 1000
	}
	c, err := m.tree.Commits(ctx, r, from, to, paths, limit)
	if m.commits != nil {
		return m.commits(c, err)
	}
	return c, err
}

// Every way to break a promise is caught by the check that is named for it.
func TestBrokenSourcesAreCaught(t *testing.T) {
	t.Parallel()
	reads := 0
	tests := []struct {
		check string
		how   string
		spoil func(m *mutant, w *witnesstest.World)
	}{
		{"identity/names_itself", "another root's name", func(m *mutant, _ *witnesstest.World) {
			m.identify = func(id witness.Identity, err error) (witness.Identity, error) { id.Root = "other"; return id, err }
		}},
		{"identity/names_itself", "no time", func(m *mutant, _ *witnesstest.World) {
			m.identify = func(id witness.Identity, err error) (witness.Identity, error) {
				id.At = stamp.Time{}
				return id, err
			}
		}},
		{"identity/same_tree_same_key", "a random revision", func(m *mutant, _ *witnesstest.World) {
			m.identify = func(id witness.Identity, err error) (witness.Identity, error) {
				reads++
				id.Revision += fmt.Sprint(reads)
				return id, err
			}
		}},
		{"identity/change_changes_the_key", "the commit alone", func(m *mutant, _ *witnesstest.World) {
			m.identify = func(id witness.Identity, err error) (witness.Identity, error) { id.Dirty = nil; return id, err }
		}},
		{"identity/log_file_changes_nothing", "every file counts", func(m *mutant, w *witnesstest.World) { w.Noise = w.Change }},
		{"identity/survives_storing", "names that are not UTF-8", func(m *mutant, _ *witnesstest.World) {
			m.identify = func(id witness.Identity, err error) (witness.Identity, error) {
				for i := range id.Dirty {
					id.Dirty[i].Path = "a\xff.py"
				}
				return id, err
			}
		}},
		{"identity/broken_tree_is_unknown", "an error", func(m *mutant, _ *witnesstest.World) {
			m.identify = func(id witness.Identity, err error) (witness.Identity, error) {
				if id.Unknown != "" {
					return witness.Identity{}, errBroken
				}
				return id, err
			}
		}},
		{"identity/broken_tree_is_unknown", "an unknown identity that holds something", func(m *mutant, _ *witnesstest.World) {
			m.identify = func(id witness.Identity, err error) (witness.Identity, error) {
				if id.Unknown != "" {
					id.Revision = "rev"
				}
				return id, err
			}
		}},
		{"identity/ended_context_is_an_error", "an unknown identity", func(m *mutant, _ *witnesstest.World) {
			m.identify = func(id witness.Identity, err error) (witness.Identity, error) {
				if err != nil {
					return witness.Identity{Root: "acme", Kind: "memory", Unknown: err.Error()}, nil
				}
				return id, nil
			}
		}},
		{"identity/reading_writes_nothing", "a cache in the tree", func(m *mutant, _ *witnesstest.World) {
			m.identify = func(id witness.Identity, err error) (witness.Identity, error) {
				if err := os.WriteFile(filepath.Join(m.dir, "cache"), nil, 0o600); err != nil {
					return id, err
				}
				return id, err
			}
		}},
		{"identity/reading_writes_nothing", "a touched file", func(m *mutant, _ *witnesstest.World) {
			m.identify = func(id witness.Identity, err error) (witness.Identity, error) {
				now := time.Now().Add(time.Second)
				return id, errors.Join(err, os.Chtimes(filepath.Join(m.dir, "code.py"), now, now))
			}
		}},
		{"last_change/rises_with_a_change", "the time of the first commit", func(m *mutant, _ *witnesstest.World) {
			first := stamp.Wall(m.tree.changed, 0)
			m.lastChange = func(at stamp.Time, err error) (stamp.Time, error) { return first, err }
		}},
		{"last_change/rests_without_one", "the time of the look", func(m *mutant, _ *witnesstest.World) {
			m.lastChange = func(at stamp.Time, err error) (stamp.Time, error) { return stamp.Wall(time.Now(), 0), err }
		}},
		{"last_change/is_not_in_the_future", "a file time of the future", func(m *mutant, _ *witnesstest.World) {
			m.lastChange = func(at stamp.Time, err error) (stamp.Time, error) { return at.Add(time.Hour), err }
		}},
		{"last_change/broken_tree_has_none", "the zero moment", func(m *mutant, _ *witnesstest.World) {
			m.lastChange = func(at stamp.Time, err error) (stamp.Time, error) { return at, nil }
		}},
		{"observer/agrees_with_both", "an old change", func(m *mutant, _ *witnesstest.World) {
			m.observe = func(o witness.Observation) witness.Observation { o.Changed = o.Changed.Add(-time.Hour); return o }
		}},
		{"observer/agrees_with_both", "no reason", func(m *mutant, _ *witnesstest.World) {
			m.observe = func(o witness.Observation) witness.Observation { o.NoSignal = nil; return o }
		}},
		{"dated/agrees_with_identity", "another identity", func(m *mutant, _ *witnesstest.World) {
			m.inForce = func(id witness.Identity, at stamp.Time) (witness.Identity, stamp.Time) {
				id.Dirty = nil
				return id, at
			}
		}},
		{"dated/moves_with_an_update", "the first installation", func(m *mutant, _ *witnesstest.World) {
			first := stamp.Wall(m.tree.changed, 0)
			m.inForce = func(id witness.Identity, at stamp.Time) (witness.Identity, stamp.Time) { return id, first }
		}},
		{"history/tells_what_was_in_force", "always the newest", func(m *mutant, _ *witnesstest.World) {
			m.at = func(rev string, in stamp.Window, ok bool, t stamp.Time) (string, stamp.Window, bool) {
				return "rev-3", in, ok
			}
		}},
		{"history/tells_what_was_in_force", "no end", func(m *mutant, _ *witnesstest.World) {
			m.at = func(rev string, in stamp.Window, ok bool, t stamp.Time) (string, stamp.Window, bool) {
				return rev, stamp.Window{From: in.From}, ok
			}
		}},
		{"history/coarse_moment_names_the_one_before", "the newer one", func(m *mutant, _ *witnesstest.World) {
			m.at = func(rev string, in stamp.Window, ok bool, t stamp.Time) (string, stamp.Window, bool) {
				if !in.To.IsZero() && in.To.Sub(t) <= 0 {
					i, _ := m.index(rev)
					return m.steps[i+1].Revision, stamp.Window{From: in.To}, true
				}
				return rev, in, ok
			}
		}},
		{"history/does_not_reach_before_its_beginning", "the oldest for ever", func(m *mutant, _ *witnesstest.World) {
			m.at = func(rev string, in stamp.Window, ok bool, t stamp.Time) (string, stamp.Window, bool) {
				if !ok {
					return "rev-0", stamp.Window{}, true
				}
				return rev, in, ok
			}
		}},
		{"history/reads_old_files", "an empty file for a missing one", func(m *mutant, _ *witnesstest.World) {
			m.read = func(data []byte, ok bool, err error) ([]byte, bool, error) { return data, true, err }
		}},
		{"history/unknown_revision_is_an_error", "no such file", func(m *mutant, _ *witnesstest.World) {
			m.read = func(data []byte, ok bool, err error) ([]byte, bool, error) { return data, ok, nil }
		}},
		{"history/unknown_revision_is_an_error", "no commits", func(m *mutant, _ *witnesstest.World) {
			m.commits = func(c []witness.Commit, err error) ([]witness.Commit, error) { return c, nil }
		}},
		{"history/names_what_changed_both_ways", "no deletions", func(m *mutant, _ *witnesstest.World) {
			m.changed = func(c []witness.Change, err error) ([]witness.Change, error) {
				return slices.DeleteFunc(c, func(c witness.Change) bool { return c.Deleted }), err
			}
		}},
		{"history/names_what_changed_both_ways", "deletions as edits", func(m *mutant, _ *witnesstest.World) {
			m.changed = func(c []witness.Change, err error) ([]witness.Change, error) {
				for i := range c {
					c[i].Deleted = false
				}
				return c, err
			}
		}},
		{"history/lists_commits_newest_first", "oldest first", func(m *mutant, _ *witnesstest.World) {
			m.commits = func(c []witness.Commit, err error) ([]witness.Commit, error) { slices.Reverse(c); return c, err }
		}},
		{"history/lists_commits_newest_first", "no parents", func(m *mutant, _ *witnesstest.World) {
			m.commits = func(c []witness.Commit, err error) ([]witness.Commit, error) {
				for i := range c {
					c[i].Parents = nil
				}
				return c, err
			}
		}},
		{"history/limits_commits", "no limit", func(m *mutant, _ *witnesstest.World) { m.limitless = true }},
		{"batch_reader/agrees_with_read", "answers out of place", func(m *mutant, _ *witnesstest.World) {
			m.readAll = func(c []witness.Content, err error) ([]witness.Content, error) { slices.Reverse(c); return c, err }
		}},
	}
	checks := map[string]witnesstest.Check{}
	missed := map[string]bool{}
	for _, c := range witnesstest.Checks() {
		checks[c.Name] = c
		missed[c.Name] = true
	}
	for _, tt := range tests {
		m := &mutant{tree: newTree(t)}
		w := m.world(m)
		tt.spoil(m, &w)
		delete(missed, tt.check)
		if err := checks[tt.check].Run(t.Context(), w); err == nil || errors.Is(err, witnesstest.ErrSkip) {
			t.Errorf("%s did not catch a source with %s: %v", tt.check, tt.how, err)
		}
	}
	// A reader that is not safe beside others is caught by the race detector, not by the answer.
	delete(missed, "identity/concurrent_reads_agree")
	for name := range missed {
		t.Errorf("no broken source shows that %s catches anything", name)
	}
}

func TestWorldThatCannotShowAPromiseIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range witnesstest.Checks() {
		if c.Name != "history/reads_old_files" {
			continue
		}
		m := newTree(t)
		w := m.world(m)
		for name, spoil := range map[string]func(){
			"too few steps": func() { w.Past = m.steps[:2] },
			"no deletion":   func() { w.Past = []witnesstest.Step{m.steps[0], m.steps[1], m.steps[3]} },
		} {
			spoil()
			if err := c.Run(t.Context(), w); err == nil {
				t.Errorf("a past with %s was accepted", name)
			}
		}
	}
}
