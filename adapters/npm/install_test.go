package npm_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/npm"
	"github.com/mulligan-dev/mulligan/internal/require"
)

// TestNPM: what npm really writes is what the source understands, half way through an installation as well.
func TestNPM(t *testing.T) {
	t.Parallel()
	require.Works(t, "apt-get install npm", "npm", "--version")
	base := t.TempDir()
	a := &app{t, filepath.Join(base, "app"), nil}
	pack := &app{t, filepath.Join(base, "wire"), nil}
	a.write("package.json", `{"name": "acme", "version": "0.3.0"}`)
	a.write("src/main.js", "require('@acme/wire')\n")
	command := func(dir string, args ...string) *exec.Cmd {
		cmd := exec.Command("npm", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+base, "npm_config_cache="+filepath.Join(base, "cache"), "npm_config_userconfig="+filepath.Join(base, "npmrc"),
			"npm_config_offline=true", "npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false")
		return cmd
	}
	run := func(dir string, args ...string) {
		t.Helper()
		if out, err := command(dir, args...).CombinedOutput(); err != nil {
			t.Fatalf("npm %v: %v\n%s", args, err, out)
		}
	}
	build := func(version, code, scripts string) string {
		t.Helper()
		pack.write("package.json", `{"name": "@acme/wire", "version": "`+version+`", "scripts": {`+scripts+`}}`)
		pack.write("index.js", code)
		run(pack.dir, "pack", "--silent")
		return filepath.Join(pack.dir, "acme-wire-"+version+".tgz")
	}
	install := func(archive string) (wire, project string) {
		t.Helper()
		run(a.dir, "install", archive)
		w, p := identify(t, a.wire()), identify(t, a.project())
		if !w.Known() || !p.Known() {
			t.Fatalf("after npm installed %s the identities are %+v and %+v", archive, w, p)
		}
		return w.Key(), p.Key()
	}
	one := build("1.0.0", "exports.x = 1\n", "")
	wire, project := install(one)
	if !strings.HasPrefix(wire, "1.0.0@") || !strings.HasPrefix(project, "0.3.0@") {
		t.Errorf("keys are %s and %s", wire, project)
	}
	a.remove("node_modules")
	if w, p := install(one); w != wire || p != project {
		t.Errorf("installed again the keys are %s and %s, they were %s and %s", w, p, wire, project)
	}

	// The next version waits in the middle of its installation, until it is told to go on.
	hold := filepath.Join(base, "hold")
	if err := os.Mkdir(hold, 0o755); err != nil {
		t.Fatal(err)
	}
	pack.write("wait.js", `const fs = require("fs"); fs.writeFileSync(process.env.HOLD + "/here", "");
const poll = setInterval(() => { if (fs.existsSync(process.env.HOLD + "/go") || !fs.existsSync(process.env.HOLD)) clearInterval(poll) }, 20);`)
	two := build("2.0.0", "exports.y = 1\n", `"preinstall": "node wait.js"`)
	cmd := command(a.dir, "install", "--foreground-scripts", two)
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(cmd.Env, "HOLD="+hold), &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := os.Stat(filepath.Join(hold, "here")); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("npm ended before its script ran: %v\n%s", err, out.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Error("npm's script did not run within a minute")
			break
		}
	}
	for _, r := range []struct{ name, was, is string }{{"package", wire, identify(t, a.wire()).Key()}, {"project", project, identify(t, a.project()).Key()}} {
		if r.is == r.was {
			t.Errorf("half way through the installation the %s is still %s", r.name, r.was)
		}
	}
	if err := os.WriteFile(filepath.Join(hold, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("npm: %v\n%s", err, out.String())
	}
	if w, p := identify(t, a.wire()), identify(t, a.project()); !strings.HasPrefix(w.Revision, "2.0.0@") || p.Key() == project || !p.Known() {
		t.Errorf("after the update the identities are %+v and %+v", w, p)
	}
	now, since, err := newSource(t, npm.Config{}).InForce(t.Context(), a.wire())
	if err != nil || since.IsZero() || since.Sub(now.At) > 0 {
		t.Errorf("in force since %s, %v; read at %s", since, err, now.At)
	}
	run(a.dir, "uninstall", "@acme/wire")
	if id := identify(t, a.wire()); id.Known() || !strings.Contains(id.Unknown, "is not installed") {
		t.Errorf("after npm uninstall the identity is %+v", id)
	}
	// A folder that is installed for working on it is a link.
	run(a.dir, "install", "--ignore-scripts", pack.dir)
	if id := identify(t, a.wire()); id.Known() || !strings.Contains(id.Unknown, "is a link") {
		t.Errorf("a linked package is %+v", id)
	}
}
