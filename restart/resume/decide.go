package resume

import (
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Outcome is what became, or would become, of a session. It is a stable code, and the label of the counter.
type Outcome string

// The outcomes that are counted, mulligan_autoresume_total{workload,outcome}.
const (
	Resumed            Outcome = "resumed"             // a turn was run to its end
	Cleared            Outcome = "cleared"             // nothing was left to do, and no turn was run
	SkippedStale       Outcome = "skipped_stale"       // the owner's last proof of life is too old
	SkippedAmbiguous   Outcome = "skipped_ambiguous"   // a call began, and nobody knows whether it happened
	SkippedLoopbreak   Outcome = "skipped_loopbreak"   // too many attempts without a completed turn
	SkippedSuperseded  Outcome = "skipped_superseded"  // somebody else took or changed it meanwhile
	SkippedUnsupported Outcome = "skipped_unsupported" // the host cannot run it
	Failed             Outcome = "error"               // the turn failed, or something else did
)

// The outcomes of sessions that auto-resume has nothing to do with. They are not counted.
const (
	NotInterrupted Outcome = "not_interrupted"
	Owned          Outcome = "owned"        // its owner is not proven dead
	Paused         Outcome = "paused"       // it waits for an answer
	Aborted        Outcome = "aborted"      // for good
	Tried          Outcome = "tried"        // by this instance, and nothing has changed since
	Capped         Outcome = "capped"       // this instance has resumed as many as it may
	Draining       Outcome = "draining"     // this instance is stopping
	NotAdmitted    Outcome = "not_admitted" // this instance begins no turn for now, as while it waits for its restart
	Woken          Outcome = "woken"        // nothing was interrupted, and a turn was run all the same: see Runner.Wake
)

// Outcomes are those that are counted, for who primes counters with zero.
func Outcomes() []Outcome {
	return []Outcome{Resumed, Cleared, SkippedStale, SkippedAmbiguous, SkippedLoopbreak, SkippedSuperseded, SkippedUnsupported, Failed}
}

// Counted reports whether the outcome is one of Outcomes.
func (o Outcome) Counted() bool {
	switch o {
	case NotInterrupted, Owned, Paused, Aborted, Tried, Capped, Draining, NotAdmitted, Woken:
		return false
	}
	return true
}

// The defaults of Limits.
const (
	DefaultWindow  = time.Hour
	DefaultPerBoot = 50
)

// Limits are how far auto-resume goes. Zero means the default.
type Limits struct {
	// Window is how long ago the owner's last proof of life may be; zero means DefaultWindow.
	Window time.Duration
	// Attempts is how many without a completed turn mean quarantine; zero means session.DefaultAttempts.
	Attempts int
	// PerBoot is how many turns one instance resumes at most; zero means DefaultPerBoot.
	PerBoot int
}

func (l Limits) normal() Limits {
	if l.Window == 0 {
		l.Window = DefaultWindow
	}
	if l.Attempts == 0 {
		l.Attempts = session.DefaultAttempts
	}
	if l.PerBoot == 0 {
		l.PerBoot = DefaultPerBoot
	}
	return l
}

// Facts are all that a decision is made of.
type Facts struct {
	// Status is the session's, with what is known of its owner's life.
	Status session.Status
	Now    stamp.Time
	// Proof is a later proof of life of the owner than the log has, such as its last renewal; zero when there is none.
	Proof stamp.Time
	// Unsupported says why the host cannot run the session; empty when it can.
	Unsupported string
	// Used is how many turns this instance has resumed.
	Used int
	// Tried is the session's last sequence after this instance's own attempt; zero when there was none.
	Tried uint64
	// Ours is set when this process holds the session.
	Ours bool
}

// Decision is what is to be done, and why. Resumed means that a turn is to be run, Cleared that the interruption is to be
// taken away.
type Decision struct {
	Outcome Outcome `json:"outcome"`
	Text    string  `json:"text"` // one plain sentence without a full stop
}

// Decide says what is to be done with a session. The first reason that applies counts: what somebody has to look into
// comes before what time has decided. It is pure.
func Decide(f Facts, l Limits) Decision {
	l = l.normal()
	st, h := f.Status, f.Status.Head
	switch {
	case st.Headline == session.Aborted:
		return say(Aborted, "the session was aborted (event %d)", h.Abort.Seq)
	case st.Headline == session.Paused:
		return say(Paused, "the session waits for an answer")
	case st.Headline == session.Running:
		return say(Owned, "turn %s runs, as far as anybody knows (its owner is %s)", h.Turn.ID, st.Liveness)
	case st.Headline != session.Interrupted || st.Interruption == nil:
		return say(NotInterrupted, "nothing was interrupted")
	case h.Owner.ID != "" && st.Liveness != ledger.Dead:
		return say(Owned, "instance %s holds the session and is not proven dead (%s)", h.Owner.ID, st.Liveness)
	case h.Schema > session.Schema:
		return say(SkippedUnsupported, "a newer version of Mulligan (schema %d) writes this session", h.Schema)
	case st.Ambiguous:
		return ambiguous(h)
	case h.Clean:
		return say(Cleared, "the model had said all it had to say: nothing is left to do")
	case h.Attempts >= l.Attempts:
		return say(SkippedLoopbreak, "%d attempts without a completed turn: release the session to allow more", h.Attempts)
	}
	if d, stale := aged(f, l); stale {
		return d
	}
	switch {
	case f.Unsupported != "":
		return say(SkippedUnsupported, "the host cannot run it: %s", f.Unsupported)
	case f.Tried != 0 && f.Tried == h.Last:
		return say(Tried, "this instance has tried it, and nothing has changed since")
	case f.Used >= l.PerBoot:
		return capped(f.Used)
	}
	return say(Resumed, "turn %s was interrupted, and may go on (attempt %d of %d)", st.Interruption.Turn, h.Attempts+1, l.Attempts)
}

// DecideWake says whether a session that nothing interrupted may begin a turn by itself, because it has to be told
// something: Woken, or why not. For one that was interrupted it is [Decide]: its notice belongs into the turn that takes
// it up. The same breaker and cap hold. It is pure.
func DecideWake(f Facts, l Limits) Decision {
	d := Decide(f, l)
	if d.Outcome != NotInterrupted {
		return d
	}
	l = l.normal()
	h := f.Status.Head
	switch {
	case h.Owner.ID != "" && !f.Ours && f.Status.Liveness != ledger.Dead:
		return say(Owned, "instance %s holds the session and is not proven dead (%s)", h.Owner.ID, f.Status.Liveness)
	case h.Schema > session.Schema:
		return say(SkippedUnsupported, "a newer version of Mulligan (schema %d) writes this session", h.Schema)
	case f.Status.Ambiguous:
		return ambiguous(h)
	case h.Attempts >= l.Attempts:
		return say(SkippedLoopbreak, "%d attempts without a completed turn: release the session to allow more", h.Attempts)
	case f.Unsupported != "":
		return say(SkippedUnsupported, "the host cannot run it: %s", f.Unsupported)
	case f.Used >= l.PerBoot:
		return capped(f.Used)
	}
	return say(Woken, "it may be woken (attempt %d of %d)", h.Attempts+1, l.Attempts)
}

func capped(used int) Decision {
	return say(Capped, "this instance has resumed %d sessions, which is its limit", used)
}

func say(o Outcome, format string, args ...any) Decision {
	return Decision{Outcome: o, Text: fmt.Sprintf(format, args...)}
}

func ambiguous(h session.Head) Decision {
	for _, c := range h.Calls {
		if c.Class != session.Spawning {
			return say(SkippedAmbiguous, "call %d (%s) began and nobody knows whether it happened: resolve it, or acknowledge "+
				"what was shown through %d", c.Seq, c.Tool, h.Last)
		}
	}
	return say(SkippedAmbiguous, "the effect of an earlier call is unknown")
}

// aged tells whether the owner's last proof of life is outside of the window. One that lies in the future comes from
// another machine's clock, or from before a clock was set back: within the window it counts as just now, beyond that
// nobody can tell.
func aged(f Facts, l Limits) (Decision, bool) {
	proof := lastProof(f)
	age := f.Now.Sub(proof)
	switch {
	case proof.IsZero():
		return say(SkippedStale, "nobody knows when its owner last was alive"), true
	case age > l.Window:
		return say(SkippedStale, "its owner was last alive %s ago, and the window is %s", stamp.Short(age), stamp.Short(l.Window)), true
	case age < -l.Window:
		return say(SkippedStale, "its owner was last alive %s in the future: a clock was set back", stamp.Short(-age)), true
	}
	return Decision{}, false
}

// lastProof is the latest of what proves that the owner was alive.
func lastProof(f Facts) stamp.Time {
	last := f.Proof
	for _, t := range []stamp.Time{f.Status.Interruption.Since, f.Status.Head.Proof} {
		if last.IsZero() || !t.IsZero() && t.After(last) {
			last = t
		}
	}
	return last
}
