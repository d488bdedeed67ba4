package restart

import (
	"context"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// Mode is how a launcher keeps a replacement from running before it passed the gate. A launcher with neither mode is
// refused.
type Mode string

// The modes.
const (
	// Runner: what is started takes the name and passes the gate by itself, and only then starts the program.
	Runner Mode = "runner"
	// Held: the program is started held on a pipe, until the engine has taken the name and passed the gate for it.
	Held Mode = "held"
)

// Order is what a launcher is asked to start: the recipe of the dead run, once more, under its name.
type Order struct {
	Key    ledger.Key
	Launch string  // the launch id, which the runner presents at the gate
	Dead   run.Run // the run that is replaced
	Run    string  // the replacement's run id where the engine makes it (Held)
}

// Launcher starts the one replacement. It must not try twice, and may be asked for several lineages at once.
type Launcher interface {
	// Mode is how a replacement is kept from running too early.
	Mode() Mode
	// Preflight says beforehand, at no cost, whether a launch would be refused.
	Preflight(ctx context.Context, o Order) policy.Preflight
	// Launch starts the replacement, held or under a runner, and returns at once. A nil error means that something was
	// started.
	Launch(ctx context.Context, o Order) (Started, error)
}

// Started is a launch under way.
type Started struct {
	// Exited is closed when what was started is gone, so that an abort need not wait out the lease, and the loop sees at
	// once how it ended; nil when unknown. It stays open for as long as a replacement runs.
	Exited <-chan struct{}
	// Held is set by a launcher of that mode, and Log is where the program's output goes.
	Held HeldProcess
	Log  string
}

// HeldProcess is a program that does not run a line of its own before Release.
type HeldProcess interface {
	// PID and Start name the process; they stay the program's after Release.
	PID() int
	// Start is the start time in clock ticks since boot.
	Start() uint64
	// Release lets the program run.
	Release() error
	// Abandon makes it exit without running.
	Abandon() error
	// Wait blocks until the process is gone.
	Wait() classify.Exit
	// Tail is the end of what the program wrote, after Wait.
	Tail() []byte
}
