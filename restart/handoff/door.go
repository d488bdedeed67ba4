package handoff

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

const (
	doorName = "self-restart.sock"
	doorLock = "self-restart.lock"
)

// door is a socket in a folder.
type door struct {
	dir      durable.Dir
	lock     durable.Lock
	way      *os.File
	listener net.Listener
}

func openDoor(dir string) (d *door, err error) {
	d = &door{}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.dir, err = (durable.System{}).Open(dir); err != nil {
		return d, err
	}
	if err := durable.Private(d.dir); err != nil {
		return d, err
	}
	if in, err := os.Stat(dir); err != nil {
		return d, err
	} else if in.Mode().Perm()&0o011 != 0 {
		return d, fmt.Errorf("others may enter it (mode %v): chmod 700 it", in.Mode().Perm())
	}
	if d.lock, err = d.dir.Lock(doorLock); err != nil {
		return d, err
	}
	if ours, err := d.lock.Try(false); err != nil {
		return d, err
	} else if !ours {
		return d, errors.New("another process listens there")
	}
	// With the lock, one that is there was left by a process that was killed.
	if err := d.dir.Remove(doorName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	var path string
	if path, d.way, err = wayTo(dir); err != nil {
		return d, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return d, err
	}
	l.SetUnlinkOnClose(false) // the lock has to be held while it goes
	d.listener = l
	return d, nil
}

// wayTo is a path to the socket of a folder that is short enough for the kernel, which takes a hundred bytes, and good as
// long as the file is open.
func wayTo(dir string) (path string, way *os.File, err error) {
	if way, err = os.Open(dir); err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, doorName)
	if runtime.GOOS == "linux" {
		path = filepath.Join("/proc/self/fd", strconv.Itoa(int(way.Fd())), doorName)
	}
	return path, way, nil
}

func (d *door) close() {
	if d.listener != nil {
		_ = d.listener.Close()
		_ = d.dir.Remove(doorName) // left there it leads to nobody, which whoever comes is told too
	}
	if d.way != nil {
		_ = d.way.Close()
	}
	if d.lock != nil {
		_ = d.lock.Close()
	}
	if d.dir != nil {
		_ = d.dir.Close()
	}
}

// knock connects to the host of a folder.
func knock(ctx context.Context, dir string) (net.Conn, error) {
	path, way, err := wayTo(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoHost
	}
	if err != nil {
		return nil, fmt.Errorf("look for a host: %w", err)
	}
	defer way.Close()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, ErrNoHost // nobody ever listened, or whoever did was killed
	case err != nil:
		return nil, fmt.Errorf("reach the host in %s: %w", dir, err)
	}
	return conn, nil
}
