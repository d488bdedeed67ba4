package probetest

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel tells nobody when somebody else's process ends or a file appears, so both are looked for again and again.
const (
	look    = 5 * time.Millisecond
	patient = 20 * time.Second // for what is under way, such as the end of a killed process
)

func eventually(atMost time.Duration, what func() bool) bool {
	for end := time.Now().Add(atMost); time.Now().Before(end); time.Sleep(look) {
		if what() {
			return true
		}
	}
	return what()
}

// appears waits for a file that a module writes.
func (b *bench) appears(name string) bool {
	return eventually(long, func() bool { return b.read(name) != "" })
}

// gone wants the process whose id is in a file to be at its end.
func (b *bench) gone(name string) error {
	pid, err := strconv.Atoi(b.read(name))
	if err != nil {
		return fmt.Errorf("the module wrote no process id: %w", err)
	}
	if !eventually(patient, func() bool { return ended(pid) }) {
		return fmt.Errorf("process %d still runs", pid)
	}
	return nil
}

// ended reports whether a process is gone or a zombie, which is its parent's affair.
func ended(pid int) bool {
	if unix.Kill(pid, 0) == unix.ESRCH {
		return true
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return os.IsNotExist(err)
	}
	for i := len(status) - 1; i >= 0; i-- {
		if status[i] == ')' {
			return i+2 < len(status) && status[i+2] == 'Z'
		}
	}
	return false
}

// cleanUp ends what a broken prober left behind: processes that modules of this check started, by the ids that they
// wrote into its folder.
func (b *bench) cleanUp() {
	for _, name := range b.started {
		if pid, err := strconv.Atoi(b.read(name)); err == nil && pid > 1 && !ended(pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
