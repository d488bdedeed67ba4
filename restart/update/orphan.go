package update

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// Alive reports whether the process that does an update lives, or cannot be proven dead.
func Alive(in ledger.Instances, r journal.Row) bool { return liveness(in, r) != ledger.Dead }

func liveness(in ledger.Instances, r journal.Row) ledger.Liveness {
	if r.PID == 0 {
		return ledger.Dead
	}
	return in.Liveness(ledger.Instance{ID: r.ID, Unlocked: true, Boot: r.Boot, PIDNS: r.PIDNS, PID: r.PID, Start: r.Start})
}

// Orphans is what it takes to close the rows of updates that were cut off.
type Orphans struct {
	Journal   journal.Store
	Instances ledger.Instances
	Sources   map[string]witness.Source
	Now       func() stamp.Time
	// By is who closes them.
	By string
	// Exclusive says that the caller holds the writer lock exclusively, so that no update of its own process is under way:
	// an open row of this process is one that could not be closed.
	Exclusive bool
}

func (o Orphans) over(r journal.Row) bool {
	self := o.Instances.Self()
	if o.Exclusive && r.PID == self.PID && r.Start == self.Start && r.PIDNS == self.PIDNS && r.Boot == self.Boot {
		return true
	}
	return !Alive(o.Instances, r)
}

// CloseOrphans closes every open row whose process is gone, with what the roots are now, and returns the rows as they
// are then. The caller holds the writer lock, shared or not, so that no updater is between its command's end and its
// row's. What such an update did is only known to have ended by now.
func CloseOrphans(ctx context.Context, o Orphans, rows []journal.Row) ([]journal.Row, error) {
	for i, r := range rows {
		if !r.Open() || !o.over(r) {
			continue
		}
		roots := make([]witness.Root, len(r.Roots))
		for j, rr := range r.Roots {
			roots[j] = witness.Root{Root: classify.Root{Name: rr.Name, Dirs: rr.Dirs, Modules: rr.Modules, Bindings: rr.Bindings}, Kind: rr.Kind, Package: rr.Package, Declared: rr.Declared}
		}
		r.Exit, r.ClosedBy = -1, o.By
		r = settle(ctx, o.Sources, r, roots, o.Now)
		if err := o.Journal.Append(ctx, r); err != nil {
			return rows, fmt.Errorf("close the row of update %s: %w", r.ID, err)
		}
		rows[i] = r
	}
	return rows, nil
}

// orphanPoll is how often a command is looked at whose updater was killed: nobody is its parent any more.
const orphanPoll = 50 * time.Millisecond

// closeOrphans closes what killed updaters left. A command of theirs that still lives changes the tree, so it is waited
// for like a holder of the lock, until waiting ends; one that nobody can prove alive is left alone. The journal is read
// in any case: that the wait is over is no proof that nobody works.
func (u *Updater) closeOrphans(ctx, waiting context.Context) error {
	for {
		var rows []journal.Row
		for r, err := range u.cfg.Journal.Rows(ctx) {
			var damage *ledger.DamageError
			switch {
			case errors.As(err, &damage):
				u.log.Warn("a row of the update journal cannot be read", "error", err)
			case err != nil:
				// Nobody knows what is in it: an update may be under way.
				return fmt.Errorf("read the update journal: %w", err)
			default:
				rows = append(rows, r)
			}
		}
		rows, err := CloseOrphans(ctx, Orphans{Journal: u.cfg.Journal, Instances: u.cfg.Instances, Sources: u.cfg.Sources,
			Now: u.cfg.Now, By: "the next update", Exclusive: true}, rows)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(rows, func(r journal.Row) bool { return r.Open() && liveness(u.cfg.Instances, r) == ledger.Alive })
		if i < 0 {
			return nil
		}
		select {
		case <-time.After(orphanPoll):
		case <-waiting.Done():
			return fmt.Errorf("wait for the update that was left behind: %w", &journal.HeldError{
				Holder: fmt.Sprintf("%s (pid %d, since %s)", strings.Join(rows[i].Command, " "), rows[i].PID, rows[i].Begun), Err: waiting.Err()})
		}
	}
}
