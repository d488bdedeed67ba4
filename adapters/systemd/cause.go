package systemd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

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

// OOMWatch tells whether the kernel killed something in a process's cgroup since the watch began. A scope that goes on
// after a kill (OOMPolicy=continue) shows it nowhere else.
type OOMWatch struct {
	file  string
	began uint64
}

// WatchOOM begins to watch the cgroup of this process. It fails where there is no memory controller.
func WatchOOM() (*OOMWatch, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("watch for kills: %w", err)
	}
	path, ok := cgroupPath(string(b))
	if !ok {
		return nil, fmt.Errorf("watch for kills: %w", ErrNoUnit)
	}
	w := &OOMWatch{file: filepath.Join(cgroups, path, "memory.events")}
	if w.began, err = w.kills(); err != nil {
		return nil, fmt.Errorf("watch for kills: %w", err)
	}
	return w, nil
}

// kills is the kernel's count.
func (w *OOMWatch) kills() (uint64, error) {
	b, err := os.ReadFile(w.file)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if n, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("oom_kill ")); ok {
			return strconv.ParseUint(string(n), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no oom_kill", w.file)
}

// Cause is [classify.OOM] for a process that died of SIGKILL when the kernel killed for memory meanwhile, else empty.
func (w *OOMWatch) Cause(e classify.Exit) classify.Reason {
	if e.Signal != "SIGKILL" {
		return ""
	}
	if n, err := w.kills(); err != nil || n <= w.began {
		return ""
	}
	return classify.OOM
}
