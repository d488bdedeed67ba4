package process_test

import (
	"context"
	"fmt"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/witness"
)

// A host that runs Node.js agents gives the healer the prober and the planner of that runtime, and says where its modules
// lie.
func ExampleNewInterpreter() {
	prober, err := process.NewInterpreter(process.InterpreterConfig{Dialect: freshimport.Node})
	if err != nil {
		fmt.Println(err)
		return
	}
	runtimes := map[string]restart.Runtime{
		"node": {Modules: freshimport.Names{}, Prober: prober, Planner: process.InterpreterPlanner{Dialect: freshimport.Node}},
	}
	fmt.Println(len(runtimes))
	// Output: 1
}

// A shell script is tried by the shell: it reads it and runs nothing of it.
func ExampleNewCommand() {
	prober, err := process.NewCommand(process.CommandConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := prober.Probe(context.Background(), probe.Plan{Interpreter: "/bin/sh", Args: []string{"-n"}, Modules: []string{"/dev/null", "/no/such/script"}})
	fmt.Println(r.Outcome, r.Failed, err)
	// Output: broken /no/such/script <nil>
}

// A program is looked through, with all that it needs, and not started.
func ExampleNewELF() {
	r, err := process.NewELF().Probe(context.Background(), probe.Plan{Interpreter: "/bin/sh", Modules: []string{"/bin/sh", "/etc/passwd"}})
	fmt.Println(r.Outcome, r.Failed, err)
	// Output: broken /etc/passwd <nil>
}

// The planner asks the declared command for the files on the failing stack that are still there.
func ExampleCommandPlanner() {
	r := run.Run{Recipe: run.Recipe{Command: []string{"agent"}, Dir: "/", Env: []string{"PATH=/bin:/usr/bin"}},
		Roots: []witness.Root{{Root: classify.Root{Name: "etc", Dirs: []string{"/etc"}}}}}
	plan, ok := process.CommandPlanner{Command: []string{"sh", "-n"}}.Plan(r, classify.Verdict{Module: "/etc/no-such-file", ManagedModules: []string{"/etc/passwd"}})
	fmt.Println(plan.Args, plan.Modules, ok)
	// Output: [-n] [/etc/passwd] true
}
