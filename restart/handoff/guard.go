package handoff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// ErrRestarting is the code of the refusal that a turn gets which would begin while a restart waits or is under way.
const ErrRestarting session.Code = "restarting"

// begun is how long a turn may be in the log and not in the service's list before it counts as lost. The service puts it
// there right after the write.
const begun = 5 * time.Second

// statusWithin bounds one look at a session's state.
const statusWithin = 5 * time.Second

// admission is a turn that was admitted and has not left.
type admission struct {
	name string
	// seen is set once the service has listed the turn. One that it no longer lists has been lost.
	seen bool
	// odd is when the log first had a turn that the service did not list.
	odd time.Time
}

// Admit lets one turn in, by the name of its session, until leave is called; calling that twice is once. While a restart
// waits or is under way it is refused with ErrRestarting. It is the Admit of a sessions.Config, and asks Config.Admit too.
func (h *Handoff) Admit(name string) (leave func(), err error) {
	also := func() {}
	if h.c.Admit != nil {
		if also, err = h.c.Admit(name); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shut {
		also()
		return nil, &session.Refusal{Code: ErrRestarting, Text: "this process is about to restart and begins no turn: ask again in a moment"}
	}
	a := &admission{name: name}
	h.admitted[a] = struct{}{}
	return func() {
		h.forget(a)
		also()
	}, nil
}

func (h *Handoff) forget(a *admission) {
	h.mu.Lock()
	_, known := h.admitted[a]
	_, woken := h.woken[a.name]
	delete(h.admitted, a)
	s := h.sessions
	if h.attempt != nil {
		h.notify()
	}
	h.mu.Unlock()
	if !known || !woken || s == nil {
		return
	}
	// Only a session that a notice started costs this look. A failure leaves it as it is: a person is asked once more.
	ctx, cancel := context.WithTimeout(context.Background(), statusWithin)
	defer cancel()
	st, err := s.Status(ctx, a.name)
	if err == nil && (st.Head.Ended == session.EndDone || st.Head.Ended == session.EndParked) && st.Head.Turn == nil {
		h.mu.Lock()
		delete(h.woken, a.name)
		h.mu.Unlock()
	}
}

// Woken says that a restart notice starts a session: until it has completed a turn it may restart only with a
// confirmation. Call it before the session is woken.
func (h *Handoff) Woken(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.woken[name] = struct{}{}
}

// busy are the sessions in the middle of a turn, in order and each once, without those that ask for this restart. With an
// error it may be some of them.
func (h *Handoff) busy(ctx context.Context, a *attempt, but ...string) (names []string, err error) {
	h.mu.Lock()
	if a != nil {
		for p := range a.asked {
			but = append(but, p.session())
		}
	}
	admitted := make([]*admission, 0, len(h.admitted))
	for in := range h.admitted {
		if !slices.Contains(but, in.name) {
			admitted = append(admitted, in)
		}
	}
	s := h.sessions
	h.mu.Unlock()
	listed := listed(s)
	for _, in := range admitted {
		if s == nil || h.under(ctx, s, in, listed) {
			names = append(names, in.name)
		}
	}
	if h.c.Others != nil {
		var others []string
		others, err = h.c.Others(ctx)
		for _, name := range others {
			if !slices.Contains(but, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// listed are the contexts of the turns that are open in this process, by session.
func listed(s Sessions) map[string]context.Context {
	out := map[string]context.Context{}
	if s != nil {
		for _, t := range s.Turns() {
			out[t.Session()] = t.Context()
		}
	}
	return out
}

// under reports that an admitted turn is under way. A turn that was aborted is over, whether or not its host noticed;
// one that this process has lost is somebody else's. Both would hold a restart up for ever, since nobody ends them.
func (h *Handoff) under(ctx context.Context, s Sessions, in *admission, turns map[string]context.Context) bool {
	running, ok := turns[in.name]
	h.mu.Lock()
	in.seen = in.seen || ok
	seen := in.seen
	h.mu.Unlock()
	if ok {
		return !errors.Is(context.Cause(running), session.ErrAborted)
	}
	if seen {
		return false
	}
	// It is about to begin, or was lost before anybody looked: the log tells.
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	st, err := s.Status(ctx, in.name)
	if err != nil {
		return true // nobody can tell
	}
	if st.Headline == session.Aborted {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if st.Head.Turn == nil {
		in.odd = time.Time{}
		return true
	}
	if in.odd.IsZero() {
		in.odd = time.Now()
	}
	return time.Since(in.odd) < begun
}

// untold is the refusal when nobody can tell who would be cut off.
func untold(err error) *refusal {
	return refuse(CodeBusy, "it cannot be told who is in the middle of a turn: %v", err)
}

// middle says who is in the way.
func middle(busy []string) *refusal {
	r := refuse(CodeBusy, "%s", fmt.Sprintf("in the middle of a turn: %s; wait for them, or have a person allow force", join(busy)))
	r.inFlight = busy
	return r
}
