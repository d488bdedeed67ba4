package witness

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// graph is a history of one name: commits in the order in which they were made, each with its parents and whether the
// name exists there.
type graph struct {
	parents map[string][]string
	has     map[string]bool
	order   []string
	asked   int
}

func (g *graph) reach(from string) map[string]bool {
	seen := map[string]bool{}
	var walk func(string)
	walk = func(c string) {
		if seen[c] {
			return
		}
		seen[c] = true
		for _, p := range g.parents[c] {
			walk(p)
		}
	}
	walk(from)
	return seen
}

// touching lists every commit of the range: in the model each may have touched the name's files.
func (g *graph) touching(_ context.Context, from, to string, limit int) ([]Commit, error) {
	there, not := g.reach(to), g.reach(from)
	var out []Commit
	for i := len(g.order) - 1; i >= 0 && len(out) < limit; i-- {
		if c := g.order[i]; there[c] && !not[c] {
			out = append(out, Commit{Revision: c, Parents: g.parents[c]})
		}
	}
	return out, nil
}

func (g *graph) presences(_ context.Context, revisions []string) ([]presence, error) {
	g.asked++
	out := make([]presence, len(revisions))
	for i, r := range revisions {
		out[i] = g.presence(r)
	}
	return out, nil
}

func (g *graph) presence(rev string) presence {
	if g.has[rev] {
		return there
	}
	return gone
}

// linear is a history without branches; its commits are named by their place.
func linear(has ...bool) *graph {
	g := &graph{parents: map[string][]string{}, has: map[string]bool{}}
	for i, h := range has {
		c := fmt.Sprint(i)
		g.order, g.has[c] = append(g.order, c), h
		if i > 0 {
			g.parents[c] = []string{fmt.Sprint(i - 1)}
		}
	}
	return g
}

// slowStep walks the way one commit at a time and remembers the last step that changed the presence.
func slowStep(g *graph, from, to int) (string, bool) {
	found := ""
	undone := false
	for i := from; i < to; i++ {
		if g.has[fmt.Sprint(i)] != g.has[fmt.Sprint(i+1)] {
			found, undone = fmt.Sprint(i+1), false
		}
	}
	for i := from; i > to; i-- {
		if g.has[fmt.Sprint(i)] != g.has[fmt.Sprint(i-1)] {
			found, undone = fmt.Sprint(i), true // going back from i takes commit i away
		}
	}
	return found, undone
}

func TestLastStepAgreesWithASlowWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		has := rapid.SliceOfN(rapid.Bool(), 2, 60).Draw(t, "has")
		g := linear(has...)
		from := rapid.IntRange(0, len(has)-1).Draw(t, "from")
		to := rapid.IntRange(0, len(has)-1).Draw(t, "to")
		want, undone := slowStep(g, from, to)
		if has[from] == has[to] {
			return // nobody asks then
		}
		got, ok, err := lastStep(t.Context(), g, fmt.Sprint(from), fmt.Sprint(to), g.presence(fmt.Sprint(to)))
		if err != nil || !ok || got.commit.Revision != want || got.undone != undone {
			t.Fatalf("from %d to %d of %v: step %+v, %v, %v; want %s, undone %v", from, to, has, got, ok, err, want, undone)
		}
	})
}

// On any history, branches and merges included, the named commit is on the way and did what is said of it.
func TestLastStepDidIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := &graph{parents: map[string][]string{}, has: map[string]bool{}}
		n := rapid.IntRange(2, 25).Draw(t, "commits")
		for i := range n {
			c := fmt.Sprint(i)
			g.order = append(g.order, c)
			g.has[c] = rapid.Bool().Draw(t, "has")
			for range rapid.IntRange(0, min(i, 2)).Draw(t, "parents") {
				p := fmt.Sprint(rapid.IntRange(0, i-1).Draw(t, "parent"))
				if !slices.Contains(g.parents[c], p) {
					g.parents[c] = append(g.parents[c], p)
				}
			}
		}
		from := rapid.SampledFrom(g.order).Draw(t, "from")
		to := rapid.SampledFrom(g.order).Draw(t, "to")
		if g.has[from] == g.has[to] {
			return
		}
		got, ok, err := lastStep(t.Context(), g, from, to, g.presence(to))
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return
		}
		c := got.commit.Revision
		side, other, reached := to, from, g.has[to]
		if got.undone {
			side, other, reached = from, to, g.has[from]
		}
		if !g.reach(side)[c] || g.reach(other)[c] {
			t.Fatalf("commit %s is not on the way from %s to %s (%+v)", c, from, to, g)
		}
		if g.has[c] != reached {
			t.Fatalf("commit %s did not bring the presence %v (%+v)", c, reached, g)
		}
		if len(g.parents[c]) == 0 && !reached {
			t.Fatalf("commit %s is the first and is said to have taken the name away (%+v)", c, g)
		}
		for _, p := range g.parents[c] {
			if g.has[p] == reached {
				t.Fatalf("parent %s of commit %s had the presence already (%+v)", p, c, g)
			}
		}
	})
}

func TestSearchAsksInGrowingBatches(t *testing.T) {
	t.Parallel()
	has := make([]bool, 1000)
	has[0] = true
	g := linear(has...)
	got, ok, err := lastStep(t.Context(), g, "0", "999", gone)
	if err != nil || !ok || got.commit.Revision != "1" {
		t.Fatalf("step is %+v, %v, %v; want commit 1", got, ok, err)
	}
	if g.asked > 6 {
		t.Errorf("the search asked %d times for 1000 commits", g.asked)
	}
}

func TestNoStep(t *testing.T) {
	t.Parallel()
	g := linear(true, false)
	for name, tt := range map[string]struct {
		from, to string
		final    presence
	}{
		"the same revision":  {"1", "1", gone},
		"an unknown side":    {"0", "1", unsaid},
		"a change elsewhere": {"1", "0", gone},
	} {
		if got, ok, err := lastStep(t.Context(), g, tt.from, tt.to, tt.final); ok || err != nil {
			t.Errorf("%s: step is %+v, %v", name, got, err)
		}
	}
}
