package freshimport_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
)

// A run was started by a script, and died because acme.loop asked for a module that an update had removed.
func Example() {
	// At the boot: what the command line says, and what the caller read from the file system.
	c, ok := freshimport.Parse([]string{"/venv/bin/python", "-B", "-m", "acme"})
	if !ok {
		fmt.Println("not Python")
		return
	}
	env := []string{"HOME=/home/agent", "API_KEY=secret", "PYTHONPATH=/srv/acme:/home/agent/project"}
	runtime := c.Runtime("/venv/bin/python", c.Over(env), freshimport.Place{Dir: "/home/agent/project"})

	// After the death: the classifier's verdict and the tree as it is now.
	modules := freshimport.Modules(freshimport.Death{
		Verdict: classify.Verdict{ManagedModules: []string{"acme.__main__", "acme.loop"}, Module: "acme.transport"},
		Entry:   c.Entry,
		Exists:  func(module string) bool { return module != "acme.transport" },
	})
	plan, ok := freshimport.Plan(freshimport.Setting{
		Runtime: runtime, Env: env, Workspaces: []string{"/home/agent/project"},
	}, modules)
	fmt.Println(ok, plan.Interpreter, plan.Args)
	fmt.Println(plan.Path, plan.Modules, plan.Env)
	// Output:
	// true /venv/bin/python [-B]
	// [/srv/acme] [acme.__main__ acme.loop] [HOME=/home/agent]
}
