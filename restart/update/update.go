package update

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// DefaultWait bounds the wait for the writer lock.
const DefaultWait = 2 * time.Minute

// Config is all that an updater needs. Journal, Lock, Instances and Sources are required.
type Config struct {
	Journal   journal.Store
	Lock      journal.Lock
	Instances ledger.Instances
	// Sources read the identities of roots, by Root.Kind.
	Sources map[string]witness.Source
	// Commands starts commands; only Run needs it. adapters/process is one.
	Commands Commands
	// Logger is told what goes on; nil discards.
	Logger *slog.Logger
	// Now is this machine's clocks by default; a simulated host brings its own.
	Now func() stamp.Time
}

// Commands starts the command of an update, held until the row about it is durable.
type Commands interface {
	Hold(c Command) (Process, error)
}

// Command is what changes the tree.
type Command struct {
	Args []string
	Dir  string
	Env  []string
	// Stdin, Stdout and Stderr are the command's streams, nil for nothing.
	Stdin, Stdout, Stderr *os.File
}

// Process is a held command.
type Process interface {
	// PID and Start name the process; they stay the command's after Release.
	PID() int
	// Start is the start time in clock ticks since boot.
	Start() uint64
	// Release lets the command run.
	Release() error
	// Abandon ends it without having run.
	Abandon() error
	// Wait returns when the command has ended, with the ends of what it printed.
	Wait(ctx context.Context) (exit classify.Exit, stdout, stderr []byte)
}

// Updater makes updates.
type Updater struct {
	cfg Config
	log *slog.Logger
}

// New validates the config and reports all that is wrong with it at once.
func New(cfg Config) (*Updater, error) {
	var errs []error
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"Journal", cfg.Journal != nil}, {"Lock", cfg.Lock != nil}, {"Instances", cfg.Instances != nil}, {"Sources", cfg.Sources != nil},
	} {
		if !f.set {
			errs = append(errs, fmt.Errorf("%s is missing", f.name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("updater: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = host.Now
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Updater{cfg: cfg, log: log}, nil
}

// Run makes the update that a command is. The row is what the journal holds afterwards; the command's exit code is in
// it. wait bounds the wait for the writer lock, zero means DefaultWait.
func (u *Updater) Run(ctx context.Context, roots []witness.Root, c Command, wait time.Duration) (journal.Row, error) {
	if u.cfg.Commands == nil {
		return journal.Row{}, errors.New("update: the updater has no Commands")
	}
	if len(c.Args) == 0 {
		return journal.Row{}, errors.New("update: the command is empty")
	}
	var proc Process
	return u.guard(ctx, roots, c.Args, wait, work{
		begin: func() (ledger.Instance, error) {
			var err error
			if proc, err = u.cfg.Commands.Hold(c); err != nil {
				return ledger.Instance{}, fmt.Errorf("start the update: %w", err)
			}
			who := u.cfg.Instances.Self()
			who.PID, who.Start = proc.PID(), proc.Start()
			return who, nil
		},
		cancel: func() error { return proc.Abandon() },
		do: func() outcome {
			if err := proc.Release(); err != nil {
				return outcome{exit: classify.Exit{Code: 125}, stderr: []byte(err.Error())}
			}
			var o outcome
			o.exit, o.stdout, o.stderr = proc.Wait(ctx)
			return o
		},
	})
}

// Do makes the update that a function of the host is. The function's error does not keep the row from being closed; it
// is returned beside the row.
func (u *Updater) Do(ctx context.Context, roots []witness.Root, what string, wait time.Duration, f func(ctx context.Context) error) (journal.Row, error) {
	var failed error
	row, err := u.guard(ctx, roots, []string{what}, wait, work{
		begin:  func() (ledger.Instance, error) { return u.cfg.Instances.Self(), nil },
		cancel: func() error { return nil },
		do: func() outcome {
			if failed = f(ctx); failed != nil {
				return outcome{exit: classify.Exit{Code: 1}, stderr: []byte(failed.Error())}
			}
			return outcome{}
		},
	})
	return row, errors.Join(err, failed)
}

// work is one update in its three steps: the process that will do it exists before the row, and acts after it.
type work struct {
	begin  func() (ledger.Instance, error)
	cancel func() error
	do     func() outcome
}

type outcome struct {
	exit           classify.Exit
	stdout, stderr []byte
}

func (u *Updater) guard(ctx context.Context, roots []witness.Root, args []string, wait time.Duration, w work) (row journal.Row, err error) {
	if wait == 0 {
		wait = DefaultWait
	}
	if ctx.Err() != nil {
		return row, fmt.Errorf("begin the update: %w: nothing was changed", context.Cause(ctx))
	}
	waiting, stop := context.WithTimeout(ctx, wait)
	defer stop()
	release, err := u.cfg.Lock.Exclusive(waiting, strings.Join(args, " "))
	if err != nil {
		return row, fmt.Errorf("take the writer lock for the update: %w", err)
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := u.closeOrphans(ctx, waiting); err != nil {
		return row, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return row, fmt.Errorf("make an update id: %w", err)
	}
	row = journal.Row{Schema: 1, ID: id.String(), Status: journal.Begun, Command: args}
	for _, r := range roots {
		row.Roots = append(row.Roots, rootRow(r, identify(ctx, u.cfg.Sources, r)))
	}
	who, err := w.begin()
	if err != nil {
		return row, err
	}
	row.Begun = u.cfg.Now()
	row.Boot, row.PIDNS, row.PID, row.Start = who.Boot, who.PIDNS, who.PID, who.Start
	if err := u.cfg.Journal.Append(ctx, row); err != nil {
		return row, errors.Join(fmt.Errorf("write the update's row: nothing was changed: %w", err), w.cancel())
	}
	out := w.do()
	// From here on the row must be closed even when the caller's context is over.
	ctx = context.WithoutCancel(ctx)
	row.Exit, row.Stdout, row.Stderr = out.exit.Code, tail(out.stdout), tail(out.stderr)
	row = settle(ctx, u.cfg.Sources, row, roots, u.cfg.Now)
	if err := u.cfg.Journal.Append(ctx, row); err != nil {
		return row, fmt.Errorf("close the update's row: the next update or healer closes it: %w", err)
	}
	u.log.Info("update", "id", row.ID, "status", string(row.Status), "exit", row.Exit)
	return row, nil
}

func rootRow(r witness.Root, before witness.Identity) journal.Root {
	return journal.Root{Name: r.Name, Kind: r.Kind, Dirs: r.Dirs, Package: r.Package, Declared: r.Declared, Modules: r.Modules, Bindings: r.Bindings,
		From: before.Key(), FromRevision: before.Revision}
}

// settle closes a row with what its roots are now.
func settle(ctx context.Context, sources map[string]witness.Source, row journal.Row, roots []witness.Root, now func() stamp.Time) journal.Row {
	changed := false
	rs := make([]journal.Root, len(row.Roots))
	for i, rr := range row.Roots {
		after := identify(ctx, sources, roots[i])
		rr.To, rr.ToRevision = after.Key(), after.Revision
		changed = changed || rr.Changed()
		rs[i] = rr
	}
	row.Roots, row.Closed = rs, now()
	switch {
	case row.Exit == 0 && changed:
		row.Status = journal.Updated
	case row.Exit == 0:
		row.Status = journal.Skipped
	case changed:
		row.Status = journal.Partial
	default:
		row.Status = journal.Failed
	}
	return row
}

func identify(ctx context.Context, sources map[string]witness.Source, r witness.Root) witness.Identity {
	src := sources[r.Kind]
	if src == nil {
		return witness.Identity{Unknown: fmt.Sprintf("no source reads roots of kind %q", r.Kind)}
	}
	id, err := src.Identify(ctx, r)
	if err != nil {
		return witness.Identity{Unknown: err.Error()}
	}
	return id
}

// tailLimit bounds what a row keeps of an update's output.
const tailLimit = 4 << 10

func tail(b []byte) string {
	return strings.ToValidUTF8(string(b[max(0, len(b)-tailLimit):]), "\uFFFD")
}
