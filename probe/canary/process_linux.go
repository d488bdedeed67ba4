package canary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tailLimit bounds what is kept of a candidate's output.
const tailLimit = 8 << 10

// tailBuffer keeps the end of what is written to it.
type tailBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if extra := len(t.b) - tailLimit; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "\uFFFD")
}

// process is a started candidate.
type process struct {
	pid    int
	exited <-chan struct{}
	ended  func() string // how it ended, empty for well; after exited
	tail   func() string
	stop   func()
}

// start runs a command as the candidate: in its environment, with its isolation.
func (t *trial) start(ctx context.Context, command []string, socket *os.File) (*process, error) {
	if t.c.Confine != nil {
		return t.confined(ctx, command)
	}
	if socket != nil {
		// LISTEN_PID is the pid of the program itself, which nobody knows before it is there.
		command = append([]string{"/bin/sh", "-c", `LISTEN_PID=$$; export LISTEN_PID; exec "$@"`, "sh"}, command...)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = t.c.Dir, t.env
	out := &tailBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	// A process that it leaves behind may keep the pipes open. What it said itself must not be lost to a machine that stalls.
	cmd.WaitDelay = 3 * time.Second
	// Were we killed, it would be alone with nobody to end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if socket != nil {
		cmd.ExtraFiles = []*os.File{socket}
		cmd.Env = append(cmd.Env, "LISTEN_FDS=1")
	}
	begun, over := make(chan error, 1), make(chan struct{})
	go func() {
		// A Landlock domain is of a thread, and what the thread forks inherits it. The thread must not run anything else
		// afterwards, so it is never given back, and it must live as long as the candidate, whose end is tied to its.
		runtime.LockOSThread()
		t.restrict()
		err := cmd.Start()
		begun <- err
		if err == nil {
			<-over
		}
	}()
	if err := <-begun; err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	var end error
	go func() {
		end = cmd.Wait()
		close(exited)
	}()
	return &process{
		pid: cmd.Process.Pid, exited: exited, tail: out.String,
		ended: func() string {
			if end == nil || errors.Is(end, exec.ErrWaitDelay) {
				return ""
			}
			return end.Error()
		},
		stop: sync.OnceFunc(func() {
			t.endGroup(cmd.Process.Pid)
			<-exited
			close(over)
		}),
	}, nil
}

// restrict takes the live paths from the calling thread, where the kernel can.
func (t *trial) restrict() {
	switch {
	case len(t.c.Live) == 0:
		t.isolation, t.why = Unproven, "no live path is declared"
	case t.c.noLandlock:
		t.isolation, t.why = Unproven, "Landlock is not used"
	default:
		if err := landlock(t.live, t.dir); err != nil {
			t.isolation, t.why = Unproven, "Landlock cannot be used: "+err.Error()
		} else {
			t.isolation, t.why = Enforced, "Landlock"
		}
	}
}

func (t *trial) confined(ctx context.Context, command []string) (*process, error) {
	output := filepath.Join(t.dir, "output")
	p, err := t.c.Confine.Confine(ctx, Launch{ID: t.id, Command: command, Dir: t.c.Dir, Env: t.env, Inaccessible: t.live, Output: output})
	if err != nil {
		return nil, err
	}
	t.isolation, t.why = Enforced, p.By
	switch {
	case len(t.c.Live) == 0:
		t.isolation, t.why = Unproven, "no live path is declared"
	case p.Unproven != "":
		t.isolation, t.why = Unproven, p.By+": "+p.Unproven
	}
	return &process{
		pid: p.PID, exited: p.Exited,
		ended: func() string { return "a status that only its manager knows" }, // it is no child of ours
		tail: func() string {
			b, _ := os.ReadFile(output)
			return strings.ToValidUTF8(string(b[max(0, len(b)-tailLimit):]), "\uFFFD")
		},
		stop: func() {
			// What it could not end is found by its environment afterwards.
			_ = p.Stop(context.WithoutCancel(ctx), t.c.Grace)
		},
	}, nil
}

// killWait is how long the kernel may take to end what got SIGKILL.
const killWait = 10 * time.Second

// endGroup ends a process group, SIGTERM first.
func (t *trial) endGroup(group int) {
	_ = unix.Kill(-group, unix.SIGTERM)
	_ = unix.Kill(-group, unix.SIGCONT) // a stopped process must be woken to see it
	if !gone(t.c.Grace, func() bool { return !groupLives(group) }) {
		_ = unix.Kill(-group, unix.SIGKILL)
		gone(killWait, func() bool { return !groupLives(group) })
	}
}

// groupLives reports whether a group has a process that is no zombie.
func groupLives(group int) bool {
	if errors.Is(unix.Kill(-group, 0), unix.ESRCH) {
		return false
	}
	for _, p := range processes() {
		if p.group == group {
			return true
		}
	}
	return false
}

// gone looks again and again: the kernel tells nobody of the end of a group.
func gone(atMost time.Duration, is func() bool) bool {
	over := time.NewTimer(atMost)
	defer over.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if is() {
			return true
		}
		select {
		case <-tick.C:
		case <-over.C:
			return is()
		}
	}
}

// teardown ends everything of the candidate's, and says what it had left behind: empty for nothing.
func (t *trial) teardown(p *process) string {
	t.origin() // what listens now is known by its socket, whoever holds it afterwards
	p.stop()
	t.root = 0 // the number of a group that is gone may be used again
	var left []string
	// What left the group gets no grace: it has had that already.
	if stray := t.strays(); len(stray) > 0 {
		left = append(left, fmt.Sprintf("%d of its processes had left its group", len(stray)))
		gone(killWait, func() bool {
			stray := t.strays()
			for pid, start := range stray {
				kill(pid, start)
			}
			return len(stray) == 0
		})
	}
	// A listener that we have not passed on yet is no leak.
	if t.socket == nil && !gone(time.Second, func() bool { return len(listeners(t.port)) == 0 }) {
		left = append(left, fmt.Sprintf("port %d was still listened on", t.port))
	}
	return strings.Join(left, " and ")
}
