package host

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// boottime is the kernel's clock since boot, suspend included.
func boottime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// isGone reports that a process ended while its stat file was read.
func isGone(err error) bool { return errors.Is(err, unix.ESRCH) }

// hidden reports that a pid is in use though /proc does not show it (mounted with hidepid).
func hidden(pid int) bool {
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}
