package policy

// Verdict is the kind of a decision.
type Verdict string

// The verdicts of the table.
const (
	// Undecided asks for a fact; see Decision.Need.
	Undecided  Verdict = ""
	Skip       Verdict = "skip"
	Settle     Verdict = "settle_failed"
	LeaveAlone Verdict = "leave_alone"
	Ask        Verdict = "ask"
	Notify     Verdict = "notify_post_provider"
	Defer      Verdict = "defer"
	Decline    Verdict = "decline"
	Pause      Verdict = "pause"
	Relaunch   Verdict = "relaunch"
)

// The reason codes that the policy adds to the classifier's. They are stable: the same word stands in the ledger, in
// reports, in JSON and in metrics.
const (
	Killed            = "killed"
	Dismissed         = "dismissed"
	ManualRelaunch    = "manual_relaunch"
	Asked             = "asked"
	Superseded        = "superseded"
	AlreadyRestarted  = "already_restarted"
	NoUpdateSignature = "no_update_signature"
	UnknownSignature  = "unknown_signature"
	Handoff           = "handoff"
	PhaseUnknown      = "phase_unknown"
	RunnerLost        = "runner_lost"
	PostProvider      = "notify_post_provider"
	NotQuiet          = "not_quiet"
	NoUpdateWitness   = "no_update_witness"
	ClockJump         = "clock_jump"
	NoProber          = "no_prober"
	ProbePending      = "probe_pending"
	ProbeFailed       = "probe_failed"
	Supervised        = "supervised"
	LaunchRefused     = "launch_refused"
	OnHold            = "on_hold"
	AtCapacity        = "at_capacity"
	StormPaused       = "storm_paused"
	Relaunching       = "relaunch"
	DeferredExpired   = "deferred_expired"
	HealerAbsent      = "healer_absent"
	HeldTooLong       = "held_too_long"
)

// The codes that the engine writes around decisions.
const (
	LaunchAborted   = "launch_aborted"
	ReplacementOK   = "replacement_ok"
	ReplacementLost = "replacement_lost"
	Disabled        = "disabled"
	Paused          = "paused"
	StateUnreadable = "state_unreadable"
	Unreadable      = "unreadable"
	WouldProbe      = "would_probe"
	EvidenceFailed  = "evidence_failed"
	LaunchFailed    = "launch_failed"
	TakenElsewhere  = "taken_elsewhere"
)

// Written says where a decision is kept.
type Written string

// The places.
const (
	Nowhere Written = ""
	Answer  Written = "answer"
	Record  Written = "record"
	State   Written = "state"
)

// Need is a fact that Decide asks for.
type Need string

// The needs, in the order in which they are asked for.
const (
	NeedNothing   Need = ""
	NeedQuiet     Need = "quiet"
	NeedWitnesses Need = "witnesses"
	NeedProbe     Need = "probe"
	NeedPreflight Need = "preflight"
	NeedSlot      Need = "slot"
)

// Decision is one row of the table, applied.
type Decision struct {
	Verdict Verdict
	// Rule is the row's number in the design's table, 1 to 14; 0 for an expiry.
	Rule int
	// Code is the stable reason.
	Code string
	// Text is one plain sentence for people.
	Text    string
	Written Written
	// Loud asks for a notice of its own.
	Loud bool
	// Need is set with Undecided: look this up and ask again.
	Need Need
}
