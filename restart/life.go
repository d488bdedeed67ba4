package restart

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// MayLive reports that a run is alive, or cannot be proven dead. One whose end is recorded is not, whoever ran it; any
// other lives as long as its instance.
func MayLive(in ledger.Instances, r run.Run) bool {
	return r.Ended == nil && in.Liveness(r.Instance) != ledger.Dead
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
