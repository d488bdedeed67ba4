package policy_test

import (
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/quiet"
)

// The caller looks up what Decide asks for, and nothing else.
func ExampleDecide() {
	f := policy.Facts{
		Signature: classify.Verdict{Disposition: classify.Skew, Family: classify.TornImport},
		Phase:     run.Preparing, Probeable: []string{"acme"}, Seen: true,
	}
	for {
		d := policy.Decide(f, policy.Limits{MaxDefer: 30 * time.Minute})
		switch d.Need {
		case policy.NeedQuiet:
			f.Quiet = &quiet.Result{Quiet: true}
		case policy.NeedWitnesses:
			f.Witnesses = &witness.Findings{Evidence: []witness.Evidence{{Kind: witness.UpdateJournal}}}
		case policy.NeedProbe:
			f.Probe = &policy.Probe{Result: &probe.Result{Outcome: probe.Broken, Failed: "acme.wire"}}
		default:
			fmt.Printf("rule %d: %s (%s)\n%s\n", d.Rule, d.Verdict, d.Code, d.Text)
			return
		}
		fmt.Println("looked up:", d.Need)
	}
	// Output:
	// looked up: quiet
	// looked up: witnesses
	// looked up: probe
	// rule 11: defer (probe_failed)
	// The new tree does not load: acme.wire.
}
