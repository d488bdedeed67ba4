package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watch sends on wake when a file appears in a folder, until ctx ends. The descriptor is read through the runtime's
// poller: a goroutine that blocks in read(2) wakes much later on busy cores. errors.ErrUnsupported means that the kernel
// gives no watch, as when the user has too many.
func watch(ctx context.Context, dir string, wake chan<- struct{}) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return errors.ErrUnsupported
	}
	const what = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
	if _, err := unix.InotifyAddWatch(fd, dir, what); err != nil {
		_ = unix.Close(fd)
		return errors.ErrUnsupported
	}
	f := os.NewFile(uintptr(fd), "inotify")
	defer f.Close()
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	send(wake) // what arrived before the watch stood
	buf := make([]byte, 4096)
	for {
		n, err := f.Read(buf)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("watch %s: %w", dir, err)
		}
		come, gone := events(buf[:n])
		if come {
			send(wake)
		}
		if gone {
			return fmt.Errorf("watch %s: the folder was moved or removed", dir)
		}
	}
}

// events reports whether a visible file came, or events were lost, and whether the folder itself is gone. Files still
// being written have a name with a dot.
func events(b []byte) (come, gone bool) {
	const head = unix.SizeofInotifyEvent
	for len(b) >= head {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&b[0])) //nolint:gosec // the kernel's own layout
		size := head + int(e.Len)
		if len(b) < size {
			return true, gone
		}
		switch {
		case e.Mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED) != 0:
			gone = true
		case e.Mask&unix.IN_Q_OVERFLOW != 0:
			come = true
		case e.Len > 0 && b[head] != '.':
			come = true
		}
		b = b[size:]
	}
	return come, gone
}
