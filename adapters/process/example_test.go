package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
)

// A program is run as a direct child, and the end of what it said is kept.
func ExampleRun() {
	r, err := process.Run(context.Background(), process.RunSpec{
		Command:   []string{"/bin/sh", "-c", "echo 'no module named wire' >&2; exit 1"},
		NoSignals: true, NoTerminal: true,
	})
	fmt.Printf("%d %q %v\n", r.Code, r.Tail, err)

	_, err = process.Run(context.Background(), process.RunSpec{Command: []string{"/no/such/agent"}})
	var start *process.StartError
	if errors.As(err, &start) {
		fmt.Println(start.Code)
	}
	// Output:
	// 1 "no module named wire\n" <nil>
	// 127
}

// A replacement is started held: it has its pid, so the launch can be recorded before a line of it runs.
func ExampleStartHeld() {
	dir, err := os.MkdirTemp("", "held")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	h, err := process.StartHeld(process.Spec{
		Command: []string{"/bin/sh", "-c", "echo again"}, Dir: dir, Log: filepath.Join(dir, "run.log"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("bound:", h.PID() > 0 && h.Start() > 0)
	if err := h.Release(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("exit", h.Wait().Code)
	log, err := os.ReadFile(filepath.Join(dir, "run.log"))
	fmt.Printf("%s%v\n", log, err)
	// Output:
	// bound: true
	// exit 0
	// again
	// <nil>
}

// A runner is started detached; it outlives the host.
func ExampleStartDetached() {
	c, err := process.StartDetached(process.Spec{Command: []string{"sh", "-c", "exit 3"}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-c.Done()
	fmt.Println(c.Wait().Code)
	// Output: 3
}

// The prober needs an absolute interpreter; what cannot be probed is Unknown, never a guess.
func ExampleNewPython() {
	p, err := process.NewPython(process.PythonConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := p.Probe(context.Background(), probe.Plan{Interpreter: "/no/such/python", Modules: []string{"acme.wire"}})
	fmt.Println(r.Outcome, err)
	// Output: unknown <nil>
}

// A command that is not Python has no runtime.
func ExampleRuntime() {
	rt, err := process.Runtime(run.Recipe{Command: []string{"/bin/sh", "-c", "exit"}})
	fmt.Println(rt == nil, err)
	// Output: true <nil>
}
