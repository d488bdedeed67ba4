package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"golang.org/x/sys/unix"
)

// The defaults of a [RunSpec].
const (
	DefaultTail  = 64 << 10
	DefaultGrace = 10 * time.Second
)

// RunSpec is a program to supervise as a direct child.
type RunSpec struct {
	// Command, Dir and Env are as in [Spec].
	Command []string
	Dir     string
	Env     []string
	// Stdin, Stdout and Stderr are what the program reads and writes; nil is /dev/null. Stdin and Stdout are handed
	// over as they are. Stderr goes through a pipe, or through a pseudo-terminal when it is a terminal.
	Stdin, Stdout, Stderr *os.File
	// TailLimit bounds the kept end of stderr in bytes; zero means DefaultTail.
	TailLimit int
	// Grace is how long the program has after a terminating signal that a cancelled context sends, before it is
	// killed; zero means DefaultGrace.
	Grace time.Duration
	// Started is called once with the program's pid, before Run waits for it. Nil is no call.
	Started func(pid int)
	// NoSignals leaves signals to the host. Otherwise Run takes SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2
	// for as long as the program runs and passes them on to its group.
	NoSignals bool
	// NoTerminal leaves the terminal to the host. Otherwise the program's group becomes the foreground group when the
	// host's is, and job control works as without Run.
	NoTerminal bool
}

// RunResult is how a supervised program ended.
type RunResult struct {
	PID  int
	Exit classify.Exit
	// Code is the exit code to give on: the program's own, or 128+N for a signal.
	Code int
	// Tail is the end of what it wrote to stderr.
	Tail []byte
	// Survivors are processes of its group that outlived it. They are reported, not ended.
	Survivors []int
	// Took is from the start to the end.
	Took time.Duration
}

// Run starts a program and waits for its end. The program leads a group of its own, in the host's session.
//
// An error before the start is a [StartError], whose Code is the exit code to give. When the context ends first, the
// group gets SIGTERM and, after Grace, SIGKILL; then the result is valid and the error wraps the context's cause.
// Processes that the program left behind do not hold Run up: what they write to stderr after its end may be lost.
func Run(ctx context.Context, s RunSpec) (RunResult, error) {
	if len(s.Command) == 0 {
		_, err := Spec{}.resolve()
		return RunResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return RunResult{}, fmt.Errorf("run %s: %w", s.Command[0], context.Cause(ctx))
	}
	r := &runner{spec: s, exited: make(chan struct{}), copied: make(chan struct{})}
	if s.TailLimit <= 0 {
		r.spec.TailLimit = DefaultTail
	}
	if s.Grace <= 0 {
		r.spec.Grace = DefaultGrace
	}
	return r.run(ctx)
}

// runner is one call of Run.
type runner struct {
	spec   RunSpec
	child  *child
	tty    *terminal // nil without job control
	err    *stderr
	exited chan struct{} // the program has ended and is not yet reaped
	copied chan struct{} // stderr's reader has stopped
}

func (r *runner) run(ctx context.Context) (RunResult, error) {
	path, err := Spec{Command: r.spec.Command, Dir: r.spec.Dir, Env: r.spec.Env}.resolve()
	if err != nil {
		return RunResult{}, err
	}
	if !r.spec.NoTerminal {
		r.tty = openTerminal()
		defer r.tty.close()
	}
	signals := make(chan os.Signal, 16)
	r.listen(signals)
	defer signal.Stop(signals)

	began := time.Now()
	if err := r.start(path); err != nil {
		return RunResult{}, err
	}
	if r.spec.Started != nil {
		r.spec.Started(r.child.pid)
	}
	cause := r.supervise(ctx, signals)
	out := RunResult{PID: r.child.pid, Took: time.Since(began)}
	r.tty.takeBack(r.child.pid)
	out.Exit = r.child.reap()
	out.Code = ExitCode(out.Exit)
	out.Survivors = groupMembers(r.child.pid)
	out.Tail = r.err.finish(r.copied)
	if cause != nil {
		return out, fmt.Errorf("run %s: %w", r.spec.Command[0], cause)
	}
	return out, nil
}

// listen asks for signals before the program exists, so that none falls between.
func (r *runner) listen(c chan os.Signal) {
	var want []os.Signal
	if !r.spec.NoSignals {
		want = append(want, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	}
	if r.tty != nil {
		want = append(want, unix.SIGCHLD, unix.SIGCONT)
	}
	if len(want) > 0 {
		signal.Notify(c, want...)
	}
}

func (r *runner) start(path string) error {
	s := r.spec
	fail := func(err error) error { return startError(s.Command[0], err) }
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fail(err)
	}
	defer null.Close()
	files := []*os.File{s.Stdin, s.Stdout, nil}
	for i, f := range files {
		if f == nil {
			files[i] = null
		}
	}
	var theirs *os.File
	if r.err, theirs, err = openStderr(s.Stderr, s.TailLimit); err != nil {
		return fail(err)
	}
	files[2] = theirs
	r.child, err = start(path, s.Command, s.Dir, s.Env, files, &syscall.SysProcAttr{Setpgid: true})
	theirs.Close()
	if err != nil {
		r.err.close()
		return fail(err)
	}
	// A shell gives the terminal away in the child as well. Here only the parent does; a program that asked for the
	// terminal in between was stopped, which supervise sees and undoes.
	r.tty.give(r.child.pid)
	go func() {
		r.child.await()
		close(r.exited)
	}()
	go func() {
		defer close(r.copied)
		r.err.copy(r.tty != nil)
	}()
	return nil
}

// supervise passes signals on until the program has ended. The error is the context's cause when it ended first.
func (r *runner) supervise(ctx context.Context, signals <-chan os.Signal) (cause error) {
	done := ctx.Done()
	var kill <-chan time.Time
	r.tty.stops(r.child.pid)
	for {
		select {
		case <-r.exited:
			return cause
		case <-done:
			done, cause = nil, context.Cause(ctx)
			// A stopped program must be woken to see the signal.
			_ = r.child.signalGroup(unix.SIGTERM)
			_ = r.child.signalGroup(unix.SIGCONT)
			t := time.NewTimer(r.spec.Grace)
			defer t.Stop()
			kill = t.C
		case <-kill:
			_ = r.child.signalGroup(unix.SIGKILL)
		case sig := <-signals:
			switch sig {
			case unix.SIGCHLD:
				r.tty.stops(r.child.pid)
			case unix.SIGCONT:
				r.tty.resumed(r.child.pid)
			default:
				_ = r.child.signalGroup(sig.(syscall.Signal))
			}
		}
	}
}

// stderr is the program's stderr on its way to the host's.
type stderr struct {
	from *os.File
	// to is a descriptor of our own: on the standard ones, Go ends the process when nobody reads them. Nil discards.
	to   *os.File
	deaf bool // writing to it failed
	pty  bool
	tail *tail
}

// openStderr makes the program's stderr and our reading end of it.
func openStderr(to *os.File, limit int) (s *stderr, theirs *os.File, err error) {
	s = &stderr{tail: newTail(limit)}
	if to != nil {
		if s.to, err = duplicate(to); err != nil {
			return nil, nil, err
		}
		if isTerminal(to) {
			s.from, theirs, err = openPTY(to)
			s.pty = err == nil
			// No pseudo-terminal to be had (a bare container): a pipe loses the colours, not the run.
		}
	}
	if !s.pty {
		s.from, theirs, err = pipe()
	}
	if err != nil && s.to != nil {
		s.to.Close()
	}
	return s, theirs, err
}

func duplicate(f *os.File) (*os.File, error) {
	fd, err := -1, os.ErrClosed
	control(f, func(n int) { fd, err = unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 3) })
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// copy passes on until the program's side is closed or a deadline ends it. When the program has the terminal, the host
// is a background process, and writing must not stop it.
func (s *stderr) copy(background bool) {
	if background {
		runtime.LockOSThread() // never unlocked: the thread, and its signal mask, end with the goroutine
		blockStops()
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := s.from.Read(buf)
		s.take(buf[:n])
		if err != nil {
			return
		}
	}
}

func (s *stderr) take(b []byte) {
	if len(b) == 0 {
		return
	}
	s.tail.add(b)
	if s.to == nil || s.deaf {
		return
	}
	if s.pty {
		copySize(s.to, s.from)
	}
	_, err := s.to.Write(b)
	s.deaf = err != nil // nobody reads it any more, which the program must not notice
}

// drainBound is how much is taken after the program's end from processes that it left behind and that keep writing.
const drainBound = 1 << 20

// finish takes what the program had written when it ended, and closes.
func (s *stderr) finish(copied <-chan struct{}) []byte {
	// Whatever it wrote to a pipe is in the pipe now. A pseudo-terminal hands its data over a moment later: it is read
	// until it is closed, or quiet when somebody else still holds it.
	if s.pty {
		select {
		case <-copied:
		case <-time.After(ptySettle):
		}
	}
	_ = s.from.SetReadDeadline(time.Unix(1, 0))
	<-copied
	drainFile(s.from, drainBound, s.take)
	s.close()
	return s.tail.Bytes()
}

func (s *stderr) close() {
	s.from.Close()
	if s.to != nil {
		s.to.Close()
	}
}
