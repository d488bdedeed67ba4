package managed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// Programs runs a program as a direct child and stays with it to its end. adapters/process is one.
type Programs interface {
	// Run returns when the program has ended. A program that could not be started is an End with NotStarted; the error
	// is for everything that makes the end unknown.
	Run(ctx context.Context, p Program) (End, error)
}

// Program is what is run.
type Program struct {
	Command []string
	Dir     string
	Env     []string
	// Stdin, Stdout and Stderr are the program's streams, nil for nothing. Standard error passes through a pipe, or a
	// terminal of its own where it was one, so that its end can be kept.
	Stdin, Stdout, Stderr *os.File
	// Log takes all output instead of Stdout and Stderr when set, and the program gets a session of its own.
	Log string
	// Started is called once with the program's process id.
	Started func(pid int)
}

// End is how a program ended.
type End struct {
	Exit classify.Exit
	// Cause is what is known for certain of a bad end, as when the kernel killed it for memory; empty for nothing. It beats
	// the text.
	Cause classify.Reason
	// Tail is the end of its standard error, or of its log.
	Tail []byte
	// NotStarted is set when not a line of the program ran; Tail then says why, and Exit is 126 or 127.
	NotStarted bool
	// Survivors are processes of its group that outlived it.
	Survivors []int
}

// IO are the streams of a program that is run in the foreground.
type IO struct {
	Stdin, Stdout, Stderr *os.File
}

// Result is what became of a program.
type Result struct {
	Run run.Run
	End End
}

// PhaseFileVar names the one variable that reaches the program: the file in which it marks its phases, a line each,
// always appended.
const PhaseFileVar = "MULLIGAN_PHASE_FILE"

// Exec makes a program a managed run: it registers the run, runs the program to its end and rings on every bad one. The
// error is for what kept the run from being registered or rung; how the program ended is in the Result.
func (h *Host) Exec(ctx context.Context, spec Spec, streams IO) (Result, error) {
	return h.exec(ctx, spec, Person{}, streams)
}

// exec is Exec with the person who starts a dead name again, where one is known.
func (h *Host) exec(ctx context.Context, spec Spec, p Person, streams IO) (Result, error) {
	if h.cfg.Programs == nil {
		return Result{}, errors.New("exec: the host has no Programs")
	}
	if inside.Inert() {
		return Result{}, fmt.Errorf("exec: %w", inside.ErrInert)
	}
	if len(spec.Recipe.Command) == 0 {
		return Result{}, errors.New("exec: the command is empty")
	}
	r, err := h.register(ctx, spec, p, h.phasePath)
	if err != nil {
		return Result{}, err
	}
	return h.conduct(ctx, r, Program{Stdin: streams.Stdin, Stdout: streams.Stdout, Stderr: streams.Stderr})
}

// conduct runs the program of a registered run and records its end.
func (h *Host) conduct(ctx context.Context, r run.Run, p Program) (Result, error) {
	if err := makePhaseFile(r.PhaseFile); err != nil {
		return Result{Run: r}, errors.Join(err, h.fail(context.WithoutCancel(ctx), r, run.Booting,
			Failure{Text: []byte(err.Error()), Exit: classify.Exit{Code: 125}}))
	}
	p.Command, p.Dir, p.Env = r.Recipe.Command, r.Recipe.Dir, childEnv(r.Recipe.Env, r.PhaseFile)
	type process struct {
		pid   int
		start uint64
	}
	began := make(chan process, 1)
	p.Started = func(pid int) {
		// Here and not beside the program: once it has been waited for, its number may be another's.
		start, err := host.StartTime(pid)
		if err != nil {
			h.log.Debug("the program ended before its start was read", "run", r.ID, "error", err)
		}
		began <- process{pid, start}
	}
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		is, ok := <-began
		if !ok {
			return
		}
		_, err := h.cfg.Stores.Runs.Update(context.WithoutCancel(ctx), r.ID, func(cur run.Run) (run.Run, error) {
			cur.PID, cur.PIDStart = is.pid, is.start
			return cur, nil
		})
		if err != nil {
			h.log.Warn("the program's process id could not be noted", "run", r.ID, "error", err)
		}
	}()
	end, err := h.cfg.Programs.Run(ctx, p)
	close(began)
	<-noted
	res := Result{Run: r, End: end}
	// From here on the end must be written even when the caller's context is over.
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		end.Exit = classify.Exit{Code: 125}
		return res, errors.Join(fmt.Errorf("run %s: %w", r.Name, err), h.fail(ctx, r, run.UnknownPhase, Failure{Text: []byte(err.Error()), Exit: end.Exit}))
	}
	if end.Exit == (classify.Exit{}) {
		return res, h.end(ctx, r.ID, run.End{OK: true})
	}
	return res, h.fail(ctx, r, phaseOf(r, end), Failure{Text: end.Tail, Exit: end.Exit, Cause: end.Cause})
}

// phaseOf is the high-water mark that counts for a program's end.
func phaseOf(r run.Run, end End) run.Phase {
	switch {
	case end.NotStarted:
		return run.Booting
	case r.Recipe.Marking == run.Idempotent:
		return run.Preparing
	case r.Recipe.Marking == run.Phases:
		return ReadPhase(r.PhaseFile)
	}
	return run.UnknownPhase
}

func (h *Host) logPath(id string) string { return filepath.Join(h.cfg.Dir, id+".log") }
