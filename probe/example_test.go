package probe_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/probe"
)

// tree is a prober over a tree whose broken modules are known: a stand-in for an interpreter.
type tree []string

func (broken tree) Probe(_ context.Context, p probe.Plan) (probe.Result, error) {
	for _, m := range p.Modules {
		if slices.Contains(broken, m) {
			return probe.Result{Outcome: probe.Broken, Failed: m}, nil
		}
	}
	return probe.Result{Outcome: probe.Healthy}, nil
}

// One update broke three runs. One probe is tried for all of them; when it fails, each distinct set of modules is
// probed alone, and only the run that needs the broken module has to wait.
func Example() {
	prober := tree{"acme.planner"}
	need := func(modules ...string) probe.Need {
		return probe.Need{Tree: "4f2a", Interpreter: "/usr/bin/python3", Path: []string{"/srv/acme"}, Modules: modules}
	}
	deaths := []probe.Need{need("acme.cli", "acme.wire"), need("acme.cli", "acme.planner"), need("acme.wire", "acme.cli")}

	var memo probe.Memo
	now := time.Unix(1_700_000_000, 0)
	probes := 0
	ask := func(u probe.Union) probe.Result {
		probes++
		r, err := prober.Probe(context.Background(), u.Plan(0, false))
		if err != nil {
			return probe.Result{Outcome: probe.Unknown, Detail: err.Error()}
		}
		return probe.Confirm(r, u.Tree, "4f2a") // the identity was read again after the probe
	}
	for _, u := range probe.Group(deaths) {
		r := ask(u)
		memo = memo.Remember(u.Need, r, now)
		if r.Outcome != probe.Healthy {
			for _, s := range u.Alone() {
				memo = memo.Remember(s.Need, ask(s), now)
			}
		}
	}
	for i, n := range deaths {
		r, _ := memo.Lookup(n, now)
		fmt.Println(i, r.Outcome)
	}
	fmt.Println(probes, "probes")
	// Output:
	// 0 healthy
	// 1 broken
	// 2 healthy
	// 3 probes
}

func ExampleProber() {
	var p probe.Prober = tree{}
	r, err := p.Probe(context.Background(), probe.Plan{Interpreter: "/usr/bin/python3", Modules: []string{"acme.wire"}})
	fmt.Println(r.Outcome, err)
	// Output: healthy <nil>
}
