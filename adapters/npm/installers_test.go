package npm_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/npm"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// installer is one of those beside npm, in one of its ways to fill node_modules.
type installer struct {
	program string
	files   map[string]string // its configuration, in the project
	record  string            // what it writes down last
	// early is set for the one that writes its record before the packages' scripts run.
	early bool
}

var installers = map[string]installer{
	"pnpm":          {program: "pnpm", files: map[string]string{"pnpm-workspace.yaml": "dangerouslyAllowAllBuilds: true\npackages:\n  - packages/*\n"}, record: "node_modules/.pnpm/lock.yaml"},
	"pnpm hoisted":  {program: "pnpm", files: map[string]string{"pnpm-workspace.yaml": "nodeLinker: hoisted\ndangerouslyAllowAllBuilds: true\npackages:\n  - packages/*\n"}, record: "node_modules/.modules.yaml"},
	"pnpm global":   {program: "pnpm", files: map[string]string{"pnpm-workspace.yaml": "enableGlobalVirtualStore: true\ndangerouslyAllowAllBuilds: true\npackages:\n  - packages/*\n"}, record: "node_modules/.modules.yaml"},
	"yarn":          {program: "yarn", record: "node_modules/.yarn-integrity"},
	"berry":         {program: "berry", files: map[string]string{".yarnrc.yml": "nodeLinker: node-modules\nenableScripts: true\nenableTelemetry: false\n", "yarn.lock": ""}, record: "node_modules/.yarn-state.yml", early: true},
	"bun":           {program: "bun", files: map[string]string{"bunfig.toml": "[install]\nlinker = \"hoisted\"\n"}, record: "bun.lock", early: true},
	"bun, isolated": {program: "bun", files: map[string]string{"bunfig.toml": "[install]\nlinker = \"isolated\"\n"}, record: "bun.lock", early: true},
}

// site is a project that an installer works in. Packages come from archives on the disk.
type site struct {
	*app
	in   installer
	base string
	line []string
}

func newSite(t *testing.T, name string, in installer) *site {
	t.Helper()
	if testing.Short() && strings.Contains(name, " ") {
		t.Skip("the installer's usual way is tried alone")
	}
	base := t.TempDir()
	s := &site{&app{t, filepath.Join(base, "app"), nil}, in, base, require.Installer(t, in.program)}
	for name, text := range in.files {
		s.write(name, text)
	}
	if err := os.Mkdir(filepath.Join(base, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "CI=true", "HOME="+s.base, "TMPDIR="+filepath.Join(s.base, "tmp"), "HOLD="+filepath.Join(s.base, "hold"), "XDG_DATA_HOME="+filepath.Join(s.base, "data"), "XDG_CACHE_HOME="+filepath.Join(s.base, "cache"),
		"YARN_CACHE_FOLDER="+filepath.Join(s.base, "cache", "yarn"), "BUN_INSTALL="+filepath.Join(s.base, "bun"), "BUN_INSTALL_CACHE_DIR="+filepath.Join(s.base, "cache", "bun"),
		"npm_config_cache="+filepath.Join(s.base, "cache", "npm"), "npm_config_offline=true", "npm_config_update_notifier=false")
	if s.in.program == "pnpm" {
		cmd.Env = append(cmd.Env, "CI=") // it would refuse a changed lockfile, and a store for all projects
	}
	return cmd
}

func (s *site) run(dir string, args ...string) {
	s.t.Helper()
	if out, err := s.command(dir, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// pack makes an archive of a package, as npm does.
func (s *site) pack(version, code, scripts string) string {
	s.t.Helper()
	dir := filepath.Join(s.base, "wire-"+version)
	a := &app{s.t, dir, nil}
	a.write("package/package.json", `{"name": "@acme/wire", "version": "`+version+`", "scripts": {`+scripts+`}}`)
	a.write("package/index.js", code)
	a.write("package/wait.js", `const fs = require("fs"); fs.writeFileSync(process.env.HOLD + "/here", "");
setInterval(() => { if (fs.existsSync(process.env.HOLD + "/go")) process.exit(0) }, 20);`)
	s.run(dir, "tar", "-czf", "wire.tgz", "package")
	return filepath.Join(dir, "wire.tgz")
}

// manifest writes a package.json that asks for an archive.
func (s *site) manifest(file, name, archive, more string) {
	s.t.Helper()
	s.write(file, fmt.Sprintf(`{"name": %q, "version": "0.3.0", "private": true, "dependencies": {"@acme/wire": "file:%s"}%s}`, name, archive, more))
}

// install calls the installer, which may change its lockfile.
func (s *site) install() *exec.Cmd {
	args := append(append([]string{}, s.line...), "install")
	switch s.in.program {
	case "pnpm":
		args = append(args, "--no-frozen-lockfile", "--offline")
	case "yarn":
		args = append(args, "--offline", "--non-interactive")
	case "berry":
		args = append(args, "--no-immutable")
	}
	return s.command(s.dir, args...)
}

func (s *site) installed() {
	s.t.Helper()
	cmd := s.install()
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// known are the identities of the package and of the project, which have to be known.
func (s *site) known(when string) (wire, project witness.Identity) {
	s.t.Helper()
	wire, project = identify(s.t, s.wire()), identify(s.t, s.project())
	if !wire.Known() || !project.Known() {
		s.t.Fatalf("%s the identities are %+v and %+v", when, wire, project)
	}
	return wire, project
}

const scripted = `, "pnpm": {"onlyBuiltDependencies": ["@acme/wire"]}, "trustedDependencies": ["@acme/wire"], "dependenciesMeta": {"@acme/wire": {"built": true}}`

// TestInstallers: what each installer really leaves in node_modules is understood, half way through an installation and after
// one that was killed as well, and an update is a witness.
func TestInstallers(t *testing.T) {
	t.Parallel()
	for name, in := range installers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, name, in)
			s.write("src/main.js", "require('@acme/wire')\n")
			s.manifest("package.json", "acme", s.pack("1.0.0", "exports.x = 1\n", ""), scripted)
			s.installed()
			wire, project := s.known("installed")
			if !strings.HasPrefix(wire.Key(), "1.0.0@") || !strings.HasPrefix(project.Key(), "0.3.0@") {
				t.Errorf("keys are %s and %s", wire.Key(), project.Key())
			}
			s.remove("node_modules")
			s.installed()
			if w, p := s.known("installed again"); w.Key() != wire.Key() || p.Key() != project.Key() {
				t.Errorf("installed again the keys are %s and %s, they were %s and %s", w.Key(), p.Key(), wire.Key(), project.Key())
			}
			s.damaged(wire, project)

			began := time.Now()
			s.manifest("package.json", "acme", s.pack("2.0.0", "exports.y = 1\n", `"install": "node wait.js"`), scripted)
			_, project = s.halfWay(wire)
			s.installed()
			w, p := s.known("updated")
			if !strings.HasPrefix(w.Revision, "2.0.0@") || p.Key() == project.Key() && project.Known() && !in.early {
				t.Errorf("after the update the identities are %+v and %+v", w, p)
			}
			s.witnessed(wire, began)
			s.write("package.json", `{"name": "acme", "version": "0.3.0", "private": true}`)
			s.installed()
			if id := identify(t, s.wire()); id.Known() || !strings.Contains(id.Unknown, "is not installed") && !strings.Contains(id.Unknown, "not on yarn's list") {
				t.Errorf("after it was taken out the package is %+v", id)
			}
			if id := identify(t, s.project()); !id.Known() || id.Key() == p.Key() {
				t.Errorf("after the package was taken out the project is %+v", id)
			}
		})
	}
}

// halfWay begins an installation whose package waits in a script of its own, looks, kills the installer and looks again.
func (s *site) halfWay(was witness.Identity) (wire, project witness.Identity) {
	t := s.t
	t.Helper()
	hold := filepath.Join(s.base, "hold")
	if err := os.Mkdir(hold, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := s.install()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	kill := func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := os.Stat(filepath.Join(hold, "here")); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the installer ended before the package's script ran: %v\n%s", err, out.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			kill()
			t.Fatal("the package's script did not run within a minute")
		}
	}
	look := func(when string) {
		wire, project = identify(t, s.wire()), identify(t, s.project())
		if wire.Key() == was.Key() && wire.Known() {
			t.Errorf("%s the package is still %s", when, was.Key())
		}
		if s.in.early {
			return
		}
		if project.Known() || !strings.Contains(project.Unknown, "under way") {
			t.Errorf("%s the project is %+v, want unknown: an installation is under way", when, project)
		}
		if o, err := newSource(t, npm.Config{}).Observe(t.Context(), s.project()); err != nil || o.NoSignal == nil {
			t.Errorf("%s the project is quiet since %s, %v", when, o.Changed, err)
		}
	}
	look("half way through the installation")
	kill()
	if err := <-ended; err == nil {
		t.Error("the installer was killed and ended well")
	}
	look("after the installer was killed")
	if err := os.WriteFile(filepath.Join(hold, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return wire, project
}

// damaged cuts the record at many places: the project is unknown, or it is what it was.
func (s *site) damaged(wire, project witness.Identity) {
	s.t.Helper()
	at := filepath.Join(s.dir, s.in.record)
	whole, err := os.ReadFile(at)
	if err != nil {
		s.t.Fatal(err)
	}
	unknown := 0
	for i := range 20 {
		s.write(s.in.record, string(whole[:len(whole)*i/20]))
		for _, c := range []struct{ root, was witness.Identity }{{identify(s.t, s.wire()), wire}, {identify(s.t, s.project()), project}} {
			switch {
			case !c.root.Known():
				unknown++
			case c.root.Key() != c.was.Key():
				s.t.Errorf("with %d of %d twentieths of %s the root is %s, it was %s", i, 20, s.in.record, c.root.Key(), c.was.Key())
			}
		}
	}
	if unknown == 0 {
		s.t.Errorf("no damage to %s made a root unknown", s.in.record)
	}
	s.write(s.in.record, string(whole))
	if w, p := s.known("mended"); w.Key() != wire.Key() || p.Key() != project.Key() {
		s.t.Errorf("mended the keys are %s and %s, they were %s and %s", w.Key(), p.Key(), wire.Key(), project.Key())
	}
}

// witnessed asks for the proof of the update: for a death after it, and for one before.
func (s *site) witnessed(boot witness.Identity, began time.Time) {
	s.t.Helper()
	for name, tt := range map[string]struct {
		to    time.Time
		holds bool
	}{"after": {time.Now().Add(time.Minute), true}, "before": {began.Add(-time.Minute), false}} {
		f, err := witness.Gather(s.t.Context(), witness.Request{
			Verdict: classify.Verdict{Module: "@acme/wire", Symbol: "x", Root: "wire"},
			Roots:   []witness.Root{s.wire()}, Boot: []witness.Identity{boot},
			Window:  stamp.Window{From: stamp.Wall(began.Add(-time.Hour), 0), To: stamp.Wall(tt.to, 0)},
			Sources: map[string]witness.Source{npm.Kind: newSource(s.t, npm.Config{})},
		})
		if err != nil {
			s.t.Fatal(err)
		}
		if f.Holds() != tt.holds {
			s.t.Errorf("a death %s the update: witnesses %+v, want proof: %v", name, f, tt.holds)
		}
	}
}

// TestWorkspaces: what is installed for a member counts for it, wherever the installer puts it.
func TestWorkspaces(t *testing.T) {
	t.Parallel()
	for name, in := range installers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, name, in)
			s.write("package.json", `{"name": "all", "version": "1.0.0", "private": true, "workspaces": ["packages/*"]}`)
			s.manifest("packages/a/package.json", "acme", s.pack("1.0.0", "exports.x = 1\n", ""), "")
			s.write("packages/a/main.js", "require('@acme/wire')\n")
			s.manifest("packages/b/package.json", "other", s.pack("3.0.0", "exports.z = 1\n", ""), "")
			member := s.project()
			member.Dirs = []string{filepath.Join(s.dir, "packages", "a")}
			wire := s.wire()
			wire.Dirs = []string{filepath.Join(s.dir, "packages", "a"), s.dir}
			look := func(version string) string {
				t.Helper()
				s.installed()
				w, m, all := identify(t, wire), identify(t, member), identify(t, s.project())
				if !strings.HasPrefix(w.Revision, version) || !m.Known() || !all.Known() {
					t.Fatalf("the package is %+v, the member %+v, the whole %+v", w, m, all)
				}
				return m.Key()
			}
			one := look("1.0.0@")
			s.manifest("packages/a/package.json", "acme", s.pack("2.0.0", "exports.y = 1\n", ""), "")
			between := identify(t, member)
			two := look("2.0.0@")
			if one == two || between.Known() && between.Key() == two {
				t.Errorf("the member is %s, then %+v, then %s", one, between, two)
			}
		})
	}
}
