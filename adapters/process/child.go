package process

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/mulligan-dev/mulligan/classify"
	"golang.org/x/sys/unix"
)

// child is a started process whose end is seen before it is reaped. In between its pid, and so the id of the group it
// leads, cannot belong to anybody else: that is the moment to signal the group.
type child struct {
	proc *os.Process
	pid  int
	// pidfd becomes readable when the process ends, so that waiting costs no thread; nil where the kernel has none.
	pidfd *os.File
}

// start starts argv from path. files are the descriptors 0, 1, 2, ...; everything else of the host is closed on exec.
func start(path string, argv []string, dir string, env []string, files []*os.File,
	sys *syscall.SysProcAttr) (*child, error) {
	fd := -1
	sys.PidFD = &fd
	if env == nil {
		// A nil environment means the host's own to os.StartProcess; here it means none.
		env = []string{}
	}
	proc, err := os.StartProcess(path, argv, &os.ProcAttr{Dir: dir, Env: env, Files: files, Sys: sys})
	if err != nil {
		return nil, err
	}
	c := &child{proc: proc, pid: proc.Pid}
	if fd >= 0 {
		if err := unix.SetNonblock(fd, true); err != nil {
			unix.Close(fd)
		} else {
			c.pidfd = os.NewFile(uintptr(fd), "pidfd")
		}
	}
	return c, nil
}

// startTied starts a child in a session of its own that gets none of the host's descriptors but files, and that is killed when
// the host ends in whatever way: a probe that hangs would otherwise be there for ever. exited is closed when the child has
// ended, before it is reaped.
func startTied(path string, argv []string, dir string, env []string, files []*os.File) (c *child, exited chan struct{}, err error) {
	begun := make(chan error, 1)
	exited = make(chan struct{})
	go func() {
		// The kernel ties the child to the thread that forked, so that one is kept until the child is over.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		c, err = sealed(func() (*child, error) {
			return start(path, argv, dir, env, files, &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL})
		})
		begun <- err
		if err == nil {
			c.await()
			close(exited)
		}
	}()
	err = <-begun
	return c, exited, err
}

// await returns when the process has ended. It does not reap it.
func (c *child) await() {
	if c.pidfd != nil {
		if conn, err := c.pidfd.SyscallConn(); err == nil {
			err = conn.Read(func(fd uintptr) bool {
				p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
				n, err := unix.Poll(p, 0)
				return n > 0 || (err != nil && err != unix.EINTR)
			})
			if err == nil {
				return
			}
		}
	}
	for {
		// Without a pollable pidfd a thread waits; WNOWAIT leaves the process to be reaped.
		err := unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// reap collects the ended process. It must follow await.
func (c *child) reap() classify.Exit {
	if c.pidfd != nil {
		c.pidfd.Close()
	}
	state, err := c.proc.Wait()
	if err != nil {
		// Somebody else in the host reaped it (a wait for any child); how it ended is lost.
		return classify.Exit{Code: -1}
	}
	return exitOf(state)
}

// signalGroup sends sig to the group that the process leads. It must come before reap.
func (c *child) signalGroup(sig syscall.Signal) error {
	if err := unix.Kill(-c.pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process group %d with %s: %w", c.pid, unix.SignalName(sig), err)
	}
	return nil
}

func exitOf(state *os.ProcessState) classify.Exit {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return classify.Exit{Code: -1, Signal: signalName(ws.Signal())}
	}
	return classify.Exit{Code: state.ExitCode()}
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return "SIG" + strconv.Itoa(int(sig)) // real-time signals have no name
}

// ExitCode is the exit code that a shell gives for an end: the program's own, or 128+N when it died of signal N.
func ExitCode(e classify.Exit) int {
	if e.Signal == "" {
		return e.Code
	}
	if n := unix.SignalNum(e.Signal); n != 0 {
		return 128 + int(n)
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(e.Signal, "SIG")); err == nil {
		return 128 + n
	}
	return 128
}

// stat is what is used of /proc/PID/stat.
type stat struct {
	state   byte
	parent  int
	group   int
	session int
	start   uint64
}

// parseStat reads the fields after the program's name, which may itself hold blanks and parentheses.
func parseStat(s string) (stat, error) {
	i := strings.LastIndexByte(s, ')')
	if i < 0 {
		return stat{}, errors.New("no program name in its stat line")
	}
	f := strings.Fields(s[i+1:])
	if len(f) < 20 {
		return stat{}, fmt.Errorf("%d fields in its stat line, want at least 20", len(f))
	}
	if len(f[0]) != 1 || f[0][0] < 'A' || f[0][0] > 'z' {
		return stat{}, fmt.Errorf("the state %q in its stat line, want one letter", f[0])
	}
	st := stat{state: f[0][0]}
	var errs [4]error
	st.parent, errs[0] = strconv.Atoi(f[1])
	st.group, errs[1] = strconv.Atoi(f[2])
	st.session, errs[2] = strconv.Atoi(f[3])
	st.start, errs[3] = strconv.ParseUint(f[19], 10, 64)
	return st, errors.Join(errs[:]...)
}
