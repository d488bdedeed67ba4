package process

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pipe is a pipe whose read end waits in the runtime's poller and whose write end blocks, as a child expects it.
func pipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	return pair(fds)
}

// inbound is a pipe to a child: its read end blocks, as a child expects it, and our end waits in the runtime's poller.
func inbound() (theirs, ours *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	fds[0], fds[1] = fds[1], fds[0]
	ours, theirs, err = pair(fds)
	return theirs, ours, err
}

// pair makes the first descriptor ours.
func pair(fds [2]int) (ours, theirs *os.File, err error) {
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}

// drainFile takes what f holds now, at most limit bytes, without waiting for more. It reports whether the other side
// has closed it. No other reader may be active; deadlines do not count.
func drainFile(f *os.File, limit int, take func([]byte)) (closed bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return true
	}
	buf := make([]byte, 32<<10)
	_ = conn.Control(func(fd uintptr) {
		for limit > 0 {
			n, err := unix.Read(int(fd), buf)
			switch {
			case err == unix.EINTR:
				continue
			case err == unix.EAGAIN:
				return
			case err != nil || n == 0:
				closed = true
				return
			}
			take(buf[:n])
			limit -= n
		}
	})
	return closed
}

// tail keeps the last bytes of what is written to it. It is not safe for concurrent use.
type tail struct {
	buf   []byte
	limit int
}

func newTail(limit int) *tail { return &tail{limit: limit} }

// add appends b. The buffer grows to twice the limit before its front is cut, so that a byte is moved once at most.
func (t *tail) add(b []byte) {
	if len(b) >= t.limit {
		t.buf = append(t.buf[:0], b[len(b)-t.limit:]...)
		return
	}
	if len(t.buf)+len(b) > 2*t.limit {
		keep := t.limit - len(b)
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-keep:]...)
	}
	t.buf = append(t.buf, b...)
}

// Bytes is the tail.
func (t *tail) Bytes() []byte {
	if len(t.buf) > t.limit {
		return t.buf[len(t.buf)-t.limit:]
	}
	return t.buf
}

func (t *tail) String() string { return string(t.Bytes()) }

// copyFrom reads until the end or an error, a deadline among them.
func (t *tail) copyFrom(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		t.add(buf[:n])
		if err != nil {
			return
		}
	}
}

func (t *tail) drain(f *os.File) { drainFile(f, 1<<20, t.add) }
