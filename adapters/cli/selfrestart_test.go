package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sqlite"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// selfHost is a service with durable sessions that does what the lines of files in its folder say: begin SESSION,
// end SESSION, note SESSION and forget SESSION (a turn that is in no store), call SESSION ID, try SESSION, run FILE ARG... (the command line as a child, with its output in FILE). Its lives and what its sessions are
// told go to files beside them. As a canary it only answers on its port, unless it is broken.
func selfHost() {
	dir := os.Getenv("OUT")
	if _, err := os.Stat(filepath.Join(dir, "broken")); err == nil {
		fmt.Fprintln(os.Stderr, "no module named acme.wire")
		os.Exit(1)
	}
	if inside.Inert() {
		if err := http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})); err != nil {
			os.Exit(1)
		}
	}
	if err := hostSelf(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, "selfhost:", err)
		os.Exit(1)
	}
}

func hostSelf(ctx context.Context, dir string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	home, err := files.Open(files.Config{})
	if err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(home.Dir(), "sessions.db")})
	if err != nil {
		return err
	}
	sc := sessions.Config{Store: db.Sessions(), Instances: home.Instances()}
	restart, err := restartsItself(ctx, home.Dir())
	if err != nil {
		return err
	}
	if restart != nil {
		sc.Admit = restart.Admit
		defer func() { err = errors.Join(err, restart.Close()) }()
	}
	service, err := sessions.New(sc)
	if err != nil {
		return err
	}
	if restart != nil {
		restart.Attach(service)
	}
	k, err := boot.New(ctx, boot.Config{Dir: filepath.Join(home.Dir(), "boot"), Instance: home.Instances().Self(),
		Deliver: teller(dir), Sessions: service, Startup: []string{"s1"}, Notice: bootnotice.Config{Wait: -1}})
	if err != nil {
		return err
	}
	var work sync.WaitGroup
	work.Go(func() { _ = k.Run(ctx) })
	if err := appendLine(dir, "lives", fmt.Sprintf("%d %s", os.Getpid(), k.Boot().Kind)); err != nil {
		return err
	}
	handles, turns, idle := map[string]*sessions.Handle{}, map[string]*sessions.Turn{}, map[string]func() error{}
	do := func(words []string) error {
		switch words[0] {
		case "begin":
			if handles[words[1]] == nil {
				if handles[words[1]], err = service.Open(ctx, words[1]); err != nil {
					return err
				}
			}
			turns[words[1]], err = handles[words[1]].Begin(ctx, sessions.Start{})
			return err
		case "end":
			return turns[words[1]].End(ctx, session.TurnEnded{End: session.EndDone})
		case "call":
			return callOpen(ctx, turns[words[1]], service.Now, words[2])
		case "try":
			leave, err := service.Admit(words[1])
			if err == nil {
				leave()
			}
			return appendLine(dir, "tries", string(session.CodeOf(err)))
		case "note":
			idle[words[1]], err = k.Busy(words[1])
			return err
		case "forget":
			return idle[words[1]]()
		}
		out, err := os.Create(filepath.Join(dir, words[1]))
		if err != nil {
			return err
		}
		child := exec.Command("mulligan", words[2:]...)
		child.Stdout, child.Stderr = out, out
		work.Go(func() {
			_ = child.Run() // its exit code is beside its output
			_ = os.WriteFile(filepath.Join(dir, words[1]+".code"), []byte(strconv.Itoa(child.ProcessState.ExitCode())), 0o600)
		})
		return nil
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		b, err := os.ReadFile(filepath.Join(dir, "do"))
		if err != nil {
			continue
		}
		if err := errors.Join(do(strings.Split(string(b), "\x00")), os.Remove(filepath.Join(dir, "do"))); err != nil {
			return err
		}
	}
	work.Wait()
	return errors.Join(k.Close(), service.Close(), db.Close())
}

// teller writes down what sessions are told, and takes it for seen.
type teller string

func (t teller) Deliver(_ context.Context, d bootnotice.Delivery) (bool, error) {
	return true, appendLine(string(t), "told", d.Session+": "+strings.ReplaceAll(d.Text, "\n", " "))
}
func (teller) Undeliverable(context.Context, bootnotice.Notice) error { return nil }

func appendLine(dir, name, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// unitUnderTest is a running selfhost.
type unitUnderTest struct {
	t         *testing.T
	name, dir string
	user      bool
	runs      int
}

func startHost(t *testing.T, user bool, name string, settings ...string) *unitUnderTest {
	t.Helper()
	u := &unitUnderTest{t: t, name: name + ".service", dir: t.TempDir(), user: user}
	bin := filepath.SplitList(os.Getenv("PATH"))[0]
	text := "[Service]\nEnvironment=OUT=" + u.dir + " MULLIGAN_HOME=" + u.home() + " PATH=" + os.Getenv("PATH") + "\nExecStart=" + filepath.Join(bin, "selfhost") + "\n" + strings.Join(settings, "\n") + "\n"
	units := "/run/systemd/system"
	if user {
		units = filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "systemd/user")
	}
	if err := errors.Join(os.MkdirAll(units, 0o755), os.WriteFile(filepath.Join(units, u.name), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	u.systemctl("daemon-reload")
	u.systemctl("start", u.name)
	u.lives(1)
	return u
}

func (u *unitUnderTest) home() string { return filepath.Join(u.dir, "home") }

func (u *unitUnderTest) systemctl(args ...string) string {
	u.t.Helper()
	if u.user {
		args = append([]string{"--user"}, args...)
	}
	out, err := exec.CommandContext(u.t.Context(), "systemctl", args...).CombinedOutput()
	if err != nil {
		u.t.Fatalf("systemctl %s: %v, %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (u *unitUnderTest) until(what string, is func() bool) {
	u.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			u.t.Fatalf("waited in vain for %s: lives %q, told %q", what, u.lines("lives"), u.lines("told"))
		}
	}
}

func (u *unitUnderTest) lines(name string) []string {
	b, err := os.ReadFile(filepath.Join(u.dir, name))
	text := strings.TrimSpace(string(b))
	if err != nil || text == "" { // it was made this very moment
		return nil
	}
	return strings.Split(text, "\n")
}

// lives waits for the host to have lived so often, and to be up.
func (u *unitUnderTest) lives(n int) {
	u.t.Helper()
	u.until(fmt.Sprintf("%d lives", n), func() bool { return len(u.lines("lives")) == n })
	pid, _, _ := strings.Cut(u.lines("lives")[n-1], " ")
	if main := u.systemctl("show", "-p", "MainPID", "--value", u.name); main != pid {
		u.t.Errorf("life %d is process %s, the unit has %s", n, pid, main)
	}
}

// do has the host do something, and waits until it has begun to.
func (u *unitUnderTest) do(words ...string) {
	u.t.Helper()
	file := filepath.Join(u.dir, "do")
	if err := errors.Join(os.WriteFile(file+".new", []byte(strings.Join(words, "\x00")), 0o600), os.Rename(file+".new", file)); err != nil {
		u.t.Fatal(err)
	}
	u.until(strings.Join(words, " "), func() bool { _, err := os.Stat(file); return err != nil })
}

// start runs the command as a child of the service and returns the file of its output.
func (u *unitUnderTest) start(args ...string) string {
	u.t.Helper()
	u.runs++
	file := "out" + strconv.Itoa(u.runs)
	u.do(append([]string{"run", file, "self-restart", "-j"}, args...)...)
	return file
}

// result waits for the JSON in a file, which may stand among what went to standard error.
func (u *unitUnderTest) result(file string) (res handoff.Result) {
	u.t.Helper()
	u.until("the result in "+file, func() bool {
		_, text, _ := strings.Cut("\n"+strings.Join(u.lines(file), "\n"), "\n{")
		return json.Unmarshal([]byte("{"+text), &res) == nil
	})
	return res
}

// refused runs the command inside of the service, where it has to be refused with the service left alone.
func (u *unitUnderTest) refused(want string, args ...string) handoff.Result {
	u.t.Helper()
	before := u.lines("lives")
	file := u.start(args...)
	res := u.result(file)
	u.until("its exit code", func() bool { return u.lines(file+".code") != nil })
	if res.OK || res.Restarting || !strings.Contains(res.Error, want) || u.lines(file + ".code")[0] != "1" {
		u.t.Errorf("%q: %+v, exit code %v; want it refused: %s", args, res, u.lines(file+".code"), want)
	}
	u.lives(len(before))
	return res
}

func TestSelfRestartUnderSystemManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.SystemManager) {
		t.Run("Sessions", func(t *testing.T) { restartsWithSessions(t, false) })
		t.Run("Canary", func(t *testing.T) { canaryFirst(t, false) })
		t.Run("Person", func(t *testing.T) { asksAPerson(t, false) })
		t.Run("Host", func(t *testing.T) { asksTheHost(t, false) })
		t.Run("Killed", func(t *testing.T) { diesWithTheUnit(t, false) })
		t.Run("Programs", hidesTheBus)
	}
}

func TestSelfRestartUnderUserManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.UserManager) {
		t.Run("Sessions", func(t *testing.T) { restartsWithSessions(t, true) })
		t.Run("Canary", func(t *testing.T) { canaryFirst(t, true) })
		t.Run("Person", func(t *testing.T) { asksAPerson(t, true) })
		t.Run("Host", func(t *testing.T) { asksTheHost(t, true) })
		t.Run("Killed", func(t *testing.T) { diesWithTheUnit(t, true) })
	}
}

// restartsWithSessions: guard, wait, notice, loop and budget, each asked for by a child of the service that dies with it.
func restartsWithSessions(t *testing.T, user bool) {
	u := startHost(t, user, "selfhost")
	defer u.systemctl("stop", u.name)
	u.do("begin", "s1")
	u.do("begin", "s2")
	res := u.refused("in the middle of a turn: s2", "--session", "s1")
	if !slices.Equal(res.InFlight, []string{"s2"}) || res.SessionID != "s1" {
		t.Errorf("%+v", res)
	}
	u.refused("cutting off turns that are under way was not allowed: s1, s2", "--force")
	u.refused("there is no session s9", "--session", "s9")
	if got := u.notices(); got != 0 {
		t.Errorf("%d notices of what was refused", got)
	}
	// A turn that is in no store counts too.
	u.do("note", "s3")
	if res := u.refused("in the middle of a turn: s2, s3", "--session", "s1"); !slices.Equal(res.InFlight, []string{"s2", "s3"}) {
		t.Errorf("%+v", res)
	}
	u.do("forget", "s3")
	// It waits, the session that asks is not waited for, and is told.
	file := u.start("--session", "s1", "--reason", "a new build", "--wait")
	u.until("the command to wait", func() bool { return len(u.lines(file+".code")) == 0 && u.children() > 0 })
	u.do("end", "s2")
	u.lives(2)
	if res := u.result(file); !res.OK || !res.Restarting || res.SessionID != "s1" || res.Reason != "a new build" || res.Error != "" {
		t.Errorf("%+v", res)
	}
	u.until("the session to be told", func() bool { return len(u.lines("told")) == 1 })
	if told := u.lines("told")[0]; !strings.HasPrefix(told, "s1: ") || !strings.Contains(told, "you asked for it (a new build)") {
		t.Errorf("told %q", told)
	}
	if got := u.systemctl("show", "-p", "NRestarts", "--value", u.name); got != "0" {
		t.Errorf("the manager counts %s restarts of its own", got)
	}
	// A session that was just told has to complete a turn first.
	u.do("begin", "s1")
	u.refused("only a person may let it restart again", "--session", "s1")
	u.do("end", "s1")
	u.do("begin", "s1")
	u.start("--session", "s1")
	u.lives(3)
	// An operator, from elsewhere.
	args := []string{"self-restart", "--unit", strings.TrimSuffix(u.name, ".service"), "--cause", "deploy"}
	env := []string{"MULLIGAN_HOME=" + u.home()}
	if user {
		args = append(args, "--manager", "user")
	}
	if out, err := mulligan(t, env, args...); err != nil || !strings.Contains(out, "Restarting selfhost.service") {
		t.Errorf("%v: %s", err, out)
	}
	u.lives(4)
	u.refused("3 restarts were asked for in the last 10m0s")
	if u.notices() != 0 {
		t.Error("a notice of what was refused")
	}
}

// notices counts the restarts that were asked for and have not come.
func (u *unitUnderTest) notices() int {
	u.t.Helper()
	out, err := mulligan(u.t, []string{"MULLIGAN_HOME=" + u.home()}, "notices", "list", "--state", "asked", "-j")
	var v struct{ Notices []any }
	if err != nil || json.Unmarshal([]byte(out), &v) != nil {
		u.t.Fatalf("%v: %s", err, out)
	}
	return len(v.Notices)
}

// children counts the processes of the unit beside its main one.
func (u *unitUnderTest) children() int {
	u.t.Helper()
	group := u.systemctl("show", "-p", "ControlGroup", "--value", u.name)
	b, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", group, "cgroup.procs"))
	if err != nil {
		u.t.Fatal(err)
	}
	return len(strings.Fields(string(b))) - 1
}

// canaryFirst: a broken candidate keeps the service up, a healthy one is passed.
func canaryFirst(t *testing.T, user bool) {
	u := startHost(t, user, "tried")
	defer u.systemctl("stop", u.name)
	if err := os.WriteFile(filepath.Join(u.dir, "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	res := u.refused("the new code did not come up, so nothing is restarted", "--canary")
	if res.Canary != handoff.Failed || !strings.Contains(res.CanaryDetail, "no module named acme.wire") {
		t.Errorf("%+v", res)
	}
	if err := os.Remove(filepath.Join(u.dir, "broken")); err != nil {
		t.Fatal(err)
	}
	file := u.start("--canary")
	u.lives(2)
	if res := u.result(file); !res.OK || res.Canary != handoff.Passed {
		t.Errorf("%+v", res)
	}
	// The config says how a candidate is booted, and that each restart is tried.
	conf := func(name, text string) string {
		file := filepath.Join(u.dir, name)
		if err := os.WriteFile(file, []byte("self_restart: {canary: {always: true, port_variable: PORT, "+text+"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	if res := u.refused("preflight", "--config", conf("strict.yaml", `preflight: ["false"]`)); res.Canary != handoff.Failed {
		t.Errorf("%+v", res)
	}
	if res := u.refused("nothing is restarted", "--config", conf("other.yaml", `command: ["false"]`)); res.Canary != handoff.Failed {
		t.Errorf("%+v", res)
	}
	file = u.start("--config", conf("good.yaml", `command: [selfhost, "{port}"], preflight: ["true"], state: {ACME: ""}, live: [`+u.home()+`]`))
	u.lives(3)
	if res := u.result(file); !res.OK || res.Canary != handoff.Passed {
		t.Errorf("%+v", res)
	}
}

// asksAPerson: force is asked for at a terminal, and --yes is the answer elsewhere.
func asksAPerson(t *testing.T, user bool) {
	u := startHost(t, user, "asked")
	defer u.systemctl("stop", u.name)
	u.do("begin", "s1")
	line := "mulligan self-restart --force --unit " + u.name
	if user {
		line += " --manager user"
	}
	says := func(answer string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "script", "-qec", line, "/dev/null")
		cmd.Env, cmd.Stdin = append(os.Environ(), "MULLIGAN_HOME="+u.home()), strings.NewReader(answer)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := says("n\n"); err == nil || !strings.Contains(out, "In the middle of a turn: s1. Cut off and restart? [y/N]") || !strings.Contains(out, "was not allowed: s1") {
		t.Errorf("a person who says no: %v, %s", err, out)
	}
	u.lives(1)
	if out, err := says("y\n"); err != nil || !strings.Contains(out, "systemd has taken the job") || !strings.Contains(out, "Cut off: s1") {
		t.Errorf("a person who says yes: %v, %s", err, out)
	}
	u.lives(2)
	u.do("begin", "s1")
	u.start("--force", "--yes")
	u.lives(3)
	// Authority is checked before the canary.
	if res := u.refused("the manager knows no such unit", "--canary", "--unit", "none"); res.Canary != "" {
		t.Errorf("%+v", res)
	}
}

// diesWithTheUnit: the stop kills the command before it can say anything, and the restart comes all the same.
func diesWithTheUnit(t *testing.T, user bool) {
	u := startHost(t, user, "killed", "KillSignal=SIGKILL")
	defer u.systemctl("stop", u.name)
	u.do("begin", "s1")
	// A turn of a process in another unit is not cut off, and holds nothing up.
	elsewhere := exec.CommandContext(t.Context(), "agent", "sqlite:"+filepath.Join(u.home(), "sessions.db"), "elsewhere", "open")
	elsewhere.Dir, elsewhere.Env = t.TempDir(), append(os.Environ(), "MULLIGAN_HOME="+u.home())
	if err := elsewhere.Start(); err != nil {
		t.Fatal(err)
	}
	u.until("the other turn", func() bool { _, err := os.Stat(filepath.Join(elsewhere.Dir, "open")); return err == nil })
	u.start("--session", "s1", "--reason", "a new build")
	u.lives(2)
	if out, err := mulligan(t, []string{"MULLIGAN_HOME=" + u.home()}, "sessions", "abort", "elsewhere"); err != nil || elsewhere.Wait() != nil {
		t.Errorf("the other turn: %v, %s", err, out)
	}
	u.until("the session to be told", func() bool { return len(u.lines("told")) == 1 })
	if told := u.lines("told")[0]; !strings.Contains(told, "you asked for it (a new build)") {
		t.Errorf("told %q", told)
	}
	// Nobody restarts a scope: there the unit has to be named.
	args := []string{"--scope", "--quiet", "mulligan", "self-restart"}
	if user {
		args = append([]string{"--user"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), "systemd-run", args...)
	cmd.Env = append(os.Environ(), "MULLIGAN_HOME="+u.home())
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "restartUnit not configured: this is called in run-") || !strings.Contains(string(out), "--unit NAME names it") {
		t.Errorf("in a scope: %v, %s", err, out)
	}
}

// hidesTheBus: without a way to the bus the programs of systemd do. They cannot tell how the unit is started, so the canary
// is skipped, and that is said.
func hidesTheBus(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"systemctl", "systemd-run"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		text := "#!/bin/sh\nnsenter --mount=/proc/1/ns/mnt -- " + path + " \"$@\" || exit\n" +
			"case \" $* \" in *' restart '*) test ! -e $OUT/lose || exec sleep 60;; esac\n"
		require.Executable(t, filepath.Join(dir, name), text)
	}
	u := startHost(t, false, "hidden", "InaccessiblePaths=/run/dbus/system_bus_socket /run/systemd/private", "Environment=PATH="+dir+":"+os.Getenv("PATH"))
	defer u.systemctl("stop", u.name)
	file := u.start("--canary")
	u.lives(2)
	if res := u.result(file); !res.OK || res.Canary != handoff.Skipped || !strings.Contains(res.CanaryDetail, "needs a connection to the bus") {
		t.Errorf("%+v", res)
	}
	// The answer is lost, since the stop ends who would bring it: being told to stop is the answer then.
	if err := os.WriteFile(filepath.Join(u.dir, "lose"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u.do("begin", "s1") // it was told of the first one, and completes a turn before it asks itself
	u.do("end", "s1")
	file = u.start("--session", "s1", "--reason", "a new build")
	u.lives(3)
	if res := u.result(file); !res.OK || !res.Restarting {
		t.Errorf("%+v", res)
	}
	u.until("the session to be told", func() bool { return strings.Contains(strings.Join(u.lines("told"), "\n"), "a new build") })
}
