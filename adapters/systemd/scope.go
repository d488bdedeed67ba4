package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/restart"
)

// hold is a shell that waits for a word and then becomes the runner. Until then it has done nothing, so that everything
// the runner ever starts is in its scope. The end of the pipe without a word, as when the launcher dies, ends it.
const hold = `IFS= read -r word <&3 && [ "$word" = go ] || exit 125; exec 3<&-; exec "$@"`

// scope starts the runner held, gives it a scope of its own, and lets it go.
func (l *Launcher) scope(ctx context.Context, o restart.Order, command []string) (started restart.Started, err error) {
	unit := l.UnitName(o.Launch)
	r, w, err := os.Pipe()
	if err != nil {
		return started, fmt.Errorf("start %s: %w", unit, err)
	}
	defer w.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", hold, "sh"}, command...)...)
	cmd.Env, cmd.Dir = l.c.Env, "/"
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	cmd.ExtraFiles = []*os.File{r}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	r.Close()
	if err != nil {
		return started, fmt.Errorf("start %s: %w", unit, err)
	}
	gone := exited(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }() // its end is told by the record and by gone
	props := append(l.common(o.Dead), prop("PIDs", []uint32{uint32(cmd.Process.Pid)}), prop("OOMPolicy", "continue"),
		prop("TimeoutStopUSec", uint64(l.c.Stop.Microseconds())))
	if err := l.c.Conn.start(ctx, unit, props); err != nil {
		return started, errors.Join(fmt.Errorf("start %s: %w", unit, err), cmd.Process.Kill())
	}
	if _, err := w.WriteString("go\n"); err != nil {
		return started, fmt.Errorf("start %s: the runner ended before it began: %w", unit, err)
	}
	return restart.Started{Exited: gone}, nil
}

// exited is closed when a process is gone; nil when that cannot be seen.
func exited(pid int) <-chan struct{} {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			gone := make(chan struct{})
			close(gone)
			return gone
		}
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer unix.Close(fd)
		defer close(gone)
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return gone
}
