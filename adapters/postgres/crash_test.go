package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/postgres"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/restart/resume/resumetest"
)

// crashServer tells the processes that are killed where the test's server is.
const crashServer = "POSTGRES_TEST_CRASHES"

func TestCrashes(t *testing.T) { // the environment is the process's: not parallel
	if os.Getenv(crashServer) == "" {
		t.Setenv(crashServer, require.SharedPostgres(t).URL("postgres"))
	}
	resumetest.Run(t, func(dir string) (resumetest.Process, error) {
		home, err := files.Open(files.Config{Dir: filepath.Join(dir, "home")})
		if err != nil {
			return resumetest.Process{}, err
		}
		sum := sha256.Sum256([]byte(dir))
		name := "crash_" + hex.EncodeToString(sum[:8])
		err = settled(context.Background(), os.Getenv(crashServer), name)
		if err != nil {
			return resumetest.Process{}, errors.Join(err, home.Close())
		}
		db, err := postgres.Open(context.Background(), postgres.Config{DSN: os.Getenv(crashServer) + "&application_name=" + name, Schema: name})
		if err != nil {
			return resumetest.Process{}, errors.Join(err, home.Close())
		}
		return resumetest.Process{Store: db.Sessions(), Instances: home.Instances(), Close: func() error {
			return errors.Join(db.Close(), home.Close())
		}}, nil
	})
}

// settled waits until the server is done with a process that was killed: what it had sent may be committed after its death.
func settled(ctx context.Context, dsn, name string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for n := 1; n > 0; {
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", name).Scan(&n); err != nil {
			return err
		}
	}
	return nil
}
