package resume_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart/resume"
)

// TestCanaryResumesNothing has an interrupted session, and a runner inside a canary: it is not resumed, not counted, and
// its log stays as it is.
func TestCanaryResumesNothing(t *testing.T) { // the environment is the process's: not parallel
	w := newWorld(t)
	w.crash(nil, "s1")
	before, err := w.store.Head(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := w.process(nil)
	h := &host{}
	r, err := resume.New(resume.Config{Sessions: s, Resumer: h, Metrics: h})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(inside.Var, "c1")
	if items, err := r.Pass(t.Context()); len(items) != 0 || err != nil {
		t.Errorf("a pass in a canary: %+v, %v", items, err)
	}
	after, err := w.store.Head(t.Context(), "s1")
	if err != nil || after.Last != before.Last || len(h.ran) != 0 || len(h.counted) != 0 {
		t.Errorf("ran %v, counted %v, %d events after %d, %v", h.ran, h.counted, after.Last, before.Last, err)
	}
	t.Setenv(inside.Var, "")
	if items, err := r.Pass(t.Context()); len(items) != 1 || items[0].Outcome != resume.Resumed || err != nil {
		t.Errorf("outside again: %+v, %v", items, err)
	}
	if st, err := s.Status(t.Context(), "s1"); err != nil || st.Headline != session.Idle {
		t.Errorf("%s, %v", st, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
