package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/classify"
	jvmtext "github.com/mulligan-dev/mulligan/classify/jvm"
	nodetext "github.com/mulligan-dev/mulligan/classify/node"
	phptext "github.com/mulligan-dev/mulligan/classify/php"
	rubytext "github.com/mulligan-dev/mulligan/classify/ruby"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"github.com/mulligan-dev/mulligan/witness"
)

// TestTreesAreTriedAsTheyRan: a real program dies of a tree that is torn, the tree is mended, and the probe of what failed
// finds the modules where the program had them, and does not run the program.
//
// Seen to fail: each without its part, which is the file behind "node ." (the program ran in the probe), packages by the
// folder of their manifest, reach for Ruby and PHP, the autoloader of program.php, and the two forms of a module path.
func TestTreesAreTriedAsTheyRan(t *testing.T) {
	t.Parallel()
	const late = "setTimeout(() => require('./lib/wire'), 1);\n" // the bottom of the stack is a timer's, not the program's
	ran := "require('fs').appendFileSync('TREE/RAN', 'x');\n"
	lib := map[string]string{"lib/wire.js": "require('./gone');\n"}
	tests := map[string]struct {
		program, install string
		dialect          freshimport.Dialect
		text             classify.Runtime
		files, mended    map[string]string
		build            func(t *testing.T, tree string)
		args             []string
		modules          []string
		tried            string // what the plan must ask for
	}{
		"a folder with a manifest is the program of Node.js": {"node", "apt-get install nodejs", freshimport.Node, nodetext.Runtime{},
			with(lib, "package.json", `{"main": "./agent"}`, "agent.js", ran+late), map[string]string{"lib/wire.js": "\n"}, nil, []string{"."}, []string{"acme"}, "main:TREE/agent.js"},
		"so is one with an index": {"node", "apt-get install nodejs", freshimport.Node, nodetext.Runtime{},
			with(lib, "index.js", ran+late), map[string]string{"lib/wire.js": "\n"}, nil, []string{"."}, []string{"acme"}, "main:TREE/index.js"},
		"a file without its ending": {"node", "apt-get install nodejs", freshimport.Node, nodetext.Runtime{},
			with(lib, "agent.js", ran+late), map[string]string{"lib/wire.js": "\n"}, nil, []string{"agent"}, []string{"acme"}, "main:TREE/agent.js"},
		"a package of Node.js is found from its folder": {"node", "apt-get install nodejs", freshimport.Node, nodetext.Runtime{},
			map[string]string{"agent.js": ran + "require('@acme/wire/enc');\n", "node_modules/@acme/wire/package.json": `{"name": "@acme/wire", "exports": {".": "./lib/main.js"}}`},
			map[string]string{"node_modules/@acme/wire/lib/main.js": "", "node_modules/@acme/wire/enc.js": "",
				"node_modules/@acme/wire/package.json": `{"name": "@acme/wire", "exports": {".": "./lib/main.js", "./enc": "./enc.js"}}`},
			nil, []string{"agent.js"}, []string{"acme", "@acme"}, "TREE/node_modules/@acme/wire"},
		"one of ES modules alone": {"node", "apt-get install nodejs", freshimport.Node, nodetext.Runtime{},
			map[string]string{"agent.mjs": "import fs from 'node:fs';\nfs.appendFileSync('TREE/RAN', 'x');\nawait import('@acme/wire/enc');\n",
				"node_modules/@acme/wire/package.json": `{"name": "@acme/wire", "type": "module", "exports": {".": {"import": "./lib/main.js"}}}`},
			map[string]string{"node_modules/@acme/wire/lib/main.js": "export const x = 1;\n"}, nil, []string{"agent.mjs"}, []string{"acme", "@acme"}, "TREE/node_modules/@acme/wire"},
		"a program of Ruby with a load path of its own": {"ruby", "apt-get install ruby", freshimport.Ruby, rubytext.Runtime{},
			map[string]string{"agent.rb": "File.write('TREE/RAN', 'x', mode: 'a')\n$LOAD_PATH.unshift File.join(__dir__, 'code')\nrequire 'acme/jobs'\n",
				"code/acme/jobs.rb": "require 'acme/base'\nrequire 'acme/wire'\n", "code/acme/base.rb": ""},
			map[string]string{"code/acme/wire.rb": ""}, nil, []string{"TREE/agent.rb"}, []string{"Acme", "acme"}, "TREE/code/acme/jobs.rb"},
		"a program of PHP with an autoloader of its own": {"php", "apt-get install php-cli", freshimport.PHP, phptext.Runtime{},
			map[string]string{"agent.php": "<?php\nfile_put_contents('TREE/RAN', 'x', FILE_APPEND);\nspl_autoload_register(function ($c) {\n" +
				"  $f = __DIR__ . '/code/' . strtr(substr($c, 9), '\\\\', '/') . '.php';\n  if (is_file($f)) require $f;\n});\n(new Acme\\App\\Jobs\\Mail())->go();\n",
				"code/Jobs/Mail.php": "<?php\nnamespace Acme\\App\\Jobs;\nclass Mail extends \\Acme\\App\\Base { function go() { new \\Acme\\App\\Wire(); } }\n",
				"code/Base.php":      "<?php\nnamespace Acme\\App;\nclass Base {}\n"},
			map[string]string{"code/Wire.php": "<?php\nnamespace Acme\\App;\nclass Wire {}\n"}, nil, []string{"TREE/agent.php"}, []string{"Acme"}, "TREE/code/Jobs/Mail.php"},
		"archives on a module path": {"java", "apt-get install default-jdk-headless", freshimport.JVM, jvmtext.Runtime{},
			javaTorn, javaMended, func(t *testing.T, tree string) {
				javac(t, tree, "out")
				mustRun(t, tree, "mkdir", "-p", "mods")
				mustRun(t, tree, "jar", "-cf", "mods/acme.jar", "-C", "out", ".")
			}, []string{"-p", "mods", "-m", "com.acme/com.acme.Main"}, []string{"com.acme"}, "com.acme.Main"},
		"folders on a module path": {"java", "apt-get install default-jdk-headless", freshimport.JVM, jvmtext.Runtime{},
			javaTorn, javaMended, func(t *testing.T, tree string) { javac(t, tree, "mods/com.acme") },
			[]string{"--module-path=mods", "--module", "com.acme/com.acme.Main"}, []string{"com.acme"}, "com.acme.Main"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := require.Program(t, tt.program, tt.install)
			tree, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			put := func(files map[string]string) {
				for name, text := range files {
					file := filepath.Join(tree, name)
					if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "TREE", tree)), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if tt.build != nil {
					tt.build(t, tree)
				}
			}
			put(tt.files)
			r := run.Run{Recipe: run.Recipe{Command: []string{program}, Dir: tree, Env: plainEnv()}}
			for _, a := range tt.args {
				r.Recipe.Command = append(r.Recipe.Command, strings.ReplaceAll(a, "TREE", tree))
			}
			if r.Runtime, err = process.Runtime(r.Recipe); err != nil || r.Runtime == nil {
				t.Fatalf("Runtime = %v, %v", r.Runtime, err)
			}
			cmd := exec.CommandContext(t.Context(), r.Recipe.Command[0], r.Recipe.Command[1:]...)
			cmd.Dir, cmd.Env = tree, r.Recipe.Env
			text, _ := cmd.CombinedOutput()
			judge, err := classify.New(classify.Config{Runtimes: []classify.Runtime{tt.text}})
			if err != nil {
				t.Fatal(err)
			}
			root := classify.Root{Name: "acme", Dirs: []string{tree}, Modules: tt.modules}
			r.Roots = []witness.Root{{Root: root, Runtime: tt.dialect.Name}}
			v := judge.Classify(classify.Input{Text: text, Exit: classify.Exit{Code: 1}, Roots: []classify.Root{root}})
			put(tt.mended)

			plan, ok := process.InterpreterPlanner{Dialect: tt.dialect}.Plan(r, v)
			want := strings.ReplaceAll(tt.tried, "TREE", tree)
			if !ok || !strings.Contains("\n"+strings.Join(plan.Modules, "\n")+"\n", "\n"+want+"\n") {
				t.Fatalf("plan %v of %q without %q for %+v of\n%s", ok, plan.Modules, want, v, text)
			}
			if res, err := newInterpreter(t, tt.dialect).Probe(t.Context(), plan); err != nil || res.Outcome != probe.Healthy {
				t.Errorf("Probe of %q on %q = %+v, %v", plan.Modules, plan.Path, res, err)
			}
			if times, err := os.ReadFile(filepath.Join(tree, "RAN")); err != nil || string(times) != "x" {
				t.Errorf("the program left %q: it ran in the probe of %q", times, plan.Modules)
			}
		})
	}
}

// TestPackageWithoutAWhole: a package that is loaded in parts alone breaks no plan, and is no proof by itself. One whose
// own code is broken is broken.
func TestPackageWithoutAWhole(t *testing.T) {
	t.Parallel()
	s := nodeSubject(t)
	tree := write(t, map[string]string{
		"fine.js": "", "node_modules/parts/package.json": `{"exports": {"./a": "./a.js"}}`, "node_modules/types/package.json": `{"types": "a.d.ts"}`,
		"node_modules/torn/package.json": `{"main": "a.js"}`, "node_modules/torn/a.js": "require('./gone');\n", "node_modules/lost/package.json": `{"main": "gone.js"}`,
	})
	for name, want := range map[string]probe.Outcome{"parts": probe.Broken, "types": probe.Broken, "torn": probe.Broken, "lost": probe.Broken} {
		if r := tried(t, s, tree, "TREE/node_modules/"+name); r.Outcome != want {
			t.Errorf("%s alone: %+v, want %s", name, r, want)
		}
	}
	for name, want := range map[string]probe.Outcome{"parts": probe.Healthy, "types": probe.Healthy, "torn": probe.Broken, "lost": probe.Broken} {
		r, err := s.Prober.Probe(t.Context(), probe.Plan{Interpreter: s.Interpreter, Env: s.Env, Modules: []string{tree + "/node_modules/" + name, tree + "/fine.js"}})
		if err != nil || r.Outcome != want {
			t.Errorf("%s and a file: %+v, %v, want %s", name, r, err, want)
		}
	}
}

var javaTorn = map[string]string{
	"src/module-info.java": "module com.acme { }\n",
	"src/com/acme/Main.java": "package com.acme;\npublic class Main {\n  public static void main(String[] a) throws Exception {\n" +
		"    java.nio.file.Files.writeString(java.nio.file.Path.of(\"TREE/RAN\"), \"x\");\n    Wire.go();\n  }\n}\n",
	"src/com/acme/Wire.java": "package com.acme;\nclass Wire { static void go() { Gone.go(); } }\nclass Gone { static void go() { throw new NoClassDefFoundError(\"com/acme/Lost\"); } }\n",
}

var javaMended = map[string]string{"src/com/acme/Wire.java": "package com.acme;\nclass Wire { static void go() { } }\n"}

func javac(t *testing.T, tree, to string) {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join(tree, "src/com/acme/*.java"))
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, tree, "javac", append([]string{"-d", to, filepath.Join(tree, "src/module-info.java")}, sources...)...)
}

func mustRun(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), require.Program(t, name, "apt-get install default-jdk-headless"), args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// with is some files and more of them, name and content by turns.
func with(files map[string]string, more ...string) map[string]string {
	all := map[string]string{}
	for name, text := range files {
		all[name] = text
	}
	for i := 0; i+1 < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}
