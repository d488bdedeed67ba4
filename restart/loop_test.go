package restart_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// TestLoopIsIdle: a healer for whom nothing happens costs one look a tick and nothing in between.
func TestLoopIsIdle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := newSim(dir, restart.Settings{Tick: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.healer.Run(ctx) }()
		synctest.Wait()
		first := s.box.looks.Load()
		if first < 1 || first > 2 {
			t.Errorf("%d looks at the start, want one, or two with the box's own word", first)
		}
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if n := s.box.looks.Load(); n != first {
			t.Errorf("%d looks before the first tick", n-first)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := s.box.looks.Load() - first; n != 20 {
			t.Errorf("%d looks in ten minutes, want one for each of 20 ticks", n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestLoopWakes: a doorbell is answered at once, a deferred death at the moment when its tree has rested, whatever the
// tick.
func TestLoopWakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := newSim(dir, restart.Settings{Tick: 24 * time.Hour, MaxDefer: 48 * time.Hour, Quiescence: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.healer.Run(ctx) }()
		synctest.Wait()
		began := time.Now()
		r, err := s.breaks(ctx, "scout", "v2")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		rec, err := s.stores.Ledger.Get(ctx, r.Registered().Key())
		if err != nil || rec.Reason != policy.NotQuiet {
			t.Fatalf("after the ring and before any time went by: %s %s (%v), want a deferral", rec.State, rec.Reason, err)
		}
		looks := s.box.looks.Load()
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if n := s.box.looks.Load(); n != looks {
			t.Errorf("%d looks while the death waits, want none before the tree has rested", n-looks)
		}
		if s.programs.started.Load() != 0 {
			t.Fatal("it was put back before the tree had rested")
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		rec, err = s.stores.Ledger.Get(ctx, r.Registered().Key())
		if err != nil || rec.State != ledger.SettledOK || s.programs.started.Load() != 1 {
			t.Errorf("%s after the death: %s (%v), %d starts, want that it is put back, and its end seen long before the tick", time.Since(began), rec.State, err, s.programs.started.Load())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.launcher.Wait()
	})
}

// TestErrorOfAProbeIsReported: a probe that could not be made is an error of that death, never silence.
func TestErrorOfAProbeIsReported(t *testing.T) {
	t.Parallel()
	s, err := newSim(t.TempDir(), restart.Settings{Quiescence: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.breaks(t.Context(), "scout", "v2"); err != nil {
		t.Fatal(err)
	}
	s.lab.err = errors.New("the probe was taken away")
	res, err := s.healer.Pass(t.Context(), restart.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Outcomes) != 1 || !strings.Contains(res.Outcomes[0].Error, "taken away") || !res.Failed() {
		t.Errorf("the outcome is %+v, want the probe's error", res.Outcomes)
	}
	s.lab.err = nil
	if res, err = s.healer.Pass(t.Context(), restart.Scope{}); err != nil || res.Outcomes[0].Verdict != policy.Relaunch {
		t.Errorf("the next pass: %+v, %v, want a relaunch", res.Outcomes, err)
	}
	s.launcher.Wait()
}

// TestScope: a pass over one run leaves the others alone.
func TestScope(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]restart.Scope{
		"by name": {Name: "scout"}, "by project": {Project: "acme", Name: "scout"}, "by folder": {Dir: "/ws/scout"}, "by a folder above": {Dir: "/ws/scout/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := newSim(t.TempDir(), restart.Settings{Quiescence: -1})
			if err != nil {
				t.Fatal(err)
			}
			for i, n := range []string{"scout", "scouts", "herald"} {
				if _, err := s.breaks(t.Context(), n, "v2"+strings.Repeat("x", i)); err != nil {
					t.Fatal(err)
				}
			}
			res, err := s.healer.Pass(t.Context(), scope)
			if err != nil || len(res.Outcomes) != 1 || res.Outcomes[0].Name != "scout" {
				t.Errorf("the outcomes are %+v (%v), want scout's alone", res.Outcomes, err)
			}
			if res, err = s.healer.Pass(t.Context(), restart.Scope{Project: "other", Name: "herald"}); err != nil || len(res.Outcomes) != 0 {
				t.Errorf("another project: %+v, %v", res.Outcomes, err)
			}
			s.launcher.Wait()
		})
	}
}

func TestNewReportsEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := restart.New(restart.Config{
		Settings: restart.Settings{MaxDefer: -1, StormPer30m: -2},
		Runtimes: map[string]restart.Runtime{"python": {Prober: &lab{}}},
	})
	if err == nil {
		t.Fatal("an empty config was taken")
	}
	for _, want := range []string{"Stores.Ledger", "Stores.Lock", "Classifier", "Launcher", "MaxDefer", "StormPer30m", "Planner"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}

// modeless is a launcher that starts its programs at once.
type modeless struct{ restart.Launcher }

func (modeless) Mode() restart.Mode { return "eager" }

func TestLauncherWithoutAGateIsRefused(t *testing.T) {
	t.Parallel()
	_, err := restart.New(restart.Config{Launcher: modeless{}})
	if err == nil || !strings.Contains(err.Error(), `mode "eager"`) {
		t.Errorf("a launcher that cannot hold a program back: %v", err)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	s, err := newSim(t.TempDir(), restart.Settings{Quiescence: -1})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.breaks(t.Context(), "scout", "v2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.healer.Pass(t.Context(), restart.Scope{}); err != nil {
		t.Fatal(err)
	}
	s.launcher.Wait()
	dead := r.Registered()
	rec, err := s.stores.Ledger.Get(t.Context(), dead.Key())
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"scout", "acme/scout", dead.ID, dead.Lineage, "acme/" + dead.Lineage, rec.Launch.ID, rec.Launch.Run} {
		x, err := s.healer.Explain(t.Context(), target)
		if err != nil || x.Record == nil || x.Run == nil || x.Replacement == nil || x.Run.ID != dead.ID || x.Replacement.ID != rec.Launch.Run {
			t.Errorf("%s: %+v, %v", target, x, err)
		}
	}
	// A host that passes on a variable which is not set must not act on whichever run is the newest.
	for _, target := range []string{"nobody", ""} {
		if x, err := s.healer.Explain(t.Context(), target); !errors.Is(err, restart.ErrNoTarget) {
			t.Errorf("%q: %+v, %v, want ErrNoTarget", target, x, err)
		}
	}
}
