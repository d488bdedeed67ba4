package policy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/quiet"
)

func check(t *testing.T, got policy.Decision, want row) {
	t.Helper()
	if got.Rule != want.rule || got.Verdict != want.verdict || got.Code != want.code {
		t.Fatalf("rule %d says %s (%s), want rule %d to say %s (%s)", got.Rule, got.Verdict, got.Code, want.rule, want.verdict, want.code)
	}
	if got.Written != want.written {
		t.Errorf("it is written to %q, want %q", got.Written, want.written)
	}
	if got.Loud != want.loud {
		t.Errorf("loud is %v, want %v", got.Loud, want.loud)
	}
	if got.Need != policy.NeedNothing {
		t.Errorf("a decision asks for %q", got.Need)
	}
	if got.Text == "" || !strings.Contains(got.Text, want.says) {
		t.Errorf("the sentence is %q, want the words %q in it", got.Text, want.says)
	}
}

func TestEachRow(t *testing.T) {
	t.Parallel()
	rules := map[int]bool{}
	for _, r := range rows {
		rules[r.rule] = true
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			f := known()
			r.make(&f)
			check(t, policy.Decide(f, limits), r)
		})
	}
	for n := 1; n <= 14; n++ {
		if !rules[n] {
			t.Errorf("rule %d of the design has no row here", n)
		}
	}
}

// TestFirstRuleWins makes every pair of rows hold at once.
func TestFirstRuleWins(t *testing.T) {
	t.Parallel()
	pairs := 0
	for i, first := range rows {
		for _, second := range rows[i+1:] {
			if first.field == second.field {
				continue
			}
			pairs++
			f := known()
			second.make(&f)
			first.make(&f)
			got := policy.Decide(f, limits)
			if got.Rule != first.rule || got.Code != first.code {
				t.Errorf("%s and %s: rule %d says %s, want rule %d to say %s", first.name, second.name, got.Rule, got.Code, first.rule, first.code)
			}
		}
	}
	if pairs < 200 {
		t.Errorf("only %d pairs were tried", pairs)
	}
}

func TestEveryReasonOfTheNeverListIsTheClassifiersCode(t *testing.T) {
	t.Parallel()
	for _, r := range []classify.Reason{classify.ProviderError, classify.RateLimit, classify.Auth, classify.Killed, classify.OOM,
		classify.Timeout, classify.DiskFull, classify.DirectiveError, classify.ToolFailure, classify.TestFailure,
		classify.ThirdPartyImport, classify.WorkspaceImport, classify.WorkspaceError} {
		f := broken()
		f.Signature = classify.Verdict{Disposition: classify.Never, Family: classify.NoFamily, Reason: r}
		got := policy.Decide(f, limits)
		if got.Rule != 3 || got.Code != string(r) || got.Verdict != policy.LeaveAlone {
			t.Errorf("%s: rule %d says %s (%s)", r, got.Rule, got.Verdict, got.Code)
		}
	}
}

// TestReplacementSaysWhatEndedIt: the rule is the same, and a person reads that it was no update again.
func TestReplacementSaysWhatEndedIt(t *testing.T) {
	t.Parallel()
	f := broken()
	f.Replacement = true
	again := policy.Decide(f, limits)
	f.Signature = classify.Verdict{Disposition: classify.Never, Family: classify.NoFamily, Reason: classify.OOM}
	got := policy.Decide(f, limits)
	if got.Code != policy.AlreadyRestarted || got.Text != again.Text+" This time it was no update's failure: out of memory." {
		t.Errorf("%+v, after an update's %+v", got, again)
	}
}

// TestSilencedFailuresAreLoud: what is left alone is told only where the run's own notice was held back.
func TestSilencedFailuresAreLoud(t *testing.T) {
	t.Parallel()
	for _, r := range rows {
		f := known()
		r.make(&f)
		f.Silenced = true
		want := r.loud || r.verdict == policy.LeaveAlone
		if got := policy.Decide(f, limits); got.Loud != want {
			t.Errorf("%s: loud is %v for a silenced run, want %v", r.name, got.Loud, want)
		}
	}
}

func TestPhases(t *testing.T) {
	t.Parallel()
	for phase, code := range map[run.Phase]string{
		run.Booting: "relaunch", run.Waiting: "relaunch", run.Preparing: "relaunch",
		run.Handoff:         "handoff",
		run.ProviderRunning: "notify_post_provider", run.ProviderDone: "notify_post_provider", run.Finalizing: "notify_post_provider",
		run.UnknownPhase: "phase_unknown", "": "phase_unknown", "dreaming": "phase_unknown",
	} {
		f := known()
		f.Phase = phase
		if got := policy.Decide(f, limits); got.Code != code {
			t.Errorf("phase %q: %s, want %s", phase, got.Code, code)
		}
	}
}

func TestUnknownPhaseSaysHowToMark(t *testing.T) {
	t.Parallel()
	f := known()
	f.Phase = run.UnknownPhase
	if got := policy.Decide(f, limits).Text; !strings.Contains(got, "--phases") {
		t.Errorf("an unmarked run: %q does not say how to mark", got)
	}
	f.Marking = run.Phases
	if got := policy.Decide(f, limits).Text; strings.Contains(got, "--phases") {
		t.Errorf("a run that marks, whose mark cannot be read: %q tells it to mark", got)
	}
}

// TestExpiry: a record that has waited too long expires with its last cause, whatever the tree is like by now; rules 1
// to 8 are decided at any age.
func TestExpiry(t *testing.T) {
	t.Parallel()
	for i, r := range rows {
		f := known()
		r.make(&f)
		f.Age, f.Last = maxDefer+time.Second, "update 7 is under way."
		got := policy.Decide(f, limits)
		if i < earlyRows {
			if got.Code != r.code {
				t.Errorf("%s: an old record gets %s, want %s", r.name, got.Code, r.code)
			}
			continue
		}
		check(t, got, row{verdict: policy.Decline, code: "deferred_expired", written: policy.Record, loud: true, says: f.Last})
		f.Held = time.Hour
		check(t, policy.Decide(f, limits), row{verdict: policy.Decline, code: "held_too_long", written: policy.Record, loud: true, says: f.Last})
		f.Age, f.Held = maxDefer, 0
		if got := policy.Decide(f, limits); got.Code != r.code {
			t.Errorf("%s: exactly as old as allowed gets %s, want %s", r.name, got.Code, r.code)
		}
	}
}

// earlyRows are the rows of rules 1 to 8, which come first.
const earlyRows = 15

// TestAbsence: a death that is too old when it is first seen is shown, and nothing of the tree is looked at.
func TestAbsence(t *testing.T) {
	t.Parallel()
	f := broken()
	f.Seen, f.Age = false, maxDefer+time.Second
	check(t, policy.Decide(f, limits), row{verdict: policy.Decline, code: "healer_absent", written: policy.Record, loud: true, says: "30m 1s"})

	f.Held = time.Hour
	check(t, policy.Decide(f, limits), row{verdict: policy.Decline, code: "held_too_long", written: policy.Answer, loud: true, says: "30m 1s"})

	f.Age = maxDefer
	if got := policy.Decide(f, limits); got.Need != policy.NeedQuiet {
		t.Errorf("a death within the bound: %s (%s), want that it is decided", got.Verdict, got.Code)
	}
	for _, r := range rows[:earlyRows] {
		f := broken()
		r.make(&f)
		f.Seen, f.Age, f.Held = false, 100*maxDefer, time.Hour
		if got := policy.Decide(f, limits); got.Code != r.code {
			t.Errorf("%s: an old death gets %s, want %s: age is no reason to ask or to blame", r.name, got.Code, r.code)
		}
	}
}

// TestNeeds: the facts that cost something are asked for one by one, in the table's order, and only when every rule
// before them has passed.
func TestNeeds(t *testing.T) {
	t.Parallel()
	full := known()
	f := broken()
	for _, step := range []struct {
		need policy.Need
		look func()
	}{
		{policy.NeedQuiet, func() { f.Quiet = full.Quiet }},
		{policy.NeedWitnesses, func() { f.Witnesses = full.Witnesses }},
		{policy.NeedProbe, func() { f.Probe = full.Probe }},
		{policy.NeedPreflight, func() { f.Preflight = full.Preflight }},
		{policy.NeedSlot, func() { f.Slot = full.Slot }},
	} {
		got := policy.Decide(f, limits)
		if got != (policy.Decision{Need: step.need}) {
			t.Fatalf("it says %+v, want nothing but the need %q", got, step.need)
		}
		step.look()
	}
	if got := policy.Decide(f, limits); got.Verdict != policy.Relaunch {
		t.Fatalf("with everything looked up: %s (%s)", got.Verdict, got.Code)
	}
}

// TestNoNeedBeyondTheDecidingRule: a rule that applies never has a later look-up made for it.
func TestNoNeedBeyondTheDecidingRule(t *testing.T) {
	t.Parallel()
	for _, r := range rows {
		f := known()
		r.make(&f)
		if r.rule < 9 {
			f.Quiet = nil
		}
		if r.rule < 10 {
			f.Witnesses = nil
		}
		if r.rule < 11 || r.code == policy.NoProber {
			f.Probe = nil
		}
		if r.rule < 12 {
			f.Preflight = nil
		}
		if r.rule < 13 {
			f.Slot = nil
		}
		if got := policy.Decide(f, limits); got.Code != r.code || got.Need != policy.NeedNothing {
			t.Errorf("%s: %s, and it needs %q", r.name, got.Code, got.Need)
		}
	}
}

// TestPurity: Decide gives the same answer for the same facts and alters none of them.
func TestPurity(t *testing.T) {
	t.Parallel()
	for _, r := range rows {
		f := known()
		r.make(&f)
		before, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		one, two := policy.Decide(f, limits), policy.Decide(f, limits)
		if one != two {
			t.Errorf("%s: two answers: %+v and %+v", r.name, one, two)
		}
		after, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(before), string(after)); diff != "" {
			t.Errorf("%s: the facts were altered:\n%s", r.name, diff)
		}
	}
}

// TestCodesAreInTheCatalogue: whatever the policy and the engine write has a title and a text for people.
func TestCodesAreInTheCatalogue(t *testing.T) {
	t.Parallel()
	for _, c := range []string{
		policy.Killed, policy.Dismissed, policy.ManualRelaunch, policy.Asked, policy.Superseded, policy.AlreadyRestarted,
		policy.NoUpdateSignature, policy.UnknownSignature, policy.Handoff, policy.PhaseUnknown, policy.PostProvider, policy.NotQuiet,
		policy.NoUpdateWitness, policy.ClockJump, policy.NoProber, policy.ProbePending, policy.ProbeFailed, policy.Supervised,
		policy.StormPaused, policy.Relaunching, policy.DeferredExpired, policy.HealerAbsent, policy.HeldTooLong, policy.LaunchAborted,
		policy.ReplacementOK, policy.ReplacementLost, policy.Disabled, policy.Paused, policy.WouldProbe, policy.EvidenceFailed,
		policy.LaunchFailed, policy.TakenElsewhere, policy.RunnerLost,
	} {
		if !notify.Reason(c).Known {
			t.Errorf("the code %q has no text for people", c)
		}
	}
}

func TestNoWitnessNamesEveryAbsence(t *testing.T) {
	t.Parallel()
	f := known()
	f.Witnesses = &witness.Findings{Absent: []witness.Absence{{Why: "the tree is the same"}, {Why: "no update is on record"}}}
	got := policy.Decide(f, limits).Text
	for _, why := range []string{"the tree is the same", "no update is on record"} {
		if !strings.Contains(got, why) {
			t.Errorf("%q leaves out %q", got, why)
		}
	}
}

func TestUnknownOutcomeOfAProbeIsNoPass(t *testing.T) {
	t.Parallel()
	for _, o := range []probe.Outcome{"", probe.Unknown, "splendid"} {
		f := known()
		f.Probe = &policy.Probe{Result: &probe.Result{Outcome: o}}
		if got := policy.Decide(f, limits); got.Verdict != policy.Defer {
			t.Errorf("outcome %q: %s", o, got.Verdict)
		}
	}
	f := known()
	f.Quiet = &quiet.Result{}
	if got := policy.Decide(f, limits); got.Verdict != policy.Defer {
		t.Errorf("the zero quiet result: %s", got.Verdict)
	}
}
