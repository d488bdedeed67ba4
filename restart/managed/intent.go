package managed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart"
)

// Person is who did something about a run, and why. Both may be empty; what is known is shown with the run.
type Person struct {
	By   string // a name, one line
	Note string // one sentence
}

// The refusals of what a person may do. Nothing was written or signalled.
var (
	// ErrAlive means that the run may be alive, so that there is no failure to dismiss: Stop ends it.
	ErrAlive = errors.New("the run is, or may be, alive")
	// ErrEnded means that the run has ended already, so that there is nothing to stop.
	ErrEnded = errors.New("the run has ended")
	// ErrInHost means that the run has no program of its own: the host that does its work has to end it, and says so with
	// Intend.
	ErrInHost = errors.New("the run is its host's own work, which the host has to end")
	// ErrUnproven means that it cannot be told from here whether the run lives: it is another machine's.
	ErrUnproven = errors.New("whether the run lives cannot be told from here")
)

// SucceededError means that a person's word came too late: another run has taken the place of the one that they meant.
type SucceededError struct {
	Run string
	// By is the run to act on instead.
	By string
}

func (e *SucceededError) Error() string {
	return fmt.Sprintf("run %s was put back or started again: run %s has its place now", e.Run, e.By)
}

// Intend records what a person did, or is about to do, about a run: on the run, and as an event of its lineage's record
// where there is one. From the moment Intend returns nothing is launched for the run; a death that waits is declined
// with the intent's code, quietly. It is for a host that does the thing itself (ends its own work, asks its question,
// starts another run): Dismiss, Stop, Ask and Retry say it themselves. Record it before doing it.
//
// A run whose replacement has passed the gate is a *SucceededError, with the word on record all the same; one that is
// not registered is run.ErrNotFound. After any other error the word may be on record in part: it stands, and may be said
// again. A signal from outside is no intent.
func (h *Host) Intend(ctx context.Context, id string, kind run.IntentKind, p Person) error {
	switch kind {
	case run.Killed, run.Dismissed, run.Relaunched, run.Asked:
	default:
		return fmt.Errorf("intent %q is not known: use one of %s, %s, %s, %s", kind, run.Killed, run.Dismissed, run.Relaunched, run.Asked)
	}
	// The run first: who claims the lineage only now finds it there.
	r, err := h.cfg.Stores.Runs.Update(ctx, id, func(cur run.Run) (run.Run, error) {
		if in := cur.Intent; in == nil || in.Kind != kind || in.By != p.By || in.Note != p.Note {
			cur.Intent = &run.Intent{Kind: kind, At: h.cfg.Now(), By: p.By, Note: p.Note}
		}
		return cur, nil
	})
	if err != nil {
		return fmt.Errorf("record that run %s is %s: %w", id, kind, err)
	}
	rec, err := h.note(ctx, r, kind, p)
	if err != nil {
		return fmt.Errorf("record that run %s is %s on its lineage: %w", id, kind, err)
	}
	if l := rec.Launch; l != nil && l.Bound != nil && l.Run != id {
		return &SucceededError{Run: id, By: l.Run}
	}
	return nil
}

// note makes an intent an event of the lineage's record. A lineage without a record has none to note it on, and neither
// has one whose record is damaged: nothing is ever launched for that.
func (h *Host) note(ctx context.Context, r run.Run, kind run.IntentKind, p Person) (ledger.Record, error) {
	rec, err := h.cfg.Stores.Ledger.Update(ctx, r.Key(), func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		return ledger.Apply(cur, ledger.Change{Event: ledger.Intend, Now: now, Actor: h.cfg.Stores.Instances.Self(),
			Reason: kind.Code(), Run: r.ID, By: p.By, Note: p.Note})
	})
	var damage *ledger.DamageError
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return ledger.Record{}, nil
	case errors.As(err, &damage):
		h.log.Warn("what a person did is on the run alone, for its record is damaged", "run", r.ID, "error", err)
		return ledger.Record{}, nil
	}
	return rec, err
}

// Dismiss leaves a run that has ended as it is, for good: what waits for a decision about it is closed, quietly. It is
// ErrAlive for a run that may live, and a *SucceededError for one that has a successor.
func (h *Host) Dismiss(ctx context.Context, id string, p Person) error {
	r, err := h.cfg.Stores.Runs.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("dismiss run %s: %w", id, err)
	}
	if restart.MayLive(h.cfg.Stores.Instances, r) {
		return fmt.Errorf("dismiss %s: %w", r.Name, ErrAlive)
	}
	if next, ok, err := h.Successor(ctx, id); err != nil {
		return fmt.Errorf("dismiss %s: %w", r.Name, err)
	} else if ok {
		return fmt.Errorf("dismiss %s: %w", r.Name, &SucceededError{Run: id, By: next.ID})
	}
	return h.Intend(ctx, id, run.Dismissed, p)
}

// Ask records that a question about a run is open, of a run that lives or has ended. While it is, the run is not
// touched when it breaks. Answered takes it back.
func (h *Host) Ask(ctx context.Context, id string, p Person) error {
	return h.Intend(ctx, id, run.Asked, p)
}

// Answered records that the question about a run is answered: a death from now on is decided as any other. What was
// decided because of the question stays decided. A run about which no question is open is left as it is.
func (h *Host) Answered(ctx context.Context, id string) error {
	_, err := h.cfg.Stores.Runs.Update(ctx, id, func(cur run.Run) (run.Run, error) {
		if cur.Intent != nil && cur.Intent.Kind == run.Asked {
			cur.Intent = nil
		}
		return cur, nil
	})
	if err != nil {
		return fmt.Errorf("record that the question about run %s is answered: %w", id, err)
	}
	return nil
}

// Terminator ends a program that another process runs. It is an optional power of Programs, and adapters/process has it:
// without it Stop is refused.
type Terminator interface {
	// Terminate asks the process group of pid to end, and kills what is left of it after grace; it returns nil when all
	// of it is gone. start is the process's start time in clock ticks since boot: a pid that has another is left alone.
	Terminate(ctx context.Context, pid int, start uint64, grace time.Duration) error
}

// Stop ends the program of a living run, and keeps it ended: that a person wants it is recorded first, so that it is
// never put back, also when this process ends in between. It returns when the program is gone. ErrEnded, ErrInHost
// and ErrUnproven are refusals: whatever makes it doubtful that the pid is the program's is one, for a signal cannot be
// taken back.
func (h *Host) Stop(ctx context.Context, id string, grace time.Duration, p Person) error {
	if inside.Inert() {
		return fmt.Errorf("stop run %s: %w", id, inside.ErrInert)
	}
	t, ok := h.cfg.Programs.(Terminator)
	if !ok {
		return fmt.Errorf("stop run %s: the host's Programs cannot end a program", id)
	}
	r, err := h.cfg.Stores.Runs.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("stop run %s: %w", id, err)
	}
	start, err := h.stoppable(r)
	if err != nil {
		return fmt.Errorf("stop %s: %w", r.Name, err)
	}
	if err := h.Intend(ctx, id, run.Killed, p); err != nil {
		return err
	}
	if err := t.Terminate(ctx, r.PID, start, grace); err != nil {
		return fmt.Errorf("stop %s: %w", r.Name, err)
	}
	return nil
}

// stoppable is the start time of the program to stop, or why none is stopped.
func (h *Host) stoppable(r run.Run) (start uint64, err error) {
	in := h.cfg.Stores.Instances
	switch program := restart.ProgramLife(in, r); {
	case r.Ended == nil && program == ledger.Alive:
		return r.PIDStart, nil // also when its runner was killed
	case r.Ended != nil || in.Liveness(r.Instance) == ledger.Dead:
		return 0, ErrEnded
	case r.PID == 0:
		return 0, fmt.Errorf("%w (pid %d)", ErrInHost, r.Instance.PID)
	case in.Liveness(r.Instance) != ledger.Alive, r.PIDStart != 0 && program != ledger.Dead:
		return 0, ErrUnproven
	case r.PIDStart != 0:
		return 0, ErrEnded // its runner is about to record how
	}
	// While its runner lives and has not recorded the end, the pid is still the program's: the runner reaps it.
	return host.StartTime(r.PID)
}

// supersede notes on a run that lost its name to a start by hand which run it was, and that a person is restarting it,
// on the record as well. Each may fail without harm: the healer sees the new holder of the name, and a waiter sees
// whom that followed.
func (h *Host) supersede(ctx context.Context, old run.Run, next string, p Person) {
	warn := func(what string, err error) {
		if err != nil {
			h.log.Warn(what, "run", old.ID, "error", err)
		}
	}
	_, err := h.cfg.Stores.Runs.Update(ctx, old.ID, func(cur run.Run) (run.Run, error) {
		cur.Next = next
		if cur.Intent == nil {
			cur.Intent = &run.Intent{Kind: run.Relaunched, At: h.cfg.Now(), By: p.By, Note: p.Note}
		}
		return cur, nil
	})
	warn("the run restarted by hand could not be marked", err)
	_, err = h.note(ctx, old, run.Relaunched, p)
	warn("the record of the run restarted by hand could not be closed", err)
	warn("the run before the one restarted by hand could not be marked", h.link(ctx, old, next))
}

// link makes good what the start of old itself may have left out: a replacement that never passed the gate, or a start by
// hand whose process was killed right after it had the name, left the run before it without a successor.
func (h *Host) link(ctx context.Context, old run.Run, next string) error {
	before, to := old.After, old.ID
	if old.Replaces != "" {
		before, to = old.Replaces, next // a replacement that did pass is found in the ledger first
	}
	if before == "" {
		return nil
	}
	r, err := h.cfg.Stores.Runs.Get(ctx, before)
	if errors.Is(err, run.ErrNotFound) || err == nil && r.Next != "" {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = h.cfg.Stores.Runs.Update(ctx, before, func(cur run.Run) (run.Run, error) {
		if cur.Next == "" {
			cur.Next = to
		}
		return cur, nil
	})
	return err
}
