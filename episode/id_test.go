package episode_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/witness"
)

const commit = "4f1e2d3c4b5a69788796a5b4c3d2e1f001122334"

func root(name string, dirs ...string) witness.Root {
	return witness.Root{Root: classify.Root{Name: name, Dirs: dirs}, Kind: "git"}
}

func key(project, lineage string) ledger.Key { return ledger.Key{Project: project, Lineage: lineage} }

func TestTheStrongestPartNames(t *testing.T) {
	t.Parallel()
	c := episode.Cause{
		Root: root("acme", "/srv/Acme Code"), Culprit: &witness.Culprit{Root: "acme", Commit: commit}, Update: "0195f3a2-row",
		Quiet: commit + "+0123456789abcdef", Lineage: key("web", "lin-a"),
	}
	want := []string{"c-4f1e2d3c4b5a-acme-code-", "u-0195f3a2-row-", "q-4f1e2d3c4b5a-acme-code-", "l-web-lin-a-"}
	weaken := []func(){func() {}, func() { c.Culprit = nil }, func() { c.Update = "" }, func() { c.Quiet = "" }}
	for i, w := range weaken {
		w()
		if got := episode.ID(c); !strings.HasPrefix(got, want[i]) || len(got) != len(want[i])+8 {
			t.Errorf("got %q, want %q and eight digits", got, want[i])
		}
	}
}

// TestOneUpdateOneID: what the agents are, booted with or call the tree does not matter.
func TestOneUpdateOneID(t *testing.T) {
	t.Parallel()
	a := episode.Cause{Root: root("acme", "/srv/acme"), Culprit: &witness.Culprit{Root: "acme", Commit: commit, Name: "acme.wire:Frame"}, Update: "u1", Quiet: "x", Lineage: key("web", "a")}
	b := episode.Cause{Root: root("acme-core", "/srv/acme"), Culprit: &witness.Culprit{Root: "acme-core", Commit: strings.ToUpper(commit[:16]), Name: "acme.io:Reader"}, Quiet: "y", Lineage: key("api", "b")}
	if episode.ID(a) != episode.ID(b) {
		t.Errorf("%s and %s are one update", episode.ID(a), episode.ID(b))
	}
	a.Culprit, b.Culprit, b.Update = nil, nil, "u1"
	b.Root = root("lib", "/srv/lib") // one run of an updater over two roots
	if episode.ID(a) != episode.ID(b) {
		t.Errorf("%s and %s are one journal row", episode.ID(a), episode.ID(b))
	}
}

// TestNoAccidentalMeeting lists causes that look alike and are apart.
func TestNoAccidentalMeeting(t *testing.T) {
	t.Parallel()
	culprit := &witness.Culprit{Commit: commit}
	seen := map[string]string{}
	for name, c := range map[string]episode.Cause{
		"clone one":         {Root: root("acme", "/srv/one/acme"), Culprit: culprit},
		"clone two":         {Root: root("acme", "/srv/two/acme"), Culprit: culprit},
		"other kind":        {Root: witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{"/srv/one/acme"}}, Kind: "folder"}, Culprit: culprit},
		"no place":          {Root: witness.Root{Root: classify.Root{Name: "acme"}, Kind: "image"}, Culprit: culprit},
		"no place, other":   {Root: witness.Root{Root: classify.Root{Name: "acme2"}, Kind: "image"}, Culprit: culprit},
		"quiet one":         {Root: root("acme", "/srv/one/acme"), Quiet: commit},
		"quiet dirty":       {Root: root("acme", "/srv/one/acme"), Quiet: commit + "+0011"},
		"quiet two":         {Root: root("acme", "/srv/two/acme"), Quiet: commit},
		"row":               {Update: commit},
		"row with space":    {Update: "a b"},
		"row with dash":     {Update: "a-b"},
		"row in upper case": {Update: "A-B"},
		"lineage":           {Lineage: key("web", "a-b")},
		"lineage elsewhere": {Lineage: key("api", "a-b")},
		"lineage spaced":    {Lineage: key("we b", "a-b")},
		"lineage dashed":    {Lineage: key("we-b", "a-b")},
		"lineage shifted":   {Lineage: key("web-a", "b")},
		"nothing":           {},
		"short commit":      {Root: root("acme", "/srv/one/acme"), Culprit: &witness.Culprit{Commit: "4f1e2d3"}},
		"version":           {Root: root("acme", "/srv/one/acme"), Culprit: &witness.Culprit{Commit: "2.0.1"}},
		"other version":     {Root: root("acme", "/srv/one/acme"), Culprit: &witness.Culprit{Commit: "2-0-1"}},
	} {
		id := episode.ID(c)
		if was, ok := seen[id]; ok {
			t.Errorf("%s and %s share %s", was, name, id)
		}
		seen[id] = name
	}
}

// TestIDsAreFileNames also holds that equal causes have equal ids, and that none is too long.
func TestIDsAreFileNames(t *testing.T) {
	t.Parallel()
	safe := regexp.MustCompile(`^[cuql]-[a-z0-9][a-z0-9-]*$`)
	rapid.Check(t, func(t *rapid.T) {
		s := func(label string) string { return rapid.String().Draw(t, label) }
		c := episode.Cause{Root: root(s("name"), rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "dirs")...), Update: s("update"), Quiet: s("quiet"), Lineage: key(s("project"), s("lineage"))}
		c.Root.Package = s("package")
		if rapid.Bool().Draw(t, "culprit") {
			c.Culprit = &witness.Culprit{Commit: s("commit")}
		}
		id := episode.ID(c)
		if !safe.MatchString(id) || len(id) > 80 || id != episode.ID(c) {
			t.Fatalf("id %q", id)
		}
	})
}

func ExampleID() {
	fmt.Println(episode.ID(episode.Cause{
		Root:    root("acme", "/srv/acme"),
		Culprit: &witness.Culprit{Root: "acme", Commit: "4f1e2d3c4b5a69788796a5b4c3d2e1f001122334"},
		Lineage: key("web", "lin-a"),
	}))
	// Output: c-4f1e2d3c4b5a-acme-fed916e8
}
