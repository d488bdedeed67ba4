package process_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"github.com/mulligan-dev/mulligan/probe/probetest"
)

// tried probes one module of a tree with a subject's prober.
func tried(t *testing.T, s probetest.Subject, tree, module string, env ...string) probe.Result {
	t.Helper()
	r, err := s.Prober.Probe(t.Context(), probe.Plan{Interpreter: s.Interpreter, Path: []string{tree}, Modules: []string{strings.ReplaceAll(module, "TREE", tree)},
		Env: append(s.Env, env...), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestProgramsNeverRun: the program's own file is compiled, what it loads by a literal name is loaded, and not a line of it
// runs.
func TestProgramsNeverRun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		subject func(testing.TB) probetest.Subject
		files   map[string]string
		module  string
		outcome probe.Outcome
		says    string
	}{
		{"node", nodeSubject, map[string]string{"a.js": "#!/usr/bin/env node\nrequire('fs').writeFileSync('TREE/RAN', '');\nconst { x } = require('./b');\n", "b.js": "exports.x = 1;\n"},
			"main:TREE/a.js", probe.Healthy, ""},
		{"node, a name is gone", nodeSubject, map[string]string{"a.js": "function f() { const { y: z } = require('./b'); }\n", "b.js": "exports.x = 1;\n"},
			"main:TREE/a.js", probe.Broken, "named 'y'"},
		{"node, a module is gone", nodeSubject, map[string]string{"a.js": "function f() { require('./gone'); }\n"}, "main:TREE/a.js", probe.Broken, "./gone"},
		{"node, what a comment says", nodeSubject, map[string]string{"a.js": "// require('./gone')\n"}, "main:TREE/a.js", probe.Healthy, ""},
		{"node, torn", nodeSubject, map[string]string{"a.js": "function f() {\n"}, "main:TREE/a.js", probe.Broken, "SyntaxError"},
		{"node, a package's business", nodeSubject, map[string]string{"a.js": "require('left-pad-that-nobody-has');\n"}, "main:TREE/a.js", probe.Healthy, ""},
		{"node, ES module", nodeSubject, map[string]string{"a.mjs": "import fs from 'node:fs';\nimport { x as y } from './b.mjs';\nfs.writeFileSync('TREE/RAN', '');\n", "b.mjs": "export const x = 1;\n"},
			"main:TREE/a.mjs", probe.Healthy, ""},
		{"node, an export is gone", nodeSubject, map[string]string{"a.mjs": "import { x, y } from './b.mjs';\n", "b.mjs": "export const x = 1;\n"}, "main:TREE/a.mjs", probe.Broken, "named 'y'"},
		{"node, a late export is gone", nodeSubject, map[string]string{"a.mjs": "const { y } = await import('./b.mjs');\n", "b.mjs": "export const x = 1;\n"},
			"main:TREE/a.mjs", probe.Broken, "named 'y'"},
		{"node, torn ES module", nodeSubject, map[string]string{"a.mjs": "export const = 1;\n"}, "main:TREE/a.mjs", probe.Broken, "SyntaxError"},
		{"node, a module of the other kind", nodeSubject, map[string]string{"package.json": `{"type": "module"}`, "b.js": "export const x = 1;\n"}, "TREE/b.js", probe.Healthy, ""},
		{"node, it never settles", nodeSubject, map[string]string{"b.mjs": "await new Promise(() => {});\n"}, "TREE/b.mjs", probe.Broken, "it exited"},
		{"node, what may be meant to fail", nodeSubject, map[string]string{"a.js": "const quote = /[\"'{]/, s = '{' + `{`;\ntry {\n  if (quote) { require('./gone'); }\n} catch { /* } */ }\nif (s === '{') { require('./gone'); } else {\n  require('./gone');\n}\n" +
			"import('./gone').catch(() => {});\nconst { level = 3, x: z = 4 } = require('./b');\n", "b.js": "exports.y = 1;\n"}, "main:TREE/a.js", probe.Healthy, ""},
		{"node, what comes behind it", nodeSubject, map[string]string{"a.js": "try { f(\"}\"); } catch (e) { if (!e) { throw e; } }\nrequire('./gone');\n"}, "main:TREE/a.js", probe.Broken, "./gone"},
		{"node, what the program itself does", nodeSubject, map[string]string{"a.js": "if (require.main === module) {\n  require('./gone');\n}\n"}, "main:TREE/a.js", probe.Broken, "./gone"},

		{"ruby, what may be meant to fail", rubySubject, map[string]string{"a.rb": "begin\n  require 'gone'\nrescue LoadError\n  require_relative 'b'\nend\nif ENV['GONE']\n  require_relative 'gone'\nelse\n  require 'gone'\nend\n" +
			"require 'gone' if ENV['GONE']\nENV['GONE'] && require('gone')\ntext = <<~END\n  require 'gone'\nEND\n", "b.rb": "\n"}, "main:TREE/a.rb", probe.Healthy, ""},
		{"ruby, what comes behind it", rubySubject, map[string]string{"a.rb": "begin\n  f\nrescue LoadError\nend\nrequire(\"gone\")\n"}, "main:TREE/a.rb", probe.Broken, "gone"},
		{"ruby, what the program itself does", rubySubject, map[string]string{"a.rb": "if __FILE__ == $0\n  require 'gone'\nend\n"}, "main:TREE/a.rb", probe.Broken, "gone"},
		{"ruby", rubySubject, map[string]string{"a.rb": "File.write('TREE/RAN', '')\nrequire_relative 'b'\n__END__\nrequire 'gone'\n", "b.rb": "\n"}, "main:TREE/a.rb", probe.Healthy, ""},
		{"ruby, a file is gone", rubySubject, map[string]string{"a.rb": "def f\n  require_relative 'gone'\nend\n"}, "main:TREE/a.rb", probe.Broken, "gone"},
		{"ruby, torn", rubySubject, map[string]string{"a.rb": "def f\n"}, "main:TREE/a.rb", probe.Broken, "SyntaxError"},

		{"php, what may be meant to fail", phpSubject, map[string]string{"a.php": "<?php\ntry { require __DIR__ . '/gone.php'; } catch (Error $e) { require __DIR__ . '/gone.php'; }\nif (is_file(__DIR__ . '/gone.php')) require __DIR__ . '/gone.php';\n" +
			"if (!is_file(\"{$e}\")) { if (true) { f(); } require __DIR__ . '/gone.php'; }\n$e && require __DIR__ . '/gone.php';\n"}, "main:TREE/a.php", probe.Healthy, ""},
		{"php, what comes behind it", phpSubject, map[string]string{"a.php": "<?php\nif (true) { f(\"{$e}\"); }\nfor ($i = 0; $i < 1; $i++) f();\nrequire __DIR__ . '/gone.php';\n"}, "main:TREE/a.php", probe.Broken, "gone.php"},
		{"php", phpSubject, map[string]string{"a.php": "<?php\nfile_put_contents('TREE/RAN', '');\nrequire __DIR__ . '/b.php';\n", "b.php": "<?php\n"}, "main:TREE/a.php", probe.Healthy, ""},
		{"php, a file is gone", phpSubject, map[string]string{"a.php": "<?php\nfunction f() { require_once __DIR__ . '/gone.php'; }\n"}, "main:TREE/a.php", probe.Broken, "gone.php"},
		{"php, a class is gone", phpSubject, map[string]string{"a.php": "<?php\nuse Acme\\Gone;\n", "vendor/autoload.php": "<?php\n"}, "main:TREE/a.php", probe.Broken, `Acme\Gone`},
		{"php, Composer finds the class", phpSubject, map[string]string{"a.php": "<?php\nuse Acme\\Wire;\n",
			"vendor/autoload.php": "<?php\nspl_autoload_register(function ($c) { if ($c === 'Acme\\\\Wire') { eval('namespace Acme; class Wire {}'); } });\n"}, "main:TREE/a.php", probe.Healthy, ""},
		{"php, torn", phpSubject, map[string]string{"a.php": "<?php\nfunction f() {\n"}, "main:TREE/a.php", probe.Broken, "ParseError"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := tt.subject(t)
			tree := write(t, tt.files)
			for name, text := range tt.files {
				if err := os.WriteFile(filepath.Join(tree, name), []byte(strings.ReplaceAll(text, "TREE", tree)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := tried(t, s, tree, tt.module)
			if r.Outcome != tt.outcome || !strings.Contains(r.Detail, tt.says) {
				t.Errorf("Probe = %+v; want %s and %q", r, tt.outcome, tt.says)
			}
			if _, err := os.Stat(filepath.Join(tree, "RAN")); err == nil {
				t.Error("the program ran")
			}
		})
	}
}

// TestOptionsInVariablesStayOut: what a run's environment tells its interpreter to load is not loaded into the probe.
func TestOptionsInVariablesStayOut(t *testing.T) {
	t.Parallel()
	tree := write(t, map[string]string{"hook.js": "require('fs').writeFileSync('" + t.TempDir() + "/ran', '');\nthrow new Error('hook');\n", "hook.rb": "raise 'hook'\n",
		"fine.js": "", "fine.rb": "", "fine.php": "<?php\n", "php.ini": "auto_prepend_file=/nowhere/gone.php\n"})
	for name, tt := range map[string]struct {
		subject     func(testing.TB) probetest.Subject
		module, env string
	}{
		"node": {nodeSubject, "fine", "NODE_OPTIONS=--require=" + tree + "/hook.js"},
		"ruby": {rubySubject, "fine", "RUBYOPT=-r" + tree + "/hook.rb"},
		"php":  {phpSubject, "fine", "PHPRC=" + tree + "/php.ini"},
		"jvm":  {jvmSubject, "java.lang.String", "JAVA_TOOL_OPTIONS=-javaagent:/nowhere/gone.jar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := tried(t, tt.subject(t), tree, tt.module, tt.env); r.Outcome != probe.Healthy {
				t.Errorf("Probe = %+v", r)
			}
		})
	}
}

// TestClassIsItsSource: the class that is shipped is what its source says. Another compiler may order it otherwise, so
// then its constants are compared.
func TestClassIsItsSource(t *testing.T) {
	t.Parallel()
	javac := require.Program(t, "javac", "apt-get install default-jdk-headless")
	dir := t.TempDir()
	if out, err := exec.Command(javac, "--release", "8", "-Xlint:-options", "-g:none", "-d", dir, "jvm/MulliganProbe.java").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	built, err1 := os.ReadFile(filepath.Join(dir, "MulliganProbe.class"))
	shipped, err2 := os.ReadFile("jvm/MulliganProbe.class")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	words := func(b []byte) []string {
		w := bytes.FieldsFunc(b, func(r rune) bool { return r < ' ' || r > '~' })
		var out []string
		for _, x := range w {
			if len(x) > 3 {
				out = append(out, string(x))
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	if !bytes.Equal(built, shipped) && !slices.Equal(words(built), words(shipped)) {
		t.Error("jvm/MulliganProbe.class is not what its source says: run go generate ./adapters/process")
	}
}

// preloading is the prober that one writes first for native objects: it has the loader load them.
type preloading struct{}

func (preloading) Probe(ctx context.Context, p probe.Plan) (probe.Result, error) {
	for _, m := range p.Modules {
		c := exec.CommandContext(ctx, p.Interpreter, "true")
		c.Env = append(slices.Clone(p.Env), "LD_BIND_NOW=1", "LD_PRELOAD="+filepath.Join(p.Path[0], m+".so"))
		if said, err := c.CombinedOutput(); err != nil || len(said) > 0 {
			return probe.Result{Outcome: probe.Broken, Failed: m, Detail: string(said)}, nil
		}
	}
	return probe.Result{Outcome: probe.Healthy, Took: 1}, nil
}

func TestRuntimeOfOtherInterpreters(t *testing.T) {
	t.Parallel()
	node, java := require.Program(t, "node", "apt-get install nodejs"), require.Program(t, "java", "apt-get install default-jdk-headless")
	dir := write(t, map[string]string{"bin/agent": "#!/usr/bin/env node\n", "agent.js": ""})
	if err := os.Chmod(filepath.Join(dir, "bin/agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "NODE_PATH=lib"}
	for _, tt := range []struct {
		command     []string
		name, at    string
		path, entry string
	}{
		{[]string{"node", "agent.js"}, "node", node, dir + "/lib", dir + "/agent.js"},
		{[]string{dir + "/bin/agent", "x"}, "node", node, dir + "/lib", dir + "/bin/agent"},
		{[]string{"env", "NODE_PATH=x", "nice", dir + "/bin/agent"}, "node", node, dir + "/x", dir + "/bin/agent"},
		{[]string{"timeout", "2h", "node", "agent.js"}, "node", node, dir + "/lib", dir + "/agent.js"},
		{[]string{"java", "-cp", "x.jar", "Main"}, "jvm", java, dir + "/x.jar", ""},
	} {
		p, err := process.Resolve(run.Recipe{Command: tt.command, Dir: dir, Env: env})
		if err != nil || p == nil || p.Runtime.Name != tt.name || p.Runtime.Interpreter != tt.at || strings.Join(p.Runtime.Path, " ") != tt.path || p.Entry.File != tt.entry {
			t.Errorf("Resolve(%q) = %+v, %v; want %s at %s", tt.command, p, err, tt.name, tt.at)
		}
	}
	if rt, err := process.Runtime(run.Recipe{Command: []string{"sh", "-c", "1"}, Dir: dir, Env: env}); rt != nil || err != nil {
		t.Errorf("a shell has the runtime %+v, %v", rt, err)
	}
	if _, err := process.NewInterpreter(process.InterpreterConfig{Dialect: freshimport.Dialect{Name: "cobol"}, TempDir: "x", OutputLimit: -1}); err == nil ||
		!strings.Contains(err.Error(), "cobol") || !strings.Contains(err.Error(), "TempDir") || !strings.Contains(err.Error(), "OutputLimit") {
		t.Errorf("NewInterpreter says %v, want everything that is wrong", err)
	}
	if _, err := process.NewCommand(process.CommandConfig{Keep: []string{"A=B"}, OutputLimit: -1}); err == nil || !strings.Contains(err.Error(), "A=B") || !strings.Contains(err.Error(), "OutputLimit") {
		t.Errorf("NewCommand says %v, want everything that is wrong", err)
	}
}
