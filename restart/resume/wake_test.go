package resume_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

func TestDecideWake(t *testing.T) {
	t.Parallel()
	idle := func(change func(*session.Head)) func(*session.Head) {
		return func(h *session.Head) {
			h.Turn, h.Owner = nil, session.Owner{}
			if change != nil {
				change(h)
			}
		}
	}
	owned := func(h *session.Head) { h.Owner = session.Owner{Instance: ledger.Instance{ID: "owner"}} }
	for _, c := range []struct {
		name   string
		change func(*session.Head)
		life   ledger.Liveness
		facts  resume.Facts
		want   resume.Outcome
	}{
		{name: "idle", change: idle(nil), want: resume.Woken},
		{name: "long ago", change: idle(func(h *session.Head) { h.Proof = noon.Add(-48 * 3600e9) }), want: resume.Woken},
		{name: "after a clean turn", change: idle(func(h *session.Head) { h.Clean = true }), want: resume.Woken},
		{name: "it was cut off: its notice goes into that turn", want: resume.Resumed},
		{name: "aborted", change: idle(func(h *session.Head) { h.Abort = &session.Fact{Seq: 5} }), want: resume.Aborted},
		{name: "a question is open", change: idle(func(h *session.Head) { h.Parks = []session.Open{{Interrupt: "park"}} }), want: resume.Paused},
		{name: "an effect is unknown", change: idle(func(h *session.Head) { h.Calls = []session.Dangling{{Seq: 4, Class: session.Mutating}} }), want: resume.SkippedAmbiguous},
		{name: "three attempts", change: idle(func(h *session.Head) { h.Attempts = 3 }), want: resume.SkippedLoopbreak},
		{name: "a newer version writes it", change: idle(func(h *session.Head) { h.Schema++ }), want: resume.SkippedUnsupported},
		{name: "the host cannot", change: idle(nil), facts: resume.Facts{Unsupported: "no such agent"}, want: resume.SkippedUnsupported},
		{name: "one more than it may", change: idle(nil), facts: resume.Facts{Used: resume.DefaultPerBoot}, want: resume.Capped},
		{name: "another process holds it", change: idle(owned), life: ledger.Alive, want: resume.Owned},
		{name: "its owner is not proven dead", change: idle(owned), life: ledger.LifeUnknown, want: resume.Owned},
		{name: "its owner is dead", change: idle(owned), want: resume.Woken},
		{name: "this process holds it", change: idle(owned), life: ledger.Alive, facts: resume.Facts{Ours: true}, want: resume.Woken},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.life == "" {
				c.life = ledger.Dead
			}
			c.facts.Status, c.facts.Now = cut(c.change).Status(c.life), noon
			if d := resume.DecideWake(c.facts, resume.Limits{}); d.Outcome != c.want || d.Text == "" {
				t.Errorf("%s (%s), want %s", d.Outcome, d.Text, c.want)
			}
		})
	}
}

// TestWakesCountLikeResumes: the attempt stands before the turn, a third that completes nothing is the last, and the cap is
// the one of the passes.
func TestWakesCountLikeResumes(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &host{}
	s, _ := w.process(nil)
	r := w.runner(s, h, resume.Config{Limits: resume.Limits{PerBoot: 4}})
	var seen []int
	fail := func(ctx context.Context, turn *sessions.Turn) error {
		seen = append(seen, w.status("s").Head.Attempts)
		return failing(ctx, turn)
	}
	var got []string
	for range 4 {
		got = append(got, string(r.Wake(w.ctx, "s", fail).Outcome))
	}
	if text := strings.Join(got, " "); text != "error error error skipped_loopbreak" || fmt.Sprint(seen) != "[1 2 3]" {
		t.Errorf("%s, attempts %v", text, seen)
	}
	done := func(ctx context.Context, turn *sessions.Turn) error {
		return turn.End(ctx, session.TurnEnded{End: session.EndDone})
	}
	if i := r.Wake(w.ctx, "t", done); i.Outcome != resume.Woken || w.status("t").Head.Attempts != 0 {
		t.Errorf("%+v, %+v", i, w.status("t"))
	}
	if i := r.Wake(w.ctx, "u", done); i.Outcome != resume.Capped || w.status("u").Head.Last != 0 {
		t.Errorf("a fifth turn: %+v", i)
	}
	w.crash(nil, "v")
	w.wants(w.pass(r), "v capped")
	if len(h.ran)+len(h.counted) != 0 {
		t.Errorf("ran %v, counted %v", h.ran, h.counted)
	}
}
