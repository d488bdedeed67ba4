package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/classify"
	nodetext "github.com/mulligan-dev/mulligan/classify/node"
	phptext "github.com/mulligan-dev/mulligan/classify/php"
	pythontext "github.com/mulligan-dev/mulligan/classify/python"
	rubytext "github.com/mulligan-dev/mulligan/classify/ruby"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/witness"
)

// TestReleaseThatWasSwitched: where a link leads to another release now, that one is tried, although the stack shows the
// files of the old one and they still lie there. The program of neither runs.
//
// Seen to fail: with plans by the paths of the boot. Each tried the old release, and Node.js ran its program.
func TestReleaseThatWasSwitched(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		program, install string
		text             classify.Runtime
		planner          func(t *testing.T) (restart.Planner, probe.Prober)
		agent            map[string]string
		lib              string
		torn, sound      string
	}{
		"Python": {"python3", "apt-get install python3", pythontext.Runtime{}, pythonPlans,
			map[string]string{"agent.py": "open('TREE/RAN', 'a').write('x')\nimport acme.jobs\nacme.jobs.go()\n", "acme/__init__.py": ""},
			"acme/jobs.py", "def go():\n    import acme.gone\nif __file__.find('r2') > 0:\n    go()\n", "def go(): pass\n"},
		"Node.js": {"node", "apt-get install nodejs", nodetext.Runtime{}, dialectPlans(freshimport.Node),
			map[string]string{"agent.js": "require('fs').appendFileSync('TREE/RAN', 'x');\nsetTimeout(() => require('./acme/jobs'), 1);\n"},
			"acme/jobs.js", "require('./gone');\n", "\n"},
		"Ruby": {"ruby", "apt-get install ruby", rubytext.Runtime{}, dialectPlans(freshimport.Ruby),
			map[string]string{"agent.rb": "File.write('TREE/RAN', 'x', mode: 'a')\nrequire_relative 'acme/jobs'\n"},
			"acme/jobs.rb", "require 'acme/gone'\n", "\n"},
		"PHP": {"php", "apt-get install php-cli", phptext.Runtime{}, dialectPlans(freshimport.PHP),
			map[string]string{"agent.php": "<?php\nfile_put_contents('TREE/RAN', 'x', FILE_APPEND);\nrequire __DIR__ . '/acme/jobs.php';\n"},
			"acme/jobs.php", "<?php\nrequire __DIR__ . '/gone.php';\n", "<?php\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := require.Program(t, tt.program, tt.install)
			tree, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			put := func(file, text string) {
				file = filepath.Join(tree, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "TREE", tree)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			lead := func(to string) {
				if err := os.Symlink(to, filepath.Join(tree, "next")); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(tree, "next"), filepath.Join(tree, "live")); err != nil {
					t.Fatal(err)
				}
			}
			r := run.Run{Recipe: run.Recipe{Command: []string{program}, Dir: tree, Env: plainEnv()}}
			for file, text := range tt.agent {
				put("r1/"+file, text)
				put("r2/"+file, text)
				if strings.HasPrefix(file, "agent") {
					r.Recipe.Command = append(r.Recipe.Command, filepath.Join(tree, "live", file))
				}
			}
			put("r1/"+tt.lib, tt.torn)
			lead("r1")
			if r.Runtime, err = process.Runtime(r.Recipe); err != nil || r.Runtime == nil {
				t.Fatalf("Runtime = %v, %v", r.Runtime, err)
			}
			root := classify.Root{Name: "acme", Dirs: []string{filepath.Join(tree, "r1")}, Modules: []string{"acme"}}
			r.Roots = []witness.Root{{Root: root, Declared: []string{filepath.Join(tree, "live")}}}
			cmd := exec.CommandContext(t.Context(), program, r.Recipe.Command[1:]...)
			cmd.Dir, cmd.Env = tree, r.Recipe.Env
			text, _ := cmd.CombinedOutput()
			judge, err := classify.New(classify.Config{Runtimes: []classify.Runtime{tt.text}})
			if err != nil {
				t.Fatal(err)
			}
			v := judge.Classify(classify.Input{Text: text, Exit: classify.Exit{Code: 1}, Roots: []classify.Root{root}})
			planner, prober := tt.planner(t)
			for _, now := range []struct {
				old, lib string
				want     probe.Outcome
			}{{tt.torn, tt.sound, probe.Healthy}, {tt.sound, tt.torn, probe.Broken}} {
				put("r1/"+tt.lib, now.old)
				put("r2/"+tt.lib, now.lib)
				lead("r2")
				plan, ok := planner.Plan(r, v)
				if !ok {
					t.Fatalf("no plan for %+v of\n%s", v, text)
				}
				if res, err := prober.Probe(t.Context(), plan); err != nil || res.Outcome != now.want {
					t.Errorf("Probe of %q on %q = %+v, %v; want %s", plan.Modules, plan.Path, res, err, now.want)
				}
			}
			if times, err := os.ReadFile(filepath.Join(tree, "RAN")); err != nil || string(times) != "x" {
				t.Errorf("the program left %q: it ran in a probe", times)
			}
		})
	}
}
