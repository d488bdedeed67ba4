package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ErrOtherProcess means that the pid now belongs to another process than the one that was named.
var ErrOtherProcess = errors.New("the pid belongs to another process now")

// Terminate ends the process group that the process pid leads, and the process itself if it leads none: SIGTERM first,
// SIGKILL when something of it is left after grace. start is the process's start time in clock ticks since boot; a pid
// that belongs to another process by now is [ErrOtherProcess], and nothing is signalled. It returns nil when everything
// is gone. It is for processes that are no children of the host; a [Child] has its own handle.
func Terminate(ctx context.Context, pid int, start uint64, grace time.Duration) error {
	// The handle is taken before the start time is compared: from here on the number cannot change hands unseen.
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("terminate process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	st, err := readStat(pid)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("terminate process %d: %w", pid, err)
	}
	if st.start != start {
		return fmt.Errorf("terminate process %d: %w", pid, ErrOtherProcess)
	}
	target := pid
	if st.group == pid {
		target = -pid
	}
	if err := kill(target, unix.SIGTERM); err != nil {
		return fmt.Errorf("terminate process %d: %w", pid, err)
	}
	_ = kill(target, unix.SIGCONT) // a stopped process must be woken to see it
	if waitGone(ctx, target, grace) {
		return nil
	}
	if err := kill(target, unix.SIGKILL); err != nil {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	if waitGone(ctx, target, killWait) {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("terminate process %d: %w", pid, context.Cause(ctx))
	}
	return fmt.Errorf("terminate process %d: it is still there after SIGKILL: it may hang in a system call", pid)
}

const (
	killWait = 5 * time.Second
	pollGap  = 10 * time.Millisecond
)

// kill is kill(2) that takes a process or group that is gone for a success.
func kill(target int, sig unix.Signal) error {
	if err := unix.Kill(target, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// waitGone looks again and again until nothing but zombies is left: the kernel tells nobody of the end of a group.
func waitGone(ctx context.Context, target int, atMost time.Duration) bool {
	over := time.NewTimer(atMost)
	defer over.Stop()
	tick := time.NewTicker(pollGap)
	defer tick.Stop()
	for {
		if !living(target) {
			return true
		}
		select {
		case <-tick.C:
		case <-over.C:
			return !living(target)
		case <-ctx.Done():
			return false
		}
	}
}

func living(target int) bool {
	if errors.Is(unix.Kill(target, 0), unix.ESRCH) {
		return false
	}
	if target < 0 {
		return len(groupMembers(-target)) > 0
	}
	st, err := readStat(target)
	return err == nil && st.state != 'Z'
}

// groupMembers are the living processes of a group. The whole of /proc is read only if the group exists.
func groupMembers(group int) []int {
	if errors.Is(unix.Kill(-group, 0), unix.ESRCH) {
		return nil
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var out []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if st, err := readStat(pid); err == nil && st.group == group && st.state != 'Z' {
			out = append(out, pid)
		}
	}
	return out
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(b))
}
