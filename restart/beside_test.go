package restart_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/witness"
)

// during is a prober in whose probe something else happens first.
type during struct {
	*lab
	do func(ctx context.Context) error
}

func (p during) Probe(ctx context.Context, plan probe.Plan) (probe.Result, error) {
	if p.probes.Load() == 0 {
		if err := p.do(ctx); err != nil {
			return probe.Result{}, err
		}
	}
	return p.lab.Probe(ctx, plan)
}

// TestDeathsBesideAProbe: a death that rings while the tree is probed is claimed and has its evidence before the probe
// is over, and is launched with the one that was there before, by the same probe.
func TestDeathsBesideAProbe(t *testing.T) {
	t.Parallel()
	s := mustSim(t, restart.Settings{Quiescence: -1})
	second, err := s.boot(t.Context(), "second")
	if err != nil {
		t.Fatal(err)
	}
	prober := during{s.lab, func(ctx context.Context) error {
		if err := second.Fail(ctx, broken); err != nil {
			return err
		}
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if _, err := s.stores.Evidence.Get(ctx, second.Registered().Key()); err == nil {
				return nil
			}
		}
		return errors.New("the second death waits for the probe of the first")
	}}
	healer, err := restart.New(s.config(func(c *restart.Config) {
		c.Runtimes = map[string]restart.Runtime{"python": {Planner: s.lab, Prober: prober}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.breaks(t.Context(), "first", "v2")
	if err != nil {
		t.Fatal(err)
	}
	res, err := healer.Pass(t.Context(), restart.Scope{})
	if err != nil || res.Failed() {
		t.Fatalf("the pass: %v, %+v", err, res.Outcomes)
	}
	for _, k := range []ledger.Key{first.Registered().Key(), second.Registered().Key()} {
		if rec, err := s.stores.Ledger.Get(t.Context(), k); err != nil || rec.Launch == nil {
			t.Errorf("%s was not launched in the pass: %s (%v)", k, rec.State, err)
		}
	}
	if n := s.lab.probes.Load(); n != 1 {
		t.Errorf("%d probes for one tree, want 1", n)
	}
}

// slowPast is a tree with two revisions, whose files are not read before it is let go on.
type slowPast struct {
	*tree
	goOn chan struct{}
}

func (s slowPast) At(context.Context, witness.Root, stamp.Time) (string, stamp.Window, bool, error) {
	return "", stamp.Window{}, false, errors.New("not asked for: the identities are recorded")
}

func (s slowPast) Changed(context.Context, witness.Root, string, string) ([]witness.Change, error) {
	return []witness.Change{{Path: "wire.py"}}, nil
}

func (s slowPast) Read(ctx context.Context, _ witness.Root, rev, path string) ([]byte, bool, error) {
	select {
	case <-s.goOn:
	case <-time.After(time.Minute):
		return nil, false, errors.New("the probe did not begin")
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if rev == "v1" {
		return []byte("class Frame: pass\n"), path == "wire.py", nil
	}
	return []byte("class Packet: pass\n"), path == "wire.py", nil
}

func (s slowPast) Commits(context.Context, witness.Root, string, string, []string, int) ([]witness.Commit, error) {
	return []witness.Commit{{Revision: "v2", Parents: []string{"v1"}, Subject: "rename it"}}, nil
}

// TestProbeBeginsWithTheFirstWitness: the file proof is found beside the probe, and nothing that is written lacks it.
func TestProbeBeginsWithTheFirstWitness(t *testing.T) {
	t.Parallel()
	s := mustSim(t, restart.Settings{Quiescence: -1})
	past := slowPast{s.tree, make(chan struct{})}
	healer, err := restart.New(s.config(func(c *restart.Config) {
		c.Sources = map[string]witness.Source{"git": past}
		c.Runtimes = map[string]restart.Runtime{"python": {Planner: s.lab, Modules: python.New(),
			Prober: during{s.lab, func(context.Context) error { close(past.goOn); return nil }}}}
	}))
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
	if err != nil || rec.Launch == nil {
		t.Fatalf("it was not launched: %s (%v)", rec.State, err)
	}
	if c := rec.Facts.Culprit; c == nil || c.Commit != "v2" {
		t.Errorf("the record names the culprit %+v, want v2: %+v", c, rec.Facts.Witnesses)
	}
	if roots := rec.Facts.Roots; len(roots) != 1 || roots[0].Now != "v2" || roots[0].NowAt.IsZero() {
		t.Errorf("the record has the roots %+v, want what the launch found in them", roots)
	}
}
