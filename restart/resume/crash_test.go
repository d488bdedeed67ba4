package resume_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/restart/resume/resumetest"
)

func TestCrashes(t *testing.T) {
	resumetest.Run(t, func(dir string) (resumetest.Process, error) {
		home, err := files.Open(files.Config{Dir: filepath.Join(dir, "home")})
		if err != nil {
			return resumetest.Process{}, err
		}
		store, err := sessionlog.Open(sessionlog.Config{Path: filepath.Join(dir, "sessions.log")})
		if err != nil {
			return resumetest.Process{}, errors.Join(err, home.Close())
		}
		return resumetest.Process{Store: store, Instances: home.Instances(), Close: func() error {
			return errors.Join(store.Close(), home.Close())
		}}, nil
	})
}
