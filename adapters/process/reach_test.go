package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/classify"
	pythontext "github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/witness"
)

// TestPathThatTheProgramAdds: a server that puts a folder on its search path by itself, as no command line says, is tried
// where it had its modules. What a person's workspace holds, and what the interpreter finds among its own packages, is
// not added.
//
// Seen to fail: with a plan that has the path of the command line alone.
func TestPathThatTheProgramAdds(t *testing.T) {
	t.Parallel()
	python := require.Program(t, "python3", "apt-get install python3")
	for name, tt := range map[string]struct {
		at, root, workspace string // where the package's folder is, the root's folder, and a workspace
		added               bool
	}{
		"the checkout":                  {at: ".", root: ".", added: true},
		"its folder of sources":         {at: "src", root: ".", added: true},
		"a root that is the package":    {at: ".", root: "acme", added: true},
		"a workspace":                   {at: "src", root: ".", workspace: "src"},
		"the interpreter's own folders": {at: "lib/site-packages", root: "lib/site-packages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, tools := t.TempDir(), write(t, map[string]string{"serve.py": "import sys\nsys.path.insert(0, sys.argv[1])\nimport acme.agent\n"})
			put := func(file, text string) {
				file = filepath.Join(tree, tt.at, "acme", file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put("__init__.py", "")
			put("agent.py", "from acme.wire import encode\n")
			put("wire.py", "")
			added := filepath.Join(tree, tt.at)
			recipe := run.Recipe{Command: []string{python, filepath.Join(tools, "serve.py"), added}, Dir: tree, Env: plainEnv()}
			runtime, err := process.Runtime(recipe)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), python, recipe.Command[1:]...)
			cmd.Dir, cmd.Env = tree, recipe.Env
			text, _ := cmd.CombinedOutput()
			judge, err := classify.New(classify.Config{Runtimes: []classify.Runtime{pythontext.New()}})
			if err != nil {
				t.Fatal(err)
			}
			root := classify.Root{Name: "acme", Dirs: []string{filepath.Join(tree, tt.root)}, Modules: []string{"acme"}}
			v := judge.Classify(classify.Input{Text: text, Exit: classify.Exit{Code: 1}, Roots: []classify.Root{root}})
			put("wire.py", "def encode(): pass\n")

			planner, prober := pythonPlans(t)
			r := run.Run{Recipe: recipe, Runtime: runtime, Roots: []witness.Root{{Root: root}}}
			if tt.workspace != "" {
				r.Workspaces = []string{filepath.Join(tree, tt.workspace)}
			}
			plan, ok := planner.Plan(r, v)
			if !ok || slices.Contains(plan.Path, added) != tt.added {
				t.Fatalf("plan %v: %q in the path %q for %+v of\n%s", ok, added, plan.Path, v, text)
			}
			if !tt.added {
				return
			}
			if res, err := prober.Probe(t.Context(), plan); err != nil || res.Outcome != probe.Healthy {
				t.Errorf("Probe of %q = %+v, %v", plan.Modules, res, err)
			}
		})
	}
}
