package systemd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// ErrNeedsBus means that something can be read over the bus alone, as the command of a unit: systemctl prints it without its
// quotes, and a guess would start something else. [Programs] have no such calls; whoever needs one returns this.
var ErrNeedsBus = errors.New("this needs a connection to the bus")

// programWithin bounds one call of a program.
const programWithin = 15 * time.Second

// Programs reach a manager through systemctl and systemd-run, where this process has no way to the bus and they have one:
// in a sandbox whose wrappers of them lead out, for one. They are taken only by whoever asks for them, with
// [BusError.Programs].
type Programs struct {
	manager        Manager
	systemctl, run string
	version        int // the manager's, 0 when it could not be read
}

// Programs looks whether systemctl and systemd-run, as found in PATH, reach the manager that Connect did not. The error
// wraps this one.
func (e *BusError) Programs(ctx context.Context) (*Programs, error) {
	p := &Programs{manager: e.Manager}
	var err1, err2, err3 error
	p.systemctl, err1 = exec.LookPath("systemctl")
	p.run, err2 = exec.LookPath("systemd-run")
	if err1 == nil && err2 == nil {
		var v map[string]string
		v, err3 = p.show(ctx, "", "Version")
		p.version = version(v["Version"])
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("%w; nor through its programs: %w", e, err)
	}
	return p, nil
}

// version is the number before the details of a build: "252.39-1" is 252.
func version(text string) int {
	number := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if number < 0 {
		number = len(text)
	}
	v, err := strconv.Atoi(text[:number])
	if err != nil {
		return 0
	}
	return v
}

// Manager is the manager at the other end.
func (p *Programs) Manager() Manager { return p.manager }

// exec runs one of the programs and returns what it printed.
func (p *Programs) exec(ctx context.Context, program string, args ...string) (string, error) {
	return p.execWith(ctx, nil, program, args...)
}

// execWith is exec with more in the program's environment.
func (p *Programs) execWith(ctx context.Context, env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, programWithin)
	defer cancel()
	if p.manager == User {
		args = append([]string{"--user"}, args...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(os.Environ(), env...), "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=", "LC_ALL=C.UTF-8")
	var out, text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &text
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return "", fmt.Errorf("%s: %w", program, cause) // it was killed, and may have done what it was to do
	}
	if err != nil {
		return "", &programError{program: program, err: err, said: strings.TrimSpace(text.String())}
	}
	return out.String(), nil
}

// programError is a program that ended badly, or could not be started.
type programError struct {
	program string
	err     error
	said    string // on its standard error
}

func (e *programError) Error() string { return fmt.Sprintf("%s: %v: %s", e.program, e.err, e.said) }

func (e *programError) Unwrap() error { return e.err }

// refusals are the exit codes by which systemctl passes on a refusal of the manager's to queue a job: the job is of no use
// for such a unit, it is not allowed, there is no such unit, the unit's file cannot be loaded.
var refusals = []int{3, 4, 5, 6}

// refused are the words, in the language that exec asks for, of what has the general exit code too and is a refusal all the
// same: the manager's, and a request that found no way to anybody.
var refused = []string{"Interactive authentication required", " is masked", "Failed to connect to "}

// definite reports that the manager has refused. The general exit code stands for a lost answer too.
func (e *programError) definite() bool {
	var exit *exec.ExitError
	if !errors.As(e.err, &exit) || !exit.Exited() {
		return false
	}
	return slices.Contains(refusals, exit.ExitCode()) ||
		slices.ContainsFunc(refused, func(words string) bool { return strings.Contains(e.said, words) })
}

// show reads properties of a unit, or of the manager when unit is empty.
func (p *Programs) show(ctx context.Context, unit string, names ...string) (map[string]string, error) {
	args := []string{"show"}
	for _, n := range names {
		args = append(args, "-p", n)
	}
	if unit != "" {
		args = append(args, "--", unit)
	}
	out, err := p.exec(ctx, p.systemctl, args...)
	if err != nil {
		return nil, err
	}
	v := values(out)
	for _, n := range names {
		if _, ok := v[n]; !ok {
			return nil, fmt.Errorf("read %s of %s: systemctl does not print it", n, unit)
		}
	}
	return v, nil
}

// MayRestart is [Conn.MayRestart]. Whether somebody but root may manage the system's units cannot be asked without a bus,
// and is refused.
func (p *Programs) MayRestart(ctx context.Context, unit string) error {
	v, err := p.show(ctx, unit, append(manual[:], "LoadState")...)
	switch {
	case err != nil:
		return fmt.Errorf("restart %s: %w", unit, err)
	case v["LoadState"] != "loaded":
		return fmt.Errorf("restart %s: the manager knows no such unit (%s)", unit, v["LoadState"])
	case p.manager == System && os.Geteuid() != 0:
		return fmt.Errorf("restart %s: %w: whether user %d may cannot be asked without a bus", unit, ErrNotAllowed, os.Geteuid())
	}
	for _, refuses := range manual {
		if v[refuses] == "yes" {
			return fmt.Errorf("restart %s: %w: it has %s=yes", unit, ErrNotAllowed, refuses)
		}
	}
	return nil
}

// Restart is [Conn.Restart].
func (p *Programs) Restart(ctx context.Context, unit string) error {
	if _, err := p.exec(ctx, p.systemctl, "--no-ask-password", "--no-block", "restart", "--", unit); err != nil {
		return fmt.Errorf("restart %s: %w", unit, err)
	}
	return nil
}

// exits implements Way.
func (p *Programs) exits(ctx context.Context, unit string) (e exits, err error) {
	v, err := p.show(ctx, unit, "Restart", "MainPID", "RestartPreventExitStatus", "RestartForceExitStatus", "SuccessExitStatus")
	if err != nil {
		return e, err
	}
	e.Restart = v["Restart"]
	if e.Main, err = strconv.Atoi(v["MainPID"]); err != nil {
		return e, fmt.Errorf("read MainPID of %s: %w", unit, err)
	}
	for name, to := range map[string]*[]int{"RestartPreventExitStatus": &e.Prevent, "RestartForceExitStatus": &e.Force,
		"SuccessExitStatus": &e.Success} {
		for word := range strings.FieldsSeq(v[name]) {
			if code, err := strconv.Atoi(word); err == nil { // the others are signals
				*to = append(*to, code)
			}
		}
	}
	return e, nil
}

// ProgramLauncher is a [Launcher] through [Programs]: services alone, since a scope is made of a process over the bus.
type ProgramLauncher struct {
	l *Launcher
	p *Programs
}

var _ restart.Launcher = (*ProgramLauncher)(nil)

// NewLauncher checks the config, which has neither Conn nor Scope.
//
// The values of Env reach the unit through systemd-run's own environment, which other users of the machine cannot read.
// Two kinds stand on its command line, where they can for as long as systemd-run takes: all of them where systemd is older
// than 249, and those that systemd-run itself would heed, such as PATH, LD_LIBRARY_PATH or XDG_RUNTIME_DIR.
func (p *Programs) NewLauncher(c LauncherConfig) (*ProgramLauncher, error) {
	if c.Conn != nil || c.Scope {
		return nil, errors.New("systemd launcher through its programs: Conn and Scope need a connection to the bus")
	}
	c.Conn = &Conn{manager: p.manager} // never asked; the rest of the config is judged in one place
	l, err := NewLauncher(c)
	if err != nil {
		return nil, err
	}
	return &ProgramLauncher{l, p}, nil
}

// Mode implements restart.Launcher.
func (l *ProgramLauncher) Mode() restart.Mode { return restart.Runner }

// Preflight implements restart.Launcher.
func (l *ProgramLauncher) Preflight(ctx context.Context, o restart.Order) policy.Preflight {
	if p := restart.SupervisedPreflight(o.Dead); p.Code != "" {
		return p
	}
	if _, err := l.p.show(ctx, "", "Version"); err != nil {
		return policy.Preflight{Code: Unreachable, Text: fmt.Sprintf("The %s manager of systemd does not answer.", l.p.manager)}
	}
	return policy.Preflight{}
}

// UnitName is the name of the unit for a launch.
func (l *ProgramLauncher) UnitName(launch string) string { return l.l.UnitName(launch) }

// Launch implements restart.Launcher. It returns when the manager has started the runner.
func (l *ProgramLauncher) Launch(ctx context.Context, o restart.Order) (restart.Started, error) {
	c := l.l.c
	command := c.Command(o)
	if len(command) == 0 || command[0] == "" {
		return restart.Started{}, errors.New("the runner has no command")
	}
	unit := l.UnitName(o.Launch)
	// Without --collect, one that failed stays until its result has been read: see Programs.End and Programs.Release.
	args := []string{"--no-ask-password", "--quiet", "--unit", unit,
		"--description", "Mulligan: " + o.Dead.Project + "/" + o.Dead.Name + " once more",
		"-p", "Type=exec", "-p", "Restart=no", "-p", "OOMPolicy=continue", "-p", "KillMode=mixed",
		"-p", fmt.Sprintf("TimeoutStopSec=%dus", c.Stop.Microseconds())}
	if c.Slice != "" {
		args = append(args, "--slice", c.Slice)
	}
	set, passed := setenv(l.p.version, c.Env)
	args = append(append(args, set...), "--")
	for _, word := range command {
		args = append(args, strings.ReplaceAll(word, "$", "$$")) // the manager expands variables, and halves what is doubled
	}
	if _, err := l.p.execWith(ctx, passed, l.p.run, args...); err != nil {
		return restart.Started{}, fmt.Errorf("start %s: %w", unit, err)
	}
	v, err := l.p.show(ctx, unit, "MainPID")
	pid, bad := strconv.Atoi(v["MainPID"])
	if err != nil || bad != nil || pid == 0 {
		// It is gone already, or cannot be asked for: then nobody knows when it ends, which the lease bounds.
		return restart.Started{}, nil //nolint:nilerr // the launch itself went well
	}
	return restart.Started{Exited: exited(pid)}, nil
}

// namesAlone is the first systemd whose systemd-run takes a variable's value from its own environment.
const namesAlone = 249

// setenv are the options by which a unit gets an environment, and what systemd-run needs in its own for them.
func setenv(version int, env []string) (options, passed []string) {
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if version < namesAlone || heeded(name) {
			options = append(options, "--setenv="+kv)
			continue
		}
		options, passed = append(options, "--setenv="+name), append(passed, kv)
	}
	return options, passed
}

// heeded reports that systemd-run, its loader or its libraries act on a variable: the value is meant for the unit alone.
func heeded(name string) bool {
	for _, prefix := range []string{"SYSTEMD_", "DBUS_", "LD_", "LC_", "GLIBC_", "MALLOC_", "OPENSSL_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"PATH", "HOME", "LANG", "LANGUAGE", "XDG_RUNTIME_DIR", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID",
		"INVOCATION_ID", "TERM", "PAGER", "TMPDIR", "TZ", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "RES_OPTIONS"}, name)
}
