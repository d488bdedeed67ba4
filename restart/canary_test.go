package restart_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart"
)

// TestCanaryHealsNothing has a death that a healer would put back, and a healer inside a canary.
func TestCanaryHealsNothing(t *testing.T) { // the environment is the process's: not parallel
	ctx := t.Context()
	s, err := newSim(t.TempDir(), restart.Settings{Quiescence: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.breaks(ctx, "scout", "v2"); err != nil {
		t.Fatal(err)
	}
	t.Setenv(inside.Var, "c1")
	res, err := s.healer.Pass(ctx, restart.Scope{})
	if err != nil || res.Held != "canary" || len(res.Outcomes) != 0 {
		t.Errorf("a pass in a canary: %+v, %v", res, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.healer.Run(ended); err != nil {
		t.Errorf("the loop: %v", err)
	}
	if _, err := s.healer.Resume(ctx, "ada"); !errors.Is(err, inside.ErrInert) {
		t.Errorf("resume: %v", err)
	}
	if recs, _, err := s.healer.Records(ctx); len(recs) != 0 || err != nil || s.programs.started.Load() != 0 {
		t.Errorf("%d records, %d programs, %v", len(recs), s.programs.started.Load(), err)
	}
	t.Setenv(inside.Var, "")
	if res, err := s.healer.Pass(ctx, restart.Scope{}); err != nil || len(res.Outcomes) != 1 {
		t.Errorf("outside again: %+v, %v", res, err)
	}
	s.launcher.Wait()
}
