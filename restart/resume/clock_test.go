package resume_test

import (
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func (w *world) now() stamp.Time { return stamp.Wall(time.Now(), 0) }
