package policy_test

import (
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/quiet"
)

const maxDefer = 30 * time.Minute

var limits = policy.Limits{MaxDefer: maxDefer}

// broken are the facts of a death that an update caused before any work, with nothing looked up yet.
func broken() policy.Facts {
	return policy.Facts{
		Signature: classify.Verdict{Disposition: classify.Skew, Family: classify.TornImport, Exception: "ImportError"},
		Phase:     run.Booting,
		Probeable: []string{"acme"},
		Age:       time.Minute,
		Seen:      true,
	}
}

// known are the same facts with everything looked up, and every answer a yes.
func known() policy.Facts {
	f := broken()
	f.Quiet = &quiet.Result{Quiet: true}
	f.Witnesses = &witness.Findings{Evidence: []witness.Evidence{{Kind: witness.UpdateJournal, Root: "acme"}}}
	f.Probe = &policy.Probe{Result: &probe.Result{Outcome: probe.Healthy}, Modules: []string{"acme.wire"}}
	f.Preflight = &policy.Preflight{}
	f.Slot = &policy.Slot{}
	return f
}

// row is one row of the design's table: what makes it apply to facts that are otherwise those of a relaunch, and what
// it says then.
type row struct {
	name    string
	make    func(f *policy.Facts)
	field   string // what make writes; rows that write one field cannot hold at the same time
	rule    int
	verdict policy.Verdict
	code    string
	written policy.Written
	loud    bool
	// says are words that the sentence must have.
	says string
}

// rows are the design's table, in its order.
var rows = []row{
	{name: "killed by a person", make: func(f *policy.Facts) { f.Intent = run.Killed }, field: "intent",
		rule: 1, verdict: policy.Skip, code: "killed", written: policy.Answer},
	{name: "dismissed", make: func(f *policy.Facts) { f.Intent, f.By, f.Said = run.Dismissed, "ana", "known" }, field: "intent",
		rule: 1, verdict: policy.Skip, code: "dismissed", written: policy.Answer, says: "ana dismissed this failure. They noted: known"},
	{name: "restarted by hand", make: func(f *policy.Facts) { f.Intent = run.Relaunched }, field: "intent",
		rule: 1, verdict: policy.Skip, code: "manual_relaunch", written: policy.Answer},
	{name: "a person was asked", make: func(f *policy.Facts) { f.Intent = run.Asked }, field: "intent",
		rule: 1, verdict: policy.Skip, code: "asked", written: policy.Answer},
	{name: "a newer run has the name", make: func(f *policy.Facts) { f.Superseded = "run-2" }, field: "superseded",
		rule: 1, verdict: policy.Skip, code: "superseded", written: policy.Answer, says: "run-2"},

	{name: "itself a replacement", make: func(f *policy.Facts) { f.Replacement = true }, field: "replacement",
		rule: 2, verdict: policy.Settle, code: "already_restarted", written: policy.Record, loud: true},

	{name: "on the never list", make: signed(classify.Never, classify.NoFamily, classify.RateLimit), field: "signature",
		rule: 3, verdict: policy.LeaveAlone, code: "rate_limit", written: policy.Answer, says: "rate limit"},
	{name: "its runner was killed", make: func(f *policy.Facts) { f.Lost = true }, field: "lost",
		rule: 4, verdict: policy.LeaveAlone, code: "runner_lost", written: policy.Answer, loud: true, says: "not begun its work"},
	{name: "no family", make: signed(classify.Unknown, classify.NoFamily, "managed_bug"), field: "signature",
		rule: 4, verdict: policy.LeaveAlone, code: "no_update_signature", written: policy.Answer},
	{name: "ambiguous", make: signed(classify.Unknown, classify.TornImport, "mixed_exception_group"), field: "signature",
		rule: 5, verdict: policy.LeaveAlone, code: "unknown_signature", written: policy.Answer, says: "do not agree"},
	{name: "a call does not fit", make: signed(classify.Annotate, classify.NoFamily, classify.SignatureMismatch), field: "signature",
		rule: 6, verdict: policy.LeaveAlone, code: "signature_mismatch", written: policy.Answer},
	{name: "a name is not defined", make: signed(classify.Annotate, classify.NoFamily, classify.NameError), field: "signature",
		rule: 6, verdict: policy.LeaveAlone, code: "name_error", written: policy.Answer},

	{name: "handoff", make: func(f *policy.Facts) { f.Phase = run.Handoff }, field: "phase",
		rule: 7, verdict: policy.Ask, code: "handoff", written: policy.Record, loud: true},
	{name: "phase unknown", make: func(f *policy.Facts) { f.Phase = run.UnknownPhase }, field: "phase",
		rule: 7, verdict: policy.Ask, code: "phase_unknown", written: policy.Record, loud: true, says: "--idempotent"},
	{name: "after the model turn began", make: func(f *policy.Facts) { f.Phase = run.ProviderRunning }, field: "phase",
		rule: 8, verdict: policy.Notify, code: "notify_post_provider", written: policy.Record, loud: true, says: "could repeat work"},

	{name: "not quiet", make: func(f *policy.Facts) { f.Quiet = &quiet.Result{Why: "update 7 is under way"} }, field: "quiet",
		rule: 9, verdict: policy.Defer, code: "not_quiet", written: policy.Record, says: "update 7 is under way"},
	{name: "no witness", make: func(f *policy.Facts) {
		f.Witnesses = &witness.Findings{Absent: []witness.Absence{{Kind: witness.BootIdentity, Why: "the commit is the same"}}}
	}, field: "witnesses",
		rule: 10, verdict: policy.Decline, code: "no_update_witness", written: policy.Record, loud: true, says: "the commit is the same"},
	{name: "the clock jumped", make: func(f *policy.Facts) { f.Witnesses = &witness.Findings{ClockJump: true} }, field: "witnesses",
		rule: 10, verdict: policy.Decline, code: "clock_jump", written: policy.Record, loud: true},
	{name: "no prober", make: func(f *policy.Facts) { f.Probeable = nil }, field: "probeable",
		rule: 11, verdict: policy.Decline, code: "no_prober", written: policy.Record, loud: true, says: "no prober for this root."},
	{name: "never to be probed", make: func(f *policy.Facts) { f.Probeable, f.Unprobeable = nil, "its interpreter is not known." }, field: "probeable",
		rule: 11, verdict: policy.Decline, code: "no_prober", written: policy.Record, loud: true, says: "healthy: its interpreter is not known."},
	{name: "probe not run", make: func(f *policy.Facts) { f.Probe = &policy.Probe{Pending: "nothing is left to try"} }, field: "probe",
		rule: 11, verdict: policy.Defer, code: "probe_pending", written: policy.Record, says: "nothing is left to try"},
	{name: "probe not ended", make: probed(probe.Result{Outcome: probe.Unknown}), field: "probe",
		rule: 11, verdict: policy.Defer, code: "probe_pending", written: policy.Record},
	{name: "probe failed", make: probed(probe.Result{Outcome: probe.Broken, Failed: "acme.wire"}), field: "probe",
		rule: 11, verdict: policy.Defer, code: "probe_failed", written: policy.Record, says: "acme.wire"},
	{name: "preflight refuses for good", make: func(f *policy.Facts) {
		f.Preflight = &policy.Preflight{Code: policy.Supervised, Text: "scout.service restarts it.", ForGood: true}
	}, field: "preflight",
		rule: 12, verdict: policy.Decline, code: "supervised", written: policy.Record, loud: true, says: "scout.service"},
	{name: "preflight refuses for now", make: func(f *policy.Facts) {
		f.Preflight = &policy.Preflight{Code: "program_missing", Text: "There is no such program."}
	}, field: "preflight",
		rule: 12, verdict: policy.Defer, code: "program_missing", written: policy.Record, says: "no such program"},
	{name: "storm limit", make: func(f *policy.Facts) {
		f.Slot = &policy.Slot{Tripped: &storm.Pause{Reason: storm.ReasonEpisode, Note: "12 launches for one update"}}
	}, field: "slot",
		rule: 13, verdict: policy.Pause, code: "storm_paused", written: policy.State, loud: true, says: "12 launches"},

	{name: "else", make: func(*policy.Facts) {}, field: "nothing",
		rule: 14, verdict: policy.Relaunch, code: "relaunch", written: policy.Record},
}

func signed(d classify.Disposition, family classify.Family, r classify.Reason) func(*policy.Facts) {
	return func(f *policy.Facts) {
		f.Signature = classify.Verdict{Disposition: d, Family: family, Reason: r, Exception: "SomeError"}
	}
}

func probed(r probe.Result) func(*policy.Facts) {
	return func(f *policy.Facts) { f.Probe = &policy.Probe{Result: &r} }
}
