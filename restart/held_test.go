package restart_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

func mustSim(t *testing.T, set restart.Settings) *sim {
	t.Helper()
	s, err := newSim(t.TempDir(), set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.launcher.Wait)
	return s
}

// TestDryRunOfMany: lineages are claimed and launched side by side, also where nothing is written.
func TestDryRunOfMany(t *testing.T) {
	t.Parallel()
	s := mustSim(t, restart.Settings{Quiescence: -1, StormPerEpisode: 100, StormPer30m: 100})
	const many = 40
	for i := range many {
		if _, err := s.breaks(t.Context(), fmt.Sprint("agent-", i), fmt.Sprint("v", i+2)); err != nil {
			t.Fatal(err)
		}
	}
	res, err := s.healer.DryRun().Pass(t.Context(), restart.Scope{})
	if err != nil || len(res.Outcomes) != many {
		t.Fatalf("%d outcomes (%v), want %d", len(res.Outcomes), err, many)
	}
	for _, o := range res.Outcomes {
		if o.Verdict != policy.Relaunch {
			t.Errorf("%s: %s %s %s, want that it would be put back", o.Name, o.Verdict, o.Code, o.Error)
		}
	}
	if n := s.programs.started.Load(); n != 0 {
		t.Errorf("a dry run started %d programs", n)
	}
}

// TestSeveralDoorbellsOfOneDeath: nothing that one of them says is lost, and they stay until the death is decided.
func TestSeveralDoorbellsOfOneDeath(t *testing.T) {
	t.Parallel()
	s := mustSim(t, restart.Settings{Quiescence: -1})
	r, err := s.breaks(t.Context(), "scout", "v2")
	if err != nil {
		t.Fatal(err)
	}
	second := doorbell.Note{Schema: doorbell.Schema, Run: r.ID(), At: stamp.Wall(s.tree.changed.Wall, 0), Phase: run.ProviderRunning, Exit: classify.Exit{Code: 1}}
	if err := s.stores.Doorbells.Ring(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	pause(t, s)
	if _, err := s.healer.Pass(t.Context(), restart.Scope{}); err != nil {
		t.Fatal(err)
	}
	if n := bells(t, s); n != 2 {
		t.Errorf("%d doorbells are left by a pass that decided nothing, want 2", n)
	}
	if _, err := s.healer.Resume(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	res, err := s.healer.Pass(t.Context(), restart.Scope{})
	if err != nil || len(res.Outcomes) != 1 || res.Outcomes[0].Code != policy.PostProvider {
		t.Errorf("the outcome is %+v (%v), want that the higher mark counts", res.Outcomes, err)
	}
	if n := bells(t, s); n != 0 {
		t.Errorf("%d doorbells are left of a decided death", n)
	}
}

func bells(t *testing.T, s *sim) int {
	t.Helper()
	items, err := s.stores.Doorbells.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(items)
}

func pause(t *testing.T, s *sim) {
	t.Helper()
	_, err := s.stores.Storm.UpdateState(t.Context(), func(cur storm.State, now stamp.Time) (storm.State, error) {
		return cur.Pause(storm.Pause{Since: now, Reason: storm.ReasonByHand}), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dismissing is a launcher beside which a person dismisses the run, after the launch was begun.
type dismissing struct {
	restart.Launcher
	runs run.Store
}

func (l dismissing) Launch(ctx context.Context, o restart.Order) (restart.Started, error) {
	_, err := l.runs.Update(ctx, o.Dead.ID, func(cur run.Run) (run.Run, error) {
		cur.Intent = &run.Intent{Kind: run.Dismissed}
		return cur, nil
	})
	if err != nil {
		return restart.Started{}, err
	}
	return l.Launcher.Launch(ctx, o)
}

// TestDismissedBeforeTheGate: the person's word is heard until the replacement is bound.
func TestDismissedBeforeTheGate(t *testing.T) {
	t.Parallel()
	s := mustSim(t, restart.Settings{Quiescence: -1})
	healer, err := restart.New(s.config(func(c *restart.Config) { c.Launcher = dismissing{s.launcher, s.stores.Runs} }))
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
	if err != nil || rec.State != ledger.SettledFailed || rec.Reason != policy.Dismissed {
		t.Errorf("the record is %s %s (%v), want settled_failed dismissed", rec.State, rec.Reason, err)
	}
	if n := s.programs.started.Load(); n != 0 {
		t.Errorf("the dismissed run was started %d times", n)
	}
}

// blind is a breaker whose state cannot be read.
type blind struct{ storm.Store }

func (blind) State(context.Context) (storm.State, error) {
	return storm.State{}, errors.New("state.json: unexpected end")
}

// TestUnreadableState: nothing is launched, the failure is shown once, launches that were begun are settled, and the
// error is told each time.
func TestUnreadableState(t *testing.T) {
	t.Parallel()
	s := mustSim(t, restart.Settings{Quiescence: -1})
	first, err := s.breaks(t.Context(), "scout", "v2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.healer.Pass(t.Context(), restart.Scope{}); err != nil {
		t.Fatal(err)
	}
	s.launcher.Wait()
	if _, err := s.breaks(t.Context(), "herald", "v3"); err != nil {
		t.Fatal(err)
	}
	var rows notifytest.Recorder
	healer, err := restart.New(s.config(func(c *restart.Config) {
		c.Stores.Storm = blind{c.Stores.Storm}
		c.Notifiers = []notify.Notifier{&rows}
	}))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		res, err := healer.Pass(t.Context(), restart.Scope{})
		if err == nil || !strings.Contains(err.Error(), "state.json") || res.Held != policy.StateUnreadable {
			t.Fatalf("held %q, error %v, want the unreadable state", res.Held, err)
		}
	}
	rec, err := s.stores.Ledger.Get(t.Context(), first.Registered().Key())
	if err != nil || rec.State != ledger.SettledOK {
		t.Errorf("the launch that was begun before is %s (%v), want settled_ok", rec.State, err)
	}
	shown := 0
	for _, r := range rows.Rows() {
		if r.Kind == policy.StateUnreadable {
			shown++
		}
	}
	if shown != 1 || s.programs.started.Load() != 1 {
		t.Errorf("the failure was shown %d times and %d programs ran, want once and only the first", shown, s.programs.started.Load())
	}
}

// flaky is a prober that finds the tree broken the first time.
type flaky struct {
	*lab
	asked int
}

func (f *flaky) Probe(context.Context, probe.Plan) (probe.Result, error) {
	f.asked++
	if f.asked == 1 {
		return probe.Result{Outcome: probe.Broken, Failed: "acme.wire"}, nil
	}
	return probe.Result{Outcome: probe.Healthy}, nil
}

// TestEvidenceIsOfTheTryThatLaunched: what an earlier try left is not taken for the reason of a later one.
func TestEvidenceIsOfTheTryThatLaunched(t *testing.T) {
	t.Parallel()
	s := mustSim(t, restart.Settings{Quiescence: -1})
	prober := &flaky{lab: s.lab}
	healer, err := restart.New(s.config(func(c *restart.Config) {
		c.Runtimes = map[string]restart.Runtime{"python": {Planner: s.lab, Prober: prober}}
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
	s.tree.set("v3")
	if _, err := healer.Pass(t.Context(), restart.Scope{}); err != nil {
		t.Fatal(err)
	}
	key := r.Registered().Key()
	rec, err := s.stores.Ledger.Get(t.Context(), key)
	if err != nil || rec.Launch == nil {
		t.Fatalf("the record is %s (%v), want that it was launched", rec.State, err)
	}
	second, err := s.stores.Evidence.Get(t.Context(), ledger.Key{Project: key.Project, Lineage: key.Lineage + " try 2"})
	if err != nil || !strings.Contains(string(second["facts.json"]), `"revision": "v3"`) {
		t.Errorf("the evidence of the launch (%v) does not have the tree that it was decided on", err)
	}
	if !strings.Contains(rec.Evidence, "try") {
		t.Errorf("the record points at %s, want the evidence of the try that launched", rec.Evidence)
	}
}
