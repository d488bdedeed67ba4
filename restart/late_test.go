package restart_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness"
)

// mute is a tree whose last change cannot be read.
type mute struct{ *tree }

func (mute) LastChange(context.Context, witness.Root) (stamp.Time, error) {
	return stamp.Time{}, errors.New("no reflog, no refs")
}

// unsure is a prober that comes to no end.
type unsure struct{ *lab }

func (unsure) Probe(context.Context, probe.Plan) (probe.Result, error) {
	return probe.Result{Outcome: probe.Unknown, Detail: "timed out"}, nil
}

// TestNotKnowingDefers: neither a tree that does not tell its last change nor a probe that says nothing is taken for a
// yes.
func TestNotKnowingDefers(t *testing.T) {
	t.Parallel()
	for code, change := range map[string]func(s *sim, c *restart.Config){
		policy.NotQuiet: func(s *sim, c *restart.Config) { c.Sources = map[string]witness.Source{"git": mute{s.tree}} },
		policy.ProbePending: func(s *sim, c *restart.Config) {
			c.Runtimes = map[string]restart.Runtime{"python": {Planner: s.lab, Prober: unsure{s.lab}}}
		},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := mustSim(t, restart.Settings{Quiescence: -1})
			healer, err := restart.New(s.config(func(c *restart.Config) { change(s, c) }))
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.breaks(t.Context(), "scout", "v2")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := healer.Pass(t.Context(), restart.Scope{}); err != nil {
				t.Fatal(err)
			}
			rec, err := s.stores.Ledger.Get(t.Context(), r.Registered().Key())
			if err != nil || rec.State != ledger.Deferred || rec.Reason != code {
				t.Errorf("the record is %s %s (%v), want deferred %s", rec.State, rec.Reason, err, code)
			}
		})
	}
}
