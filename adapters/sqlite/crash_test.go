package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sqlite"
	"github.com/mulligan-dev/mulligan/restart/resume/resumetest"
)

func TestCrashes(t *testing.T) {
	resumetest.Run(t, func(dir string) (resumetest.Process, error) {
		home, err := files.Open(files.Config{Dir: filepath.Join(dir, "home")})
		if err != nil {
			return resumetest.Process{}, err
		}
		db, err := sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(dir, "sessions.db")})
		if err != nil {
			return resumetest.Process{}, errors.Join(err, home.Close())
		}
		return resumetest.Process{Store: db.Sessions(), Instances: home.Instances(), Close: func() error {
			return errors.Join(db.Close(), home.Close())
		}}, nil
	})
}
