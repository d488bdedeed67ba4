package resume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/drain"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// begun is the beginning of the turn that was interrupted.
type begun struct {
	seq        uint64
	invocation string
}

// one decides on a session as it is now, and does it.
func (r *Runner) one(ctx context.Context, name string) Item {
	looking, cancel := context.WithTimeout(ctx, look)
	st, err := r.c.Sessions.Status(looking, name)
	cancel()
	if err != nil {
		return failed(name, err)
	}
	r.mu.Lock()
	used := r.used
	r.mu.Unlock()
	item, start := r.judge(ctx, st, used, Decide)
	switch item.Outcome {
	case Resumed, Cleared:
		item.Decision = r.act(ctx, st, item.Decision, start)
	}
	return item
}

// failed is the item of a session that could not be looked at.
func failed(name string, err error) Item {
	if bad := (*session.UnreadableError)(nil); errors.As(err, &bad) {
		return unreadable(bad)
	}
	return Item{Session: name, Decision: say(Failed, "look at it: %v", err)}
}

// judge gathers the facts and decides.
func (r *Runner) judge(ctx context.Context, st session.Status, used int, decide func(Facts, Limits) Decision) (Item, begun) {
	ctx, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	item := Item{Session: st.Head.Session}
	f := Facts{Status: st, Now: r.c.Sessions.Now(), Used: used, Ours: st.Head.Owner.Same(r.c.Sessions.Instances.Self())}
	item.Workload, f.Unsupported = r.c.Resumer.Workload(st)
	r.mu.Lock()
	f.Tried = r.tried[item.Session]
	r.mu.Unlock()
	var start begun
	var err error
	if st.Interruption != nil {
		start, err = r.begun(ctx, st)
	}
	if err == nil {
		f.Proof, err = r.renewed(ctx, st)
	}
	if err != nil {
		item.Decision = say(Failed, "read its log: %v", err)
		return item, start
	}
	item.Decision = decide(f, r.c.Limits)
	return item, start
}

// begun finds the beginning of the turn that was interrupted.
func (r *Runner) begun(ctx context.Context, st session.Status) (begun, error) {
	h := st.Head
	if h.Turn != nil && h.Turn.ID == st.Interruption.Turn {
		return begun{h.Turn.Seq, h.Turn.Invocation}, nil
	}
	var after uint64
	if h.Interrupted != nil && h.Interrupted.Turn == st.Interruption.Turn {
		after = h.Interrupted.Seq - 1
	}
	for { // a turn that failed under a mark is in the log alone
		page, err := r.c.Sessions.Store.Read(ctx, h.Session, after, 0)
		if err != nil {
			return begun{}, err
		}
		if len(page) == 0 {
			return begun{}, fmt.Errorf("the beginning of turn %s is not in it", st.Interruption.Turn)
		}
		for _, e := range page {
			after = e.Seq
			if e.Kind != session.KindTurnBegun || e.Turn != st.Interruption.Turn {
				continue
			}
			var p session.TurnBegun
			if err := e.Into(&p); err != nil {
				return begun{}, err
			}
			if p.Invocation == "" {
				p.Invocation = e.Turn
			}
			return begun{e.Seq, p.Invocation}, nil
		}
	}
}

// renewed is the owner's last renewal, on a store that keeps such.
func (r *Runner) renewed(ctx context.Context, st session.Status) (stamp.Time, error) {
	l, ok := r.c.Sessions.Store.(session.Leaser)
	if !ok || st.Head.Owner.ID == "" {
		return stamp.Time{}, nil
	}
	life, err := l.Life(ctx, st.Head.Owner.ID)
	if err != nil || life.Count == 0 {
		return stamp.Time{}, err
	}
	// The age is on the store's clock alone, and then counted back on ours.
	return r.c.Sessions.Now().Add(-life.Now.Sub(life.Renewed)), nil
}

// act clears the session or runs its turn. The session is ours for just that long.
func (r *Runner) act(ctx context.Context, st session.Status, d Decision, start begun) Decision {
	name := st.Head.Session
	looking, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	if d.Outcome == Resumed {
		if d, ok := r.admitted(name); !ok {
			return d
		}
	}
	letGo := r.hold(name)
	h, err := r.c.Sessions.Open(looking, name)
	if err != nil {
		letGo()
		return refused(err)
	}
	if d.Outcome == Cleared {
		defer letGo()
		defer r.release(h, false)
		return r.clear(looking, h, st, d)
	}
	turn, d := r.begin(looking, h, sessions.Start{Invocation: start.invocation, Resumes: st.Interruption.Turn, Seen: st.Head.Last})
	if turn == nil {
		r.release(h, false)
		letGo()
		return d
	}
	return r.run(ctx, turn, r.c.Resumer.Resume, func() { r.release(h, true); letGo() })
}

// admitted asks whether a turn may begin, before its session is taken: who is not admitted leaves no trace in the log.
func (r *Runner) admitted(name string) (Decision, bool) {
	leave, err := r.c.Sessions.Admit(name)
	switch {
	case err == nil:
		leave()
		return Decision{}, true
	case session.CodeOf(err) == drain.ErrDraining:
		return say(Draining, "%v", err), false
	}
	return say(NotAdmitted, "%v", err), false
}

// begin begins a turn that counts as an attempt, and against the cap; nil, and why, when none begins. Its place is taken
// before: a pass and those who wake share the places.
func (r *Runner) begin(ctx context.Context, h *sessions.Handle, s sessions.Start) (*sessions.Turn, Decision) {
	r.mu.Lock()
	full := r.used >= r.c.Limits.PerBoot
	if !full {
		r.used++
	}
	used := r.used
	r.mu.Unlock()
	if full {
		return nil, capped(used)
	}
	s.Attempt = &session.Attempt{Limit: r.c.Limits.Attempts}
	turn, err := h.Begin(ctx, s)
	if err != nil {
		r.mu.Lock()
		r.used--
		r.mu.Unlock()
		return nil, refused(err)
	}
	return turn, Decision{}
}

// clear takes the interruption away. The session is taken first: only then is the turn of its dead owner over.
func (r *Runner) clear(ctx context.Context, h *sessions.Handle, st session.Status, d Decision) Decision {
	head, err := r.c.Sessions.Store.Head(ctx, h.Session())
	if err != nil {
		return refused(err)
	}
	if head.Last != st.Head.Last+1 { // our taking of it, and nothing else
		return say(SkippedSuperseded, "something was appended since it was looked at")
	}
	if _, err := h.Append(ctx, session.Clear(r.c.Sessions.Now(), sessions.NewID(), head.Last).Seen(head.Last)); err != nil {
		return refused(err)
	}
	return d
}

// release gives the session back, and remembers after an attempt how we left it.
func (r *Runner) release(h *sessions.Handle, attempted bool) {
	ctx, cancel := context.WithTimeout(context.Background(), look)
	defer cancel()
	if err := h.Close(ctx); err != nil {
		r.c.Log.Warn("a session could not be given up after its resume", "session", h.Session(), "error", err)
	}
	if !attempted {
		return
	}
	last, err := r.left(ctx, h.Session())
	if err != nil {
		r.c.Log.Warn("a session could not be looked at after its resume", "session", h.Session(), "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried[h.Session()] = last
}

// left is the last sequence of a session that was just given back, if nothing came between the end of its turn and then;
// else zero. What somebody has said meanwhile, as an answer to why the turn failed, is new to the next pass.
func (r *Runner) left(ctx context.Context, name string) (uint64, error) {
	head, err := r.c.Sessions.Store.Head(ctx, name)
	if err != nil || head.Last < 2 {
		return 0, err
	}
	for i, is := range []func(session.Event) bool{
		func(e session.Event) bool { return e.Kind == session.KindTurnEnded },
		func(e session.Event) bool {
			var p session.Lease
			return e.Kind == session.KindLease && e.Into(&p) == nil && p.Release && p.Owner.Same(r.c.Sessions.Instances.Self())
		},
	} {
		page, err := r.c.Sessions.Store.Read(ctx, name, head.Last-2+uint64(i), 1)
		if err != nil || len(page) == 0 || !is(page[0]) {
			return 0, err
		}
	}
	return head.Last, nil
}

// refused is what a refusal on the way to the turn means.
func refused(err error) Decision {
	switch session.CodeOf(err) {
	case session.ErrOwned, session.ErrFenced, session.ErrSuperseded, session.ErrTurnOpen, session.ErrPaused, session.ErrAborted:
		return say(SkippedSuperseded, "%v", err)
	case session.ErrQuarantined:
		return say(SkippedLoopbreak, "%v", err)
	case drain.ErrDraining:
		return say(Draining, "%v", err)
	}
	return say(Failed, "%v", err)
}

var errBound = errors.New("the resumed turn has used up its time")

// run lets the host do the turn's work, for as long as its bound. A turn that does not return then goes on beside the
// others, and gives the session up when it does.
func (r *Runner) run(ctx context.Context, turn *sessions.Turn, work func(context.Context, *sessions.Turn) error, release func()) Decision {
	running, cancel := context.WithTimeoutCause(turn.Context(), r.c.Turn, errBound)
	over := make(chan error, 1)
	finished := make(chan Decision, 1)
	go func() { over <- work(running, turn) }()
	go func() {
		err := <-over
		cancel()
		d := r.finish(turn, err)
		release()
		finished <- d
	}()
	select {
	case d := <-finished:
		return d
	case <-running.Done():
	case <-ctx.Done():
	}
	if cause := context.Cause(running); cause != nil {
		turn.Cancel(cause)
	} else {
		turn.Cancel(context.Cause(ctx))
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case d := <-finished:
		return d
	case <-timer.C:
		return say(Failed, "the turn was told to stop (%v) and has not returned: it is left alone", context.Cause(turn.Context()))
	}
}

// finish ends a turn that the host has left open, and says how it went.
func (r *Runner) finish(turn *sessions.Turn, err error) Decision {
	ctx, cancel := context.WithTimeout(context.Background(), look)
	defer cancel()
	head, lookErr := r.c.Sessions.Store.Head(ctx, turn.Session())
	if lookErr != nil {
		return say(Failed, "see how the turn ended: %v", lookErr)
	}
	if cause := context.Cause(turn.Context()); session.CodeOf(cause) == session.ErrFenced {
		return refused(cause)
	}
	if head.Turn != nil && head.Turn.ID == turn.ID() {
		why := "the host left the turn open"
		if err != nil {
			why = err.Error()
		}
		if err := turn.End(ctx, session.TurnEnded{End: session.EndFailed, Why: why}); err != nil {
			return refused(err)
		}
		return say(Failed, "%s", why)
	}
	switch {
	case head.Ended == session.EndFailed && err != nil:
		return say(Failed, "the turn failed: %v", err)
	case head.Ended == session.EndFailed:
		return say(Failed, "the turn failed")
	}
	return say(Resumed, "turn %s was run and ended as %s", turn.ID(), head.Ended)
}
