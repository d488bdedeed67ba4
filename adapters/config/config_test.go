package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/probe/canary"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/witness"
)

var update = flag.Bool("update", false, "rewrite the expected problems in testdata")

// TestErrors reads each bad file in testdata/errors and compares all its problems with the .golden beside it.
func TestErrors(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bad files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := &parser{file: filepath.Base(file), base: "/etc/acme", folder: standIn, future: standIn, detect: func(string, string) string { return KindFolder }}
			p.document(data)
			if len(p.problems) == 0 {
				t.Fatal("the file was read, want problems")
			}
			got := p.err().Error() + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v: run the test with -update and review the file", err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
		})
	}
}

// standIn knows every folder but those whose name says that they are missing.
func standIn(base, dir string) (string, error) {
	abs, err := absolute(base, dir)
	if err == nil && strings.Contains(abs, "missing") {
		err = errors.New(abs + ": no such file or directory")
	}
	return abs, err
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got, err := Parse("/etc/acme/acme.yaml", []byte("other: {x: 1}\nagent_auto_restart: {}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.File = "/etc/acme/acme.yaml"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("an empty block is not the defaults (-want +got):\n%s", d)
	}
	if d := cmp.Diff(resume.Limits{Window: time.Hour, Attempts: 3, PerBoot: 50}, got.Sessions.Limits()); d != "" || !got.Sessions.AutoResume {
		t.Errorf("limits of auto-resume (-want +got):\n%s", d)
	}
	set := restart.Settings{Quiescence: 30 * time.Second, MaxDefer: 30 * time.Minute, Resurface: 10 * time.Minute, Retention: 30 * 24 * time.Hour, StormPerEpisode: 12, StormPer30m: 20}
	if d := cmp.Diff(set, got.Settings()); d != "" {
		t.Errorf("settings (-want +got):\n%s", d)
	}
}

func TestZeroIsNotAbsent(t *testing.T) {
	t.Parallel()
	got, err := Parse("c.yaml", []byte("agent_auto_restart: {quiescence_seconds: 0, enabled: false, notifiers: []}"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Quiescence != 0 || got.Settings().Quiescence >= 0 {
		t.Errorf("quiescence %v, settings %v: a zero in the file means none", got.Quiescence, got.Settings().Quiescence)
	}
	if got.Enabled || !got.Settings().Disabled {
		t.Error("enabled: false was not taken over")
	}
	if got.Notifiers == nil || len(got.Notifiers) != 0 {
		t.Errorf("notifiers %v: an empty list tells nobody", got.Notifiers)
	}
}

func TestWholeFile(t *testing.T) {
	t.Parallel()
	dir := resolvedTemp(t)
	for _, d := range []string{"lib/acme", "real", "site"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "lib", ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "acme.yaml")
	text := `
logging: {level: debug}
agent_auto_restart:
  enabled: true
  quiescence_seconds: 5
  max_defer_seconds: 60
  pending_resurface_seconds: 7
  retention_days: 9
  storm_max_per_episode: 3
  storm_max_per_30m: 4
  project: acme
  workspaces: [work/later, link]
  roots:
    - name: lib
      dirs: [lib/acme]
      modules: [acme]
      runtime: python
      third_party: true
    - {name: linked, dirs: [./link], bindings: [acme_core]}
    - {name: pkg, package: acme-tools, dirs: [site], modules: [acme_tools]}
  packs: [sig.yaml, /etc/acme/more.yaml]
  notifiers:
    - log
    - {kind: inbox, dir: inbox}
restart_notice: {enabled: false, target: s1, mode: inject, grace_seconds: 0, wait_seconds: 3, ignored_prefixes: [], text: Back., dir: work/boot}
self_restart:
  unit: acme.service
  manager: user
  canary:
    {always: true, command: [bin/acme, "a b"], preflight: [bin/acme, check], path: /alive, port: 8080, port_variable: ACME_PORT, live: [work/data], state: {A: "", B: b/c, C: /srv/c}}
sessions: {dsn: link/s.log, driver: log, auto_resume: false, auto_resume_window: 90s, attempts: 2, per_boot: 7}
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Load("acme.yaml", "", dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := func(p string) string { return filepath.Join(dir, p) }
	want := Config{
		File: file, Enabled: true, Quiescence: 5 * time.Second, MaxDefer: time.Minute, Resurface: 7 * time.Second, Retention: 9 * 24 * time.Hour,
		StormPerEpisode: 3, StormPer30m: 4, Project: "acme", Workspaces: []string{in("work/later"), in("real")},
		Roots: []witness.Root{
			{Root: classify.Root{Name: "lib", Dirs: []string{in("lib/acme")}, Modules: []string{"acme"}, ThirdParty: true}, Kind: "git", Runtime: "python"},
			{Root: classify.Root{Name: "linked", Dirs: []string{in("real")}, Bindings: []string{"acme_core"}}, Kind: "folder", Declared: []string{in("link")}},
			{Root: classify.Root{Name: "pkg", Dirs: []string{in("site")}, Modules: []string{"acme_tools"}}, Kind: "pypackage", Package: "acme-tools"},
		},
		Notifiers: []Notifier{{Kind: Log}, {Kind: Inbox, Dir: in("inbox")}},
		Packs:     []string{in("sig.yaml"), "/etc/acme/more.yaml"},
		Notice: bootnotice.Config{Disabled: true, Target: "s1", Mode: bootnotice.Inject, Grace: -1, Wait: 3 * time.Second,
			Ignore: []string{}, Text: "Back."},
		NoticeDir: in("work/boot"),
		SelfRestart: SelfRestart{Unit: "acme.service", Manager: "user", Canary: Canary{Always: true, Command: []string{"bin/acme", "a b"},
			Preflight: []string{"bin/acme", "check"}, Path: "/alive", Port: 8080, PortVar: "ACME_PORT", Live: []string{in("work/data")},
			State: []StateVar{{"A", ""}, {"B", "b/c"}, {"C", "/srv/c"}}}},
		Sessions: Sessions{Driver: DriverLog, DSN: in("real/s.log"), Window: 90 * time.Second, Attempts: 2, PerBoot: 7},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("config (-want +got):\n%s", d)
	}
}

// TestDocumentedExample reads the file in the package comment: it must be whole, and name every key that there is.
func TestDocumentedExample(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(src)) {
		if sample, ok := strings.CutPrefix(line, "//\t"); ok {
			text.WriteString(sample)
		}
	}
	p := &parser{file: "doc.go", folder: standIn, future: standIn, detect: func(_, pkg string) string {
		if pkg != "" {
			return KindPackage
		}
		return KindGit
	}}
	c := p.document([]byte(text.String()))
	if len(p.problems) > 0 {
		t.Fatal(p.err())
	}
	for _, key := range slices.Concat(blockKeys(), noticeKeys(), selfRestartKeys(), canaryKeys(), sessionKeys(), []string{"name", "kind", "dirs", "modules", "bindings", "package", "runtime", "third_party"}) {
		if !strings.Contains(text.String(), key+":") {
			t.Errorf("the example has no %s", key)
		}
	}
	roots := c.Roots
	want := Default()
	want.Roots, want.Workspaces, want.ProbeCommand = roots, nil, []string{"perl", "-c"}
	want.Sessions.DSN = c.Sessions.DSN
	// What has no default of its own here is shown by an example.
	want.SelfRestart = SelfRestart{Unit: "acme.service", Manager: "system", Canary: Canary{Command: []string{"/srv/acme/bin/acme", "serve"},
		Preflight: []string{"/srv/acme/bin/acme", "check"}, Path: canary.DefaultPath, PortVar: canary.DefaultPortVar,
		Live: []string{"/srv/acme/data"}, State: []StateVar{{Var: "ACME_DATA"}}}}
	if d := cmp.Diff(want, c); d != "" || len(roots) != 2 || roots[1].Kind != KindPackage {
		t.Errorf("the example does not show the defaults (-want +got):\n%s", d)
	}
}

// TestDetectKind: a kind is guessed only from what is certain.
func TestDetectKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{
		"work/.git/HEAD", "work/in/x.py", "work/in/package.json", "work/in/node_modules/.package-lock.json",
		"app/package.json", "app/node_modules/.package-lock.json", "app/node_modules/@acme/wire/package.json",
		"pnpm/package.json", "pnpm/node_modules/.modules.yaml", "yarn/package.json", "yarn/node_modules/.yarn-integrity", "berry/package.json", "berry/node_modules/.yarn-state.yml",
		"bun/package.json", "bun/bun.lock", "bun/node_modules/x/package.json", "lock/package.json", "lock/bun.lock",
		"bare/package.json", "left/node_modules/.package-lock.json", "home/specifications/x", "home/gems/x", "site/acme/package.json", "lib/acme.jar",
	} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ dir, pkg, want string }{
		{"work", "", KindGit}, {"work/in", "", KindGit}, {"app", "", KindNPM}, {"bare", "", KindFolder}, {"left", "", KindFolder},
		{"pnpm", "", KindNPM}, {"yarn", "", KindNPM}, {"berry", "", KindNPM}, {"bun", "", KindNPM}, {"lock", "", KindFolder}, {"home", "", KindFolder},
		{"app", "@acme/wire", KindNPM}, {"app/node_modules", "@acme/wire", KindNPM}, {"app/node_modules/@acme/wire", "@acme/wire", KindNPM},
		{"app", "other", KindPackage}, {"site", "acme", KindPackage}, {"home", "acme", KindGem}, {"lib", "acme-*.jar", KindJar},
	} {
		if got := DetectKind(filepath.Join(dir, tt.dir), tt.pkg); got != tt.want {
			t.Errorf("the kind of %s with package %q is %s, want %s", tt.dir, tt.pkg, got, tt.want)
		}
	}
}

func TestHostsOwnKinds(t *testing.T) {
	t.Parallel()
	text := "agent_auto_restart: {roots: [{name: img, kind: bundle, runtime: node, dirs: [/], modules: [acme]}]}"
	p := &parser{file: "c", folder: func(_, d string) (string, error) { return "/srv" + d, nil }, options: Options{Kinds: []string{"bundle"}, Runtimes: []string{"node"}}}
	if c := p.document([]byte(text)); len(p.problems) > 0 || c.Roots[0].Kind != "bundle" || c.Roots[0].Runtime != "node" {
		t.Errorf("got %+v, problems %v", c.Roots, p.problems)
	}
	if _, err := Parse("c", []byte(text), Options{}); err == nil {
		t.Error("a kind that nobody knows was taken")
	}
}

// TestFind pins which file is read, and that one which somebody named must be there.
func TestFind(t *testing.T) {
	t.Parallel()
	dir := resolvedTemp(t)
	write := func(name, project string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte("agent_auto_restart: {project: "+project+"}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	empty := t.TempDir()
	env := write("env.yaml", "env")
	write("flag.yaml", "flag")
	write(FileName, "here")
	for _, c := range []struct{ name, explicit, env, dir, want string }{
		{"flag first", "flag.yaml", env, dir, "flag"},
		{"then the environment", "", env, dir, "env"},
		{"then the folder", "", "", dir, "here"},
		{"then the defaults", "", "", empty, DefaultProject},
	} {
		got, err := Load(c.explicit, c.env, c.dir, Options{})
		if err != nil || got.Project != c.want {
			t.Errorf("%s: project %q, %v; want %q", c.name, got.Project, err, c.want)
		}
	}
	for from, load := range map[string]func() (Config, error){
		"--config":         func() (Config, error) { return Load("gone.yaml", "", dir, Options{}) },
		"$MULLIGAN_CONFIG": func() (Config, error) { return Load("", "gone.yaml", dir, Options{}) },
	} {
		if _, err := load(); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), from) {
			t.Errorf("a missing file that %s names: error %v", from, err)
		}
	}
}

func TestProblemsHaveLines(t *testing.T) {
	t.Parallel()
	_, err := Parse("c.yaml", []byte("agent_auto_restart:\n  enabled: maybe\n  storm_max_per_30m: none\n"), Options{})
	var all *Error
	if !errors.As(err, &all) || len(all.Problems) != 2 || all.Problems[0].Line != 2 || all.Problems[1].Line != 3 {
		t.Errorf("error %v, want both problems with lines 2 and 3", err)
	}
}

func resolvedTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCommandNeedsToBeDeclared: a runtime that says "command" without one would never try anything.
func TestCommandNeedsToBeDeclared(t *testing.T) {
	t.Parallel()
	text := "agent_auto_restart: {roots: [{name: a, dirs: [/x], modules: [a], runtime: command}]%s}"
	for more, want := range map[string]string{"": "needs probe_command", ", probe_command: [perl, -c]": "", ", probe_command: []": "at least one entry"} {
		p := &parser{file: "c", folder: standIn, future: standIn, detect: func(string, string) string { return KindGit }}
		p.document([]byte(strings.Replace(text, "%s", more, 1)))
		if len(p.problems) > 0 != (want != "") || want != "" && !strings.Contains(p.err().Error(), want) {
			t.Errorf("with %q: %v, want %q", more, p.problems, want)
		}
	}
}
