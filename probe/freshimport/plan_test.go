package freshimport_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
)

func TestRuntimePath(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, argv, env string
		tree            bool
		want            string
	}{
		{"script", "python3 bin/agent.py", "", false, "/srv/acme/bin"},
		{"module", "python3 -m acme", "", false, "/work/here"},
		{"code", "python3 -c pass", "", false, "/work/here"},
		{"folder or archive", "python3 app.pyz", "", true, "/srv/acme/bin/agent.py"},
		{"folder with -P", "python3 -P app", "", true, "/srv/acme/bin/agent.py"},
		{"PYTHONPATH", "python3 -m acme", "PYTHONPATH=/a:/b", false, "/work/here /a /b"},
		{"PYTHONPATH with gaps", "python3 -m acme", "PYTHONPATH=:lib:/b:", false, "/work/here /work/here /work/here/lib /b /work/here"},
		{"empty PYTHONPATH", "python3 -m acme", "PYTHONPATH=", false, "/work/here"},
		{"-E", "python3 -E bin/agent.py", "PYTHONPATH=/a", false, "/srv/acme/bin"},
		{"-I", "python3 -I bin/agent.py", "PYTHONPATH=/a", false, ""},
		{"-P", "python3 -P bin/agent.py", "PYTHONPATH=/a", false, "/a"},
		{"PYTHONSAFEPATH", "python3 bin/agent.py", "PYTHONSAFEPATH=1 PYTHONPATH=/a", false, "/a"},
		{"empty PYTHONSAFEPATH", "python3 bin/agent.py", "PYTHONSAFEPATH=", false, "/srv/acme/bin"},
		{"-E against PYTHONSAFEPATH", "python3 -E bin/agent.py", "PYTHONSAFEPATH=1", false, "/srv/acme/bin"},
		{"the last PYTHONPATH counts", "python3 -P x.py", "PYTHONPATH=/a PYTHONPATH=/b", false, "/b"},
		{"from env(1)", "env PYTHONPATH=/c python3 -P x.py", "PYTHONPATH=/a", false, "/c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, ok := freshimport.Parse(strings.Fields(tt.argv))
			if !ok {
				t.Fatalf("%q is not Python", tt.argv)
			}
			at := freshimport.Place{Dir: "/work/here", Script: "/srv/acme/bin/agent.py", ScriptIsTree: tt.tree}
			rt := c.Runtime("/usr/bin/python3", c.Over(strings.Fields(tt.env)), at)
			if got := strings.Join(rt.Path, " "); got != tt.want {
				t.Errorf("path = %q, want %q", got, tt.want)
			}
			if rt.Interpreter != "/usr/bin/python3" {
				t.Errorf("interpreter = %q", rt.Interpreter)
			}
		})
	}
}

func TestModules(t *testing.T) {
	t.Parallel()
	boot := classify.Verdict{
		ManagedModules: []string{"acme.__main__", "acme.cli", "acme.loop"}, Module: "acme.transport", Runtime: "python",
	}
	script := classify.Verdict{
		ManagedModules: []string{"bin.agent", "acme.loop"}, Module: "acme.loop",
		Frames: []classify.Frame{{File: "bin/agent.py", Module: "bin.agent"}, {File: "/srv/acme/loop.py", Module: "acme.loop"}},
	}
	byScript := freshimport.Entry{Kind: freshimport.Script, Name: "bin/agent.py", File: "/srv/real/agent.py"}
	all := func(string) bool { return true }
	only := func(names ...string) func(string) bool {
		return func(m string) bool { return slices.Contains(names, m) }
	}
	tests := []struct {
		name   string
		death  freshimport.Death
		want   string
		reason string
	}{
		{"everything exists", freshimport.Death{Verdict: boot, Exists: all}, "acme.__main__ acme.cli acme.loop acme.transport",
			"the stack outermost first, then what was missing and is there now"},
		{"nil is everything", freshimport.Death{Verdict: boot}, "acme.__main__ acme.cli acme.loop acme.transport", ""},
		{"removed module", freshimport.Death{Verdict: boot, Exists: only("acme.__main__", "acme.cli", "acme.loop")},
			"acme.__main__ acme.cli acme.loop", "those that imported it are on the stack"},
		{"importer removed too", freshimport.Death{Verdict: boot, Exists: only("acme.cli")}, "acme.cli", ""},
		{"nothing left", freshimport.Death{Verdict: boot, Exists: only()}, "", "empty is no pass"},
		{"no managed code", freshimport.Death{Exists: all}, "", ""},
		{"run by -m", freshimport.Death{Exists: all, Entry: freshimport.Entry{Kind: freshimport.Module, Name: "acme.cli"}, Verdict: boot},
			"acme.__main__ main:acme.cli acme.loop acme.transport", "importing acme.cli could run the program"},
		{"run as a package", freshimport.Death{Exists: all, Entry: freshimport.Entry{Kind: freshimport.Module, Name: "acme"}, Verdict: boot},
			"acme.__main__ acme.cli acme.loop acme.transport", ""},
		{"script by its name as written", freshimport.Death{Verdict: script, Entry: byScript, Dir: "/srv/acme", Exists: all},
			"main:/srv/real/agent.py acme.loop", "a script is no module"},
		{"script that is gone", freshimport.Death{Verdict: script, Entry: byScript, Dir: "/srv/acme", Exists: only("bin.agent", "acme.loop")},
			"acme.loop", "the file is asked for, not the name"},
		{"another script", freshimport.Death{Verdict: script, Dir: "/srv/acme", Exists: all,
			Entry: freshimport.Entry{Kind: freshimport.Script, Name: "/x/agent.py", File: "/x/agent.py"}}, "bin.agent acme.loop", ""},
		{"a script that another one started", freshimport.Death{Exists: all, Dir: "/srv/acme", Verdict: classify.Verdict{
			ManagedModules: []string{"bin.agent", "acme.loop"}, Frames: []classify.Frame{
				{File: "bin/agent.py", Function: "<module>", Module: "bin.agent"}, {File: "/srv/acme/loop.py", Function: "go", Module: "acme.loop"}},
		}, Entry: freshimport.Entry{Kind: freshimport.Script, Name: "start.py", File: "/srv/acme/start.py"}}, "main:/srv/acme/bin/agent.py acme.loop",
			"importing bin.agent would run the program, though the command line names another"},
		{"imports of the script of the command line", freshimport.Death{Exists: all, Dir: "/srv/acme", Verdict: classify.Verdict{
			ManagedModules: []string{"acme.agent", "acme.loop"}, Frames: []classify.Frame{
				{File: "start.py", Function: "<module>"}, {File: "/srv/acme/agent.py", Function: "<module>", Module: "acme.agent"},
				{File: "/srv/acme/loop.py", Function: "go", Module: "acme.loop"}},
		}, Entry: freshimport.Entry{Kind: freshimport.Script, Name: "start.py", File: "/srv/acme/start.py"}}, "acme.agent acme.loop", ""},
		{"Node.js whose stack is cut off", freshimport.Death{Exists: all, Dir: "/srv/acme", Verdict: classify.Verdict{Runtime: "node",
			ManagedModules: []string{"./loop.js"}, Frames: []classify.Frame{{File: "/srv/acme/loop.js", Function: "Object.<anonymous>", Module: "./loop.js"}},
		}, Entry: freshimport.Entry{Kind: freshimport.Script, Name: "agent.js", File: "/srv/acme/agent.js"}}, "./loop.js", "agent.js may lie below"},
		{"script without frames", freshimport.Death{Verdict: classify.Verdict{ManagedModules: []string{"agent"}}, Exists: all, Entry: byScript},
			"main:/srv/real/agent.py", ""},
		{"a module of the script's name", freshimport.Death{Exists: all, Dir: "/", Verdict: classify.Verdict{
			ManagedModules: []string{"agent"}, Frames: []classify.Frame{{File: "/lib/agent.py", Module: "agent"}},
		}, Entry: byScript}, "agent", "it is another file"},
		{"program behind a wrapper, by -m", freshimport.Death{Exists: all, Verdict: classify.Verdict{
			ManagedModules: []string{"acme.agent", "acme.jobs"}, Frames: []classify.Frame{
				{File: "<frozen runpy>", Function: "_run_module_as_main"}, {File: "<frozen runpy>", Function: "_run_code"},
				{File: "/srv/acme/agent.py", Function: "<module>", Module: "acme.agent"},
				{File: "/srv/acme/jobs.py", Function: "<module>", Module: "acme.jobs"}},
		}}, "main:acme.agent acme.jobs", "importing acme.agent could run the program"},
		{"script behind a wrapper", freshimport.Death{Exists: all, Dir: "/srv/acme", Verdict: classify.Verdict{
			ManagedModules: []string{"bin.agent", "acme.loop"}, Frames: []classify.Frame{
				{File: "bin/agent.py", Function: "<module>", Module: "bin.agent"}, {File: "/srv/acme/loop.py", Function: "go", Module: "acme.loop"}},
		}}, "main:/srv/acme/bin/agent.py acme.loop", ""},
		{"script of Node.js behind a wrapper", freshimport.Death{Exists: all, Dir: "/srv/acme", Verdict: classify.Verdict{
			ManagedModules: []string{"./agent.js", "./loop.js"}, Frames: []classify.Frame{
				{File: "node:internal/main/run_main_module", Origin: classify.OriginRuntime},
				{File: "/srv/acme/agent.js", Function: "Object.<anonymous>", Module: "./agent.js"},
				{File: "/srv/acme/loop.js", Function: "Object.<anonymous>", Module: "./loop.js"}},
		}}, "main:/srv/acme/agent.js ./loop.js", ""},
		{"command of a package behind a wrapper", freshimport.Death{Exists: all, Verdict: classify.Verdict{
			ManagedModules: []string{"acme.cli"}, Frames: []classify.Frame{
				{File: "/usr/bin/agent", Function: "<module>"}, {File: "/srv/acme/cli.py", Function: "<module>", Module: "acme.cli"}},
		}}, "acme.cli", "what is at the bottom is not managed, and acme.cli is imported by it"},
		{"thread", freshimport.Death{Exists: all, Verdict: classify.Verdict{
			ManagedModules: []string{"acme.loop"}, Frames: []classify.Frame{
				{File: "/usr/lib/python3/threading.py", Function: "_bootstrap_inner"}, {File: "/srv/acme/loop.py", Function: "<module>", Module: "acme.loop"}},
		}}, "acme.loop", ""},
		{"each once", freshimport.Death{Verdict: classify.Verdict{ManagedModules: []string{"a", "b", "a", ""}, Module: "b"}, Exists: all}, "a b", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			managed := slices.Clone(tt.death.Verdict.ManagedModules)
			if got := strings.Join(freshimport.Modules(tt.death), " "); got != tt.want {
				t.Errorf("Modules = %q, want %q: %s", got, tt.want, tt.reason)
			}
			if !slices.Equal(managed, tt.death.Verdict.ManagedModules) {
				t.Error("the verdict was changed")
			}
		})
	}
}

func TestIsMain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, target string
		is           bool
	}{
		{"acme.cli", "acme.cli", false},
		{"acme.__main__", "acme.__main__", true},
		{"__main__", "__main__", true},
		{"acme.x__main__", "acme.x__main__", false},
		{freshimport.Main("acme.cli"), "acme.cli", true},
		{freshimport.Main("/srv/a.py"), "/srv/a.py", true},
	}
	for _, tt := range tests {
		if target, is := freshimport.IsMain(tt.name); target != tt.target || is != tt.is {
			t.Errorf("IsMain(%q) = %q, %t", tt.name, target, is)
		}
	}
}

func TestPlanLeavesWorkspacesOut(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, path string
		roots      string
		workspaces string
		links      map[string]string
		want       string
	}{
		{"itself", "/ws /lib", "", "/ws", nil, "/lib"},
		{"below", "/ws/src /lib", "", "/ws", nil, "/lib"},
		{"trailing slashes", "/ws/ /ws/src// /lib", "", "/ws///", nil, "/lib"},
		{"whole components", "/ws2 /wsx/ws /lib", "", "/ws", nil, "/ws2 /wsx/ws /lib"},
		{"above a workspace", "/home", "", "/home/ws", nil, "/home"},
		{"a root inside a workspace", "/ws/vendor/acme /ws", "/ws/vendor/acme", "/ws", nil, "/ws/vendor/acme"},
		{"below a root inside a workspace", "/ws/acme/lib", "/ws/acme/", "/ws", nil, "/ws/acme/lib"},
		{"a workspace inside a root", "/srv/acme/ws /srv/acme", "/srv/acme", "/srv/acme/ws", nil, "/srv/acme"},
		{"equal", "/x", "/x", "/x", nil, ""},
		{"everything is a workspace", "/lib", "", "/", nil, ""},
		{"no workspaces", "/lib", "", "", nil, "/lib"},
		{"through a symlink", "/link /lib", "", "/ws", map[string]string{"/link": "/ws/src"}, "/lib"},
		{"a release switched by a symlink", "/srv/current", "/srv/v2", "/ws", map[string]string{"/srv/current": "/srv/v2"}, "/srv/current"},
		{"dots", "/lib/../ws", "", "/ws", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := freshimport.Setting{Runtime: freshimport.Runtime{Path: strings.Fields(tt.path)}, Workspaces: strings.Fields(tt.workspaces)}
			if tt.roots != "" {
				s.Roots = []classify.Root{{Name: "acme", Dirs: strings.Fields(tt.roots)}}
			}
			if tt.links != nil {
				s.Real = func(d string) string {
					if to, ok := tt.links[d]; ok {
						return to
					}
					return d
				}
			}
			p, ok := freshimport.Plan(s, []string{"acme"})
			if got := strings.Join(p.Path, " "); !ok || got != tt.want {
				t.Errorf("path = %q, %t, want %q", got, ok, tt.want)
			}
		})
	}
}

func TestPlanOfNothingIsNone(t *testing.T) {
	t.Parallel()
	if p, ok := freshimport.Plan(freshimport.Setting{Runtime: freshimport.Runtime{Interpreter: "/py"}}, nil); ok {
		t.Errorf("a plan without modules: %+v", p)
	}
}

func TestEnvIsAllowListed(t *testing.T) {
	t.Parallel()
	in := []string{"PATH=/bin", "OPENAI_API_KEY=sk-1", "LC_ALL=C", "LD_PRELOAD=/x.so", "MULLIGAN_HOME=/m", "MULLIGAN_LAUNCH=1",
		"PYTHONPATH=/ws", "PYTHONSTARTUP=/x", "PYTHONINSPECT=1", "PYTHONHOME=/opt", "HOME=/old", "HOME=/new", "PWD=/ws",
		"SSL_CERT_FILE=/c", "novalue", "VIRTUAL_ENV=/venv", "TMPDIR=/ws/tmp", "LD_LIBRARY_PATH=/l"}
	want := "PATH=/bin LC_ALL=C PYTHONHOME=/opt HOME=/new SSL_CERT_FILE=/c VIRTUAL_ENV=/venv LD_LIBRARY_PATH=/l"
	if got := strings.Join(freshimport.Env(in), " "); got != want {
		t.Errorf("Env = %q\nwant  %q", got, want)
	}
	if freshimport.Env(nil) == nil {
		t.Error("Env(nil) is nil, which some starters take for their own environment")
	}
}
