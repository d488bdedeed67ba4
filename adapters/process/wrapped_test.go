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

// TestWrappedProgramNeverRuns: behind a wrapper no command line says which file is the program, and a host that knows
// the interpreter says that alone. The program is found at the bottom of its stack, and the probe does not run it.
//
// Seen to fail: without freshimport's look at the bottom.
func TestWrappedProgramNeverRuns(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, program, install string
		files                  map[string]string // torn
		mended                 string            // b's, later
		args                   []string
		runtime                classify.Runtime
		planner                func(t *testing.T) (restart.Planner, probe.Prober)
	}{
		{"script of Python", "python3", "apt-get install python3", map[string]string{"b.py": "", "a.py": "open('TREE/RAN', 'a').write('x')\nfrom b import wire\nwire()\n"},
			"def wire(): pass\n", []string{"a.py"}, pythontext.Runtime{}, pythonPlans},
		{"module of Python", "python3", "apt-get install python3", map[string]string{"b.py": "", "a.py": "open('TREE/RAN', 'a').write('x')\nfrom b import wire\nwire()\n"},
			"def wire(): pass\n", []string{"-m", "a"}, pythontext.Runtime{}, pythonPlans},
		{"Node.js", "node", "apt-get install nodejs", map[string]string{"b.js": "throw new Error(\"Cannot find module './c'\")\n", "a.js": "require('fs').appendFileSync('TREE/RAN', 'x');\nrequire('./b').wire();\n"},
			"exports.wire = () => {};\n", []string{"a.js"}, nodetext.Runtime{}, dialectPlans(freshimport.Node)},
		{"Ruby", "ruby", "apt-get install ruby", map[string]string{"b.rb": "require_relative 'c'\n", "a.rb": "File.write('TREE/RAN', 'x', mode: 'a')\nrequire_relative 'b'\n"},
			"\n", []string{"TREE/a.rb"}, rubytext.Runtime{}, dialectPlans(freshimport.Ruby)},
		{"PHP", "php", "apt-get install php-cli", map[string]string{"b.php": "<?php\nrequire __DIR__ . '/c.php';\n", "a.php": "<?php\nfile_put_contents('TREE/RAN', 'x', FILE_APPEND);\nrequire __DIR__ . '/b.php';\n"},
			"<?php\n", []string{"a.php"}, phptext.Runtime{}, dialectPlans(freshimport.PHP)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			program := require.Program(t, tt.program, tt.install)
			tree := write(t, tt.files)
			for name, text := range tt.files {
				if err := os.WriteFile(filepath.Join(tree, name), []byte(strings.ReplaceAll(text, "TREE", tree)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			command := []string{program}
			for _, arg := range tt.args {
				command = append(command, strings.ReplaceAll(arg, "TREE", tree))
			}
			bare := run.Recipe{Command: command, Dir: tree, Env: plainEnv()}
			interpreter, err := process.Runtime(bare)
			if err != nil || interpreter == nil {
				t.Fatalf("Runtime = %v, %v", interpreter, err)
			}
			wrapped := bare
			wrapped.Command = append([]string{"/bin/sh", "-c", `"$@" || exit 1`, "sh"}, bare.Command...)
			cmd := exec.CommandContext(t.Context(), wrapped.Command[0], wrapped.Command[1:]...)
			cmd.Dir, cmd.Env = tree, wrapped.Env
			text, _ := cmd.CombinedOutput()
			judge, err := classify.New(classify.Config{Runtimes: []classify.Runtime{tt.runtime}})
			if err != nil {
				t.Fatal(err)
			}
			root := classify.Root{Name: "acme", Dirs: []string{tree}, Modules: []string{"a", "b"}}
			v := judge.Classify(classify.Input{Text: text, Exit: classify.Exit{Code: 1}, Roots: []classify.Root{root}})
			if len(v.ManagedModules) == 0 {
				t.Fatalf("nothing managed in %+v of\n%s", v, text)
			}
			for name := range tt.files {
				if strings.HasPrefix(name, "b.") {
					if err := os.WriteFile(filepath.Join(tree, name), []byte(tt.mended), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			planner, prober := tt.planner(t)
			plan, ok := planner.Plan(run.Run{Recipe: wrapped, Runtime: interpreter, Roots: []witness.Root{{Root: root}}}, v)
			if !ok {
				t.Fatalf("no plan for %+v of\n%s", v, text)
			}
			r, err := prober.Probe(t.Context(), plan)
			if err != nil || r.Outcome != probe.Healthy {
				t.Errorf("Probe of %q = %+v, %v", plan.Modules, r, err)
			}
			if ran, err := os.ReadFile(filepath.Join(tree, "RAN")); err != nil || string(ran) != "x" {
				t.Errorf("the program left %q: it ran in the probe of %q", ran, plan.Modules)
			}
		})
	}
}

func pythonPlans(t *testing.T) (restart.Planner, probe.Prober) {
	return process.PythonPlanner{Modules: pythontext.Runtime{}}, newPython(t, process.PythonConfig{})
}

func dialectPlans(d freshimport.Dialect) func(*testing.T) (restart.Planner, probe.Prober) {
	return func(t *testing.T) (restart.Planner, probe.Prober) {
		return process.InterpreterPlanner{Dialect: d}, newInterpreter(t, d)
	}
}
