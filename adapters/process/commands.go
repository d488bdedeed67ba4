package process

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/restart/update"
	"golang.org/x/sys/unix"
)

// Commands starts the commands of updates, held until their row is written. It fulfils update.Commands.
type Commands struct {
	// NoSignals leaves signals to the host. Otherwise a terminating signal to this process is passed on to the command
	// while it runs, so that its row is closed; the terminal's own signals reach both anyway.
	NoSignals bool
}

var _ update.Commands = Commands{}

// Hold implements update.Commands.
func (cs Commands) Hold(c update.Command) (update.Process, error) {
	s := Spec{Command: c.Args, Dir: c.Dir, Env: c.Env}
	if _, err := s.resolve(); err != nil {
		return nil, err
	}
	argv, env, err := trampoline(c.Args, dedupe(c.Env))
	if err != nil {
		return nil, err
	}
	h := &heldCommand{noSignals: cs.NoSignals}
	if err := h.start(c, argv, env); err != nil {
		return nil, startError(c.Args[0], err)
	}
	return h, nil
}

// heldCommand is a command between Hold and the end of Wait.
type heldCommand struct {
	child     *child
	ticks     uint64
	gate      *os.File
	out, err  *stderr
	noSignals bool
	signals   chan os.Signal // what is passed on, from Release on
}

func (h *heldCommand) start(c update.Command, argv, env []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	in := c.Stdin
	if in == nil {
		in = null
	}
	gate, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer gate.Close()
	h.gate = ours
	files := []*os.File{in, nil, nil, gate}
	for i, to := range []*os.File{c.Stdout, c.Stderr} {
		s, theirs, err := openStderr(to, DefaultTail)
		if err != nil {
			ours.Close()
			return err
		}
		defer theirs.Close()
		files[i+1] = theirs
		if i == 0 {
			h.out = s
		} else {
			h.err = s
		}
	}
	h.child, err = sealed(func() (*child, error) {
		return start(shell, argv, c.Dir, env, files, &syscall.SysProcAttr{})
	})
	if err != nil {
		ours.Close()
		h.out.close()
		h.err.close()
		return err
	}
	st, err := readStat(h.child.pid)
	h.ticks = st.start
	return err
}

// PID implements update.Process.
func (h *heldCommand) PID() int { return h.child.pid }

// Start implements update.Process.
func (h *heldCommand) Start() uint64 { return h.ticks }

// Release implements update.Process. A command that cannot be released is abandoned.
func (h *heldCommand) Release() error {
	if !h.noSignals {
		// The terminal's interrupt reaches the command as well; this process must live to close the row. It does from
		// before the command runs: a signal that came between here and Wait would end us and leave the command to itself.
		h.signals = make(chan os.Signal, 4)
		signal.Notify(h.signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	}
	_, err := io.WriteString(h.gate, goWord+"\n")
	if err != nil {
		return errors.Join(err, h.Abandon())
	}
	return h.gate.Close()
}

// Abandon implements update.Process.
func (h *heldCommand) Abandon() error {
	h.deafen()
	h.gate.Close()
	_ = h.child.proc.Kill()
	h.child.await()
	h.child.reap()
	h.out.close()
	h.err.close()
	return nil
}

// deafen ends what Release began to hear.
func (h *heldCommand) deafen() {
	if h.signals != nil {
		signal.Stop(h.signals)
	}
}

// Wait implements update.Process. A context that ends terminates the command.
func (h *heldCommand) Wait(ctx context.Context) (classify.Exit, []byte, []byte) {
	copied := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	for i, s := range []*stderr{h.out, h.err} {
		go func() {
			defer close(copied[i])
			s.copy(false)
		}()
	}
	defer h.deafen()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.child.await()
	}()
	done := ctx.Done()
	for waiting := true; waiting; {
		select {
		case <-ended:
			waiting = false
		case <-done:
			done = nil
			_ = unix.Kill(h.child.pid, unix.SIGTERM)
		case s := <-h.signals:
			if s != unix.SIGINT {
				_ = unix.Kill(h.child.pid, s.(syscall.Signal))
			}
		}
	}
	exit := h.child.reap()
	return exit, h.out.finish(copied[0]), h.err.finish(copied[1])
}
