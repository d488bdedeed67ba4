package npm_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/npm"
	"github.com/mulligan-dev/mulligan/witness"
)

// FuzzRecord puts any text in the place of each installer's record: a root is known or not, and nothing outside of the project
// is read for it.
func FuzzRecord(f *testing.F) {
	trees := []struct {
		tree   func(a *app)
		record string
	}{
		{pnpmTree, "node_modules/.pnpm/lock.yaml"}, {pnpmTree, "node_modules/.modules.yaml"}, {classicTree, "node_modules/.yarn-integrity"},
		{berryTree, "node_modules/.yarn-state.yml"}, {bunTree, "bun.lock"}, {bunStore, "bun.lock"}, {classicTree, "node_modules/.package-lock.json"},
	}
	dirs := make([]*app, len(trees))
	for i, tree := range trees {
		a := &app{f, f.TempDir(), nil}
		a.write("package.json", `{"name": "acme", "version": "0.3.0"}`)
		tree.tree(a)
		dirs[i] = a
		if text, err := os.ReadFile(filepath.Join(a.dir, tree.record)); err == nil {
			f.Add(uint8(i), string(text))
		}
	}
	f.Add(uint8(6), `{"packages": {"": {}, "node_modules/left": {"version": "2.0.0"}}}`)
	f.Add(uint8(4), `{"lockfileVersion": 1, "workspaces": {"": {}}, "packages": {"a": ["a@1.0.0", "", {"dependencies": {"a": "1"}}], "a/a": ["a@2.0.0", "", {"dependencies": {"a": "1"}}]}}`)
	src := newSource(f, npm.Config{MaxFiles: 1000})
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		i := int(which) % len(trees)
		a := dirs[i]
		if err := os.WriteFile(filepath.Join(a.dir, trees[i].record), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, r := range []witness.Root{a.wire(), a.project()} {
			id, err := src.Identify(context.Background(), r)
			if err != nil || id.Known() == (id.Unknown != "") {
				t.Errorf("%q in %s: the identity is %+v, %v", text, trees[i].record, id, err)
			}
		}
	})
}
