package restart

import (
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// Stores are the places where everything durable lies. A state folder (adapters/files) fills them all; a host may
// replace any of them with its own.
type Stores struct {
	Ledger    ledger.Store
	Answers   ledger.Answers
	Instances ledger.Instances
	Evidence  ledger.Evidence
	Reports   ledger.Reports
	Doorbells doorbell.Box
	Runs      run.Store
	Storm     storm.Store
	Journal   journal.Store
	Lock      journal.Lock
}

// Validate reports every store that is missing.
func (s Stores) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"Ledger", s.Ledger != nil}, {"Answers", s.Answers != nil}, {"Instances", s.Instances != nil},
		{"Evidence", s.Evidence != nil}, {"Reports", s.Reports != nil}, {"Doorbells", s.Doorbells != nil},
		{"Runs", s.Runs != nil}, {"Storm", s.Storm != nil}, {"Journal", s.Journal != nil}, {"Lock", s.Lock != nil},
	} {
		if !f.set {
			errs = append(errs, fmt.Errorf("Stores.%s is missing", f.name))
		}
	}
	return errors.Join(errs...)
}
