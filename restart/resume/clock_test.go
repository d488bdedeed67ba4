package resume_test

import (
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func (w *world) now() stamp.Time { return stamp.Wall(time.Now(), 0) }

// believing takes everybody else for dead.
type believing struct{ self ledger.Instance }

func (b believing) Self() ledger.Instance { return b.self }

func (b believing) Liveness(i ledger.Instance) ledger.Liveness {
	if i.Same(b.self) {
		return ledger.Alive
	}
	return ledger.Dead
}
