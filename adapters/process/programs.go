package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mulligan-dev/mulligan/restart/managed"
)

// Programs runs the programs of managed runs: in the foreground with the streams they are given, or, with a log, in a
// session of their own. It fulfils managed.Programs
// and managed.Terminator.
type Programs struct {
	// Grace is how long a program has between the terminating signal of a cancelled context and its end by force; zero
	// means DefaultGrace.
	Grace time.Duration
	// NoSignals and NoTerminal leave signals and the terminal to the host, as a host of several runs wants it.
	NoSignals, NoTerminal bool
}

var (
	_ managed.Programs   = Programs{}
	_ managed.Terminator = Programs{}
)

// Run implements managed.Programs.
func (r Programs) Run(ctx context.Context, p managed.Program) (managed.End, error) {
	if p.Log != "" {
		return r.apart(ctx, p)
	}
	res, err := Run(ctx, RunSpec{
		Command: p.Command, Dir: p.Dir, Env: p.Env, Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Grace: r.Grace,
		Started: p.Started, NoSignals: r.NoSignals, NoTerminal: r.NoTerminal,
	})
	if end, ok := notStarted(err); ok {
		return end, nil
	}
	if err != nil && (res.PID == 0 || ctx.Err() == nil) {
		return managed.End{}, err
	}
	// A run that was ended because its host stops has ended all the same.
	return managed.End{Exit: res.Exit, Tail: res.Tail, Survivors: res.Survivors}, nil
}

// Terminate implements managed.Terminator.
func (Programs) Terminate(ctx context.Context, pid int, start uint64, grace time.Duration) error {
	return Terminate(ctx, pid, start, grace)
}

// apart runs a program in its own session with its output in a log.
func (r Programs) apart(ctx context.Context, p managed.Program) (managed.End, error) {
	if err := ctx.Err(); err != nil {
		return managed.End{}, fmt.Errorf("run %s: %w", p.Command[0], context.Cause(ctx))
	}
	c, err := StartDetached(Spec{Command: p.Command, Dir: p.Dir, Env: p.Env, Log: p.Log})
	if end, ok := notStarted(err); ok {
		return end, nil
	}
	if err != nil {
		return managed.End{}, err
	}
	if p.Started != nil {
		p.Started(c.PID())
	}
	select {
	case <-c.Done():
	case <-ctx.Done():
		grace := r.Grace
		if grace <= 0 {
			grace = DefaultGrace
		}
		if err := Terminate(context.WithoutCancel(ctx), c.PID(), c.Start(), grace); err != nil {
			return managed.End{}, err
		}
	}
	exit := c.Wait()
	return managed.End{Exit: exit, Tail: logTail(p.Log), Survivors: groupMembers(c.PID())}, nil
}

// notStarted turns an error of the start into the end of a run of which not a line was executed.
func notStarted(err error) (managed.End, bool) {
	var se *StartError
	if !errors.As(err, &se) {
		return managed.End{}, false
	}
	end := managed.End{NotStarted: true, Tail: []byte(se.Error() + "\n")}
	end.Exit.Code = se.Code
	return end, true
}

// logTail is the end of a log; what cannot be read is empty.
func logTail(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil
	}
	b := make([]byte, min(DefaultTail, st.Size()))
	n, err := f.ReadAt(b, st.Size()-int64(len(b)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return b[:n]
}
