package restart

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// MayLive reports that a run is alive, or cannot be proven dead. One whose end is recorded is not, whoever ran it; any
// other lives as long as its instance does, or its program: a runner that was killed leaves its program behind.
func MayLive(in ledger.Instances, r run.Run) bool {
	return r.Ended == nil && (in.Liveness(r.Instance) != ledger.Dead || ProgramLives(in, r))
}

// ProgramLives reports that the program of a run is proven alive.
func ProgramLives(in ledger.Instances, r run.Run) bool {
	return r.Ended == nil && ProgramLife(in, r) == ledger.Alive
}

// ProgramLife is what is known of the process that the run's program is, or was; ledger.LifeUnknown when none is on
// record.
func ProgramLife(in ledger.Instances, r run.Run) ledger.Liveness {
	if r.PID == 0 || r.PIDStart == 0 {
		return ledger.LifeUnknown
	}
	return in.Liveness(ledger.Instance{ID: "program-" + r.ID, Unlocked: true, Boot: r.Instance.Boot, PIDNS: r.Instance.PIDNS,
		PID: r.PID, Start: r.PIDStart})
}

// Lost reports that a run is over and nobody will say how: whoever ran it is proven dead, its program is not known to
// live, and no end is on record.
func Lost(in ledger.Instances, r run.Run) bool { return r.Ended == nil && !MayLive(in, r) }

// MayReplace refuses, as ledger.ErrBound, to start the replacement of a dead run whose name has gone to another run, or
// about which a person has said something since. holder is who has the name, nil for nobody.
func MayReplace(dead run.Run, holder *run.Run) error {
	if holder != nil {
		if holder.ID != dead.ID {
			return fmt.Errorf("the name has gone to run %s: %w", holder.ID, ledger.ErrBound)
		}
		dead = *holder
	}
	if dead.Intent != nil {
		return fmt.Errorf("a person decided about run %s (%s): %w", dead.ID, dead.Intent.Kind, ledger.ErrBound)
	}
	return nil
}

// SupervisedPreflight refuses, for good, a run that something else restarts: two restarters never share a run. Every
// launcher's preflight begins with it.
func SupervisedPreflight(r run.Run) policy.Preflight {
	if r.Supervised == "" {
		return policy.Preflight{}
	}
	return policy.Preflight{Code: policy.Supervised, ForGood: true,
		Text: fmt.Sprintf("%s restarts this run itself.", r.Supervised)}
}
