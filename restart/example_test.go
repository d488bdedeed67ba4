package restart_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
)

// A run boots, an update changes the code under it, and it dies on a name that is gone. One pass puts it back; a second
// one finds that the replacement has ended well. (The host of this example is in memory: see sim_test.go for its
// wiring, and examples/quickstart for one with real parts.)
func ExampleHealer_Pass() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "restart-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s, err := newSim(dir, restart.Settings{Quiescence: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := s.breaks(ctx, "scout", "v2"); err != nil {
		fmt.Println(err)
		return
	}
	res, err := s.healer.Pass(ctx, restart.Scope{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range res.Outcomes {
		fmt.Printf("%s: %s\n%s\n", o.Name, o.Verdict, o.Text)
	}
	s.launcher.Wait() // the replacement runs and ends
	if _, err := s.healer.Pass(ctx, restart.Scope{}); err != nil {
		fmt.Println(err)
		return
	}
	x, err := s.healer.Explain(ctx, "acme/scout")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(x.Record.State, x.Record.Facts.Witnesses[0].Kind)
	// Output:
	// scout: relaunch
	// An update broke it before it did any work, and the new tree is healthy.
	// settled_ok boot_identity
}

// A dry run takes the same path and changes nothing.
func ExampleHealer_DryRun() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "restart-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s, err := newSim(dir, restart.Settings{Quiescence: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := s.breaks(ctx, "scout", "v2"); err != nil {
		fmt.Println(err)
		return
	}
	res, err := s.healer.DryRun().Pass(ctx, restart.Scope{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("it would:", res.Outcomes[0].Verdict)
	recs, _, err := s.healer.Records(ctx)
	fmt.Println("records:", len(recs), err)
	fmt.Println("programs started:", s.programs.started.Load())
	// Output:
	// it would: relaunch
	// records: 0 <nil>
	// programs started: 0
}

// New says everything that is wrong at once.
func ExampleNew() {
	_, err := restart.New(restart.Config{Stores: restart.Stores{}, Settings: restart.Settings{Lease: -1}})
	fmt.Println(err != nil)
	// Output: true
}

// A host lets two replacements run at once and keeps one project back for ten minutes.
func ExampleNewQuota() {
	quota, err := restart.NewQuota(restart.QuotaConfig{
		Capacity: 2,
		Holds:    []restart.Hold{{Project: "shop", Until: time.Date(2026, 5, 4, 12, 10, 0, 0, time.UTC), Why: "the database is migrated"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The healer asks; restart.Config.Admission is where it is told whom.
	ask := func(project string, busy ...ledger.Key) {
		p := quota.Admit(context.Background(), restart.Order{Key: ledger.Key{Project: project, Lineage: "r1"},
			Dead: run.Run{Project: project, Name: "agent"}}, restart.Load{Now: stamp.Wall(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), 0), Busy: busy})
		fmt.Printf("%v %q %q\n", p.Admitted(), p.Code, p.Text)
	}
	ask("shop")
	ask("acme", ledger.Key{Project: "acme", Lineage: "r2"})
	ask("acme", ledger.Key{Project: "acme", Lineage: "r2"}, ledger.Key{Project: "acme", Lineage: "r3"})
	quota.Lift("shop", "")
	ask("shop")
	// Output:
	// false "on_hold" "project shop is on hold until 2026-05-04T12:10:00Z: the database is migrated."
	// true "" ""
	// false "at_capacity" "2 replacements are under way, and no more than 2 may be at once."
	// true "" ""
}
