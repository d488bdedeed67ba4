package restart_test

import (
	"context"
	"fmt"
	"os"

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
