package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"golang.org/x/sys/unix"
)

// asRunner makes the test binary a small "mulligan exec": it runs its arguments under Run and exits with the code.
const asRunner = "PROCESS_TEST_RUNNER"

func TestMain(m *testing.M) {
	if os.Getenv(asRunner) != "" {
		os.Exit(runAsRunner())
	}
	if os.Getenv(asUpdater) != "" {
		os.Exit(runAsUpdater())
	}
	if tree := os.Getenv(asProber); tree != "" {
		os.Exit(runAsProber(tree))
	}
	os.Exit(m.Run())
}

func runAsRunner() int {
	r, err := Run(context.Background(), RunSpec{Command: os.Args[1:], Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	var start *StartError
	if errors.As(err, &start) {
		fmt.Fprintln(os.Stderr, err)
		return start.Code
	}
	return r.Code
}

// screen is the far end of a terminal: what a person sees and types.
type screen struct {
	t      *testing.T
	master *os.File
	mu     sync.Mutex
	text   []byte
	closed bool
}

// openScreen starts argv as the leader of a session on a new terminal.
func openScreen(t *testing.T, argv ...string) (*screen, *exec.Cmd) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here (%v): mount devpts on /dev/pts", err)
	}
	s := &screen{t: t, master: os.NewFile(uintptr(fd), "ptmx")}
	t.Cleanup(func() { s.master.Close() })
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	mode, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	mode.Lflag &^= unix.ECHO // so that what is typed is not taken for what is said
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 101}); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.Env = append(os.Environ(), asRunner+"=1", "PS1=prompt> ", "ENV=", "TERM=dumb")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The session's leader and, by the hang-up of its terminal, what is left of the session.
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	go s.watch()
	return s, c
}

func (s *screen) watch() {
	buf := make([]byte, 4096)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		s.text = append(s.text, buf[:n]...)
		s.closed = err != nil
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) sends(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits for a text and takes everything up to its end off the screen.
func (s *screen) shows(want string) string {
	s.t.Helper()
	var out string
	found := false
	await(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := bytes.Index(s.text, []byte(want)); i >= 0 {
			out, s.text, found = string(s.text[:i+len(want)]), s.text[i+len(want):], true
		}
		return found || s.closed
	})
	if !found {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.t.Fatalf("the screen does not show %q; it shows %q", want, s.text)
	}
	return out
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// waitExit is how the session's leader ended.
func waitExit(t *testing.T, c *exec.Cmd) classify.Exit {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Wait() }()
	select {
	case <-done:
		return exitOf(c.ProcessState)
	case <-time.After(time.Minute):
		t.Fatal("the runner does not end")
		return classify.Exit{}
	}
}

func TestTheProgramIsInFront(t *testing.T) {
	t.Parallel()
	// Fields 5 and 8 of the stat line: its group, and the terminal's foreground group.
	s, c := openScreen(t, self(t), "/bin/sh", "-c",
		`until read -r a b c d pgrp e f tpgid rest < /proc/$$/stat; [ $pgrp = $tpgid ]; do sleep 0.1; done; echo "front $pgrp $tpgid $$."; test -t 2 && echo errtty; stty size <&2; echo torn >&2; exit 3`)
	var pgrp, tpgid, pid int
	line := s.shows(".")
	if _, err := fmt.Sscanf(line[strings.Index(line, "front"):], "front %d %d %d.", &pgrp, &tpgid, &pid); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if pgrp != pid || tpgid != pid {
		t.Errorf("process %d is in group %d, and group %d is in front", pid, pgrp, tpgid)
	}
	s.shows("errtty")
	s.shows("33 101")
	s.shows("torn\r\n")
	if e := waitExit(t, c); e.Code != 3 {
		t.Errorf("the runner ended with %+v, want code 3", e)
	}
}

func TestControlCGoesToTheProgram(t *testing.T) {
	t.Parallel()
	s, c := openScreen(t, self(t), "/bin/sh", "-c", `sleep 60 & trap 'kill -KILL $!; echo interrupted; exit 7' INT; echo ready; wait`)
	s.shows("ready")
	s.sends("\x03")
	s.shows("interrupted")
	if e := waitExit(t, c); e.Code != 7 {
		t.Errorf("the runner ended with %+v, want code 7", e)
	}

	s, c = openScreen(t, self(t), "/bin/sh", "-c", `echo ready; exec sleep 60`)
	s.shows("ready")
	s.sends("\x03")
	if e := waitExit(t, c); e.Code != 130 {
		t.Errorf("the runner ended with %+v, want code 130", e)
	}
}

func TestJobControl(t *testing.T) {
	t.Parallel()
	s, _ := openScreen(t, "/bin/sh", "-i")
	s.shows("prompt> ")
	s.sends(self(t) + " /bin/sh -c 'echo ready; while read -r l; do echo got $l; done; echo ended'\n")
	s.shows("ready\r\n")
	s.sends("one\n")
	s.shows("got one")

	s.sends("\x1a") // Ctrl-Z stops the job, and the shell is in front again
	s.shows("prompt> ")
	s.sends("echo al''ive\n")
	s.shows("alive")
	s.sends("fg\n")
	s.sends("two\n")
	s.shows("got two")

	s.sends("\x1a")
	s.shows("prompt> ")
	s.sends("bg\n") // it reads the terminal, so it is stopped there, and comes back with fg
	s.shows("prompt> ")
	s.sends("echo st''ill\n")
	s.shows("still")
	s.sends("fg\n")
	s.sends("three\n")
	s.shows("got three")
	s.sends("\x04")
	s.shows("ended")
	s.shows("prompt> ")
	s.sends("echo code $?\n")
	s.shows("code 0")
}

func TestStopWithoutAShellAboveGoesOn(t *testing.T) {
	t.Parallel()
	// The runner leads the session (a container's first process): a stopped program could never be woken.
	// It starts nothing: a stop between vfork and exec would hold a shell that waits in the kernel for its child.
	s, c := openScreen(t, self(t), "/bin/sh", "-c", `echo ready; while read -r l; do echo "got $l"; done; exit 4`)
	s.shows("ready")
	s.sends("\x1a")
	s.sends("hello\n")
	s.shows("got hello")
	s.sends("\x04")
	if e := waitExit(t, c); e.Code != 4 {
		t.Errorf("the runner ended with %+v, want code 4", e)
	}
}

func TestSurvivorOnATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, c := openScreen(t, self(t), "/bin/sh", "-c", `trap '' HUP; cd `+dir+`; sleep 60 & echo $! > pid; echo last words >&2; exit 6`)
	s.shows("last words")
	if e := waitExit(t, c); e.Code != 6 {
		t.Errorf("the runner ended with %+v, want code 6", e)
	}
	var pid int
	fmt.Sscan(slurp(t, dir, "pid"), &pid)
	if !living(pid) {
		t.Error("the survivor was ended")
	}
	_ = unix.Kill(pid, unix.SIGKILL)
}

func TestSignalsArePassedOn(t *testing.T) {
	t.Parallel()
	for i, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1} {
		t.Run(signalName(sig), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// Two shells show that the whole group is told. They wait in the shell itself: dash loses a signal that comes
			// while it starts a program.
			told := filepath.Join(dir, "told")
			inner := fmt.Sprintf(`sleep 60 & trap "kill -KILL $!; : > %s; exit" %d; : > ready; wait`, told, int(sig))
			script := fmt.Sprintf(`trap 'exit %d' %d; sh -c '%s' & wait; exit 1`, 40+i, int(sig), inner)
			if sig == unix.SIGINT || sig == unix.SIGQUIT {
				// A shell without job control lets its background jobs ignore these.
				script = fmt.Sprintf(`sleep 60 & trap 'kill -KILL $!; : > %s; exit %d' %d; : > ready; wait`, told, 40+i, int(sig))
			}
			c := exec.Command(self(t), "/bin/sh", "-c", script)
			c.Env, c.Dir = append(os.Environ(), asRunner+"=1"), dir
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			await(t, func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
			if err := c.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if e := waitExit(t, c); e.Code != 40+i {
				t.Errorf("the runner ended with %+v, want code %d", e, 40+i)
			}
			await(t, func() bool { _, err := os.Stat(told); return err == nil })
		})
	}
}

func TestPassingOnDoesNotStopTheRunner(t *testing.T) {
	t.Parallel()
	// With tostop, a background process that writes to the terminal is stopped; the runner is one.
	s, c := openScreen(t, self(t), "/bin/sh", "-c", `stty tostop; echo first >&2; echo second >&2; exit 8`)
	s.shows("second")
	if e := waitExit(t, c); e.Code != 8 {
		t.Errorf("the runner ended with %+v, want code 8", e)
	}
}

func TestRunnerOutlivesItsOwnStderr(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	c := exec.Command(self(t), "/bin/sh", "-c", "echo one >&2; echo two >&2; exit 5")
	c.Env, c.Stderr = append(os.Environ(), asRunner+"=1"), w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if e := waitExit(t, c); e.Code != 5 {
		t.Errorf("the runner ended with %+v, want code 5", e)
	}
}

func TestRunnerSaysWhyAProgramDidNotStart(t *testing.T) {
	t.Parallel()
	c := exec.Command(self(t), "no-such-program-here")
	c.Env = append(os.Environ(), asRunner+"=1")
	out, _ := c.CombinedOutput()
	if code := c.ProcessState.ExitCode(); code != 127 || !bytes.Contains(out, []byte("no such program in PATH")) {
		t.Errorf("code %d: %s", code, out)
	}
}
