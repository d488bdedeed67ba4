package restart_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// refuser is a launcher whose preflight says what it is told.
type refuser struct {
	*managed.Launcher
	says policy.Preflight
}

func (r *refuser) Preflight(context.Context, restart.Order) policy.Preflight { return r.says }

// blocking are programs that run until they are told to end.
type blocking struct {
	programs
	end chan struct{}
}

func (b *blocking) Run(ctx context.Context, prog managed.Program) (managed.End, error) {
	end, err := b.programs.Run(ctx, prog)
	<-b.end
	return end, err
}

// one passes and returns the outcome of the run of that name.
func one(t *testing.T, h *restart.Healer, name string) restart.Outcome {
	t.Helper()
	res, err := h.Pass(t.Context(), restart.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range res.Outcomes {
		if o.Name == name {
			return o
		}
	}
	t.Fatalf("there is no outcome of %s: %+v", name, res.Outcomes)
	return restart.Outcome{}
}

// TestLauncherRefuses: for good it is declined at once with the launcher's code, for now it is deferred with it and goes
// on when the launcher says yes, or expires with it as the last cause.
func TestLauncherRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says policy.Preflight
		want policy.Verdict
		code string
	}{
		"for good":                {policy.Preflight{Code: "retired", Text: "This agent is retired.", ForGood: true}, policy.Decline, "retired"},
		"for now":                 {policy.Preflight{Code: "no_gpu", Text: "No GPU is free."}, policy.Defer, "no_gpu"},
		"for good without a code": {policy.Preflight{ForGood: true}, policy.Decline, policy.LaunchRefused},
		"for now without a code":  {policy.Preflight{Text: "Not today."}, policy.Defer, policy.LaunchRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s, err := newSim(dir, restart.Settings{Quiescence: -1})
				if err != nil {
					t.Fatal(err)
				}
				l := &refuser{Launcher: s.launcher, says: c.says}
				h, err := restart.New(s.config(func(cfg *restart.Config) { cfg.Launcher = l }))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.breaks(t.Context(), "scout", "v2"); err != nil {
					t.Fatal(err)
				}
				o := one(t, h, "scout")
				if o.Verdict != c.want || o.Code != c.code {
					t.Fatalf("the pass says %s %s, want %s %s", o.Verdict, o.Code, c.want, c.code)
				}
				if c.want == policy.Decline {
					if o.State != ledger.Declined {
						t.Errorf("the record is %s, want declined at once", o.State)
					}
					return
				}
				time.Sleep(31 * time.Minute)
				o = one(t, h, "scout")
				if o.Code != policy.DeferredExpired || !strings.Contains(o.Text, c.says.Text) {
					t.Errorf("after half an hour: %s %q, want that it expired with the last cause", o.Code, o.Text)
				}
				if n := s.programs.started.Load(); n != 0 {
					t.Errorf("%d programs were started", n)
				}
			})
		})
	}
}

// TestQuotaCapacity: two of three are put back, the third once a place is free; what an earlier healer launched counts.
func TestQuotaCapacity(t *testing.T) {
	t.Parallel()
	s := mustSim(t, restart.Settings{Quiescence: -1})
	progs := &blocking{end: make(chan struct{})}
	host, err := managed.New(managed.Config{Stores: s.stores, Sources: s.cfg.Sources, Programs: progs, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	launcher := host.Launcher(t.Context())
	quota, err := restart.NewQuota(restart.QuotaConfig{Capacity: 2})
	if err != nil {
		t.Fatal(err)
	}
	healer := func() *restart.Healer {
		h, err := restart.New(s.config(func(c *restart.Config) { c.Launcher, c.Admission = launcher, quota }))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, n := range []string{"a", "b", "c"} {
		if _, err := s.breaks(t.Context(), n, "v2"+n); err != nil {
			t.Fatal(err)
		}
	}
	res, err := healer().Pass(t.Context(), restart.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, o := range res.Outcomes {
		got[string(o.Verdict)+" "+o.Code]++
	}
	if got["relaunch relaunch"] != 2 || got["defer at_capacity"] != 1 {
		t.Fatalf("the outcomes are %v, want two put back and one that waits for a place", got)
	}
	for range 3 {
		if o := one(t, healer(), "c"); o.Code != policy.AtCapacity {
			t.Fatalf("with both places taken: %s %s", o.Verdict, o.Code)
		}
	}
	close(progs.end)
	launcher.Wait()
	if o := one(t, healer(), "c"); o.Verdict != policy.Relaunch {
		t.Errorf("with a free place: %s %s, want that it is put back", o.Verdict, o.Code)
	}
	launcher.Wait()
	if n := progs.started.Load(); n != 3 {
		t.Errorf("%d replacements ran, want three", n)
	}
}

// TestQuotaHold: a hold defers until its end, and the loop looks at that very moment.
func TestQuotaHold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := newSim(dir, restart.Settings{Quiescence: -1, Tick: 24 * time.Hour, Resurface: 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		quota, err := restart.NewQuota(restart.QuotaConfig{Holds: []restart.Hold{
			{Project: "acme", Until: time.Now().Add(10 * time.Minute), Why: "the database is migrated"}, {Project: "other"}}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := restart.New(s.config(func(c *restart.Config) { c.Admission = quota }))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Run(ctx) }()
		r, err := s.breaks(ctx, "scout", "v2")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		rec, err := s.stores.Ledger.Get(ctx, r.Registered().Key())
		if err != nil || rec.State != ledger.Deferred || rec.Reason != policy.OnHold || !strings.Contains(rec.Note, "the database is migrated") {
			t.Errorf("during the hold: %s %s %q (%v)", rec.State, rec.Reason, rec.Note, err)
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		rec, err = s.stores.Ledger.Get(ctx, r.Registered().Key())
		if err != nil || rec.State != ledger.SettledOK {
			t.Errorf("after the hold: %s %s (%v), want that it was put back, and its end seen", rec.State, rec.Reason, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.launcher.Wait()
	})
}

func TestQuotaAdmits(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	order := restart.Order{Key: ledger.Key{Project: "p", Lineage: "l"}, Dead: run.Run{Project: "p", Name: "n", Lineage: "l"}}
	busy := []ledger.Key{{Project: "p", Lineage: "a"}, {Project: "q", Lineage: "b"}}
	for name, c := range map[string]struct {
		q    restart.QuotaConfig
		want string
	}{
		"no bound":              {restart.QuotaConfig{}, ""},
		"a free place":          {restart.QuotaConfig{Capacity: 3, PerProject: 2}, ""},
		"full":                  {restart.QuotaConfig{Capacity: 2}, "at_capacity 2 replacements are under way, and no more than 2 may be at once."},
		"the project is full":   {restart.QuotaConfig{PerProject: 1}, "at_capacity 1 replacement of project p is under way, and no more than 1 may be at once."},
		"all on hold":           {restart.QuotaConfig{Holds: []restart.Hold{{}}}, "on_hold all projects are on hold."},
		"another project's":     {restart.QuotaConfig{Holds: []restart.Hold{{Project: "q"}}}, ""},
		"another run's":         {restart.QuotaConfig{Holds: []restart.Hold{{Project: "p", Name: "m"}}}, ""},
		"over":                  {restart.QuotaConfig{Holds: []restart.Hold{{Project: "p", Until: noon}}}, ""},
		"the longest is named":  {restart.QuotaConfig{Holds: []restart.Hold{{Project: "p", Until: noon.Add(time.Hour)}, {Project: "p", Name: "n", Until: noon.Add(2 * time.Hour), Why: "w."}}}, "on_hold p/n is on hold until 2026-05-04T14:00:00Z: w."},
		"without end is longer": {restart.QuotaConfig{Holds: []restart.Hold{{Project: "p"}, {Until: noon.Add(2 * time.Hour)}}}, "on_hold project p is on hold."},
	} {
		q, err := restart.NewQuota(c.q)
		if err != nil {
			t.Fatal(err)
		}
		p := q.Admit(t.Context(), order, restart.Load{Now: stamp.Wall(noon, 0), Busy: busy})
		if got := strings.TrimSpace(p.Code + " " + p.Text); got != c.want || p.ForGood {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if _, err := restart.NewQuota(restart.QuotaConfig{Capacity: -1, PerProject: -2, Holds: []restart.Hold{{Name: "n"}}}); err == nil ||
		!strings.Contains(err.Error(), "Capacity") || !strings.Contains(err.Error(), "PerProject") || !strings.Contains(err.Error(), "names no project") {
		t.Errorf("the error does not name everything that is wrong: %v", err)
	}
}
