package main

import (
	"context"
	"errors"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// Workload implements resume.Resumer: all sessions of this host are alike, and it can run them all.
func (a agent) Workload(session.Status) (workload, unsupported string) { return "oncall", "" }

// Resume implements resume.Resumer.
func (a agent) Resume(ctx context.Context, t *sessions.Turn) error { return a.turn(ctx, t) }

// host takes up what an earlier process left, and then runs turns as alerts and answers come, until it is stopped.
func host(ctx context.Context, s *sessions.Service, a agent) error {
	runner, err := resume.New(resume.Config{Sessions: s, Resumer: a})
	if err != nil {
		return err
	}
	items, err := runner.Pass(ctx)
	if err != nil {
		return err
	}
	for _, i := range items {
		if i.Outcome.Counted() {
			say("%s: auto-resume: %s: %s", i.Session, i.Outcome, i.Text)
		}
	}
	say("host: ready")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := work(ctx, s, a); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// work runs one turn of each session that has something new.
func work(ctx context.Context, s *sessions.Service, a agent) error {
	for st, err := range session.All(ctx, s.List) {
		if bad := (*session.UnreadableError)(nil); errors.As(err, &bad) {
			continue // auto-resume has said so, and the others go on
		}
		if err != nil {
			return err
		}
		if st.Headline != session.Idle {
			continue // it waits for an answer, runs, or is auto-resume's affair
		}
		start, ok, err := next(ctx, s, st.Head)
		if err != nil {
			return err
		}
		if ok {
			if err := run(ctx, s, a, st.Head.Session, start); err != nil {
				return err
			}
		}
	}
	return nil
}

// next is the turn that a session needs: one for a message that no turn has seen, or one that goes on where a question was
// answered.
func next(ctx context.Context, s *sessions.Service, h session.Head) (sessions.Start, bool, error) {
	var start sessions.Start
	ok := false
	for after := uint64(0); after < h.Last; {
		page, err := s.Store.Read(ctx, h.Session, after, 0)
		if err != nil || len(page) == 0 {
			return start, false, err
		}
		for _, e := range page {
			after = e.Seq
			switch e.Kind {
			case session.KindMessage:
				start, ok = sessions.Start{Invocation: e.ID}, true
			case session.KindTurnBegun:
				var p session.TurnBegun
				if err := e.Into(&p); err != nil {
					return start, false, err
				}
				start, ok = sessions.Start{Invocation: p.Invocation, Resumes: e.Turn}, false
			}
		}
	}
	start.Seen = h.Last // what comes later is looked at the next time
	return start, ok || h.Ended == session.EndParked, nil
}

// run runs one turn and gives the session up again, so that other processes may run the next one.
func run(ctx context.Context, s *sessions.Service, a agent, name string, start sessions.Start) error {
	h, err := s.Open(ctx, name)
	if errors.Is(err, session.ErrOwned) {
		return nil // somebody else was faster
	}
	if err != nil {
		return err
	}
	t, err := h.Begin(ctx, start)
	if err == nil {
		if err = a.turn(t.Context(), t); err != nil {
			err = t.End(ctx, session.TurnEnded{End: session.EndFailed, Why: err.Error()})
		}
	} else if errors.Is(err, session.ErrSuperseded) {
		err = nil
	}
	return errors.Join(err, h.Close(context.WithoutCancel(ctx)))
}
