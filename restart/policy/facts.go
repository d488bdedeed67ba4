package policy

import (
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/quiet"
)

// Facts are all that a decision may rest on. What costs something to find out is a pointer: nil means that nobody
// looked yet, and [Decide] asks for it when, and only when, it matters.
type Facts struct {
	// Intent is what a person did to the run, empty for nothing.
	Intent run.IntentKind
	// By is who did it, and Said what they noted; empty where it is not known.
	By, Said string
	// Superseded names a newer run that holds the run's name, empty when there is none.
	Superseded string
	// Replacement is set for a run that is itself a replacement: its lineage's do-over is spent.
	Replacement bool
	// Lost is set for a run whose runner is gone without a word, and Ending is a sentence of who saw it end all the same;
	// empty when nothing is known.
	Lost      bool
	Ending    string
	Signature classify.Verdict
	Phase     run.Phase
	// Marking says how the phase is known, for the question about an unknown one.
	Marking run.Marking
	// Silenced is set when the run's own failure notice was held back for the healer.
	Silenced bool
	// Probeable are the names of the run's roots that can be tried, and Unprobeable is a sentence of why one never can be;
	// empty when all it lacks is a prober.
	Probeable   []string
	Unprobeable string

	// Age is how old the lineage's first claim is, or the death when there is no claim yet, less paused and disabled
	// time. Held is that time.
	Age  time.Duration
	Held time.Duration
	// Seen is set once the lineage has a record: from then on Age counts deferral, before it counts absence.
	Seen bool
	// Last is the sentence of the lineage's last deferral, empty when there is none.
	Last string

	Quiet     *quiet.Result
	Witnesses *witness.Findings
	Probe     *Probe
	Preflight *Preflight
	// Slot is the outcome of asking the storm breaker for a slot.
	Slot *Slot
}

// Probe is what the probe of the current tree said of this death's modules. Result is nil when it could not be run now.
type Probe struct {
	Result  *probe.Result
	Modules []string
	// Pending says why there is no result yet.
	Pending string
}

// Preflight is the word of the launcher, or of the host's admission, before anything is spent. The zero value is a yes;
// anything else is a refusal, for now or for good.
type Preflight struct {
	// Code is the refusal's stable code. A refusal without one is recorded as launch_refused.
	Code string
	// Text is one plain sentence for people.
	Text string
	// ForGood is set when asking again cannot help.
	ForGood bool
	// Until is when asking again may help, for a refusal for now; zero when nobody knows.
	Until stamp.Time
}

// Admitted reports whether p is a yes.
func (p Preflight) Admitted() bool { return p == Preflight{} }

// Slot is the breaker's answer: Tripped is nil when the slot was given.
type Slot struct {
	Tripped *storm.Pause
}

// Limits are the configured bounds that the table itself uses.
type Limits struct {
	// MaxDefer bounds how long a death may wait for its decision.
	MaxDefer time.Duration
}
