package process_test

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
)

// acme is a program whose mains run at once when they are executed.
func acme(t testing.TB, more map[string]string) string {
	t.Helper()
	files := map[string]string{
		"acme/__init__.py":   "",
		"acme/wire.py":       "def encode(): pass\n",
		"acme/__main__.py":   "from acme.wire import encode\nfrom . import wire\nopen('RAN', 'w')\nopen('" + "TREE/RAN', 'w')\n",
		"acme/tool.py":       "import acme.wire\nopen('TREE/RAN', 'w')\n",
		"acme/torn_main.py":  "from acme.wire import decode\nopen('TREE/RAN', 'w')\n",
		"acme/lazy.py":       "def main():\n    from acme.gone import thing\n    thing()\nif __name__ == '__main__':\n    main()\n",
		"acme/guarded.py":    "if __name__ == '__main__':\n    from acme.wire import decode\n",
		"acme/optional.py":   "try:\n    import acme.gone\nexcept ImportError:\n    pass\nif False:\n    import acme.gone\nopen('TREE/RAN', 'w')\n",
		"acme/other.py":      "def main():\n    import no_such_third_party\nopen('TREE/RAN', 'w')\n",
		"acme/syntax.py":     "def broken(:\n",
		"acme/late.py":       "return 1\n",
		"bin/agent":          "#!/usr/bin/env python3\nfrom acme.wire import encode\nopen('TREE/RAN', 'w')\n",
		"bin/torn":           "from acme.wire import decode\n",
		"ns/inner/__none__":  "",
		"sub/__init__.py":    "",
		"sub/__main__.py":    "from .gone import x\n",
		"folder/__main__.py": "import acme.gone\n",
	}
	for name, text := range more {
		files[name] = text
	}
	dir := write(t, files)
	for name := range files {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "TREE", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTheProgramItselfNeverRuns(t *testing.T) {
	t.Parallel()
	tree := acme(t, nil)
	p := newPython(t, process.PythonConfig{})
	tests := []struct {
		name    string
		module  string
		outcome probe.Outcome
		says    string
	}{
		{"a package's main", "acme.__main__", probe.Healthy, ""},
		{"a package as a program", freshimport.Main("acme"), probe.Healthy, ""},
		{"a module as a program", freshimport.Main("acme.tool"), probe.Healthy, ""},
		{"a script", freshimport.Main(tree + "/bin/agent"), probe.Healthy, ""},
		{"what may fail is left alone", freshimport.Main("acme.optional"), probe.Healthy, ""},
		{"what others' packages lack in a function", freshimport.Main("acme.other"), probe.Healthy, ""},
		{"a name is missing", freshimport.Main("acme.torn_main"), probe.Broken, "decode"},
		{"a name is missing for the script", freshimport.Main(tree + "/bin/torn"), probe.Broken, "decode"},
		{"a name is missing under the guard", freshimport.Main("acme.guarded"), probe.Broken, "decode"},
		{"a module is missing in a function", freshimport.Main("acme.lazy"), probe.Broken, "gone"},
		{"a relative module is missing", "sub.__main__", probe.Broken, "gone"},
		{"a folder as a program", freshimport.Main(tree + "/folder"), probe.Broken, "gone"},
		{"half-written", freshimport.Main("acme.syntax"), probe.Broken, "SyntaxError"},
		{"wrong beyond the grammar", freshimport.Main("acme.late"), probe.Broken, "SyntaxError"},
		{"no such module", freshimport.Main("acme.gone"), probe.Broken, "acme.gone"},
		{"no such script", freshimport.Main(tree + "/bin/none"), probe.Broken, "none"},
		{"a folder without code", "ns.inner", probe.Broken, "folders without code"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := p.Probe(t.Context(), probe.Plan{Interpreter: python(t), Path: []string{tree}, Modules: []string{tt.module},
				Env: os.Environ(), NoWrite: true})
			if err != nil || r.Outcome != tt.outcome || !strings.Contains(r.Detail, tt.says) {
				t.Errorf("Probe = %+v, %v; want %s and %q", r, err, tt.outcome, tt.says)
			}
			if _, err := os.Stat(filepath.Join(tree, "RAN")); err == nil {
				t.Error("the program ran")
			}
		})
	}
}

func TestBytecodeIsWrittenAsTheProgramWould(t *testing.T) {
	t.Parallel()
	p := newPython(t, process.PythonConfig{})
	for _, tt := range []struct {
		name  string
		plan  probe.Plan
		wants bool
	}{
		{"as usual", probe.Plan{}, true},
		{"no write", probe.Plan{NoWrite: true}, false},
		{"no write, isolated", probe.Plan{NoWrite: true, Args: []string{"-E"}}, false},
		{"the run had -B", probe.Plan{Args: []string{"-B"}}, false},
		{"the run's environment forbade it", probe.Plan{Env: []string{"PYTHONDONTWRITEBYTECODE=1"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tree := write(t, map[string]string{"wire.py": "x = 1\n"})
			tt.plan.Interpreter, tt.plan.Path, tt.plan.Modules = python(t), []string{tree}, []string{"wire"}
			r, err := p.Probe(t.Context(), tt.plan)
			if err != nil || r.Outcome != probe.Healthy {
				t.Fatalf("%+v, %v", r, err)
			}
			found, err := filepath.Glob(filepath.Join(tree, "__pycache__", "*"))
			if err != nil || (len(found) > 0) != tt.wants {
				t.Errorf("bytecode: %q, %v, want %t", found, err, tt.wants)
			}
		})
	}
}

func TestTheWorkingFolderIsNeverSearched(t *testing.T) {
	t.Parallel()
	tree := write(t, map[string]string{"mover.py": "import os\nos.chdir(os.path.join(os.path.dirname(__file__), 'ws'))\nimport planted\n", "ws/planted.py": ""})
	r, err := newPython(t, process.PythonConfig{}).Probe(t.Context(), probe.Plan{Interpreter: python(t), Path: []string{tree}, Modules: []string{"mover"}})
	if err != nil || r.Outcome != probe.Broken || !strings.Contains(r.Detail, "planted") {
		t.Errorf("Probe = %+v, %v, want Broken for want of planted", r, err)
	}
}

func TestTimeoutIsNamed(t *testing.T) {
	t.Parallel()
	tree := write(t, map[string]string{"fine.py": "", "loop.py": "while True: pass\n"})
	var r probe.Result
	var err error
	// It has to last until the interpreter is in the loop.
	for timeout := 2 * time.Second; r.Failed != "loop" && timeout < 2*time.Minute; timeout *= 3 {
		r, err = newPython(t, process.PythonConfig{}).Probe(t.Context(), probe.Plan{Interpreter: python(t), Path: []string{tree},
			Modules: []string{"fine", "loop"}, Timeout: timeout})
	}
	if err != nil || r.Outcome != probe.Unknown || r.Failed != "loop" || !strings.Contains(r.Detail, "in time") {
		t.Errorf("Probe = %+v, %v, want Unknown in loop, and that time ran out", r, err)
	}
}

func TestPlansThatAreNoProbe(t *testing.T) {
	t.Parallel()
	p := newPython(t, process.PythonConfig{})
	for name, spoil := range map[string]func(*probe.Plan){
		"a program in the flags": func(p *probe.Plan) { p.Args = []string{"-c", "pass"} },
		"a prompt":               func(p *probe.Plan) { p.Args = []string{"-i"} },
		"relative interpreter":   func(p *probe.Plan) { p.Interpreter = "python3" },
		"relative path":          func(p *probe.Plan) { p.Path = []string{"."} },
		"no module":              func(p *probe.Plan) { p.Modules = nil },
		"a flag it refuses":      func(p *probe.Plan) { p.Args = []string{"-W"} },
		"no Python at all":       func(p *probe.Plan) { p.Interpreter = "/bin/true" },
	} {
		plan := probe.Plan{Interpreter: python(t), Modules: []string{"os"}, Env: os.Environ()}
		spoil(&plan)
		r, err := p.Probe(t.Context(), plan)
		if err != nil || r.Outcome != probe.Unknown || r.Detail == "" {
			t.Errorf("%s: Probe = %+v, %v, want Unknown with a reason", name, r, err)
		}
	}
}

func TestDefaultTimeoutAndConfig(t *testing.T) {
	t.Parallel()
	_, err := process.NewPython(process.PythonConfig{TempDir: "relative", OutputLimit: -1})
	if err == nil || !strings.Contains(err.Error(), "TempDir") || !strings.Contains(err.Error(), "OutputLimit") {
		t.Errorf("NewPython = %v, want both faults named", err)
	}
	dir := t.TempDir()
	p := newPython(t, process.PythonConfig{TempDir: dir, OutputLimit: 100})
	tree := write(t, map[string]string{"loud.py": "print('x' * 5000)\nraise RuntimeError('the end')\n"})
	r, err := p.Probe(t.Context(), probe.Plan{Interpreter: python(t), Path: []string{tree}, Modules: []string{"loud"}})
	if err != nil || r.Outcome != probe.Broken || len(r.Detail) > 200 || !strings.Contains(r.Detail, "the end") {
		t.Errorf("Probe = %+v, %v", r, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
	gone := newPython(t, process.PythonConfig{TempDir: filepath.Join(dir, "gone")})
	if r, err := gone.Probe(t.Context(), probe.Plan{Interpreter: python(t), Modules: []string{"os"}}); err != nil || r.Outcome != probe.Unknown {
		t.Errorf("without a temporary folder Probe = %+v, %v", r, err)
	}
}

func TestRuntimeOfACommand(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"bin/agent":     "#!" + python(t) + " -B\nimport x\n",
		"bin/byenv":     "#!/usr/bin/env python3\nimport x\n",
		"bin/shell":     "#!/bin/sh\n",
		"app/agent.py":  "import x\n",
		"tree/__main__": "",
		"shim/python3":  "#!/bin/sh\nexec " + python(t) + " \"$@\"\n",
	})
	for _, name := range []string{"bin/agent", "bin/byenv", "bin/shell", "shim/python3"} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		require.Executable(t, path, string(text))
	}
	venv := filepath.Join(dir, "venv", "bin")
	if err := os.MkdirAll(venv, 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{venv + "/python3": python(t), dir + "/link": dir + "/app/agent.py"} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	inVenv := venv + "/python3"
	zipApp(t, dir+"/app.pyz", "import acme.gone\n")
	tests := []struct {
		name, command, path string
		interpreter         string // empty: not Python
		args, search        string
	}{
		{"found in PATH", "python3 app/agent.py", venv, inVenv, "", dir + "/app"},
		{"its symlink stays", inVenv + " -m acme", "", inVenv, "", dir},
		{"relative", "venv/bin/python3 -Im acme", "", inVenv, "-I", ""},
		{"a script's real folder", inVenv + " link", "", inVenv, "", dir + "/app"},
		{"a folder", inVenv + " tree", "", inVenv, "", dir + "/tree"},
		{"an archive", inVenv + " app.pyz", "", inVenv, "", dir + "/app.pyz"},
		{"with what env adds", "env PYTHONPATH=/lib " + inVenv + " -m acme", "", inVenv, "", dir + " /lib"},
		{"in a relative PATH", "python3 -m acme", "venv/bin", inVenv, "", dir},
		{"by its first line", "bin/agent --fast", "", python(t), "-B", dir + "/bin"},
		{"by its first line, found in PATH", "agent", dir + "/bin", python(t), "-B", dir + "/bin"},
		{"by env in its first line", "byenv", dir + "/bin:" + venv, inVenv, "", dir + "/bin"},
		{"through env", "/usr/bin/env A=1 python3 -m acme", venv, inVenv, "", dir},
		{"through a version manager", "python3 -m acme", dir + "/shim", python(t), "", dir},
		{"a shell script", "bin/shell", "", "", "", ""},
		{"a program", "/bin/true", "", "", "", ""},
		{"nothing there", "no-such-program", "/bin", "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := run.Recipe{Command: strings.Fields(tt.command), Dir: dir, Env: []string{"PATH=" + tt.path + ":/usr/bin:/bin"}}
			got, err := process.Runtime(r)
			if err != nil {
				t.Fatal(err)
			}
			if got == nil {
				if tt.interpreter != "" {
					t.Fatal("it is not taken for Python")
				}
				return
			}
			if got.Name != "python" || got.Interpreter != tt.interpreter || strings.Join(got.Args, " ") != tt.args || strings.Join(got.Path, " ") != tt.search {
				t.Errorf("Runtime = %+v, want %q %q %q", got, tt.interpreter, tt.args, tt.search)
			}
		})
	}
	if r, err := process.Runtime(run.Recipe{}); r != nil || err != nil {
		t.Errorf("of no command: %+v, %v", r, err)
	}
	if r, err := process.Runtime(run.Recipe{Command: []string{"python3"}, Env: []string{"PATH=" + dir}}); err == nil {
		t.Errorf("of a Python that is not there: %+v and no error", r)
	}
}

func TestTheMainOfAnArchiveNeverRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newPython(t, process.PythonConfig{})
	for source, want := range map[string]probe.Outcome{
		"import os\nopen('" + dir + "/RAN', 'w')\n": probe.Healthy,
		"import no_such_module\n":                   probe.Broken,
	} {
		zipApp(t, dir+"/app.pyz", source)
		r, err := p.Probe(t.Context(), probe.Plan{Interpreter: python(t), Path: []string{dir + "/app.pyz"},
			Modules: []string{freshimport.Main(dir + "/app.pyz")}, Env: os.Environ()})
		if err != nil || r.Outcome != want {
			t.Errorf("Probe = %+v, %v, want %s", r, err, want)
		}
	}
	if _, err := os.Stat(dir + "/RAN"); err == nil {
		t.Error("the program ran")
	}
}

// zipApp writes an archive that Python can run, as zipapp does.
func zipApp(t testing.TB, path, main string) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("#!/usr/bin/env python3\n")
	z := zip.NewWriter(&b)
	z.SetOffset(int64(b.Len()))
	w, err := z.Create("__main__.py")
	if err == nil {
		_, err = w.Write([]byte(main))
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkProbe compares a probe with the bare command that imports the same modules, alternating.
func BenchmarkProbe(b *testing.B) {
	tree := write(b, map[string]string{"acme/__init__.py": "", "acme/wire.py": "import json, logging\n", "acme/loop.py": "import acme.wire\n"})
	p := newPython(b, process.PythonConfig{})
	plan := probe.Plan{Interpreter: python(b), Path: []string{tree}, Modules: []string{"acme.wire", "acme.loop"}, Env: os.Environ()}
	var bare, probed time.Duration
	for b.Loop() {
		began := time.Now()
		c := exec.Command(plan.Interpreter, "-c", "import sys; sys.path.insert(0, "+"'"+tree+"'); import acme.wire, acme.loop")
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		bare += time.Since(began)
		began = time.Now()
		if r, err := p.Probe(context.Background(), plan); err != nil || r.Outcome != probe.Healthy {
			b.Fatalf("%+v, %v", r, err)
		}
		probed += time.Since(began)
	}
	b.ReportMetric(float64(bare.Microseconds())/float64(b.N), "bare-us")
	b.ReportMetric(float64(probed.Microseconds())/float64(b.N), "probe-us")
	b.ReportMetric(float64(probed)/float64(bare), "ratio")
}

// BenchmarkLaunch compares the starts of a replacement with a bare start and wait, alternating.
func BenchmarkLaunch(b *testing.B) {
	spec := process.Spec{Command: []string{"/bin/true"}, Env: []string{"PATH=/usr/bin:/bin", "PWD=/", "HOME=/"}, Log: filepath.Join(b.TempDir(), "log")}
	var bare, held, detached time.Duration
	for b.Loop() {
		began := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		bare += time.Since(began)
		began = time.Now()
		h, err := process.StartHeld(spec)
		if err == nil {
			err = h.Release()
		}
		if err != nil {
			b.Fatal(err)
		}
		h.Wait()
		held += time.Since(began)
		began = time.Now()
		c, err := process.StartDetached(spec)
		if err != nil {
			b.Fatal(err)
		}
		c.Wait()
		detached += time.Since(began)
	}
	for name, d := range map[string]time.Duration{"bare-us": bare, "held-us": held, "detached-us": detached} {
		b.ReportMetric(float64(d.Microseconds())/float64(b.N), name)
	}
}
