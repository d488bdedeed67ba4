package managed_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// A host that does its work itself marks how far it is before each step, and says how it ended.
func ExampleHost_Start() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "managed-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	home := memory.New(memory.Config{})
	stores := restart.Stores{Ledger: home.Ledger(), Instances: home.Instances(), Doorbells: home.Doorbell(), Runs: home.Runs()}
	h, err := managed.New(managed.Config{Stores: stores, Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := h.Start(ctx, managed.Spec{Project: "acme", Name: "scout"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := r.Phase(ctx, run.Preparing); err != nil {
		fmt.Println(err)
		return
	}
	// ... and here it breaks.
	if err := r.Fail(ctx, managed.Failure{Text: []byte("ImportError: ..."), Exit: classify.Exit{Code: 1}}); err != nil {
		fmt.Println(err)
		return
	}
	bells, err := home.Doorbell().Pending(ctx)
	fmt.Println(len(bells), "doorbell:", bells[0].Note.Phase, string(bells[0].Note.Text), err)
	// Output: 1 doorbell: preparing ImportError: ... <nil>
}

// A person decides about a run that broke, and starts it again; whoever waited for it asks whom to follow now.
func ExampleHost_Successor() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "managed-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	home := memory.New(memory.Config{})
	stores := restart.Stores{Ledger: home.Ledger(), Instances: home.Instances(), Doorbells: home.Doorbell(), Runs: home.Runs()}
	h, err := managed.New(managed.Config{Stores: stores, Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	first, err := h.Start(ctx, managed.Spec{Project: "acme", Name: "scout"})
	if err == nil {
		err = first.Fail(ctx, managed.Failure{Text: []byte("ImportError: ..."), Exit: classify.Exit{Code: 1}})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	_, followed, err := h.Successor(ctx, first.ID())
	fmt.Println("somebody to follow:", followed, err)

	fmt.Println("dismiss:", h.Dismiss(ctx, first.ID(), managed.Person{By: "ana", Note: "I start it myself"}))
	second, err := h.Start(ctx, managed.Spec{Project: "acme", Name: "scout"})
	if err != nil {
		fmt.Println(err)
		return
	}
	last, followed, err := h.Successor(ctx, first.ID())
	fmt.Println("somebody to follow:", followed, last.ID == second.ID(), err)
	// Output:
	// somebody to follow: false <nil>
	// dismiss: <nil>
	// somebody to follow: true true <nil>
}

// Whoever follows a run waits until somebody has taken its place, here a person who starts it again.
func ExampleHost_WaitSuccessor() {
	dir, err := os.MkdirTemp("", "managed-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	home := memory.New(memory.Config{})
	stores := restart.Stores{Ledger: home.Ledger(), Instances: home.Instances(), Doorbells: home.Doorbell(), Runs: home.Runs()}
	h, err := managed.New(managed.Config{Stores: stores, Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	first, err := h.Start(ctx, managed.Spec{Project: "acme", Name: "scout"})
	if err != nil {
		fmt.Println(err)
		return
	}
	again := make(chan *managed.Run, 1)
	go func() {
		err := first.Fail(ctx, managed.Failure{Exit: classify.Exit{Code: 1}})
		if err == nil {
			err = h.Dismiss(ctx, first.ID(), managed.Person{By: "ana"})
		}
		second, err2 := h.Start(ctx, managed.Spec{Project: "acme", Name: "scout"})
		if err != nil || err2 != nil {
			cancel()
		}
		again <- second
	}()
	last, followed, err := h.WaitSuccessor(ctx, first.ID())
	fmt.Println("somebody to follow:", followed, last.ID == (<-again).ID(), err)
	// Output: somebody to follow: true true <nil>
}

// What a runner is told about itself does not reach the program that it runs.
func ExampleCleanEnv() {
	fmt.Println(managed.CleanEnv([]string{"PATH=/bin", "MULLIGAN_LAUNCH=01h", "MULLIGAN_HOME=/var/lib/mulligan"}))
	// Output: [PATH=/bin MULLIGAN_HOME=/var/lib/mulligan]
}
