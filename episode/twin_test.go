package episode_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/witness"
)

// together says, part by part, whether two causes are one update: the strongest part that each has must be of the same
// kind and the same, and where a part lies in a tree the tree must be the same.
func together(a, b episode.Cause) bool {
	tree := a.Root.Place() == b.Root.Place()
	switch {
	case a.Culprit != nil || b.Culprit != nil:
		return a.Culprit != nil && b.Culprit != nil && a.Culprit.Commit == b.Culprit.Commit && tree
	case a.Update != "" || b.Update != "":
		return a.Update == b.Update
	case a.Quiet != "" || b.Quiet != "":
		return a.Quiet == b.Quiet && tree
	}
	return a.Lineage == b.Lineage
}

// TestIDIsItsTwin: any two causes share an id exactly when the twin says that they are one update.
func TestIDIsItsTwin(t *testing.T) {
	t.Parallel()
	commits := []string{"4f1e2d3c4b5a69788796a5b4c3d2e1f001122334", "aaaa2d3c4b5a69788796a5b4c3d2e1f001122334", "2.0.1"}
	cause := func(t *rapid.T, who string, parts int) episode.Cause {
		pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, who+" "+what) }
		c := episode.Cause{
			// Two names for one tree, and one name for two trees.
			Root:    root(pick("name", "acme", "core"), pick("folder", "/srv/acme", "/srv/other/acme")),
			Lineage: ledger.Key{Project: pick("project", "web", "api"), Lineage: pick("lineage", "l-1", "l-2")},
		}
		// The weaker parts are there beside the strongest, or are not: they must not matter.
		if parts == 1 || parts > 1 && rapid.Bool().Draw(t, who+" at rest") {
			c.Quiet = pick("quiet", commits[0], commits[1])
		}
		if parts == 2 || parts > 2 && rapid.Bool().Draw(t, who+" has a row") {
			c.Update = pick("update", "u-1", "u-2")
		}
		if parts == 3 {
			c.Culprit = &witness.Culprit{Root: c.Root.Name, Commit: pick("culprit", commits...), Subject: pick("subject", "one", "two")}
		}
		return c
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.IntRange(0, 3).Draw(t, "parts")
		a, b := cause(t, "first", parts), cause(t, "second", rapid.SampledFrom([]int{parts, parts, 0, 1, 2, 3}).Draw(t, "the second's parts"))
		if same := episode.ID(a) == episode.ID(b); same != together(a, b) {
			t.Fatalf("%s and %s for\n%+v\n%+v\nthe twin says %v", episode.ID(a), episode.ID(b), a, b, together(a, b))
		}
	})
}
