package restarttest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// Kind is the kind of a world's roots.
const Kind = "tree"

// Change is what an update does to a tree. Names are modules ("acme.wire") or names in one ("acme.wire:Frame").
type Change struct {
	// Removes and Adds change what is there.
	Removes, Adds []string
	// Breaks are modules that do not load any more, Mends those that do again.
	Breaks, Mends []string
	// Skipped is an update that finds nothing to do, Fails one whose command ends badly; what it changed stays changed.
	Skipped, Fails bool
	// Unrecorded is a change past the updater: no lock, no row in the journal.
	Unrecorded bool
}

// revision is one state of a tree that has a name.
type revision struct {
	name, parent string
	at           stamp.Time
	files        map[string][]string // the names that each file binds
	broken       map[string]bool     // modules
}

// tree is a root: its revisions and when each was in force.
type tree struct {
	root  witness.Root
	revs  map[string]*revision
	moves []move
}

type move struct {
	rev string
	at  stamp.Time
}

// Root is the declaration of a root of the world: its code lies in /srv/NAME, and its modules are NAME and what is below.
func Root(name string) witness.Root {
	return witness.Root{Root: classify.Root{Name: name, Dirs: []string{"/srv/" + name}, Modules: []string{name}}, Kind: Kind, Runtime: runtimeName}
}

func newTree(name, rev string, now stamp.Time) *tree {
	t := &tree{root: Root(name), revs: map[string]*revision{}}
	t.revs[rev] = &revision{name: rev, at: now, broken: map[string]bool{}, files: map[string][]string{
		name + "/__init__.py": nil, name + "/agent.py": {"main"}, name + "/wire.py": {"Frame", "Link"}, name + "/notes.py": {"Note"},
	}}
	t.moves = []move{{rev, now}}
	return t
}

func (t *tree) clone() *tree {
	c := *t
	c.revs, c.moves = maps.Clone(t.revs), slices.Clone(t.moves)
	return &c
}

func (t *tree) current() *revision { return t.revs[t.moves[len(t.moves)-1].rev] }

// file is where a module of the tree lies.
func (t *tree) file(module string) string {
	if module == t.root.Name {
		return module + "/__init__.py"
	}
	return strings.ReplaceAll(module, ".", "/") + ".py"
}

// has reports whether a module is in the tree now, and whether it loads.
func (t *tree) has(module string) (there, loads bool) {
	cur := t.current()
	_, there = cur.files[t.file(module)]
	return there, there && !cur.broken[module]
}

// move makes a revision of the present one, or goes to one that was there before.
func (t *tree) move(rev string, c Change, now stamp.Time) {
	if t.revs[rev] == nil {
		cur := t.current()
		next := &revision{name: rev, parent: cur.name, at: now, files: maps.Clone(cur.files), broken: maps.Clone(cur.broken)}
		for _, n := range c.Removes {
			module, symbol, _ := strings.Cut(n, ":")
			if symbol == "" {
				delete(next.files, t.file(module))
				continue
			}
			next.files[t.file(module)] = slices.DeleteFunc(slices.Clone(next.files[t.file(module)]), func(s string) bool { return s == symbol })
		}
		for _, n := range c.Adds {
			module, symbol, _ := strings.Cut(n, ":")
			names := slices.Clone(next.files[t.file(module)])
			if symbol != "" {
				names = append(names, symbol)
			}
			next.files[t.file(module)] = names
		}
		for _, m := range c.Breaks {
			next.broken[m] = true
		}
		for _, m := range c.Mends {
			delete(next.broken, m)
		}
		t.revs[rev] = next
	}
	t.moves = append(t.moves, move{rev, now})
}

func (r *revision) read(path string) (content []byte, ok bool) {
	names, ok := r.files[path]
	if !ok {
		return nil, false
	}
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "class %s:\n    pass\n", n)
	}
	return []byte(b.String()), true
}

// changed are the paths that differ between two revisions.
func changed(a, b *revision) (paths []string) {
	for p := range a.files {
		if _, ok := b.files[p]; !ok || !slices.Equal(a.files[p], b.files[p]) {
			paths = append(paths, p)
		}
	}
	for p := range b.files {
		if _, ok := a.files[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// source reads the world's trees. It implements witness.Source and witness.History.
type source struct{ w *World }

var _ witness.History = source{}

// look finds a tree for one question.
func (s source) look(r witness.Root, f func(*tree) error) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	t := s.w.trees[r.Name]
	if t == nil {
		return fmt.Errorf("there is no tree %q", r.Name)
	}
	return f(t)
}

func (s source) Identify(ctx context.Context, r witness.Root) (id witness.Identity, err error) {
	if err := ctx.Err(); err != nil {
		return id, err
	}
	id.Root, id.Kind, id.At = r.Name, r.Kind, s.w.Now()
	if bad := s.look(r, func(t *tree) error { id.Revision = t.current().name; return nil }); bad != nil {
		id.Unknown = bad.Error()
	}
	return id, nil
}

func (s source) LastChange(_ context.Context, r witness.Root) (at stamp.Time, err error) {
	err = s.look(r, func(t *tree) error { at = t.moves[len(t.moves)-1].at; return nil })
	return at, err
}

func (s source) At(_ context.Context, r witness.Root, at stamp.Time) (rev string, in stamp.Window, ok bool, err error) {
	err = s.look(r, func(t *tree) error {
		for i, m := range t.moves {
			if m.at.After(at) {
				break
			}
			rev, in, ok = m.rev, stamp.Window{From: m.at}, true
			if i+1 < len(t.moves) {
				in.To = t.moves[i+1].at
			}
		}
		return nil
	})
	return rev, in, ok, err
}

// two looks at two revisions.
func (s source) two(r witness.Root, a, b string, f func(t *tree, a, b *revision)) error {
	return s.look(r, func(t *tree) error {
		if t.revs[a] == nil || t.revs[b] == nil {
			return fmt.Errorf("tree %s has no revision %q or %q", r.Name, a, b)
		}
		f(t, t.revs[a], t.revs[b])
		return nil
	})
}

func (s source) Changed(_ context.Context, r witness.Root, from, to string) (out []witness.Change, err error) {
	err = s.two(r, from, to, func(t *tree, a, b *revision) {
		for _, p := range changed(a, b) {
			_, there := b.files[p]
			out = append(out, witness.Change{Path: p, Deleted: !there, At: t.moves[len(t.moves)-1].at})
		}
	})
	return out, err
}

func (s source) Read(_ context.Context, r witness.Root, rev, path string) (content []byte, ok bool, err error) {
	err = s.two(r, rev, rev, func(_ *tree, a, _ *revision) { content, ok = a.read(path) })
	return content, ok, err
}

func (s source) Commits(_ context.Context, r witness.Root, from, to string, paths []string, limit int) (out []witness.Commit, err error) {
	err = s.two(r, from, to, func(t *tree, a, b *revision) {
		old := map[string]bool{}
		for ; a != nil; a = t.revs[a.parent] {
			old[a.name] = true
		}
		for ; b != nil && !old[b.name] && len(out) < limit; b = t.revs[b.parent] {
			parent := t.revs[b.parent]
			if parent == nil || slices.ContainsFunc(changed(parent, b), func(p string) bool { return slices.Contains(paths, p) }) {
				c := witness.Commit{Revision: b.name, When: b.at}
				if parent != nil {
					c.Parents = []string{parent.name}
				}
				out = append(out, c)
			}
		}
	})
	return out, err
}
