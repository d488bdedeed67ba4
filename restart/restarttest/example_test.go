package restarttest_test

import (
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart/restarttest"
)

// A run boots, an update takes away a name that it uses, it dies. The healer waits until the tree has rested, and puts it
// back once. In a test the first argument is the test, and Close is called by itself.
func Example() {
	w := restarttest.New(nil, restarttest.Config{})
	defer w.Close()
	scout := w.Boot(restarttest.Run{Name: "scout"})
	w.Update("acme", "c2", restarttest.Change{Removes: []string{"acme.wire:Frame"}})
	scout.Die(restarttest.TornImport("acme.wire:Frame"))
	for range 2 {
		res, err := w.Pass()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.Outcomes[0].Verdict, res.Outcomes[0].Code)
		w.Advance(30 * time.Second)
	}
	w.Latest("scout").Done() // the replacement ends well
	if _, err := w.Pass(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(scout.Stands())
	for _, r := range w.Rows() {
		fmt.Println(r.Glyph, r.Title)
	}
	// Output:
	// defer not_quiet
	// relaunch relaunch
	// settled_ok replacement_ok
	// ↻ scout put back after an update of acme
}

// What a run had begun is never done twice: the death is shown, and nothing is started.
func ExampleNew() {
	w := restarttest.New(nil, restarttest.Config{})
	defer w.Close()
	scout := w.Boot(restarttest.Run{Name: "scout"})
	scout.Phase(run.ProviderRunning)
	w.Update("acme", "c2", restarttest.Change{Removes: []string{"acme.notes"}})
	scout.Die(restarttest.TornImport("acme.notes"))
	if _, err := w.Pass(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(scout.Stands(), len(w.Starts()))
	// Output: declined notify_post_provider 0
}

// A healer is killed right after it began the launch and before it started anything: nobody can know that, so the
// lineage's one do-over is spent, and the next healer says so once the replacement had a lease of time to turn up.
func ExampleHealer_Hook() {
	w := restarttest.New(nil, restarttest.Config{})
	defer w.Close()
	scout := w.Boot(restarttest.Run{Name: "scout"})
	w.Update("acme", "c2", restarttest.Change{Removes: []string{"acme.wire:Frame"}})
	scout.Die(restarttest.TornImport("acme.wire:Frame"))
	w.Advance(30 * time.Second)
	h := w.Healer()
	h.Hook(func(op restarttest.Op) error {
		if op.Name == "begin_launch" && op.Done {
			h.Kill()
		}
		return nil
	})
	_, err := w.Pass()
	fmt.Println(err != nil, scout.Stands())
	for range 2 {
		if _, err := w.Pass(); err != nil {
			fmt.Println(err)
			return
		}
		w.Advance(time.Minute)
	}
	if _, err := w.Pass(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(scout.Stands(), len(w.Starts()))
	// Output:
	// true launching relaunch
	// settled_failed launch_aborted 0
}

// The power goes while the replacement runs: it was the one do-over, and is not started again.
func ExampleWorld_PowerCut() {
	w := restarttest.New(nil, restarttest.Config{})
	scout := w.Boot(restarttest.Run{Name: "scout"})
	w.Update("acme", "c2", restarttest.Change{Removes: []string{"acme.wire:Frame"}})
	scout.Die(restarttest.TornImport("acme.wire:Frame"))
	w.Advance(30 * time.Second)
	if _, err := w.Pass(); err != nil {
		fmt.Println(err)
		return
	}
	next := w.PowerCut(nil)
	w.Close()
	defer next.Close()
	if _, err := next.Pass(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(next.Agents("scout")[0].Stands(), len(next.Starts()))
	// Output: settled_failed replacement_lost 1
}
