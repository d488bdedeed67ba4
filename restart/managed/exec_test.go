package managed_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// programs runs what a test runs in the place of a process, which says itself when it has started.
type programs func(ctx context.Context, p managed.Program) (managed.End, error)

func (f programs) Run(ctx context.Context, p managed.Program) (managed.End, error) { return f(ctx, p) }

func bareHost(t *testing.T, home *memory.Home, f programs) *managed.Host {
	t.Helper()
	h, err := managed.New(managed.Config{Programs: f, Dir: t.TempDir(),
		Stores: restart.Stores{Ledger: home.Ledger(), Instances: home.Instances(), Doorbells: home.Doorbell(), Runs: home.Runs()}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestPhaseFileIsOnRecordFirst: a runner that is killed right after it has started its program leaves where the program marks
// its phases. Without that such a run would look like one that had marked nothing yet.
func TestPhaseFileIsOnRecordFirst(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	h := bareHost(t, home, func(ctx context.Context, p managed.Program) (managed.End, error) {
		r, err := home.Runs().Holder(ctx, "acme", "scout")
		if err != nil {
			return managed.End{}, err
		}
		if r.PhaseFile == "" || managed.ReadPhase(r.PhaseFile) != run.Booting {
			t.Errorf("as the program begins, its marks are on record in %q, which reads %s", r.PhaseFile, managed.ReadPhase(r.PhaseFile))
		}
		return managed.End{}, managed.Mark(r.PhaseFile, run.ProviderRunning)
	})
	res, err := h.Exec(t.Context(), spec("scout", run.Phases), managed.IO{})
	if err != nil || managed.ReadPhase(res.Run.PhaseFile) != run.ProviderRunning {
		t.Errorf("%+v, %v", res.Run, err)
	}
	for _, m := range []run.Marking{run.Unmarked, run.Idempotent} {
		h := bareHost(t, home, func(context.Context, managed.Program) (managed.End, error) { return managed.End{}, nil })
		if res, err := h.Exec(t.Context(), spec("scout", m), managed.IO{}); err != nil || res.Run.PhaseFile != "" {
			t.Errorf("a run that marks nothing has the phase file %q, %v", res.Run.PhaseFile, err)
		}
	}
}

// TestStartIsReadBeforeTheProgramIsWaitedFor: the start on record is that of the program, and not of who has its number next.
func TestStartIsReadBeforeTheProgramIsWaitedFor(t *testing.T) {
	t.Parallel()
	var start uint64
	home := memory.New(memory.Config{})
	h := bareHost(t, home, func(_ context.Context, p managed.Program) (managed.End, error) {
		cmd := exec.Command("sleep", "60")
		err := cmd.Start()
		if err == nil {
			start, err = host.StartTime(cmd.Process.Pid)
		}
		if err != nil {
			return managed.End{}, err
		}
		p.Started(cmd.Process.Pid)
		err = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed; from here on the number is free
		return managed.End{}, err
	})
	for range 20 {
		res, err := h.Exec(t.Context(), spec("scout", run.Idempotent), managed.IO{})
		r, lost := home.Runs().Get(t.Context(), res.Run.ID)
		if err := errors.Join(err, lost); err != nil || r.PIDStart == 0 || r.PIDStart != start {
			t.Fatalf("the program started at %d, and on record is %d, %v", start, r.PIDStart, err)
		}
	}
}
