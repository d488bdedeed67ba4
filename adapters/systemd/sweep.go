package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Shared are programs that a user's sessions share, and that any of them may have started first: they are not the run's to
// end.
var shared = []string{"ssh-agent", "gpg-agent", "dirmngr", "scdaemon", "keyboxd", "tmux: server", "screen", "dbus-daemon", "dbus-broker",
	"gnome-keyring-d", "pulseaudio", "pipewire", "emacs"}

// Sweep ends what a run left behind in the cgroup of this process, when the run itself is over: SIGTERM, and SIGKILL for
// those that are there after the grace. It spares this process and its ancestors, and daemons that a user's sessions share
// (ssh-agent, gpg-agent, tmux, screen and their like), and returns the pids that it ended. One that this process may not
// end, or that the kernel holds, is waited for until ctx ends.
//
// It does nothing outside of a scope that a [Launcher] made: elsewhere the cgroup is shared with strangers.
func Sweep(ctx context.Context, grace time.Duration) (ended []int, err error) {
	u, err := Self()
	if err != nil || !strings.HasPrefix(u.Name, "mulligan-") || !u.Scope() {
		return nil, nil //nolint:nilerr // nothing to sweep where there is no scope of ours
	}
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("sweep %s: %w", u, err)
	}
	path, _ := cgroupPath(string(b))
	spared := ancestors(os.Getpid())
	over := time.After(grace)
	for signal := unix.SIGTERM; ; {
		left, err := others(filepath.Join(cgroups, path), spared)
		if err != nil || len(left) == 0 {
			return ended, err
		}
		for _, pid := range left {
			if signal == unix.SIGKILL || !slices.Contains(ended, pid) {
				_ = unix.Kill(pid, signal) // it may have ended by itself
			}
			if !slices.Contains(ended, pid) {
				ended = append(ended, pid)
			}
		}
		select {
		case <-ctx.Done():
			return ended, context.Cause(ctx)
		case <-over:
			signal = unix.SIGKILL
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// others are the processes of a cgroup and those below it, but for the spared.
func others(dir string, spared []int) (out []int, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it ended meanwhile
			}
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			return err
		}
		for field := range strings.FieldsSeq(string(b)) {
			pid, err := strconv.Atoi(field)
			if err == nil && pid > 0 && !slices.Contains(spared, pid) && !slices.Contains(shared, comm(pid)) {
				out = append(out, pid)
			}
		}
		return nil
	})
	return out, err
}

// comm is the process's name as the kernel keeps it, at most fifteen bytes; empty for one that is gone.
func comm(pid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return strings.TrimSuffix(string(b), "\n")
}

// ancestors are a process and its parents.
func ancestors(pid int) (out []int) {
	for pid > 1 {
		out = append(out, pid)
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		end := strings.LastIndexByte(string(b), ')')
		if err != nil || end < 0 {
			break
		}
		fields := strings.Fields(string(b[end+1:]))
		if len(fields) < 2 {
			break
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			break
		}
	}
	return out
}
