package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/witness"
)

// objects builds a program with two libraries, and damages copies of them.
func objects(t *testing.T) string {
	t.Helper()
	gcc := require.Program(t, "gcc", "apt-get install gcc libc6-dev")
	dir := write(t, map[string]string{
		"core.c": "void core_old(void) {}\nvoid core_two(void) {}\n", "core.map": "CORE_1 { global: core_old; };\nCORE_2 { global: core_two; };\n",
		"less.c": "void core_old(void) {}\n", "less.map": "CORE_1 { global: core_old; };\n",
		"main.c":   "void core_two(void);\nvoid host(void) {}\nint main(void) { core_two(); return 0; }\n",
		"plugin.c": "void host(void);\nvoid plug(void) { host(); }\n", "torn.so": "\x7fELF", "empty.so": "", "text.so": "hello, world, this is text\n",
	})
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-o", "libcore.so.1", "core.c", "-Wl,--version-script=core.map,-soname,libcore.so.1"},
		{"-o", "main", "main.c", "libcore.so.1", "-rdynamic", "-Wl,-rpath,$ORIGIN"},
		{"-shared", "-fPIC", "-o", "plugin.so", "plugin.c"},
		{"-shared", "-fPIC", "-o", "less/libcore.so.1", "less.c", "-Wl,--version-script=less.map,-soname,libcore.so.1"},
		{"-o", "lost", "main.c", "libcore.so.1", "-rdynamic"},
	} {
		if err := os.MkdirAll(filepath.Join(dir, "less"), 0o700); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(gcc, args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("gcc %q: %v\n%s", args, err, out)
		}
	}
	whole, err := os.ReadFile(filepath.Join(dir, "libcore.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "short.so"), whole[:len(whole)/4], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo.so"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestObjects(t *testing.T) {
	t.Parallel()
	dir := objects(t)
	for _, tt := range []struct {
		name, program, module string
		path                  string
		outcome               probe.Outcome
		says                  string
	}{
		{"a program", "main", "main", "", probe.Healthy, ""},
		{"a plugin in its host", "main", "plugin.so", "", probe.Healthy, ""},
		{"a plugin in another host", "/bin/sh", "plugin.so", "", probe.Broken, "undefined symbol: host"},
		{"a plugin by its name", "main", "plugin", "", probe.Healthy, ""},
		{"the loader's own system", "main", "/bin/sh", "", probe.Healthy, ""},
		{"an object that it needs is not found", "lost", "lost", "none", probe.Broken, "libcore.so.1: cannot open shared object file"},
		{"an older object comes first", "lost", "lost", "less", probe.Broken, "undefined symbol: core_two"},
		{"cut in the middle", "main", "short.so", "", probe.Broken, "short.so"},
		{"cut in the head", "main", "torn.so", "", probe.Broken, "torn.so"},
		{"empty", "main", "empty.so", "", probe.Broken, "empty.so"},
		{"something else", "main", "text.so", "", probe.Broken, "text.so"},
		{"nobody writes to it", "main", "fifo.so", "", probe.Broken, "regular file"},
		{"a folder", "main", "less", "", probe.Broken, "less"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := func(f string) string {
				if filepath.IsAbs(f) || !strings.Contains(f, ".") && f == "plugin" {
					return f
				}
				return filepath.Join(dir, f)
			}
			p := probe.Plan{Interpreter: in(tt.program), Modules: []string{in(tt.module)}, Path: []string{filepath.Join(dir, tt.path)}}
			r, err := process.NewELF().Probe(t.Context(), p)
			if err != nil || r.Outcome != tt.outcome || !strings.Contains(r.Detail, tt.says) {
				t.Errorf("Probe = %+v, %v; want %s and %q", r, err, tt.outcome, tt.says)
			}
		})
	}
}

// TestPlanners: what is gone is not asked for but those that asked for it, and the program where nobody else is known.
func TestPlanners(t *testing.T) {
	t.Parallel()
	dir := objects(t)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := run.Run{
		Roots:      []witness.Root{{Root: classify.Root{Name: "acme", Dirs: []string{real}}}},
		Workspaces: []string{filepath.Join(real, "ws")},
		Recipe: run.Recipe{Command: []string{real + "/main"}, Dir: real,
			Env: []string{"PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + real + "/ws/lib:" + real + "/less"}},
	}
	elf := func(v classify.Verdict) (probe.Plan, bool) { return process.ELFPlanner{}.Plan(r, v) }
	command := func(v classify.Verdict) (probe.Plan, bool) {
		return process.CommandPlanner{Command: []string{"test", "-s"}}.Plan(r, v)
	}
	for _, tt := range []struct {
		name    string
		planner func(classify.Verdict) (probe.Plan, bool)
		verdict classify.Verdict
		want    string
	}{
		{"what is there", elf, classify.Verdict{Module: "plugin.so", ManagedModules: []string{real + "/main"}}, "main plugin.so"},
		{"under its number", elf, classify.Verdict{Module: "libcore.so"}, "libcore.so.1"},
		{"what is gone", elf, classify.Verdict{Module: "libgone.so", ManagedModules: []string{real + "/main"}}, "main"},
		{"nobody else is known", elf, classify.Verdict{Module: real + "/gone.so"}, "main"},
		{"no object", elf, classify.Verdict{Module: real + "/main.c"}, ""},
		{"torn", elf, classify.Verdict{Module: real + "/empty.so"}, "empty.so"},
		{"a script", command, classify.Verdict{Module: "gone", ManagedModules: []string{real + "/main.c"}}, "main.c"},
		{"nothing failed", command, classify.Verdict{}, ""},
	} {
		p, ok := tt.planner(tt.verdict)
		var got []string
		for _, m := range p.Modules {
			got = append(got, strings.TrimPrefix(m, real+"/"))
		}
		if strings.Join(got, " ") != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: the plan has %q, %t; want %q", tt.name, got, ok, tt.want)
		}
	}
	if p, _ := elf(classify.Verdict{Module: "plugin.so"}); strings.Join(p.Path, " ") != real+"/less" {
		t.Errorf("the path is %q, want the run's without the workspace's", p.Path)
	}
	if _, ok := (process.CommandPlanner{Command: []string{"no-such-command"}}).Plan(r, classify.Verdict{Module: real + "/main.c"}); ok {
		t.Error("there is a plan with a command that is not there")
	}
}
