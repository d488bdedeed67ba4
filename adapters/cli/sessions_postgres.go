package cli

import (
	"context"
	"os"

	"github.com/mulligan-dev/mulligan/adapters/postgres"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

func openPostgres(ctx context.Context, dsn string) (session.Store, func() error, error) {
	db, err := postgres.Open(ctx, postgres.Config{DSN: dsn})
	if err != nil {
		return nil, nil, err
	}
	return db.Sessions(), db.Close, nil
}

// remote is this process as it owns sessions on a server that several machines share. There the locks of one machine's
// state folder say nothing about an instance, which may be on another one: only its lease does.
type remote struct{ ledger.Instances }

// Self implements ledger.Instances.
func (r remote) Self() ledger.Instance {
	self := r.Instances.Self()
	if self.Host == "" {
		self.Host, _ = os.Hostname() // for people; it decides nothing here
	}
	return self
}

// Liveness implements ledger.Instances.
func (r remote) Liveness(i ledger.Instance) ledger.Liveness {
	if i.Same(r.Instances.Self()) {
		return ledger.Alive
	}
	return ledger.LifeUnknown
}
