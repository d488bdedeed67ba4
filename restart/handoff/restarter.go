package handoff

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// ErrUnknown means that nobody knows whether a restart was accepted: the answer was lost. Any other error of
// [Restarter.Restart], but a context's, is a definite refusal.
var ErrUnknown = errors.New("it is not known whether the restart was accepted")

// Restarter is who can restart this process.
type Restarter interface {
	// NeedsUnit reports that a unit has to be named.
	NeedsUnit() bool
	// Check asks, without doing anything, whether a restart would be accepted. It is called before anything is tried.
	Check(ctx context.Context, unit string) error
	// Restart asks for it and returns when it was accepted, refused or lost (ErrUnknown). It need not return at all. Its
	// context ends after half a minute, which is for an answer: an error of the context's counts as lost.
	Restart(ctx context.Context, unit string) error
}

// ExecSelf replaces the process's image by itself, or by what an update put in its place. The pid stays, and so do the
// standard streams; locks and all other descriptors are closed by the exec, since this module opens them so.
type ExecSelf struct {
	// Path is the program; empty is the file that this process was started from.
	Path string
	// Args is the argument list with the program's own name; nil is this process's.
	Args []string
	// Env is KEY=value; nil is this process's.
	Env []string
	// Before ends what the host has running: a drain, stores. It takes the time that it needs, bounded by itself, and must
	// not wait for the handoff's Close, which waits for it. An error of it is a refusal, and the process lives on with what
	// Before has left. Nil does nothing.
	Before func(context.Context) error
}

var _ Restarter = ExecSelf{}

// NeedsUnit implements Restarter.
func (ExecSelf) NeedsUnit() bool { return false }

// Check implements Restarter: the program is there, and can be executed.
func (e ExecSelf) Check(context.Context, string) error {
	_, err := e.path()
	return err
}

func (e ExecSelf) path() (string, error) {
	if runtime.GOOS == "windows" {
		return "", errors.New("restart by exec: this system cannot replace the program of a process")
	}
	path := e.Path
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("restart by exec: %w", err)
		}
		path = self
	}
	// A relative path would be another file in another working folder.
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("restart by exec: %s is no absolute path", path)
	}
	in, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("restart by exec: %w", err)
	}
	if !in.Mode().IsRegular() || in.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("restart by exec: %s is no program", path)
	}
	return path, nil
}

// Restart implements Restarter. It returns only when nothing was replaced.
func (e ExecSelf) Restart(ctx context.Context, _ string) error {
	path, err := e.path()
	if err != nil {
		return err
	}
	args, env := e.Args, e.Env
	if args == nil {
		args = os.Args
	}
	if env == nil {
		env = os.Environ()
	}
	if e.Before != nil {
		// The bound is for an answer that may be lost. A drain takes longer, and to cut it would be worse than to wait.
		if err := e.Before(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("restart by exec: the host refuses: %w", noContext(err))
		}
	}
	return fmt.Errorf("restart by exec of %s: %w", path, syscall.Exec(path, args, env))
}

// ExitPolicy tells what a unit's manager does when its main process exits. The systemd adapter has one.
type ExitPolicy interface {
	// RestartsOnExit is nil when the manager restarts the unit after this process exits with the code, and else says why
	// it would not.
	RestartsOnExit(ctx context.Context, unit string, code int) error
}

// ExitStatus ends the process with a status for which its manager starts it again. It is checked that the manager really
// does: an exit for which the unit stays dead is refused.
type ExitStatus struct {
	Code   int
	Policy ExitPolicy
	// Exit ends the process, after whatever the host has to close. This module exits no process by itself. It may return
	// before; it must not wait for the handoff's Close, which waits for it.
	Exit func(code int)
}

var _ Restarter = ExitStatus{}

// NeedsUnit implements Restarter.
func (ExitStatus) NeedsUnit() bool { return true }

// Check implements Restarter.
func (e ExitStatus) Check(ctx context.Context, unit string) error {
	if e.Policy == nil || e.Exit == nil {
		return errors.New("restart by exit status: Policy and Exit are needed")
	}
	if e.Code < 0 || e.Code > 255 {
		return fmt.Errorf("restart by exit status: %d is no exit status: it is 0 to 255", e.Code)
	}
	if err := e.Policy.RestartsOnExit(ctx, unit, e.Code); err != nil {
		return fmt.Errorf("restart by exit status: %w", err)
	}
	return nil
}

// Restart implements Restarter. The policy is read once more: somebody may have changed the unit.
func (e ExitStatus) Restart(ctx context.Context, unit string) error {
	if err := e.Check(ctx, unit); err != nil {
		return fmt.Errorf("%w: nothing was done", noContext(err))
	}
	e.Exit(e.Code)
	return nil
}

// noContext is an error that can be no context's. Nothing was asked of anybody, so it is a definite refusal, and not an
// answer that was lost.
func noContext(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errors.New(err.Error())
	}
	return err
}

// Custom is a restarter of the host's own.
type Custom struct {
	// Allowed is Check; nil allows.
	Allowed func(context.Context) error
	// Do is Restart. Required.
	Do func(context.Context) error
}

var _ Restarter = Custom{}

// NeedsUnit implements Restarter.
func (Custom) NeedsUnit() bool { return false }

// Check implements Restarter.
func (c Custom) Check(ctx context.Context, _ string) error {
	if c.Do == nil {
		return errors.New("restart: Do is missing")
	}
	if c.Allowed == nil {
		return nil
	}
	return c.Allowed(ctx)
}

// Restart implements Restarter.
func (c Custom) Restart(ctx context.Context, _ string) error { return c.Do(ctx) }
