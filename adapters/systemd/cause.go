package systemd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/classify"
)

// Cause is the typed cause in a unit's result, empty where the exit status and the text have to tell: "exit-code", a core
// dump, a start limit.
func (r Result) Cause() classify.Reason {
	switch r.Result {
	case "oom-kill":
		return classify.OOM
	case "timeout", "watchdog":
		return classify.Timeout
	case "signal":
		return classify.Killed
	}
	return ""
}

// cgroups is where the kernel shows the unified hierarchy.
const cgroups = "/sys/fs/cgroup"

// soon is how long after a kill for memory a death still counts as that kill's: the kernel takes a while to tear down what
// had much memory.
const soon = 10 * time.Second

// OOMWatch tells whether the kernel killed for memory in a process's cgroup. A unit that goes on after a kill
// (OOMPolicy=continue) shows it nowhere else. Close ends the watch.
type OOMWatch struct {
	events, wake *os.File // the kernel's counts, and the end of a pipe that ends the watch
	within       time.Duration
	follows      sync.WaitGroup
	stop         func() error

	mu    sync.Mutex
	kills uint64
	last  time.Time // when the count was last seen to have grown
}

// WatchOOM begins to watch the cgroup of this process. It fails where there is no memory controller.
func WatchOOM() (*OOMWatch, error) {
	w, err := watchOOM()
	if err != nil {
		return nil, fmt.Errorf("watch for kills: %w", err)
	}
	return w, nil
}

func watchOOM() (*OOMWatch, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	path, ok := cgroupPath(string(b))
	if !ok {
		return nil, ErrNoUnit
	}
	events, err := os.Open(filepath.Join(cgroups, path, "memory.events"))
	if err != nil {
		return nil, err
	}
	w := &OOMWatch{events: events, within: soon}
	if w.kills, err = w.count(); err != nil {
		return nil, errors.Join(err, events.Close())
	}
	wake, stop, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, events.Close())
	}
	w.wake, w.stop = wake, sync.OnceValue(stop.Close)
	w.follows.Go(w.follow)
	return w, nil
}

// follow notes when the kernel kills. The kernel wakes whoever polls the file when a count in it has changed.
func (w *OOMWatch) follow() {
	fds := []unix.PollFd{{Fd: int32(w.events.Fd()), Events: unix.POLLPRI}, {Fd: int32(w.wake.Fd()), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) || fds[1].Revents != 0 {
			return
		}
		if _, err := w.look(); err != nil {
			return // the cgroup is gone, which would wake us for ever
		}
	}
}

// look reads the count, and returns when it last grew.
func (w *OOMWatch) look() (time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.count()
	if err == nil && n > w.kills {
		w.kills, w.last = n, time.Now()
	}
	return w.last, err
}

// count is the kernel's count.
func (w *OOMWatch) count() (uint64, error) {
	b := make([]byte, 4096)
	n, err := w.events.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	for line := range bytes.Lines(b[:n]) {
		if n, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("oom_kill ")); ok {
			return strconv.ParseUint(string(n), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no oom_kill", w.events.Name())
}

// Cause is [classify.OOM] for a process that has just died of SIGKILL, when the kernel killed for memory right before, else
// empty. A shell that passes its program's end on says 137.
func (w *OOMWatch) Cause(e classify.Exit) classify.Reason {
	if e.Signal != "SIGKILL" && e.Code != 128+int(unix.SIGKILL) {
		return ""
	}
	if last, err := w.look(); err != nil || last.IsZero() || time.Since(last) > w.within {
		return ""
	}
	return classify.OOM
}

// Close releases what the watch holds.
func (w *OOMWatch) Close() error {
	err := w.stop()
	w.follows.Wait()
	return errors.Join(err, w.events.Close(), w.wake.Close())
}
