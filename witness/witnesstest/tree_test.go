package witnesstest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

// tree is the simplest source with every power: a tree in memory that remembers its steps, and keeps one file on disk
// so that there is something to write to by mistake.
type tree struct {
	mu      sync.Mutex
	dir     string
	steps   []witnesstest.Step
	dirty   int
	changed time.Time
	broken  bool
}

var errBroken = errors.New("the tree is broken")

func newTree(t testing.TB) *tree {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "code.py"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	step := func(i int, files map[string]string) witnesstest.Step {
		return witnesstest.Step{Revision: fmt.Sprintf("rev-%d", i), From: stamp.Wall(start.Add(time.Duration(i)*time.Minute), time.Second), Files: files}
	}
	return &tree{dir: dir, changed: start, steps: []witnesstest.Step{
		step(0, map[string]string{"a.py": "1", "b.py": "1"}),
		step(1, map[string]string{"a.py": "2", "b.py": "1", "c.py": "1"}),
		step(2, map[string]string{"a.py": "2", "c.py": "1"}),
		step(3, map[string]string{"a.py": "3", "b.py": "1", "c.py": "1"}),
	}}
}

// world shows the tree through a source, which may be a broken one around it.
func (m *tree) world(src witness.Source) witnesstest.World {
	return witnesstest.World{
		Source: src,
		Root:   witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{m.dir}}, Kind: "memory"},
		Change: func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.dirty++
			m.changed = time.Now()
		},
		Noise: func() {},
		Break: func() { m.broken = true },
		Past:  m.steps,
	}
}

func (m *tree) Identify(ctx context.Context, r witness.Root) (witness.Identity, error) {
	if err := ctx.Err(); err != nil {
		return witness.Identity{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := witness.Identity{Root: r.Name, Kind: r.Kind, At: stamp.Wall(time.Now(), 0)}
	if m.broken {
		id.Unknown = errBroken.Error()
		return id, nil
	}
	id.Revision = m.steps[len(m.steps)-1].Revision
	if m.dirty > 0 {
		id.Dirty = []witness.File{{Path: "a.py", Digest: fmt.Sprint(m.dirty)}}
	}
	return id, nil
}

func (m *tree) LastChange(context.Context, witness.Root) (stamp.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken {
		return stamp.Time{}, errBroken
	}
	return stamp.Wall(m.changed, 0), nil
}

func (m *tree) Observe(ctx context.Context, r witness.Root) (witness.Observation, error) {
	id, err := m.Identify(ctx, r)
	if err != nil {
		return witness.Observation{}, err
	}
	at, noSignal := m.LastChange(ctx, r)
	return witness.Observation{Identity: id, Changed: at, NoSignal: noSignal}, nil
}

func (m *tree) InForce(ctx context.Context, r witness.Root) (witness.Identity, stamp.Time, error) {
	o, err := m.Observe(ctx, r)
	return o.Identity, o.Changed, err
}

func (m *tree) index(rev string) (int, error) {
	i := slices.IndexFunc(m.steps, func(s witnesstest.Step) bool { return s.Revision == rev })
	if i < 0 {
		return 0, fmt.Errorf("no revision %s", rev)
	}
	return i, nil
}

func (m *tree) At(_ context.Context, _ witness.Root, t stamp.Time) (string, stamp.Window, bool, error) {
	for i := len(m.steps) - 1; i >= 0; i-- {
		if !m.steps[i].From.Before(t) {
			continue
		}
		in := stamp.Window{From: m.steps[i].From}
		if i+1 < len(m.steps) {
			in.To = m.steps[i+1].From
		}
		return m.steps[i].Revision, in, true, nil
	}
	return "", stamp.Window{}, false, nil
}

func (m *tree) Changed(_ context.Context, _ witness.Root, from, to string) ([]witness.Change, error) {
	i, err := m.index(from)
	if err != nil {
		return nil, err
	}
	j, err := m.index(to)
	if err != nil {
		return nil, err
	}
	return m.between(i, j), nil
}

func (m *tree) between(i, j int) []witness.Change {
	var out []witness.Change
	a, b := m.steps[i].Files, m.steps[j].Files
	for p, was := range a {
		if is, ok := b[p]; !ok || is != was {
			out = append(out, witness.Change{Path: p, Deleted: !ok})
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			out = append(out, witness.Change{Path: p})
		}
	}
	return out
}

func (m *tree) Read(_ context.Context, _ witness.Root, rev, path string) ([]byte, bool, error) {
	i, err := m.index(rev)
	if err != nil {
		return nil, false, err
	}
	text, ok := m.steps[i].Files[path]
	return []byte(text), ok, nil
}

func (m *tree) ReadAll(ctx context.Context, r witness.Root, blobs []witness.Blob) ([]witness.Content, error) {
	out := make([]witness.Content, len(blobs))
	for i, b := range blobs {
		data, ok, err := m.Read(ctx, r, b.Revision, b.Path)
		if err != nil {
			return nil, err
		}
		out[i] = witness.Content{Data: data, Exists: ok}
	}
	return out, nil
}

func (m *tree) Commits(_ context.Context, _ witness.Root, from, to string, paths []string, limit int) ([]witness.Commit, error) {
	i, err := m.index(from)
	if err != nil {
		return nil, err
	}
	j, err := m.index(to)
	if err != nil {
		return nil, err
	}
	var out []witness.Commit
	for ; j > i && len(out) < limit; j-- {
		touched := m.between(j-1, j)
		if slices.ContainsFunc(touched, func(c witness.Change) bool { return slices.Contains(paths, c.Path) }) {
			out = append(out, witness.Commit{Revision: m.steps[j].Revision, Parents: []string{m.steps[j-1].Revision}, When: m.steps[j].From})
		}
	}
	return out, nil
}

func TestTree(t *testing.T) {
	t.Parallel()
	witnesstest.Run(t, func(t testing.TB) witnesstest.World {
		m := newTree(t)
		return m.world(m)
	})
}

// plain has no power but those of a Source.
type plain struct{ m *tree }

func (p plain) Identify(ctx context.Context, r witness.Root) (witness.Identity, error) {
	return p.m.Identify(ctx, r)
}

func (p plain) LastChange(ctx context.Context, r witness.Root) (stamp.Time, error) {
	return p.m.LastChange(ctx, r)
}

func TestPowersAreOptional(t *testing.T) {
	t.Parallel()
	m := newTree(t)
	skipped := 0
	for _, c := range witnesstest.Checks() {
		m.broken = false
		switch err := c.Run(t.Context(), m.world(plain{m})); {
		case errors.Is(err, witnesstest.ErrSkip):
			skipped++
		case err != nil:
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	if skipped != 12 {
		t.Errorf("%d checks were skipped for a source without powers, want 12", skipped)
	}
}
