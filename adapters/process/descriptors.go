package process

import (
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// sealing is held while descriptors are kept from a child. It guards the process's descriptor table, as
// syscall.ForkLock does, and so belongs to the process and not to a value.
var sealing sync.Mutex

// sealed starts a child that gets none of the host's descriptors but those handed to it.
//
// What Go opens is closed on exec anyway. What the host itself inherited is not: a lock that its own starter holds on
// descriptor 9, a socket from the service manager. A replacement outlives the host, and would keep such a lock for
// ever. The host's own flags are put back, because it may count on them when it replaces itself.
func sealed(start func() (*child, error)) (*child, error) {
	sealing.Lock()
	defer sealing.Unlock()
	for _, d := range inheritable() {
		if _, err := unix.FcntlInt(uintptr(d.fd), unix.F_SETFD, unix.FD_CLOEXEC); err == nil {
			defer d.restore()
		}
	}
	return start()
}

// descriptor is an open descriptor that a child would inherit, and the file it led to.
type descriptor struct {
	fd       int
	dev, ino uint64
}

func inheritable() (out []descriptor) {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd < 3 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil {
			out = append(out, descriptor{fd: fd, dev: st.Dev, ino: st.Ino})
		}
	}
	return out
}

// restore makes the descriptor inheritable again, unless its number belongs to another file by now.
func (d descriptor) restore() {
	var st unix.Stat_t
	if unix.Fstat(d.fd, &st) == nil && st.Dev == d.dev && st.Ino == d.ino {
		_, _ = unix.FcntlInt(uintptr(d.fd), unix.F_SETFD, 0)
	}
}
