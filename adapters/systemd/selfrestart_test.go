package systemd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	godbus "github.com/godbus/dbus/v5"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// noticeFile keeps one notice in a file.
type noticeFile string

func (f noticeFile) Request(_ context.Context, n bootnotice.Request) error {
	b, err := json.Marshal(n)
	return errors.Join(err, os.WriteFile(string(f), b, 0o600))
}

func (f noticeFile) Withdraw(context.Context, string) error { return os.Remove(string(f)) }

// restartByHandoff is a service with one session. In its first life the session asks for a restart, as an agent does; in
// the next it is told and goes on.
func restartByHandoff() {
	ctx := context.Background()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	dir := os.Getenv("OUT")
	home, err := files.Open(files.Config{Dir: dir + "/home"})
	fatal(err)
	store, err := sessionlog.Open(sessionlog.Config{Path: dir + "/sessions"})
	fatal(err)
	budget, err := handoff.OpenHistory(dir + "/home/handoff")
	fatal(err)
	var way Way
	if way, err = Connect(ctx, manager()); err != nil {
		var bus *BusError
		if os.Getenv("PROGRAMS") != "1" || !errors.As(err, &bus) {
			fatal(err)
		}
		way, err = bus.Programs(ctx)
		fatal(err)
	} else if os.Getenv("PROGRAMS") == "1" {
		fatal(errors.New("the bus was to be hidden"))
	}
	r, err := NewRestarter(way)
	fatal(err)
	var restarter handoff.Restarter = r
	if os.Getenv("MODE") == "exit" {
		restarter = handoff.ExitStatus{Code: 75, Policy: r, Exit: os.Exit}
	}
	notice := noticeFile(dir + "/notice")
	h, err := handoff.New(handoff.Config{Restarter: restarter, Own: r, History: budget, Notices: notice})
	fatal(err)
	s, err := sessions.New(sessions.Config{Store: store, Instances: home.Instances(), Admit: h.Admit})
	fatal(err)
	h.Attach(s)
	handle, err := s.Open(ctx, "s")
	fatal(err)
	life := struct {
		PID    int             `json:"pid"`
		Told   string          `json:"told"`
		Answer json.RawMessage `json:"answer"`
	}{PID: os.Getpid()}
	start := sessions.Start{}
	if b, err := os.ReadFile(string(notice)); err == nil {
		var n bootnotice.Request
		fatal(json.Unmarshal(b, &n))
		life.Told = n.Reason
		h.Woken(n.Session)
	}
	turn, err := handle.Begin(ctx, start)
	fatal(err)
	g, err := effect.New(effect.Config{Turn: turn, Now: s.Now})
	fatal(err)
	args := json.RawMessage(`{"reason":"a new build"}`)
	answer, err := g.Do(ctx, effect.Call{ID: "1", Tool: "self_restart", Args: args}, func(ctx context.Context) (effect.Result, error) {
		return effect.Result{Value: h.Tool().Call(ctx, handoff.Asker{Turn: turn, Call: "1"}, args)}, nil
	})
	fatal(err)
	life.Answer = answer.Value
	b, err := json.Marshal(life)
	fatal(err)
	f, err := os.OpenFile(dir+"/lives", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	fatal(err)
	_, err = f.Write(append(b, '\n'))
	fatal(errors.Join(err, f.Close()))
	if strings.Contains(string(answer.Value), `"ok":false`) {
		_, err = turn.Append(ctx, session.Reply(s.Now(), sessions.NewID(), session.ModelTurn{}))
		fatal(err)
		fatal(turn.End(ctx, session.TurnEnded{End: session.EndDone}))
		if life.Told != "" {
			fatal(os.Remove(string(notice)))
		}
		fatal(os.WriteFile(dir+"/settled", nil, 0o600))
	}
	<-stop
	fatal(errors.Join(handle.Close(ctx), h.Close(), s.Close(), store.Close()))
}

type answered struct {
	PID    int            `json:"pid"`
	Told   string         `json:"told"`
	Answer handoff.Result `json:"answer"`
}

// serve starts such a service, waits until nothing more happens by itself, and returns its lives and its log.
func serve(t *testing.T, unit, body string, env ...string) (lives []answered, kinds string) {
	t.Helper()
	dir := t.TempDir()
	install(t, unit, "[Service]\n"+body+program(t, "handoff", append(env, "OUT="+dir)...)+"\n")
	systemctl(t, "start", unit)
	until(t, unit+" to be settled", func() bool { _, err := os.Stat(dir + "/settled"); return err == nil })
	b, err := os.ReadFile(dir + "/lives")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var l answered
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		lives = append(lives, l)
	}
	store, err := sessionlog.Read(sessionlog.Config{Path: dir + "/sessions"})
	if err != nil {
		t.Fatal(err)
	}
	events, err := store.Read(t.Context(), "s", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		kinds += string(e.Kind) + " "
	}
	if _, err := os.Stat(dir + "/notice"); err == nil {
		t.Error("the notice is still there")
	}
	return lives, kinds
}

// came checks a restart that came: the session was told once, went on once, and could not restart again by itself.
func came(t *testing.T, lives []answered, kinds string, lease string) {
	t.Helper()
	if len(lives) != 2 {
		t.Fatalf("%d lives: %+v", len(lives), lives)
	}
	one, two := lives[0], lives[1]
	if !one.Answer.OK || !one.Answer.Restarting || one.Answer.SessionID != "s" || one.Told != "" {
		t.Errorf("the first life: %+v", one)
	}
	if one.PID == two.PID || two.Told != "a new build" || two.Answer.OK || !strings.Contains(two.Answer.Error, "only a person") {
		t.Errorf("the second life: %+v", two)
	}
	if want := "lease turn_begun call result turn_ended " + lease + "lease turn_begun call result model_turn turn_ended "; kinds != want {
		t.Errorf("the log is %s\nnot        %s", kinds, want)
	}
}

func TestHandoffUnderSystemManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.SystemManager) {
		t.Run("Restart", handsOff)
		t.Run("ExitStatus", exitsForIt)
		t.Run("Programs", programsReachIt)
	}
}

func TestHandoffUnderUserManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.UserManager) {
		t.Run("Restart", handsOff)
		t.Run("ExitStatus", exitsForIt)
	}
}

func handsOff(t *testing.T) {
	lives, kinds := serve(t, "handoff.service", "")
	came(t, lives, kinds, "lease ") // it gave the session up when it was told to stop
	if got := systemctl(t, "show", "-p", "NRestarts", "--value", "handoff.service"); got != "0" {
		t.Errorf("the manager counts %s restarts of its own", got)
	}
	systemctl(t, "stop", "handoff.service")
}

func exitsForIt(t *testing.T) {
	lives, kinds := serve(t, "exits.service", "Restart=on-failure\n", "MODE=exit")
	came(t, lives, kinds, "") // the exit dropped its lock
	if got := systemctl(t, "show", "-p", "NRestarts", "--value", "exits.service"); got != "1" {
		t.Errorf("the manager counts %s restarts of its own", got)
	}
	systemctl(t, "stop", "exits.service")
	for body, want := range map[string]string{
		"Restart=no\n": "it has Restart=no",
		"Restart=on-failure\nSuccessExitStatus=75\n":           "which is a clean end: it has Restart=on-failure",
		"Restart=always\nRestartPreventExitStatus=75 SIGHUP\n": "RestartPreventExitStatus=",
	} {
		lives, _ := serve(t, "stays.service", body, "MODE=exit")
		if len(lives) != 1 || lives[0].Answer.OK || !strings.Contains(lives[0].Answer.Error, want) {
			t.Errorf("%q: %+v", body, lives)
		}
		systemctl(t, "stop", "stays.service")
	}
}

// noBus is what hides the manager's sockets from a service, and a folder with wrappers of the programs that lead out of its
// sandbox and note what they were told.
func noBus(t *testing.T) (dir, sandbox string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"systemctl", "systemd-run"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		text := "#!/bin/sh\nprintf '%s\\n' \"$@\" >>" + dir + "/" + name + ".said\nexec nsenter --mount=/proc/1/ns/mnt -- " + path + " \"$@\"\n"
		require.Executable(t, filepath.Join(dir, name), text)
	}
	return dir, "InaccessiblePaths=/run/dbus/system_bus_socket /run/systemd/private\n"
}

func programsReachIt(t *testing.T) {
	dir, hidden := noBus(t)
	path := "PATH=" + dir + ":/usr/bin:/bin"
	lives, kinds := serve(t, "hidden.service", hidden, "PROGRAMS=1", path)
	came(t, lives, kinds, "lease ")
	systemctl(t, "stop", "hidden.service")

	lives, _ = serve(t, "hiddenexit.service", hidden+"Restart=on-failure\nSuccessExitStatus=75 SIGHUP\n", "PROGRAMS=1", "MODE=exit", path)
	if len(lives) != 1 || !strings.Contains(lives[0].Answer.Error, "which is a clean end") {
		t.Errorf("%+v", lives)
	}
	systemctl(t, "stop", "hiddenexit.service")

	out := filepath.Join(t.TempDir(), "out")
	install(t, "hiddenlauncher.service", "[Service]\n"+hidden+program(t, "programs", "OUT="+out, path)+"\n")
	systemctl(t, "start", "hiddenlauncher.service")
	p := read(t, out)
	systemctl(t, "stop", "hiddenlauncher.service")
	if !strings.HasPrefix(p.Unit.Name, "mulligan-") || fmt.Sprintf("%q", p.Args) != fmt.Sprintf("%q", odd) || p.X != "a $X ${X} b" {
		t.Errorf("the runner is in %v with %q and X=%q", p.Unit, p.Args, p.X)
	}
	if !alive(p.PID) {
		t.Error("it died with its launcher's service")
	}
	if got := systemctl(t, "show", "-p", "Restart", "--value", p.Unit.Name); got != "no" {
		t.Errorf("its unit has Restart=%s", got)
	}
	_ = syscall.Kill(p.PID, syscall.SIGTERM)
	said, err := os.ReadFile(filepath.Join(dir, "systemd-run.said"))
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Contains(string(said), "a $X ${X} b")
	known := version(systemctl(t, "show", "-p", "Version", "--value")) >= namesAlone
	if shown == known || known && !strings.Contains(string(said), "\n--setenv=X\n") {
		t.Errorf("names alone known: %v; the command line is\n%s", known, said)
	}
}

// programLauncher is a service that launches through the programs, and checks what they cannot do.
func programLauncher() {
	ctx := context.Background()
	_, err := Connect(ctx, manager())
	var bus *BusError
	if !errors.As(err, &bus) {
		fatal(fmt.Errorf("the bus was to be hidden: %v", err))
	}
	p, err := bus.Programs(ctx)
	fatal(err)
	if err := p.MayRestart(ctx, "nothing.service"); err == nil || errors.Is(err, ErrNotAllowed) {
		fatal(fmt.Errorf("a unit that is not there: %v", err))
	}
	if err := p.Restart(ctx, "nothing.service"); err == nil || !definite(err) {
		fatal(fmt.Errorf("a unit that is not there: %v", err))
	}
	self, err := os.Executable()
	fatal(err)
	l, err := p.NewLauncher(LauncherConfig{Env: []string{role + "=print", "OUT=" + os.Getenv("OUT"), "STAY=1", "X=a $X ${X} b"},
		Command: func(restart.Order) []string { return append([]string{self}, odd...) }})
	fatal(err)
	if pre := l.Preflight(ctx, order()); pre.Code != "" {
		fatal(errors.New(pre.Text))
	}
	started, err := l.Launch(ctx, order())
	fatal(err)
	if started.Exited == nil {
		fatal(errors.New("its end would not be seen"))
	}
	select {}
}

func TestProgramsAreThereOrNot(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	bus := &BusError{Manager: System, Tried: []string{"unix:path=/nowhere"}, Errs: []error{os.ErrNotExist}}
	_, err := bus.Programs(t.Context())
	var still *BusError
	if !errors.As(err, &still) || !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "systemd-run") {
		t.Errorf("%v", err)
	}
	p := &Programs{manager: System}
	if _, err := p.NewLauncher(LauncherConfig{Scope: true}); err == nil {
		t.Error("a scope needs the bus")
	}
	if _, err := p.NewLauncher(LauncherConfig{}); err == nil || strings.Contains(err.Error(), "Conn") || !strings.Contains(err.Error(), "Command") {
		t.Errorf("%v", err)
	}
}

func TestWhatComesBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e    exits
		code int
		back bool
	}{
		{exits{Restart: "no"}, 1, false}, {exits{Restart: "no", Force: []int{1}}, 1, true},
		{exits{Restart: "always"}, 0, true}, {exits{Restart: "always", Prevent: []int{7}}, 7, false},
		{exits{Restart: "always", Prevent: []int{7}, Force: []int{7}}, 7, false},
		{exits{Restart: "on-failure"}, 0, false}, {exits{Restart: "on-failure"}, 75, true},
		{exits{Restart: "on-failure", Success: []int{75}}, 75, false},
		{exits{Restart: "on-success"}, 0, true}, {exits{Restart: "on-success"}, 75, false},
		{exits{Restart: "on-success", Success: []int{75}}, 75, true},
		{exits{Restart: "on-abnormal"}, 75, false}, {exits{Restart: "on-abort"}, 75, false}, {exits{Restart: "on-watchdog"}, 75, false},
	} {
		if err := c.e.comesBack("a.service", c.code); (err == nil) != c.back {
			t.Errorf("%+v after %d: %v", c.e, c.code, err)
		}
	}
}

func TestWhatIsDefinite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("x: %w", ErrNotAllowed), true},
		{godbus.Error{Name: "org.freedesktop.systemd1.NoSuchUnit"}, true},
		{fmt.Errorf("x: %w", godbus.Error{Name: "org.freedesktop.DBus.Error.NoReply"}), false},
		{context.DeadlineExceeded, false},
		{godbus.ErrClosed, false},
	} {
		if definite(c.err) != c.want {
			t.Errorf("%v: %t", c.err, !c.want)
		}
	}
}

// TestWhatSystemctlLeavesOpen: only what systemctl passes on as the manager's refusal, or what never reached the manager, is
// one; an answer that was lost leaves open whether the restart comes.
func TestWhatSystemctlLeavesOpen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script string
		open   bool
	}{
		{"echo 'Failed to restart a.service: Connection reset by peer' >&2; exit 1", true},
		{"echo 'Failed to restart a.service: Connection timed out' >&2; exit 1", true},
		{"exit 127", true}, // of a wrapper, as of one that reaches another machine
		{"kill -9 $$", true},
		{"echo 'Failed to restart a.service: Access denied' >&2; exit 4", false},
		{"echo 'Failed to restart a.service: Unit a.service not found.' >&2; exit 5", false},
		{"exit 6", false}, {"exit 3", false},
		{"echo 'Failed to restart a.service: Interactive authentication required.' >&2; exit 1", false},
		{"echo 'Failed to restart a.service: Unit a.service is masked.' >&2; exit 1", false},
		{"echo 'Failed to connect to bus: No such file or directory' >&2; exit 1", false},
	} {
		path := filepath.Join(t.TempDir(), "systemctl")
		// Another process writes it: what a test that runs beside this one forks would keep ours open, and it busy.
		if out, err := exec.Command("/bin/sh", "-c", `echo "$2" >"$1" && chmod 700 "$1"`, "sh", path, "#!/bin/sh\n"+c.script).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		r, err := NewRestarter(&Programs{manager: System, systemctl: path})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Restart(t.Context(), "a.service"); err == nil || errors.Is(err, handoff.ErrUnknown) != c.open {
			t.Errorf("%s: %v", c.script, err)
		}
	}
}
