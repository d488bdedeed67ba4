package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/quiet"
	"pgregory.net/rapid"
)

// twin is the design's table said slowly: every rule is asked for itself whether it applies, whether it does not, or
// which fact it would need to tell, and then the first that does not pass is the answer. It says where a decision is
// written by a list, not by the rule.
func twin(f policy.Facts, l policy.Limits) (out policy.Decision) {
	type answer struct {
		applies bool
		need    policy.Need
		verdict policy.Verdict
		code    string
	}
	no := answer{}
	yes := func(v policy.Verdict, code string) answer { return answer{applies: true, verdict: v, code: code} }
	need := func(n policy.Need) answer { return answer{need: n} }
	rules := []func() answer{
		1: func() answer {
			names := map[run.IntentKind]string{run.Killed: "killed", run.Dismissed: "dismissed", run.Relaunched: "manual_relaunch", run.Asked: "asked"}
			if c, ok := names[f.Intent]; ok {
				return yes(policy.Skip, c)
			}
			if f.Superseded != "" {
				return yes(policy.Skip, "superseded")
			}
			return no
		},
		2: func() answer {
			if f.Replacement {
				return yes(policy.Settle, "already_restarted")
			}
			return no
		},
		3: func() answer {
			if f.Signature.Disposition == classify.Never {
				return yes(policy.LeaveAlone, string(f.Signature.Reason))
			}
			return no
		},
		4: func() answer {
			if f.Lost {
				return yes(policy.LeaveAlone, "runner_lost")
			}
			judged := f.Signature.Disposition == classify.Skew || f.Signature.Disposition == classify.Annotate
			if !judged && (f.Signature.Family == "" || f.Signature.Family == classify.NoFamily) {
				return yes(policy.LeaveAlone, "no_update_signature")
			}
			return no
		},
		5: func() answer {
			if f.Signature.Disposition != classify.Skew && f.Signature.Disposition != classify.Annotate {
				return yes(policy.LeaveAlone, "unknown_signature")
			}
			return no
		},
		6: func() answer {
			if f.Signature.Disposition == classify.Annotate {
				return yes(policy.LeaveAlone, string(f.Signature.Reason))
			}
			return no
		},
		7: func() answer {
			switch f.Phase {
			case run.Handoff:
				return yes(policy.Ask, "handoff")
			case run.Booting, run.Waiting, run.Preparing, run.ProviderRunning, run.ProviderDone, run.Finalizing:
				return no
			}
			return yes(policy.Ask, "phase_unknown")
		},
		8: func() answer {
			if f.Phase == run.ProviderRunning || f.Phase == run.ProviderDone || f.Phase == run.Finalizing {
				return yes(policy.Notify, "notify_post_provider")
			}
			return no
		},
		9: func() answer {
			if f.Age > l.MaxDefer { // the expiry comes before any look at the tree
				switch {
				case f.Held > 0:
					return yes(policy.Decline, "held_too_long")
				case f.Seen:
					return yes(policy.Decline, "deferred_expired")
				}
				return yes(policy.Decline, "healer_absent")
			}
			if f.Quiet == nil {
				return need(policy.NeedQuiet)
			}
			if !f.Quiet.Quiet {
				return yes(policy.Defer, "not_quiet")
			}
			return no
		},
		10: func() answer {
			switch {
			case f.Witnesses == nil:
				return need(policy.NeedWitnesses)
			case len(f.Witnesses.Evidence) > 0:
				return no
			case f.Witnesses.ClockJump:
				return yes(policy.Decline, "clock_jump")
			}
			return yes(policy.Decline, "no_update_witness")
		},
		11: func() answer {
			switch {
			case len(f.Probeable) == 0:
				return yes(policy.Decline, "no_prober")
			case f.Probe == nil:
				return need(policy.NeedProbe)
			case f.Probe.Result != nil && f.Probe.Result.Outcome == probe.Healthy:
				return no
			case f.Probe.Result != nil && f.Probe.Result.Outcome == probe.Broken:
				return yes(policy.Defer, "probe_failed")
			}
			return yes(policy.Defer, "probe_pending")
		},
		12: func() answer {
			switch {
			case f.Preflight == nil:
				return need(policy.NeedPreflight)
			case *f.Preflight == (policy.Preflight{}):
				return no
			}
			code := f.Preflight.Code
			if code == "" {
				code = "launch_refused"
			}
			if f.Preflight.ForGood {
				return yes(policy.Decline, code)
			}
			return yes(policy.Defer, code)
		},
		13: func() answer {
			if f.Slot == nil {
				return need(policy.NeedSlot)
			}
			if f.Slot.Tripped != nil {
				return yes(policy.Pause, "storm_paused")
			}
			return no
		},
		14: func() answer { return yes(policy.Relaunch, "relaunch") },
	}
	for n := 1; n <= 14; n++ {
		a := rules[n]()
		if a.need != "" {
			return policy.Decision{Need: a.need}
		}
		if !a.applies {
			continue
		}
		out = policy.Decision{Verdict: a.verdict, Rule: n, Code: a.code}
		break
	}
	switch out.Code {
	case "deferred_expired", "healer_absent", "held_too_long":
		out.Rule = 0
	}
	out.Written = policy.Record
	switch {
	case out.Verdict == policy.Skip, out.Verdict == policy.LeaveAlone, out.Code == "held_too_long" && !f.Seen:
		out.Written = policy.Answer
	case out.Verdict == policy.Pause:
		out.Written = policy.State
	}
	switch out.Verdict {
	case policy.Skip, policy.Defer, policy.Relaunch:
	case policy.LeaveAlone:
		out.Loud = f.Silenced || f.Lost
	default:
		out.Loud = true
	}
	return out
}

func drawFacts() *rapid.Generator[policy.Facts] {
	maybe := func(t *rapid.T, name string) bool { return rapid.IntRange(0, 3).Draw(t, name) > 0 }
	return rapid.Custom(func(t *rapid.T) policy.Facts {
		f := policy.Facts{
			Intent:      rapid.SampledFrom([]run.IntentKind{"", "", "", "", "", "", run.Killed, run.Dismissed, run.Relaunched, run.Asked, "odd"}).Draw(t, "intent"),
			Superseded:  rapid.SampledFrom([]string{"", "", "", "", "r2"}).Draw(t, "superseded"),
			Replacement: rapid.IntRange(0, 6).Draw(t, "replacement") == 0,
			Phase:       rapid.SampledFrom(append(run.All[:], run.Booting, run.Waiting, run.Preparing, run.UnknownPhase, "", "odd")).Draw(t, "phase"),
			Lost:        rapid.IntRange(0, 6).Draw(t, "lost") == 0,
			Silenced:    rapid.Bool().Draw(t, "silenced"),
			Age:         time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * maxDefer / 2,
			Held:        time.Duration(rapid.IntRange(0, 1).Draw(t, "held")) * time.Hour,
			Seen:        rapid.Bool().Draw(t, "seen"),
		}
		f.Signature = classify.Verdict{
			Disposition: rapid.SampledFrom([]classify.Disposition{classify.Skew, classify.Skew, classify.Skew, classify.Never, classify.Annotate, classify.Unknown, ""}).Draw(t, "disposition"),
			Family:      rapid.SampledFrom([]classify.Family{"", classify.NoFamily, classify.TornImport}).Draw(t, "family"),
			Reason:      rapid.SampledFrom([]classify.Reason{"rate_limit", "name_error"}).Draw(t, "reason"),
		}
		if maybe(t, "probeable") {
			f.Probeable = []string{"acme"}
		}
		if maybe(t, "quiet known") {
			f.Quiet = &quiet.Result{Quiet: maybe(t, "quiet")}
		}
		if maybe(t, "witnesses known") {
			f.Witnesses = &witness.Findings{ClockJump: rapid.Bool().Draw(t, "jump")}
			if maybe(t, "witness") {
				f.Witnesses.Evidence = []witness.Evidence{{Kind: witness.FileProof}}
			}
		}
		if maybe(t, "probe known") {
			f.Probe = &policy.Probe{}
			if maybe(t, "probed") {
				f.Probe.Result = &probe.Result{Outcome: rapid.SampledFrom([]probe.Outcome{probe.Healthy, probe.Healthy, probe.Broken, probe.Unknown}).Draw(t, "outcome")}
			}
		}
		if maybe(t, "preflight known") {
			f.Preflight = &policy.Preflight{Code: rapid.SampledFrom([]string{"", "", "supervised"}).Draw(t, "refusal"), ForGood: rapid.Bool().Draw(t, "for good")}
		}
		if maybe(t, "slot known") {
			f.Slot = &policy.Slot{}
			if !maybe(t, "slot") {
				f.Slot.Tripped = &storm.Pause{Note: "too many"}
			}
		}
		return f
	})
}

func TestDecideAgreesWithItsTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts().Draw(t, "facts")
		got, want := policy.Decide(f, limits), twin(f, limits)
		got.Text = ""
		if want.Need != "" {
			want = policy.Decision{Need: want.Need}
		}
		if got != want {
			t.Fatalf("it says %+v, its twin says %+v", got, want)
		}
	})
}

// TestADecisionStands: a fact that was not asked for cannot change a decision, so what is looked up later never
// overturns what a cheaper rule said.
func TestADecisionStands(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f, more := drawFacts().Draw(t, "facts"), drawFacts().Draw(t, "more")
		before := policy.Decide(f, limits)
		if before.Verdict == policy.Undecided {
			return
		}
		if f.Quiet == nil {
			f.Quiet = more.Quiet
		}
		if f.Witnesses == nil {
			f.Witnesses = more.Witnesses
		}
		if f.Probe == nil {
			f.Probe = more.Probe
		}
		if f.Preflight == nil {
			f.Preflight = more.Preflight
		}
		if f.Slot == nil {
			f.Slot = more.Slot
		}
		if after := policy.Decide(f, limits); after != before {
			t.Fatalf("%+v became %+v by facts that nobody asked for", before, after)
		}
	})
}

// TestNothingIsRelaunchedWithoutProof: whatever else holds, a relaunch stands on a known family, a phase before work,
// rest, a witness, a healthy probe, the launcher's yes and a slot.
func TestNothingIsRelaunchedWithoutProof(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts().Draw(t, "facts")
		if policy.Decide(f, limits).Verdict != policy.Relaunch {
			return
		}
		var missing []string
		for what, ok := range map[string]bool{
			"nobody's intent": f.Intent == "" || f.Intent == "odd", "the name": f.Superseded == "", "a first run": !f.Replacement, "a word of its end": !f.Lost,
			"a family": f.Signature.Disposition == classify.Skew, "a phase before work": f.Phase.BeforeWork(),
			"rest": f.Quiet != nil && f.Quiet.Quiet, "a witness": f.Witnesses != nil && f.Witnesses.Holds(),
			"a healthy probe":    f.Probe != nil && f.Probe.Result != nil && f.Probe.Result.Outcome == probe.Healthy,
			"the launcher's yes": f.Preflight != nil && *f.Preflight == policy.Preflight{}, "a slot": f.Slot != nil && f.Slot.Tripped == nil,
		} {
			if !ok {
				missing = append(missing, what)
			}
		}
		if len(missing) > 0 {
			t.Fatalf("relaunched without %s", strings.Join(missing, ", "))
		}
	})
}
