package memory_test

import (
	"errors"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/ledgertest"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

func home() *memory.Home { return memory.New(memory.Config{}) }

func TestConformance(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(*testing.T) ledger.Store { return home().Ledger() })
	ledgertest.RunRuns(t, func(*testing.T) run.Store { return home().Runs() })
	ledgertest.RunDoorbell(t, func(*testing.T) doorbell.Box { return home().Doorbell() })
	ledgertest.RunBreaker(t, func(*testing.T) storm.Store { return home().Breaker() })
	ledgertest.RunAnswers(t, func(*testing.T) ledger.Answers { return home().Answers() })
	ledgertest.RunJournal(t, func(*testing.T) journal.Store { return home().Updates() })
	ledgertest.RunEvidence(t, func(*testing.T) ledger.Evidence { return home().Evidence() })
	ledgertest.RunReports(t, func(*testing.T) ledger.Reports { return home().Reports() })
	ledgertest.RunLock(t, func(*testing.T) journal.Lock { return home().Writer() })
}

func TestInstancesDieWhenKilled(t *testing.T) {
	t.Parallel()
	h := home()
	other := h.Spawn()
	life := h.Instances()
	if got := life.Liveness(other); got != ledger.Alive {
		t.Errorf("a spawned instance is %s", got)
	}
	h.Kill(other)
	if got := life.Liveness(other); got != ledger.Dead {
		t.Errorf("a killed instance is %s", got)
	}
	if got := memory.As(h, other).Self(); !got.Same(other) {
		t.Errorf("the view of %s is of %s", other.ID, got.ID)
	}
	if got := life.Liveness(ledger.Instance{ID: "stranger"}); got != ledger.LifeUnknown {
		t.Errorf("a stranger is %s", got)
	}
}

// TestPruneLeavesANewAnswer answers runs anew while they are pruned, over and over: an answer that is not old stays.
func TestPruneLeavesANewAnswer(t *testing.T) {
	t.Parallel()
	s, ctx := home().Answers(), t.Context()
	answer := func(reason string) {
		if err := s.Append(ctx, ledger.Answer{Run: "r", Reason: reason}); err != nil {
			t.Error(err)
		}
	}
	for range 200 {
		answer("old")
		judged := make(chan struct{}, 1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			<-judged
			answer("new")
		}()
		_, err := s.(ledger.AnswerPruner).PruneAnswers(ctx, func(a ledger.Answer) bool {
			judged <- struct{}{}
			return a.Reason == "old"
		})
		if err != nil {
			t.Fatal(err)
		}
		<-done
		if a, ok, err := s.Answer(ctx, "r"); err != nil || !ok || a.Reason != "new" {
			t.Fatalf("the new answer is %+v, %v, %v", a, ok, err)
		}
	}
}

// TestCallbacksMayUseTheOtherStores would not end if two stores shared a lock.
func TestCallbacksMayUseTheOtherStores(t *testing.T) {
	t.Parallel()
	h, ctx := home(), t.Context()
	err := h.Runs().Start(ctx, run.Run{ID: "r", Name: "n"}, func(*run.Run) error {
		if h.Instances().Liveness(h.Spawn()) != ledger.Alive {
			t.Error("a spawned instance does not live")
		}
		_, err := h.Breaker().UpdateState(ctx, func(cur storm.State, _ stamp.Time) (storm.State, error) {
			release, err := h.Writer().Shared(ctx, "healer")
			if err != nil {
				return cur, err
			}
			return cur, errors.Join(release(), h.Doorbell().Ring(ctx, doorbell.Note{Run: "r"}),
				h.Answers().Append(ctx, ledger.Answer{Run: "r"}), h.Updates().Append(ctx, journal.Row{ID: "u"}),
				h.Reports().PutReport(ctx, "e", map[string][]byte{"report.md": nil}))
		})
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
