package process

import (
	"fmt"
	"os"
	"syscall"

	"github.com/mulligan-dev/mulligan/classify"
	"golang.org/x/sys/unix"
)

// Spec is a program to start apart from the host: in its own session, with nothing to read and its output in a file.
type Spec struct {
	// Command is the program and its arguments. A name without a slash is searched in Env's PATH.
	Command []string
	// Dir is the working folder; empty means the host's.
	Dir string
	// Env is the whole environment. Nil means an empty one, never the host's.
	Env []string
	// Log gets stdout and stderr, appended; it is created 0600, in a folder that is there. Empty discards both.
	Log string
}

// Child is a started program. The library reaps it, so that it never stays behind as a zombie of the host.
type Child struct {
	proc  *os.Process
	pid   int
	start uint64
	done  chan struct{}
	exit  classify.Exit // set before done is closed
}

// PID is the program's process id; it leads a session and a process group of that id.
func (c *Child) PID() int { return c.pid }

// Start is when it was started, in clock ticks since boot. With the pid it names this one process.
func (c *Child) Start() uint64 { return c.start }

// Done is closed when the program has ended and was reaped.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait blocks until the program has ended and says how.
func (c *Child) Wait() classify.Exit {
	<-c.done
	return c.exit
}

// StartDetached starts a program that outlives the host: in its own session, with stdin from /dev/null. A runner is
// started like this; it passes the launch gate itself. The call does not wait for the program.
func StartDetached(s Spec) (*Child, error) {
	path, err := s.resolve()
	if err != nil {
		return nil, err
	}
	return s.launch(path, s.Command, dedupe(s.Env), nil)
}

// resolve finds the program and checks what can be checked before a process exists.
func (s Spec) resolve() (string, error) {
	if len(s.Command) == 0 {
		return "", &StartError{Command: "nothing", Code: CodeInternal, Err: errNoCommand}
	}
	if err := checkDir(s.Command[0], s.Dir); err != nil {
		return "", err
	}
	return lookPath(s.Command[0], s.Dir, s.Env)
}

// launch starts path in a session of its own. gate, if given, becomes descriptor 3.
func (s Spec) launch(path string, argv, env []string, gate *os.File) (*Child, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, startError(s.Command[0], err)
	}
	defer null.Close()
	out := null
	if s.Log != "" {
		if out, err = openLog(s.Log); err != nil {
			return nil, &StartError{Command: s.Command[0], Code: CodeInternal, Err: err}
		}
		defer out.Close()
	}
	files := []*os.File{null, out, out}
	if gate != nil {
		files = append(files, gate)
	}
	p, err := sealed(func() (*child, error) {
		return start(path, argv, s.Dir, env, files, &syscall.SysProcAttr{Setsid: true})
	})
	if err != nil {
		return nil, startError(s.Command[0], err)
	}
	c := &Child{proc: p.proc, pid: p.pid, done: make(chan struct{})}
	// The process is not reaped before this goroutine runs, so its stat is there even if it has ended already.
	st, err := readStat(p.pid)
	c.start = st.start
	go func() {
		p.await()
		c.exit = p.reap()
		close(c.done)
	}()
	if err != nil {
		_ = p.proc.Kill()
		return nil, &StartError{Command: s.Command[0], Code: CodeInternal, Err: err}
	}
	return c, nil
}

// openLog opens a run's log for appending. A symlink in its place is refused: it would send the output elsewhere.
func openLog(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the run's log: %w: make its folder, and no symlink in its place", err)
	}
	return f, nil
}

// dedupe keeps the last of each key, in place of the first: programs disagree on which of two they take.
func dedupe(env []string) []string {
	at := make(map[string]int, len(env))
	out := make([]string, 0, len(env))
	for _, kv := range env {
		key, _, _ := cut(kv)
		if i, ok := at[key]; ok {
			out[i] = kv
			continue
		}
		at[key] = len(out)
		out = append(out, kv)
	}
	return out
}
