package resume

import (
	"context"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// Look says what would be done with a session now, and does nothing: Resumed and Cleared when the next pass would take
// it up, Woken when [Runner.Wake] would, else why nothing goes on by itself.
func (r *Runner) Look(ctx context.Context, name string) (Item, session.Status) {
	looking, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	st, err := r.c.Sessions.Status(looking, name)
	if err != nil {
		return failed(name, err), st
	}
	r.mu.Lock()
	used := r.used
	r.mu.Unlock()
	item, _ := r.judge(ctx, st, used, DecideWake)
	return item, st
}

// Left is how many more turns this instance may begin.
func (r *Runner) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.c.Limits.PerBoot - r.used
}

// Wake begins a turn of a session that nothing interrupted, and lets work do it beside the passes, as a Resumer would:
// under the same admission and bound, counted as an attempt of the same breaker and against the same cap. It returns when
// the turn is over, with the outcome Woken when it was run to its end; when none began, with the reason, before work is
// called. A session that this process holds already is woken by its own handle, and stays held.
func (r *Runner) Wake(ctx context.Context, name string, work func(context.Context, *sessions.Turn) error) Item {
	item, st := r.Look(ctx, name)
	if item.Outcome != Woken {
		return item
	}
	item.Decision = r.wake(ctx, st, work)
	if item.Outcome == Resumed {
		item.Outcome = Woken
	}
	r.c.Log.Info("a session was to be woken", "session", name, "workload", item.Workload, "outcome", string(item.Outcome), "why", item.Text)
	return item
}

func (r *Runner) wake(ctx context.Context, st session.Status, work func(context.Context, *sessions.Turn) error) Decision {
	name := st.Head.Session
	looking, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	if d, ok := r.admitted(name); !ok {
		return d
	}
	letGo := r.hold(name)
	h, held := r.c.Sessions.Held(name)
	if !held {
		var err error
		if h, err = r.c.Sessions.Open(looking, name); err != nil {
			letGo()
			return refused(err)
		}
	}
	release := func(attempted bool) {
		defer letGo()
		if !held {
			r.release(h, attempted)
		}
	}
	turn, d := r.begin(looking, h, sessions.Start{Seen: st.Head.Last})
	if turn == nil {
		release(false)
		return d
	}
	return r.run(ctx, turn, work, func() { release(true) })
}
