package cli

import (
	"context"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// programs runs the programs of managed runs, and asks the kernel whether one that was killed was killed for memory: its
// exit status is that of any other kill.
type programs struct{ process.Programs }

var _ interface {
	managed.Programs
	managed.Terminator
} = programs{}

// Run implements managed.Programs.
func (p programs) Run(ctx context.Context, program managed.Program) (managed.End, error) {
	watch, err := systemd.WatchOOM()
	if err != nil {
		return p.Programs.Run(ctx, program) // no memory controller here: nobody can be asked
	}
	defer watch.Close()
	end, err := p.Programs.Run(ctx, program)
	end.Cause = watch.Cause(end.Exit)
	return end, err
}
