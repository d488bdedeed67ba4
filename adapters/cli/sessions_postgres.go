package cli

import (
	"context"

	"github.com/mulligan-dev/mulligan/adapters/postgres"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

func openPostgres(ctx context.Context, dsn string) (session.Store, func() error, error) {
	db, err := postgres.Open(ctx, postgres.Config{DSN: dsn})
	if err != nil {
		return nil, nil, err
	}
	return db.Sessions(), db.Close, nil
}
