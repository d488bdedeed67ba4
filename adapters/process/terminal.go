package process

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal while the host's group is its foreground group. A nil terminal does nothing.
type terminal struct {
	file *os.File
	own  int // the host's process group
}

// openTerminal is the controlling terminal, or nil when there is none or it is somebody else's turn on it.
func openTerminal() *terminal {
	// Not os.OpenFile: the poller has no use for a terminal that is only asked who is in front.
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	t := &terminal{file: os.NewFile(uintptr(fd), "/dev/tty"), own: unix.Getpgrp()}
	if t.front() != t.own {
		t.close()
		return nil
	}
	return t
}

func (t *terminal) close() {
	if t != nil {
		t.file.Close()
	}
}

func (t *terminal) front() int {
	n, err := unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return n
}

// set makes a group the foreground group, also from the background.
func (t *terminal) set(group int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	restore := blockStops()
	_ = unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group)
	restore()
}

// give puts the program in front, if the host is.
func (t *terminal) give(group int) {
	if t != nil && t.front() == t.own {
		t.set(group)
	}
}

// takeBack puts the host in front again, if the program is; a third group is left there.
func (t *terminal) takeBack(group int) {
	if t != nil && t.front() == group {
		t.set(t.own)
	}
}

// stops deals with a program that was stopped: the host takes the terminal back and stops as well, so that the shell
// above sees a stopped job. A program that only ran into the terminal before it was given is woken.
func (t *terminal) stops(pid int) {
	if t == nil {
		return
	}
	for {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG, nil); err != nil || info.Signo == 0 {
			return
		}
		sig := stopSignal(&info)
		inFront := t.front() == pid
		if inFront && (sig == unix.SIGTTIN || sig == unix.SIGTTOU) {
			_ = unix.Kill(-pid, unix.SIGCONT)
			continue
		}
		if orphaned(t.own) {
			// Nobody above could ever wake us; without Run the program would not have stopped either.
			_ = unix.Kill(-pid, unix.SIGCONT)
			continue
		}
		t.takeBack(pid)
		if sig == unix.SIGSTOP {
			sig = unix.SIGTSTP // for the rest of the job a stop that it may handle
		}
		_ = unix.Kill(0, sig)
	}
}

// resumed deals with a host that was woken: by the shell's fg, which put it in front, or by bg, which did not.
func (t *terminal) resumed(pid int) {
	if t == nil {
		return
	}
	t.give(pid)
	_ = unix.Kill(-pid, unix.SIGCONT)
}

// stopSignal is the signal that stopped the process: si_status of a SIGCHLD. It follows si_pid and si_uid in a union
// that begins at the first multiple of the word size after the three common fields.
func stopSignal(info *unix.Siginfo) unix.Signal {
	const word = unsafe.Sizeof(uintptr(0))
	union := (unsafe.Offsetof(info.Code) + unsafe.Sizeof(info.Code) + word - 1) / word * word
	return unix.Signal(*(*int32)(unsafe.Add(unsafe.Pointer(info), union+8)))
}

// orphaned reports whether no process outside the host's group but in its session could wake it (its parent left).
func orphaned(own int) bool {
	parent := os.Getppid()
	group, err := unix.Getpgid(parent)
	if err != nil || group == own {
		// A parent in the same group: a script's shell. What counts is that group's own parent, and there is one as
		// long as the terminal has a shell.
		return err != nil
	}
	theirs, err := unix.Getsid(parent)
	if err != nil {
		return true
	}
	ours, err := unix.Getsid(0)
	return err != nil || theirs != ours
}

// blockStops lets this thread use the terminal from the background. The caller has locked the thread.
func blockStops() (restore func()) {
	var set, old unix.Sigset_t
	set.Val[0] = 1<<(uint(unix.SIGTTOU)-1) | 1<<(uint(unix.SIGTTIN)-1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err != nil {
		return func() {}
	}
	return func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }
}

func isTerminal(f *os.File) (is bool) {
	control(f, func(fd int) {
		_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		is = err == nil
	})
	return is
}

// ptySettle is how long a pseudo-terminal that a surviving process holds open is read after the program's end.
const ptySettle = 100 * time.Millisecond

// openPTY makes a pseudo-terminal that looks like the given terminal but changes nothing in what passes through it.
func openPTY(like *os.File) (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a pseudo-terminal: %w", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	fail := func(err error) (*os.File, *os.File, error) {
		master.Close()
		return nil, nil, fmt.Errorf("open a pseudo-terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return fail(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return fail(err)
	}
	name := "/dev/pts/" + strconv.Itoa(n)
	sfd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	slave = os.NewFile(uintptr(sfd), name)
	if err := dressPTY(like, slave); err != nil {
		slave.Close()
		return fail(err)
	}
	return master, slave, nil
}

// dressPTY copies the terminal's settings and size, less what would change the bytes: the real terminal does that.
func dressPTY(like, slave *os.File) error {
	var mode *unix.Termios
	var err error
	control(like, func(fd int) { mode, err = unix.IoctlGetTermios(fd, unix.TCGETS) })
	if err != nil || mode == nil {
		return errors.Join(err, errors.New("the terminal's settings cannot be read"))
	}
	mode.Oflag &^= unix.OPOST
	mode.Lflag &^= unix.ECHO | unix.ECHONL | unix.TOSTOP
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, mode); err != nil {
		return err
	}
	copySize(like, slave)
	return nil
}

// copySize gives a pseudo-terminal the size that the real terminal has now. The kernel tells only the foreground group
// of a change, so it is looked up as output passes.
func copySize(like, pty *os.File) {
	want, err := winsize(like)
	if err != nil {
		return
	}
	if have, err := winsize(pty); err == nil && *have != *want {
		control(pty, func(fd int) { _ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, want) })
	}
}

func winsize(f *os.File) (size *unix.Winsize, err error) {
	control(f, func(fd int) { size, err = unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ) })
	if size == nil && err == nil {
		err = os.ErrClosed
	}
	return size, err
}

// control uses a descriptor without taking it out of the poller, as Fd would.
func control(f *os.File, use func(fd int)) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { use(int(fd)) })
	}
}
