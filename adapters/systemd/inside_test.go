package systemd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/bench/relaunchtest"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
)

// role makes the test binary one of the programs that the tests put into units.
const role = "SYSTEMD_TEST_ROLE"

func TestMain(m *testing.M) {
	if code, played := relaunchtest.Main(); played {
		os.Exit(code)
	}
	switch os.Getenv(role) {
	case "":
		code := m.Run()
		fatal(relaunchtest.Clean())
		os.Exit(code)
	case "print": // writes its unit, its arguments and its environment, and stays
		u, err := Self()
		b, _ := json.Marshal(map[string]any{"unit": u, "error": fmt.Sprint(err), "args": os.Args[1:], "pid": os.Getpid(), "x": os.Getenv("X")})
		file := os.Getenv("OUT")
		if err := errors.Join(os.WriteFile(file+".new", b, 0o600), os.Rename(file+".new", file)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if os.Getenv("STAY") == "" {
			return
		}
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		<-stop
	case "launcher": // a service that launches one replacement and stays
		launcher()
	case "restart-self":
		restartSelf()
	case "agents":
		hostAgents()
	case "healer":
		heal()
	case "runner":
		replace()
	case "managed":
		manage()
	case "handoff":
		restartByHandoff()
	case "programs":
		programLauncher()
	case "notify":
		notify()
	case "oom":
		oomRunner()
	case "sweep":
		sweep()
	case "host":
		hostLife()
	case "peek": // a candidate that reads what is not its own, says what it saw, and answers
		b, err := os.ReadFile("state/db")
		fatal(os.WriteFile(os.Getenv("OUT"), fmt.Appendf(nil, "%s %v", b, err), 0o600))
		fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	case "stubborn": // a candidate that SIGTERM does not end
		signal.Ignore(syscall.SIGTERM)
		fatal(os.WriteFile(os.Getenv("OUT"), nil, 0o600))
		fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	case "leave":
		fatal(errors.New("no module named acme.wire"))
	}
	os.Exit(0)
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// manager is the one that the tests run under.
func manager() Manager {
	if os.Getenv("MULLIGAN_SYSTEMD") == "user" || os.Getenv("MANAGER") == "user" {
		return User
	}
	return System
}

func connect(t testing.TB) *Conn {
	t.Helper()
	c, err := Connect(t.Context(), manager())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// systemctl runs against the manager of the test.
func systemctl(t testing.TB, args ...string) string {
	t.Helper()
	if manager() == User {
		args = append([]string{"--user"}, args...)
	}
	out, err := exec.CommandContext(t.Context(), "systemctl", args...).CombinedOutput()
	if err != nil {
		t.Logf("systemctl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// install writes a unit file and makes the manager read it.
func install(t testing.TB, name, text string) {
	t.Helper()
	dir := "/run/systemd/system"
	if manager() == User {
		dir = filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "systemd/user")
	}
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	systemctl(t, "daemon-reload")
}

// program is the line of a unit file that runs this binary in a role.
func program(t testing.TB, as string, env ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Environment=%s=%s MANAGER=%s\n", role, as, manager())
	for _, kv := range env {
		fmt.Fprintf(&b, "Environment=\"%s\"\n", kv)
	}
	fmt.Fprintf(&b, "ExecStart=%s", self)
	return b.String()
}

// until waits for something that another process does.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

type printed struct {
	Unit  Unit     `json:"unit"`
	Error string   `json:"error"`
	Args  []string `json:"args"`
	PID   int      `json:"pid"`
	X     string   `json:"x"`
}

// read waits for what a program of the role "print" wrote.
func read(t testing.TB, file string) (p printed) {
	t.Helper()
	until(t, file, func() bool { b, err := os.ReadFile(file); return err == nil && json.Unmarshal(b, &p) == nil })
	return p
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(b, []byte(") Z "))
}

// odd are arguments that a manager would change if it could.
var odd = []string{"$HOME", "${HOME}", "$$", "%n %%", "a b", `"q'`, "back\\slash", "", "new\nline", "ünï"}

func TestUnderSystemManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.SystemManager) {
		inside(t)
		t.Run("ExecStart", execStartIsWordByWord)
		t.Run("Results", results)
		t.Run("StartLimit", startLimit)
		t.Run("Notify", notifies)
		t.Run("PrivateSocket", privateSocket)
	}
}

func TestUnderUserManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.UserManager) {
		inside(t)
	}
}

// newer are the options for Debian trixie's systemd: what this machine has may be years older.
func newer(t *testing.T) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("the same once more under another systemd")
	}
	return []string{"--suite", "trixie"}
}

func TestUnderNewerSystemManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.SystemManager, newer(t)...) {
		out, err := exec.CommandContext(t.Context(), "systemctl", "--version").Output()
		if version := 0; err != nil {
			t.Error(err)
		} else if _, err := fmt.Sscanf(string(out), "systemd %d", &version); err != nil || version < 257 {
			t.Errorf("this is no newer systemd: %s", out)
		}
		inside(t)
		t.Run("ExecStart", execStartIsWordByWord)
		t.Run("Results", results)
		t.Run("StartLimit", startLimit)
		t.Run("Notify", notifies)
		t.Run("PrivateSocket", privateSocket)
		t.Run("Handoff", handsOff)
	}
}

func TestUnderNewerUserManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.UserManager, newer(t)...) {
		inside(t)
		t.Run("Handoff", handsOff)
	}
}

func inside(t *testing.T) {
	t.Run("Self", selfIsFound)
	t.Run("OtherBus", otherBus)
	t.Run("Service", func(t *testing.T) { launches(t, false) })
	t.Run("Scope", func(t *testing.T) { launches(t, true) })
	t.Run("OutlivesService", func(t *testing.T) { outlives(t, false) })
	t.Run("OutlivesScope", func(t *testing.T) { outlives(t, true) })
	t.Run("Restart", restartsItself)
	t.Run("Supervised", supervised)
	t.Run("Sweep", sweeps)
}

// otherBus is a session bus that no manager is on, as the environment of a desktop may name one.
func otherBus(t *testing.T) {
	bus := exec.CommandContext(t.Context(), "dbus-daemon", "--session", "--nofork", "--print-address=1")
	out, err := bus.StdoutPipe()
	if err := errors.Join(err, bus.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(bus.Process.Kill(), bus.Wait()) })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	other := way{address: strings.TrimSpace(address)}
	c, err := reach(t.Context(), manager(), append([]way{other}, ways(manager(), os.Getuid(), os.Getenv)...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if u, err := c.State(t.Context(), "nothing.service"); err != nil || u.Load != "not-found" {
		t.Errorf("over %s: %+v, %v", c.address, u, err)
	}
	var none *BusError
	if _, err := reach(t.Context(), manager(), []way{other}); !errors.As(err, &none) || !strings.Contains(err.Error(), other.address) {
		t.Errorf("with no other way: %v", err)
	}
}

func order() restart.Order {
	id := fmt.Sprint(time.Now().UnixNano())
	return restart.Order{Key: ledger.Key{Project: "acme", Lineage: "l"}, Launch: id, Dead: run.Run{Project: "acme", Name: "scout"}}
}

// printer is a launcher whose runner prints what it was given.
func printer(c *Conn, scope bool, out string) (*Launcher, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return NewLauncher(LauncherConfig{Conn: c, Scope: scope, Env: []string{role + "=print", "OUT=" + out, "STAY=1", "X=a $X ${X} b"},
		Command: func(restart.Order) []string { return append([]string{self}, odd...) }})
}

func launches(t *testing.T, scope bool) {
	c := connect(t)
	out := filepath.Join(t.TempDir(), "out")
	l, err := printer(c, scope, out)
	if err != nil {
		t.Fatal(err)
	}
	o := order()
	if p := l.Preflight(t.Context(), o); p.Code != "" {
		t.Fatalf("preflight: %+v", p)
	}
	began := time.Now()
	s, err := l.Launch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("launched in %v", time.Since(began))
	p := read(t, out)
	if p.Unit.Name != l.UnitName(o.Launch) || p.Unit.Manager != manager() {
		t.Errorf("the runner is in %v (%s), not in %s", p.Unit, p.Error, l.UnitName(o.Launch))
	}
	if fmt.Sprintf("%q", p.Args) != fmt.Sprintf("%q", odd) {
		t.Errorf("the runner was given %q, not %q", p.Args, odd)
	}
	if p.X != "a $X ${X} b" {
		t.Errorf("the runner's environment has X=%q", p.X)
	}
	if !scope {
		if got := systemctl(t, "show", "-p", "Restart", "-p", "OOMPolicy", p.Unit.Name); got != "Restart=no\nOOMPolicy=continue" &&
			got != "OOMPolicy=continue\nRestart=no" {
			t.Errorf("the unit has %q", got)
		}
	}
	select {
	case <-s.Exited:
		t.Error("it is said to have ended while it runs")
	default:
	}
	if err := syscall.Kill(p.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Exited:
	case <-time.After(time.Minute):
		t.Error("its end is not seen")
	}
	until(t, "the unit to be gone", func() bool {
		return strings.Contains(systemctl(t, "show", "-p", "LoadState", p.Unit.Name), "not-found")
	})

	broken, err := NewLauncher(LauncherConfig{Conn: c, Scope: scope, Command: func(restart.Order) []string { return []string{"/nowhere/runner"} }})
	if err != nil {
		t.Fatal(err)
	}
	s, err = broken.Launch(t.Context(), order())
	if err != nil {
		return // a service says so
	}
	select {
	case <-s.Exited: // a scope's runner fails on its own
	case <-time.After(time.Minute):
		t.Error("a runner that cannot be executed is not seen to end")
	}
}

// launcher is a service that launches, and lives on.
func launcher() {
	c, err := Connect(context.Background(), manager())
	fatal(err)
	l, err := printer(c, os.Getenv("SCOPE") == "1", os.Getenv("OUT"))
	fatal(err)
	if _, err := os.Stat(os.Getenv("OUT")); err != nil { // the first time only
		_, err = l.Launch(context.Background(), order())
		fatal(err)
	}
	fatal(os.WriteFile(os.Getenv("UP"), fmt.Append(nil, os.Getpid()), 0o600))
	select {}
}

// The launcher's own service is restarted, and stopped: its agents run on.
func outlives(t *testing.T, scope bool) {
	dir := t.TempDir()
	out, up := filepath.Join(dir, "out"), filepath.Join(dir, "up")
	unit := fmt.Sprintf("launcher-%t.service", scope)
	install(t, unit, "[Service]\n"+program(t, "launcher", "OUT="+out, "UP="+up, map[bool]string{true: "SCOPE=1", false: "SCOPE=0"}[scope])+"\n")
	systemctl(t, "start", unit)
	p := read(t, out)
	until(t, "the launcher", func() bool { _, err := os.Stat(up); return err == nil })
	if err := os.Remove(up); err != nil {
		t.Fatal(err)
	}
	systemctl(t, "restart", unit)
	until(t, "the launcher's second start", func() bool { _, err := os.Stat(up); return err == nil })
	if !alive(p.PID) {
		t.Error("the agent died with a restart of its launcher's service")
	}
	systemctl(t, "stop", unit)
	if !alive(p.PID) {
		t.Error("the agent died with its launcher's service")
	}
	_ = syscall.Kill(p.PID, syscall.SIGTERM)
}

func selfIsFound(t *testing.T) {
	dir := t.TempDir()
	for unit, body := range map[string]string{
		"self-plain.service":         "",
		"self-a@.service":            "",
		"self-delegated.service":     "Delegate=yes\n",
		"cgroup.procs-like.service":  "",
		"self-under_score-x.service": "",
	} {
		start := strings.Replace(unit, "@.", "@x\\x2dy.", 1)
		out := filepath.Join(dir, "out-"+strings.ReplaceAll(start, "\\", "_"))
		install(t, unit, "[Service]\nType=oneshot\n"+body+program(t, "print", "OUT="+out)+"\n")
		systemctl(t, "start", start)
		if p := read(t, out); p.Unit.Name != start || p.Unit.Manager != manager() {
			t.Errorf("%s finds itself in %v (%s)", start, p.Unit, p.Error)
		}
	}
}

// restartSelf restarts its own unit the first time, and stays the second time.
func restartSelf() {
	count := os.Getenv("OUT")
	b, _ := os.ReadFile(count)
	fatal(os.WriteFile(count, append(b, fmt.Sprintln(os.Getpid())...), 0o600))
	if len(b) == 0 {
		u, err := Self()
		fatal(err)
		c, err := Connect(context.Background(), u.Manager)
		fatal(err)
		fatal(c.MayRestart(context.Background(), u.Name))
		fatal(c.Restart(context.Background(), u.Name))
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
}

func restartsItself(t *testing.T) {
	c := connect(t)
	out := filepath.Join(t.TempDir(), "out")
	install(t, "again.service", "[Service]\n"+program(t, "restart-self", "OUT="+out)+"\n")
	systemctl(t, "start", "again.service")
	until(t, "its second start", func() bool { b, _ := os.ReadFile(out); return bytes.Count(b, []byte("\n")) == 2 })
	if r, err := c.Result(t.Context(), "again.service"); err != nil || r.Result != "success" || r.Restarts != 0 || r.Cause() != "" {
		t.Errorf("its result is %+v, %v", r, err)
	}
	systemctl(t, "stop", "again.service")

	for _, setting := range manual {
		install(t, "refuses.service", "[Unit]\n"+setting+"=yes\n[Service]\n"+program(t, "print")+"\n")
		p := &Programs{manager: c.manager, systemctl: "systemctl"}
		for _, err := range []error{c.MayRestart(t.Context(), "refuses.service"), p.MayRestart(t.Context(), "refuses.service")} {
			if !errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), setting) {
				t.Errorf("a unit with %s=yes: %v", setting, err)
			}
		}
		// The manager refuses it in fact, with a word of its own.
		if err := c.Restart(t.Context(), "refuses.service"); err == nil || !definite(err) {
			t.Errorf("the manager restarts a unit with %s=yes: %v", setting, err)
		}
	}
	for _, err := range []error{c.MayRestart(t.Context(), "nothing.service"), c.Restart(t.Context(), "nothing.service")} {
		if err == nil || errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), "nothing.service") {
			t.Errorf("a unit that is not there: %v", err)
		}
	}
}

func supervised(t *testing.T) {
	c := connect(t)
	for policy, want := range map[string]string{"no": "", "on-failure": "s-on-failure.service (Restart=on-failure)"} {
		unit := "s-" + policy + ".service"
		install(t, unit, "[Service]\nRestart="+policy+"\n"+program(t, "print")+"\n")
		if got, err := c.Supervised(t.Context(), unit); err != nil || got != want {
			t.Errorf("Restart=%s: %q, %v", policy, got, err)
		}
	}
}

func execStartIsWordByWord(t *testing.T) {
	c := connect(t)
	install(t, "words.service", "[Service]\nType=oneshot\nExecStart=/bin/echo \"a b\" $$X 'c\"d' \nExecStart=-/bin/false x\n")
	got, err := c.ExecStart(t.Context(), "words.service")
	want := []Command{{Path: "/bin/echo", Args: []string{"/bin/echo", "a b", "$$X", `c"d`}},
		{Path: "/bin/false", Args: []string{"/bin/false", "x"}, IgnoreFailure: true}}
	if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("the command is %+v, %v", got, err)
	}
}

func results(t *testing.T) {
	c := connect(t)
	for name, want := range map[string]struct{ body, result, cause string }{
		"exit":     {"ExecStart=/bin/sh -c 'exit 3'\n", "exit-code", ""},
		"signal":   {"ExecStart=/bin/sh -c 'kill -9 $$$$'\n", "signal", "killed"},
		"timeout":  {"RuntimeMaxSec=300ms\nExecStart=/bin/sleep 60\n", "timeout", "timeout"},
		"watchdog": {"Type=notify\nNotifyAccess=all\nWatchdogSec=300ms\nTimeoutAbortSec=1\nExecStart=/bin/sh -c 'systemd-notify --ready; sleep 60'\n", "watchdog", "timeout"},
	} {
		unit := "result-" + name + ".service"
		install(t, unit, "[Service]\n"+want.body)
		systemctl(t, "start", unit)
		var got Result
		until(t, unit+" to end as "+want.result, func() bool {
			var err error
			got, err = c.Result(t.Context(), unit)
			if err != nil {
				t.Fatal(err)
			}
			return got.Result == want.result
		})
		if string(got.Cause()) != want.cause {
			t.Errorf("%s: %+v has the cause %q", unit, got, got.Cause())
		}
		if name == "signal" && (got.Code != 2 || got.Status != 9) || name == "exit" && (got.Code != 1 || got.Status != 3) {
			t.Errorf("%s: %+v", unit, got)
		}
	}
}

// Five starts, in ten minutes on a busy machine, and the manager gives up. The result stays the last one's.
func startLimit(t *testing.T) {
	c := connect(t)
	install(t, "limit.service", "[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=5\n[Service]\nRestart=always\nExecStart=/bin/false\n")
	systemctl(t, "start", "limit.service")
	until(t, "the manager to give up", func() bool {
		return systemctl(t, "show", "-p", "ActiveState", "--value", "limit.service") == "failed"
	})
	if r, err := c.Result(t.Context(), "limit.service"); err != nil || r.Restarts != 5 || r.Result != "exit-code" || r.Cause() != "" {
		t.Errorf("its result is %+v, %v", r, err)
	}
}

// wellFor is how long the service of the role "notify" is well: longer than its WatchdogSec=, which leaves a busy machine
// enough between two beats.
const wellFor = 15 * time.Second

// notify says what it does and that it is ready, is well for a while, and then no more.
func notify() {
	_, err := Status("at work")
	fatal(err)
	_, err = Ready()
	fatal(err)
	well := time.Now().Add(wellFor)
	fatal(Watchdog(context.Background(), func() bool { return time.Now().Before(well) }))
}

func notifies(t *testing.T) {
	c := connect(t)
	began := time.Now()
	install(t, "notify.service", "[Service]\nType=notify\nWatchdogSec=12\nTimeoutAbortSec=1\n"+program(t, "notify")+"\n")
	systemctl(t, "start", "notify.service")
	if got := systemctl(t, "show", "-p", "StatusText", "--value", "notify.service"); got != "at work" {
		t.Errorf("its status is %q", got)
	}
	until(t, "the watchdog", func() bool {
		r, err := c.Result(t.Context(), "notify.service")
		return err == nil && r.Result == "watchdog"
	})
	if lived := time.Since(began); lived < wellFor {
		t.Errorf("it was ended after %v, while it was well", lived)
	}
}

func privateSocket(t *testing.T) {
	w := way{address: "unix:path=/run/systemd/private", private: true}
	bus, err := w.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &Conn{manager: System, bus: bus}
	defer c.Close()
	out := filepath.Join(t.TempDir(), "out")
	l, err := printer(c, false, out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Launch(t.Context(), order()); err != nil {
		t.Fatalf("over the private socket: %v", err)
	}
	_ = syscall.Kill(read(t, out).PID, syscall.SIGTERM)
}

// sweep is a runner whose program left things behind.
func sweep() {
	dir := os.Getenv("OUT")
	start := func(name string) {
		fatal(exec.Command("/bin/sh", "-c", "cp /bin/sleep "+dir+"/"+name).Run())
		cmd := exec.Command(dir+"/"+name, "300")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		fatal(cmd.Start())
		fatal(os.WriteFile(dir+"/"+name+".pid", fmt.Append(nil, cmd.Process.Pid), 0o600))
		go func() { _ = cmd.Wait() }()
	}
	start("leftover")
	start("ssh-agent")
	ended, err := Sweep(context.Background(), time.Second)
	fatal(err)
	fatal(os.WriteFile(dir+"/ended", fmt.Append(nil, len(ended)), 0o600))
}

func sweeps(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLauncher(LauncherConfig{Conn: connect(t), Scope: true, Env: []string{role + "=sweep", "OUT=" + dir, "PATH=/bin:/usr/bin"},
		Command: func(restart.Order) []string { return []string{self} }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Launch(t.Context(), order()); err != nil {
		t.Fatal(err)
	}
	until(t, "the sweep", func() bool { b, _ := os.ReadFile(dir + "/ended"); return string(b) == "1" })
	for name, want := range map[string]bool{"leftover": false, "ssh-agent": true} {
		var pid int
		b, err := os.ReadFile(dir + "/" + name + ".pid")
		if _, scan := fmt.Sscan(string(b), &pid); err != nil || scan != nil {
			t.Fatal(err, scan)
		}
		if alive(pid) != want {
			t.Errorf("%s is alive: %t", name, !want)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if ended, err := Sweep(t.Context(), 0); err != nil || ended != nil {
		t.Errorf("a sweep outside of a scope of ours ended %v, %v", ended, err)
	}
}
