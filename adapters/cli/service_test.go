package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mulligan-dev/mulligan/adapters/cli"
	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/restart/drain"
)

// unit runs the command line, and puts the unit that it shows into the file "unit", with what differs from machine to
// machine taken out: unit NAME ARG...
func unit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: unit NAME ARG...")
	}
	ts.Check(ts.Exec("mulligan", args[1:]...))
	out := strings.ReplaceAll(ts.ReadFile("stdout"), ts.Getenv("WORK"), "/there")
	out = regexp.MustCompile(`(?m)^Environment=.*$`).ReplaceAllString(out, "Environment=PATH=/usr/bin:/bin")
	out = regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAllString(out, "ExecStart=mulligan")
	out = regexp.MustCompile(`(?m)^A user's services end.*\n`).ReplaceAllString(out, "") // as the machine's user has it
	ts.Check(os.WriteFile(ts.MkAbs("unit"), []byte(out), 0o600))
}

// The service gets longer to stop than a drain with the default waits may take.
func TestServiceOutwaitsADrain(t *testing.T) {
	t.Parallel()
	d, err := drain.New(drain.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("testdata/script/service.txtar")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`TimeoutStopSec=(\d+)`).FindSubmatch(b)
	if found == nil {
		t.Fatal("no TimeoutStopSec=")
	}
	if stop, err := time.ParseDuration(string(found[1]) + "s"); err != nil || stop <= d.Bound() {
		t.Errorf("the service gets %v, a drain takes up to %v (%v)", stop, d.Bound(), err)
	}
}

// A program that is gone in a moment is put into no unit, and one that only has such a name is.
func TestServiceIsOfAProgramThatStays(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]int{"/tmp/go-build1/b001/exe/mulligan": cli.CodeUsage, "/opt/exe/mulligan": 0, "/go-build1/b001/mulligan": 0} {
		env := newEnv(t, t.TempDir())
		env.Runner = []string{program}
		code := execute(env, "service", "install", "--system", "-n")
		out, text := read(t, env.Stdout), read(t, env.Stderr)
		if code != want || strings.Contains(out, "ExecStart="+program) != (want == 0) || want != 0 && !strings.Contains(text, "go run") {
			t.Errorf("%s: code %d, %s%s", program, code, out, text)
		}
	}
}

// mulligan runs the command line in the test binary, which inside a systemd is where it is.
func mulligan(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(filepath.SplitList(os.Getenv("PATH"))[0], "mulligan"), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// answer installs at a terminal, where somebody answers.
func answer(t *testing.T, env []string, says string, flags ...string) string {
	t.Helper()
	script := require.Program(t, "script", "apt-get install bsdutils")
	cmd := exec.CommandContext(t.Context(), script, "-qec", strings.Join(append([]string{"mulligan service install"}, flags...), " "), "/dev/null")
	cmd.Env, cmd.Stdin = append(os.Environ(), env...), strings.NewReader(says)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return string(out)
}

func TestServiceUnderSystemManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.SystemManager) {
		serviceRuns(t, "--system")
	}
}

func TestServiceUnderUserManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.UserManager) {
		serviceRuns(t)
	}
}

// serviceRuns installs the real loop, sees it run, killed and started again, and stopped in order.
func serviceRuns(t *testing.T, flags ...string) {
	home := t.TempDir()
	live, conf := acme(t)
	env := []string{"MULLIGAN_HOME=" + home, "MULLIGAN_CONFIG=" + conf}
	run := func(args ...string) (string, error) {
		t.Helper()
		return mulligan(t, env, append(append([]string{"service"}, args...), flags...)...)
	}
	type state struct {
		Load, Active, Sub, File string
		PID, Restarts           int
	}
	status := func() (s state) {
		t.Helper()
		out, _ := run("status", "-j")
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return s
	}
	if out, err := run("status"); err == nil || !strings.Contains(out, "is not installed") {
		t.Errorf("before: %v, %s", err, out)
	}
	out, err := run("install")
	if err == nil || !strings.Contains(out, "nobody can be asked here") || !strings.Contains(out, "[Service]") {
		t.Errorf("without an answer: %v, %s", err, out)
	}
	if s := status(); s.Load != "not-found" {
		t.Errorf("it was written without an answer: %+v", s)
	}
	if out := answer(t, env, "n\n", flags...); !strings.Contains(out, "[y/N]") || !strings.Contains(out, "Nothing was written.") || status().Load != "not-found" {
		t.Errorf("a person who says no: %s", out)
	}
	if out := answer(t, env, "y\n", flags...); !strings.Contains(out, "Installed and started.") || status().Active != "active" {
		t.Errorf("a person who says yes: %s", out)
	}
	for range 2 { // again replaces it
		if out, err = run("install", "--yes"); err != nil || !strings.Contains(out, "Installed and started.") {
			t.Fatalf("%v, %s", err, out)
		}
	}
	if !strings.Contains(out, "word for word") {
		t.Errorf("another time: %s", out)
	}
	if user := len(flags) == 0; strings.Contains(out, "enable-linger") != user {
		t.Errorf("linger of a user's service alone: %s", out)
	}
	up := status()
	if up.Active != "active" || up.File != "enabled" || up.PID == 0 {
		t.Errorf("%+v", up)
	}
	if out, err := run("status"); err != nil || !strings.Contains(out, "active (running)") {
		t.Errorf("%v, %s", err, out)
	}
	p, err := os.FindProcess(up.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if s := status(); s.Active == "active" && s.PID != up.PID && s.PID != 0 && s.Restarts == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a healer that was killed did not come back: %+v", status())
		}
	}
	systemctl := func(args ...string) {
		t.Helper()
		if len(flags) == 0 {
			args = append([]string{"--user"}, args...)
		}
		if out, err := exec.CommandContext(t.Context(), "systemctl", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v, %s", err, out)
		}
	}
	put := putBack(t, env, live)
	here, _ := systemd.Self()
	if u, err := systemd.OfProcess(put.Pid); err != nil || !strings.HasPrefix(u.Name, "mulligan-") || u == here {
		t.Errorf("what was put back runs in %v, %v", u, err)
	}
	systemctl("restart", "mulligan.service")
	systemctl("stop", "mulligan.service")
	if err := put.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("what was put back ended with the healer's service: %v", err)
	}
	// Whoever stops its own unit ends the program in order, and its end is on record.
	if u, err := systemd.OfProcess(put.Pid); err != nil {
		t.Error(err)
	} else {
		systemctl("stop", u.Name)
	}
	if out, err := mulligan(t, env, "show", "scout", "-j"); err != nil || !strings.Contains(out, `"signal": "SIGTERM"`) {
		t.Errorf("what was put back and stopped: %v, %s", err, out)
	}
	out, err = run("status")
	if err == nil || !strings.Contains(out, "inactive (dead)") || strings.Contains(out, "last end") {
		t.Errorf("after an orderly stop: %v, %s", err, out)
	}
	if user := len(flags) == 0; strings.Contains(out, "runs when logged out  no") != user {
		t.Errorf("linger of a user's service alone: %s", out)
	}
	// Exit codes that systemd must not answer with a restart, and what is said of them.
	for _, end := range []struct{ block, says, why string }{
		{"{enabled: false}", "inactive (dead)", "exit code 3: the healer was switched off"},
		{"{enabled: perhaps}", "failed (failed)", "exit code 2: the config has a mistake"}, // stays for what follows
	} {
		if len(flags) > 0 && end.says == "inactive (dead)" {
			continue // the system manager of the test forgets a unit that has ended well: nothing there wants it
		}
		if err := os.WriteFile(conf, []byte("agent_auto_restart: "+end.block+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		systemctl("start", "--no-block", "mulligan.service") // it may end before its start has counted
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if out, err = run("status"); err != nil && strings.Contains(out, end.says) && strings.Contains(out, end.why) && !strings.Contains(out, "restarts") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %v, %s", end.block, err, out)
			}
		}
	}
	if out, err = run("install", "--yes", "-j"); err == nil || !strings.Contains(out, "enabled") {
		t.Errorf("a config with a mistake is installed: %v, %s", err, out)
	}
}

// acme makes a checkout of a program that imports late, and the config of a healer that need not wait.
func acme(t *testing.T) (live, conf string) {
	t.Helper()
	up := require.NewRepo(t)
	version := func(class string) {
		up.Write("acme/__init__.py", "")
		up.Write("acme/wire.py", "class "+class+":\n    pass\n")
		up.Write("acme/main.py", "import os, time\nopen(os.environ['GO'] + '.began', 'w').close()\nwhile not os.path.exists(os.environ['GO']):\n    time.sleep(0.01)\n"+
			"from acme.wire import "+class+"\n"+
			"open(os.environ['GO'] + '.new', 'w').write(str(os.getpid()))\nos.rename(os.environ['GO'] + '.new', os.environ['GO'] + '.up')\n"+
			"time.sleep(600)\n")
		up.Commit(class)
	}
	version("Frame")
	live = filepath.Join(t.TempDir(), "live")
	up.Git("clone", "-q", up.Dir, live)
	version("Packet")
	conf = filepath.Join(t.TempDir(), "mulligan.yaml")
	text := "agent_auto_restart:\n  quiescence_seconds: 0\n  project: acme\n  roots:\n    - {name: acme, dirs: [" + live + "], modules: [acme], runtime: python}\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return live, conf
}

// putBack has a run broken by an update and waits for the service to put it back.
func putBack(t *testing.T, env []string, live string) *os.Process {
	t.Helper()
	goes := filepath.Join(t.TempDir(), "go")
	scout := exec.CommandContext(t.Context(), "mulligan", "exec", "--idempotent", "--name", "scout", "--", "python3", "-m", "acme.main")
	scout.Env, scout.Dir = append(append(os.Environ(), env...), "GO="+goes), live
	if err := scout.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = scout.Process.Kill() // it died of the update, unless the test failed
		_ = scout.Wait()
	}()
	began := func() bool { _, err := os.Stat(goes + ".began"); return err == nil }
	for deadline := time.Now().Add(time.Minute); !began(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the run did not begin")
		}
	}
	if out, err := mulligan(t, env, "swap", "--", "git", "-C", live, "pull", "-q"); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	if err := os.WriteFile(goes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		b, err := os.ReadFile(goes + ".up")
		if err == nil {
			pid, err := strconv.Atoi(string(b))
			if err != nil {
				t.Fatal(err)
			}
			p, err := os.FindProcess(pid)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		if time.Now().After(deadline) {
			out, _ := mulligan(t, env, "show", "scout")
			t.Fatalf("the run was not put back: %s", out)
		}
	}
}
