package resume_test

import (
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/resume"
)

var noon = stamp.Time{Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Boot: "boot", Uptime: 100 * time.Hour}

// cut is the head of a session whose owner died a minute ago in the middle of a turn.
func cut(change func(*session.Head)) session.Head {
	died := noon.Add(-time.Minute)
	h := session.Head{Session: "s1", Schema: session.Schema, Last: 7, Fence: 1, Proof: died,
		Owner: session.Owner{Instance: ledger.Instance{ID: "owner"}, Seq: 1, At: died},
		Turn:  &session.Turn{ID: "turn-1", Invocation: "request", Seq: 2, Fence: 1, At: died, Seen: died}}
	if change != nil {
		change(&h)
	}
	return h
}

func TestDecide(t *testing.T) {
	t.Parallel()
	unknown := session.Dangling{ID: "call", Seq: 4, Tool: "scale", Class: session.Mutating}
	spawned := session.Dangling{ID: "call", Seq: 4, Tool: "spawn", Class: session.Spawning}
	old := func(d time.Duration) func(*session.Head) {
		return func(h *session.Head) { h.Proof = noon.Add(-d); h.Turn.Seen = h.Proof }
	}
	for _, c := range []struct {
		name   string
		change func(*session.Head)
		life   ledger.Liveness
		facts  resume.Facts
		limits resume.Limits
		want   resume.Outcome
	}{
		{name: "a turn that was cut off", want: resume.Resumed},
		{name: "its owner lives", life: ledger.Alive, want: resume.Owned},
		{name: "nothing proves its owner dead", life: ledger.LifeUnknown, want: resume.Owned},
		{name: "nothing was cut off", change: func(h *session.Head) { h.Turn = nil }, want: resume.NotInterrupted},
		{name: "a turn that failed under a mark", change: func(h *session.Head) { h.Turn, h.Mark = nil, &session.Fact{Seq: 3, At: h.Proof, Turn: "turn-1"} }, want: resume.Resumed},
		{name: "under a mark, of an owner that lives", life: ledger.Alive,
			change: func(h *session.Head) { h.Turn, h.Mark = nil, &session.Fact{Seq: 3, At: h.Proof, Turn: "turn-1"} }, want: resume.Owned},
		{name: "under a mark, given up", life: ledger.LifeUnknown, change: func(h *session.Head) {
			h.Turn, h.Mark, h.Owner = nil, &session.Fact{Seq: 3, At: h.Proof, Turn: "turn-1"}, session.Owner{}
		}, want: resume.Resumed},
		{name: "aborted", change: func(h *session.Head) { h.Abort = &session.Fact{Seq: 5} }, want: resume.Aborted},
		{name: "a gate stands", change: func(h *session.Head) { h.Gates = []session.Open{{Interrupt: "gate"}} }, want: resume.Paused},
		{name: "a question is open", change: func(h *session.Head) { h.Parks = []session.Open{{Interrupt: "park"}} }, want: resume.Paused},
		{name: "a newer version writes it", change: func(h *session.Head) { h.Schema++ }, want: resume.SkippedUnsupported},
		{name: "an effect is unknown", change: func(h *session.Head) { h.Calls = []session.Dangling{unknown} }, want: resume.SkippedAmbiguous},
		{name: "also when all was said", change: func(h *session.Head) { h.Calls, h.Clean = []session.Dangling{unknown}, true }, want: resume.SkippedAmbiguous},
		{name: "also when it is old", change: func(h *session.Head) { old(24 * time.Hour)(h); h.Calls = []session.Dangling{unknown} }, want: resume.SkippedAmbiguous},
		{name: "another session was started", change: func(h *session.Head) { h.Calls = []session.Dangling{spawned} }, want: resume.Resumed},
		{name: "all was said", change: func(h *session.Head) { h.Clean = true }, want: resume.Cleared},
		{name: "however old it is", change: func(h *session.Head) { old(24 * time.Hour)(h); h.Clean = true }, want: resume.Cleared},
		{name: "two attempts", change: func(h *session.Head) { h.Attempts = 2 }, want: resume.Resumed},
		{name: "three attempts", change: func(h *session.Head) { h.Attempts = 3 }, want: resume.SkippedLoopbreak},
		{name: "three of five", change: func(h *session.Head) { h.Attempts = 3 }, limits: resume.Limits{Attempts: 5}, want: resume.Resumed},
		{name: "an hour ago", change: old(time.Hour), want: resume.Resumed},
		{name: "more than an hour ago", change: old(time.Hour + time.Second), want: resume.SkippedStale},
		{name: "within a longer window", change: old(2 * time.Hour), limits: resume.Limits{Window: 3 * time.Hour}, want: resume.Resumed},
		{name: "a turn without events, of an owner that renewed", change: old(2 * time.Hour), facts: resume.Facts{Proof: noon.Add(-time.Minute)}, want: resume.Resumed},
		{name: "a clock that is ahead", change: old(-time.Minute), want: resume.Resumed},
		{name: "a clock that was set back", change: old(-25 * time.Hour), want: resume.SkippedStale},
		{name: "nobody knows when", change: func(h *session.Head) { h.Proof = stamp.Time{}; h.Turn.Seen = h.Proof }, want: resume.SkippedStale},
		{name: "the host cannot", facts: resume.Facts{Unsupported: "no such agent"}, want: resume.SkippedUnsupported},
		{name: "tried, and nothing has changed", facts: resume.Facts{Tried: 7}, want: resume.Tried},
		{name: "tried, and something has", facts: resume.Facts{Tried: 6}, want: resume.Resumed},
		{name: "the last of this instance", facts: resume.Facts{Used: resume.DefaultPerBoot - 1}, want: resume.Resumed},
		{name: "one more than it may", facts: resume.Facts{Used: resume.DefaultPerBoot}, want: resume.Capped},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.life == "" {
				c.life = ledger.Dead
			}
			c.facts.Status, c.facts.Now = cut(c.change).Status(c.life), noon
			if d := resume.Decide(c.facts, c.limits); d.Outcome != c.want || d.Text == "" {
				t.Errorf("%s (%s), want %s", d.Outcome, d.Text, c.want)
			}
		})
	}
}

func TestOutcomesAreThoseThatAreCounted(t *testing.T) {
	t.Parallel()
	if n := len(resume.Outcomes()); n != 8 {
		t.Errorf("%d outcomes", n)
	}
	for _, o := range resume.Outcomes() {
		if !o.Counted() {
			t.Errorf("%s is listed and not counted", o)
		}
	}
	for _, o := range []resume.Outcome{resume.NotInterrupted, resume.Owned, resume.Paused, resume.Aborted, resume.Tried, resume.Capped, resume.Draining,
		resume.NotAdmitted, resume.Woken} {
		if o.Counted() {
			t.Errorf("%s is counted", o)
		}
	}
}
