package handoff_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// outsider is a handoff beside the host: it runs no turns, and sees them in the store.
func (w *world) outsider(change func(*handoff.Config)) (h *handoff.Handoff, asked chan error) {
	w.t.Helper()
	asked = make(chan error, 8)
	c := handoff.Config{Restarter: w.r, History: w.hist, Notices: w.box, Failed: func(f handoff.Failure) { w.failures <- f },
		Asked:  func(err error) { asked <- err },
		Others: func(ctx context.Context) ([]string, error) { return handoff.MidTurn(ctx, w.s, nil) }}
	if change != nil {
		change(&c)
	}
	h, err := handoff.New(c)
	w.must(err)
	h.Attach(other{w.s})
	return h, asked
}

// other is a service of another process over the same store: it runs no turns.
type other struct{ *sessions.Service }

func (other) Turns() []*sessions.Turn { return nil }

func TestAnOutsiderIsGuardedByTheStore(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		h, asked := w.outsider(nil)
		one, two := w.begin("one"), w.begin("two")
		who := handoff.Asker{Session: "one"}
		res := h.Ask(t.Context(), who, handoff.Request{Reason: "r"})
		if res.OK || res.Code != handoff.CodeBusy || !slices.Equal(res.InFlight, []string{"two"}) || res.SessionID != "one" {
			t.Errorf("%+v", res)
		}
		res = h.Ask(t.Context(), who, handoff.Request{Force: true})
		if res.Code != handoff.CodeUnconfirmed || !slices.Equal(res.InFlight, []string{"two"}) {
			t.Errorf("%+v", res)
		}
		if len(w.hist.list()) != 0 || len(w.box.sessions()) != 0 {
			t.Error("a refused restart left something behind")
		}
		answer := make(chan handoff.Result, 1)
		go func() { answer <- h.Ask(t.Context(), who, handoff.Request{Reason: "a new build", Wait: true}) }()
		synctest.Wait()
		w.done(two)
		res = <-answer
		if !res.OK || !slices.Equal(w.box.sessions(), []string{"one"}) || w.box.kept[0].Reason != "a new build" || len(w.hist.list()) != 1 {
			t.Errorf("%+v, notices %v", res, w.box.kept)
		}
		if err := <-asked; err != nil || w.r.count() != 1 {
			t.Error(err)
		}
		// Its turn is its host's, and still open.
		if st := w.status("one"); st.Headline != session.Running || st.Head.Turn.ID != one.ID() {
			t.Errorf("%+v", st)
		}
		w.must(h.Close())
		if len(w.box.sessions()) != 1 {
			t.Error("the notice of an accepted restart is gone")
		}
	})
}

func TestAnOutsidersNoticeGoesWithADefiniteRefusal(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		h, asked := w.outsider(nil)
		w.r.answer = errors.New("no such unit")
		if res := h.Ask(t.Context(), handoff.Asker{Session: "one"}, handoff.Request{}); !res.OK || len(w.box.sessions()) != 1 {
			t.Errorf("%+v", res)
		}
		if f := <-w.failures; f.Unknown || len(w.box.sessions()) != 0 || len(asked) != 0 || !w.hist.list()[0].Withdrawn {
			t.Errorf("%+v, notices %v", f, w.box.kept)
		}
		w.r.answer = context.DeadlineExceeded // the answer was lost on the way
		if res := h.Ask(t.Context(), handoff.Asker{Session: "one"}, handoff.Request{}); !res.OK {
			t.Errorf("%+v", res)
		}
		if err := <-asked; !errors.Is(err, handoff.ErrUnknown) || len(w.box.sessions()) != 1 {
			t.Errorf("%v, notices %v", err, w.box.kept)
		}
		began := time.Now()
		if f := <-w.failures; !f.Unknown || time.Since(began) != handoff.Settle || len(w.box.sessions()) != 0 {
			t.Errorf("%+v after %v", f, time.Since(began))
		}
		w.must(h.Close())
	})
}

func TestAnOutsiderRefusesWhatItCannotTell(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		h, _ := w.outsider(func(c *handoff.Config) {
			c.Others = func(context.Context) ([]string, error) { return nil, errors.New("the disk is away") }
			c.Confirm = func(context.Context, handoff.Question) (bool, error) { return true, nil }
		})
		for _, r := range []handoff.Request{{}, {Wait: true}, {Force: true}} {
			if res := h.Ask(t.Context(), handoff.Asker{}, r); res.OK || res.Code != handoff.CodeBusy || !strings.Contains(res.Error, "the disk is away") {
				t.Errorf("%+v: %+v", r, res)
			}
		}
		w.must(h.Close())
	})
}

func TestAnOutsidersSessionMayNotLoopEither(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		w.ask(w.begin("one"), `{}`) // its turn ends for a restart
		h, asked := w.outsider(nil)
		who := handoff.Asker{Session: "one"}
		if res := h.Ask(t.Context(), who, handoff.Request{}); res.Code != handoff.CodeUnconfirmed {
			t.Errorf("%+v", res)
		}
		if res := h.Ask(t.Context(), handoff.Asker{Session: "fresh"}, handoff.Request{}); !res.OK || <-asked != nil {
			t.Errorf("%+v", res)
		}
		w.must(h.Close())
	})
}

func TestMidTurn(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		ctx := t.Context()
		for _, name := range []string{"aborted", "gated", "running"} {
			w.begin(name)
		}
		w.done(w.begin("idle"))
		w.must(w.s.Abort(ctx, "aborted", "no longer wanted"))
		_, _, err := w.s.Pause(ctx, "gated", "g1", json.RawMessage(`"go on?"`))
		w.must(err)
		w.begin("dead")
		lister := pages{s: w.s, change: func(st session.Status) session.Status {
			if st.Head.Session == "dead" {
				return st.Head.Status(ledger.Dead)
			}
			return st
		}}
		w.begin("lost") // and cannot be read
		w.begin("z")
		lister.unreadable = "lost"
		got, err := handoff.MidTurn(ctx, lister, nil)
		if want := []string{"gated", "lost", "running", "z"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, want %v: %v", got, want, err)
		}
		got, err = handoff.MidTurn(ctx, lister, func(owner ledger.Instance) bool { return owner.Same(w.home.Instances().Self()) })
		if err != nil || !slices.Equal(got, []string{"lost"}) {
			t.Errorf("%v although their owner is spared, %v", got, err)
		}
	})
}

// pages are a service's list, two sessions at a time, with states as the test says.
type pages struct {
	s      *sessions.Service
	change func(session.Status) session.Status
	// unreadable is a session that cannot be read.
	unreadable string
}

func (p pages) List(ctx context.Context, after string, _ int) ([]session.Status, error) {
	page, err := p.s.List(ctx, after, 2)
	var lost []*session.UnreadableError
	for i := range page {
		page[i] = p.change(page[i])
		if page[i].Head.Session == p.unreadable {
			lost = append(lost, &session.UnreadableError{Session: p.unreadable, Err: err})
		}
	}
	if err == nil && lost != nil {
		page = slices.DeleteFunc(page, func(st session.Status) bool { return st.Head.Session == p.unreadable })
		err = &session.PageError{Sessions: lost}
	}
	return page, err
}
