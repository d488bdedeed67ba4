package cli

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// programs runs the programs of managed runs, and asks the kernel whether one that was killed was killed for memory: its
// exit status is that of any other kill.
type programs struct {
	process.Programs
	// held takes the signals that would end this process between a program's end and the record of it. A service manager
	// sends one when the kernel has killed in its unit.
	held chan<- os.Signal
}

var _ interface {
	managed.Programs
	managed.Terminator
} = programs{}

// Run implements managed.Programs.
func (p programs) Run(ctx context.Context, program managed.Program) (managed.End, error) {
	if started := program.Started; program.Log == "" && p.held != nil {
		program.Started = func(pid int) { // from here on the program is passed what comes
			signal.Notify(p.held, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
			started(pid)
		}
	}
	watch, err := systemd.WatchOOM()
	if err != nil {
		return p.Programs.Run(ctx, program) // no memory controller here: nobody can be asked
	}
	defer watch.Close()
	end, err := p.Programs.Run(ctx, program)
	end.Cause = watch.Cause(end.Exit)
	return end, err
}
