package process

import (
	"context"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// ProgramMissing is the preflight code of a run whose program or folder is not there now.
const ProgramMissing = "program_missing"

// RunnerLauncher starts every replacement under a runner of its own, which outlives this process: `mulligan exec
// --launch`, or a host's own command that calls managed.Host.Replace.
type RunnerLauncher struct {
	// Command is the runner's command line for an order.
	Command func(o restart.Order) []string
	// Env is the runner's environment; the program's own comes from its recipe.
	Env []string
	// Log is where the runner's own output goes; empty discards it.
	Log string
}

var _ restart.Launcher = (*RunnerLauncher)(nil)

// Mode implements restart.Launcher.
func (l *RunnerLauncher) Mode() restart.Mode { return restart.Runner }

// Preflight implements restart.Launcher.
func (l *RunnerLauncher) Preflight(_ context.Context, o restart.Order) policy.Preflight {
	return preflight(o.Dead)
}

// Launch implements restart.Launcher.
func (l *RunnerLauncher) Launch(_ context.Context, o restart.Order) (restart.Started, error) {
	c, err := StartDetached(Spec{Command: l.Command(o), Env: l.Env, Log: l.Log})
	if err != nil {
		return restart.Started{}, err
	}
	return restart.Started{Exited: c.Done()}, nil
}

// HeldLauncher starts the programs themselves, held on a pipe: for a host that has no runner and lives as long as its
// runs, or does not mind that nobody records the end of those that outlive it.
type HeldLauncher struct {
	// Log names the file for a replacement's output, by its run id.
	Log func(run string) string
}

var _ restart.Launcher = (*HeldLauncher)(nil)

// Mode implements restart.Launcher.
func (l *HeldLauncher) Mode() restart.Mode { return restart.Held }

// Preflight implements restart.Launcher.
func (l *HeldLauncher) Preflight(_ context.Context, o restart.Order) policy.Preflight {
	return preflight(o.Dead)
}

// Launch implements restart.Launcher.
func (l *HeldLauncher) Launch(_ context.Context, o restart.Order) (restart.Started, error) {
	if l.Log == nil {
		return restart.Started{}, errors.New("the held launcher has no Log")
	}
	log := l.Log(o.Run)
	c, err := StartHeld(Spec{Command: o.Dead.Recipe.Command, Dir: o.Dead.Recipe.Dir, Env: o.Dead.Recipe.Env, Log: log})
	if err != nil {
		return restart.Started{}, err
	}
	return restart.Started{Exited: c.Done(), Held: heldProcess{c, log}, Log: log}, nil
}

type heldProcess struct {
	*HeldChild
	log string
}

func (h heldProcess) Tail() []byte { return logTail(h.log) }

// preflight refuses what something else restarts, for good, and what cannot be started as things are, for now.
func preflight(r run.Run) policy.Preflight {
	if p := restart.SupervisedPreflight(r); p.Code != "" {
		return p
	}
	s := Spec{Command: r.Recipe.Command, Dir: r.Recipe.Dir, Env: r.Recipe.Env}
	if _, err := s.resolve(); err != nil {
		return policy.Preflight{Code: ProgramMissing, Text: fmt.Sprintf("It cannot be started now: %v.", err)}
	}
	return policy.Preflight{}
}
