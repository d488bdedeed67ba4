package ledger

import (
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Schema is the version of the record format that this package writes. Records of a later version are refused, never
// rewritten.
const Schema = 1

// Key names the one record of a lineage.
type Key struct {
	Project string `json:"project"`
	Lineage string `json:"lineage"`
}

func (k Key) String() string { return k.Project + "/" + k.Lineage }

// State is where a lineage's one do-over stands.
type State string

// The states. Declined, SettledOK and SettledFailed are final.
const (
	Claimed       State = "claimed"
	Deferred      State = "deferred"
	Declined      State = "declined"
	Launching     State = "launching"
	Launched      State = "launched"
	SettledOK     State = "settled_ok"
	SettledFailed State = "settled_failed"
)

// Final reports whether nothing can follow.
func (s State) Final() bool { return s == Declined || s == SettledOK || s == SettledFailed }

// Owner is the instance that works on a record, and until when it may.
type Owner struct {
	Instance Instance   `json:"instance"`
	Until    stamp.Time `json:"until"`
}

// Death is what the record keeps of the death it is about.
type Death struct {
	Run       string     `json:"run"`
	Name      string     `json:"name"`
	At        stamp.Time `json:"at"`
	Booted    stamp.Time `json:"booted"`
	Phase     string     `json:"phase"`
	Exit      int        `json:"exit"`
	Signal    string     `json:"signal,omitempty"`
	Silenced  bool       `json:"silenced,omitempty"`
	Workspace string     `json:"workspace,omitempty"`
	Log       string     `json:"log,omitempty"`
}

// Signature is what the classifier read from the text.
type Signature struct {
	Family    string   `json:"family"`
	Reason    string   `json:"reason,omitempty"`
	Exception string   `json:"exception,omitempty"`
	Module    string   `json:"module,omitempty"`
	Symbol    string   `json:"symbol,omitempty"`
	Modules   []string `json:"modules,omitempty"`
	Root      string   `json:"root,omitempty"`
	Asked     []string `json:"asked,omitempty"` // roots of the managed frames, innermost first
	Message   string   `json:"message,omitempty"`
}

// Witness is one proof as it was found, with the update it proves.
type Witness struct {
	Kind    string       `json:"kind"`
	Root    string       `json:"root,omitempty"`
	From    string       `json:"from,omitempty"`
	To      string       `json:"to,omitempty"`
	When    stamp.Window `json:"when"`
	Update  string       `json:"update,omitempty"`
	Culprit *Culprit     `json:"culprit,omitempty"`
	Detail  string       `json:"detail"`
}

// Culprit is the commit that removed or brought the missing name.
type Culprit struct {
	Root    string     `json:"root,omitempty"`
	Commit  string     `json:"commit"`
	Subject string     `json:"subject,omitempty"`
	When    stamp.Time `json:"when"`
	Path    string     `json:"path,omitempty"`
	Name    string     `json:"name,omitempty"`
}

// Probe is what the probe of the new tree said.
type Probe struct {
	Outcome string     `json:"outcome"`
	Modules []string   `json:"modules,omitempty"`
	Detail  string     `json:"detail,omitempty"`
	At      stamp.Time `json:"at"`
}

// Facts are what was found about the death. Later passes may add to them; they decide nothing by themselves.
type Facts struct {
	Death     Death     `json:"death"`
	Signature Signature `json:"signature"`
	Witnesses []Witness `json:"witnesses,omitempty"`
	Probe     *Probe    `json:"probe,omitempty"`
	// Culprit is a label: the episode's id is fixed without it when it is found later.
	Culprit *Culprit `json:"culprit,omitempty"`
	// Roots are the identity keys at boot, at death and at the launch, by root.
	Roots []RootChange `json:"roots,omitempty"`
}

// RootChange is one root's identity at boot and at death, and what a launch found there.
type RootChange struct {
	Root string `json:"root"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Now is what the root held when the launch was decided, and NowAt when that was read; both are empty for a root that
	// was not read then. The replacement need not read again what was read a moment before.
	Now   string     `json:"now,omitempty"`
	NowAt stamp.Time `json:"now_at,omitzero"`
}

// Launch is the one replacement of the lineage.
type Launch struct {
	// ID is a fresh UUIDv7, written before anything is started.
	ID    string     `json:"id"`
	Begun stamp.Time `json:"begun"`
	// Grace is until when the replacement may still bind after its healer was found gone; zero while that healer lives.
	// No other instance gives the launch up before.
	Grace stamp.Time `json:"grace,omitzero"`
	// Run is the replacement's run id, known from the bind on.
	Run string `json:"run,omitempty"`
	// Bound is the instance that passed the gate; nil until then.
	Bound   *Instance  `json:"bound,omitempty"`
	BoundAt stamp.Time `json:"bound_at,omitzero"`
}

// Entry is one line of a record's history.
type Entry struct {
	State  State      `json:"state"`
	Event  Event      `json:"event"`
	At     stamp.Time `json:"at"`
	Actor  string     `json:"actor"`        // instance id
	By     string     `json:"by,omitempty"` // the person, for what a person did
	Reason string     `json:"reason,omitempty"`
	Note   string     `json:"note,omitempty"`
	// Cause is a reason code that somebody knows for certain of how the replacement ended which left no word itself.
	Cause string `json:"cause,omitempty"`
}

// Intent is what a person did about a run of the lineage. It is kept apart from the outcome.
type Intent struct {
	// Reason is the code: killed, dismissed, manual_relaunch or asked.
	Reason string `json:"reason"`
	// Run is the run that the person meant: the one that died, or its replacement.
	Run  string     `json:"run"`
	By   string     `json:"by,omitempty"`
	Note string     `json:"note,omitempty"`
	At   stamp.Time `json:"at"`
}

// Record is a lineage's one ledger entry.
type Record struct {
	Schema int `json:"schema"`
	Key
	// Revision counts the writes; the first is 1.
	Revision uint64 `json:"revision"`
	State    State  `json:"state"`
	// Reason is the code of the last decision and Note its sentence.
	Reason string `json:"reason,omitempty"`
	Note   string `json:"note,omitempty"`
	// Owner is nil when nobody works on the record.
	Owner *Owner `json:"owner,omitempty"`
	// First is the lineage's first claim; deferral is counted from it, however often the record is claimed again.
	First stamp.Time `json:"first"`
	// Episode is fixed after the quiet check and never rewritten; empty until then.
	Episode string  `json:"episode,omitempty"`
	Facts   Facts   `json:"facts"`
	Launch  *Launch `json:"launch,omitempty"`
	// Intent is the last thing that a person did about the lineage; nothing is launched past it.
	Intent *Intent `json:"intent,omitempty"`
	// Evidence is where the evidence lies, relative to the state root.
	Evidence string `json:"evidence,omitempty"`
	// Told maps a notice's kind to when it was acknowledged by every notifier.
	Told    map[string]stamp.Time `json:"told,omitempty"`
	History []Entry               `json:"history"`
	// Pruned is when facts, evidence and older history were dropped; zero before.
	Pruned stamp.Time `json:"pruned,omitzero"`
}

// Open reports whether the record still needs work.
func (r Record) Open() bool { return !r.State.Final() }

// Changed is when the record last moved.
func (r Record) Changed() stamp.Time {
	if len(r.History) == 0 {
		return r.First
	}
	return r.History[len(r.History)-1].At
}

// DefaultLease is how long an owner may work on a record before another instance overtakes it.
const DefaultLease = 60 * time.Second
