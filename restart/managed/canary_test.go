package managed_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// noPrograms fails the test when it is asked to run one.
type noPrograms struct{ t *testing.T }

func (p noPrograms) Run(context.Context, managed.Program) (managed.End, error) {
	p.t.Error("a canary runs a program")
	return managed.End{}, nil
}

// TestCanaryRegistersNothing has a host do its usual work inside a canary.
func TestCanaryRegistersNothing(t *testing.T) { // the environment is the process's: not parallel
	ctx := t.Context()
	home := memory.New(memory.Config{})
	stores := restart.Stores{Ledger: home.Ledger(), Instances: home.Instances(), Doorbells: home.Doorbell(), Runs: home.Runs()}
	h, err := managed.New(managed.Config{Stores: stores, Dir: t.TempDir(), Programs: noPrograms{t}})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(inside.Var, "c1")
	for range 2 { // the name is not taken either
		r, err := h.Start(ctx, managed.Spec{Project: "acme", Name: "scout"})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.Phase(ctx, run.Preparing), r.Done(ctx), r.Fail(ctx, managed.Failure{})); err != nil {
			t.Error(err)
		}
	}
	if _, err := h.Exec(ctx, managed.Spec{Project: "acme", Name: "x", Recipe: run.Recipe{Command: []string{"/bin/true"}}}, managed.IO{}); !errors.Is(err, inside.ErrInert) {
		t.Errorf("exec: %v", err)
	}
	if _, err := h.Replace(ctx, ledger.Key{Project: "acme", Lineage: "l"}, "launch"); !errors.Is(err, inside.ErrInert) {
		t.Errorf("replace: %v", err)
	}
	marks := filepath.Join(t.TempDir(), "marks") // the living run's
	if err := os.WriteFile(marks, []byte(run.MarksHead+"\nbooting\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := managed.Mark(marks, run.ProviderRunning); err != nil || managed.ReadPhase(marks) != run.Booting {
		t.Errorf("a canary marks the run that it stands beside: %s, %v", managed.ReadPhase(marks), err)
	}
	bells, err := home.Doorbell().Pending(ctx)
	holder, held := home.Runs().Holder(ctx, "acme", "scout")
	if len(bells) != 0 || err != nil || held == nil && holder.ID != "" {
		t.Errorf("%d doorbells, %v; the name is held by %+v, %v", len(bells), err, holder, held)
	}
}
