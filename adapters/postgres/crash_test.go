package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

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
		db, err := postgres.Open(context.Background(), postgres.Config{DSN: os.Getenv(crashServer), Schema: "crash_" + hex.EncodeToString(sum[:8])})
		if err != nil {
			return resumetest.Process{}, errors.Join(err, home.Close())
		}
		return resumetest.Process{Store: db.Sessions(), Instances: home.Instances(), Close: func() error {
			return errors.Join(db.Close(), home.Close())
		}}, nil
	})
}
