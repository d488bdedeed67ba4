package handoff

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/notify/bootnotice"
)

// attempt is one restart that is prepared, for all that asked for it. Its fields are guarded by the handoff's lock.
type attempt struct {
	ctx    context.Context
	cancel context.CancelFunc
	// asked are those that wait for it. Each change raises the version.
	asked   map[*participant]struct{}
	version int
	// tried is set when the canary has run.
	tried  bool
	canary Outcome
	detail string
	// writing is set when nobody may leave any more, committed when everybody's part is durable, deserted when all have left:
	// then it is about to be over, and nobody joins it.
	writing, committed, deserted bool
	inFlight                     []string
	entry                        Entry
	notices                      []bootnotice.Request
	// late are those that join after it was committed and are still writing.
	late sync.WaitGroup
}

// wants is what its askers want together.
type wants struct {
	canary, wait, force bool
	version             int
}

// join adds an asker to the restart that is under way, or begins one. One that nobody waits for any more is waited for to
// be over: what it was given up for is not this asker's answer.
func (h *Handoff) join(ctx context.Context, p *participant) (*attempt, *refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.attempt != nil && h.attempt.deserted && h.stop.Err() == nil && ctx.Err() == nil {
		changed := h.changed
		h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		h.mu.Lock()
	}
	if h.stop.Err() != nil {
		return nil, refuse(CodeClosed, "this process is ending: it prepares no restart")
	}
	if h.attempt != nil && h.attempt.deserted {
		code := CodeCanceled
		if errors.Is(context.Cause(ctx), errDeadline) {
			code = CodeDeadline
		}
		return nil, refuse(code, "the request ended while one before it, which was given up, was not over: %v", context.Cause(ctx))
	}
	if a := h.attempt; a != nil {
		if a.committed {
			a.late.Add(1)
			h.spawn(func() {
				defer a.late.Done()
				h.write(a, p)
				close(p.done)
			})
			return a, nil
		}
		a.asked[p] = struct{}{}
		a.version++
		h.notify()
		return a, nil
	}
	a := &attempt{asked: map[*participant]struct{}{p: {}}}
	a.ctx, a.cancel = context.WithTimeoutCause(h.stop, h.c.Deadline-time.Since(p.began), errDeadline)
	h.attempt = a
	h.spawn(func() { h.run(a) })
	return a, nil
}

// leave takes an asker out; false when it is too late for that. An attempt that nobody waits for is over.
func (h *Handoff) leave(a *attempt, p *participant) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, in := a.asked[p]; !in || a.writing {
		return false
	}
	delete(a.asked, p)
	a.version++
	if len(a.asked) == 0 {
		a.deserted = true
		a.cancel()
	}
	h.notify()
	return true
}

func (h *Handoff) run(a *attempt) {
	defer a.cancel()
	refused := h.prepare(a)
	if refused == nil {
		refused = h.commit(a)
	}
	if refused != nil {
		h.fail(a, refused)
		return
	}
	h.fire(a)
}

// fail ends an attempt of which nothing came: turns are admitted again.
func (h *Handoff) fail(a *attempt, refused *refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempt, h.shut = nil, false
	h.notify()
	for p := range a.asked {
		p.canary, p.detail = a.canary, a.detail
		if p.refused == nil {
			p.refused = refused
		}
		close(p.done)
	}
}

// prepare runs the stages up to the point where nobody else is at work and none can begin. The canary comes first, while
// others go on working: when it fails nobody was kept waiting.
func (h *Handoff) prepare(a *attempt) *refusal {
	for {
		h.mu.Lock()
		w, changed, tried := h.wants(a), h.changed, a.tried
		h.mu.Unlock()
		if err := a.ctx.Err(); err != nil {
			return h.over(a)
		}
		if !w.wait && !w.force {
			if busy, err := h.busy(a.ctx, a); err != nil && a.ctx.Err() == nil {
				return untold(err)
			} else if len(busy) > 0 {
				return middle(busy)
			}
		}
		if w.canary && !tried {
			if refused := h.try(a); refused != nil {
				return refused
			}
			continue
		}
		h.mu.Lock()
		h.shut = true // before the look: who got in is seen by it
		h.mu.Unlock()
		busy, err := h.busy(a.ctx, a)
		switch {
		case a.ctx.Err() != nil:
			return h.over(a)
		case err != nil:
			return untold(err)
		case len(busy) == 0 || w.force:
			if h.seal(a, w.version, busy) {
				return nil
			}
			continue
		case !w.wait:
			return middle(busy)
		}
		tick := time.NewTimer(look)
		select {
		case <-changed:
		case <-tick.C:
		case <-a.ctx.Done():
		}
		tick.Stop()
	}
}

// wants sums up the askers. The caller holds the lock.
func (h *Handoff) wants(a *attempt) wants {
	w := wants{canary: h.c.Always, version: a.version}
	for p := range a.asked {
		w.canary = w.canary || p.request.Canary
		w.wait = w.wait || p.request.Wait
		w.force = w.force || p.request.Force
	}
	return w
}

// seal fixes who takes part; false when that has changed since it was judged.
func (h *Handoff) seal(a *attempt, version int, busy []string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.version != version {
		return false
	}
	a.writing, a.inFlight = true, busy
	return true
}

// over is the refusal when the attempt's own context has ended.
func (h *Handoff) over(a *attempt) *refusal {
	if errors.Is(context.Cause(a.ctx), errDeadline) {
		return h.late(a.ctx, a)
	}
	if h.stop.Err() != nil {
		return refuse(CodeClosed, "this process is ending: it prepares no restart")
	}
	return refuse(CodeCanceled, "nobody waits for the restart any more")
}

// try runs the canary once for all.
func (h *Handoff) try(a *attempt) *refusal {
	outcome, detail := Skipped, "no canary is configured: the new code was not tried"
	if h.c.Canary != nil {
		outcome, detail = h.c.Canary(a.ctx)
	}
	h.mu.Lock()
	a.tried, a.canary, a.detail = true, outcome, detail
	h.mu.Unlock()
	switch outcome {
	case Passed:
		return nil
	case Skipped:
		h.c.Log.Warn("a restart goes on without its canary", "detail", detail)
		return nil
	}
	if a.ctx.Err() != nil {
		return h.over(a)
	}
	return refuse(CodeCanary, "the new code did not come up, so nothing is restarted: %s", detail)
}

func join(names []string) string { return strings.Join(names, ", ") }

// askers are those of an attempt that have no answer yet, the first one first. The caller holds the lock.
func (a *attempt) askers() []*participant {
	var out []*participant
	for p := range a.asked {
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y *participant) int { return x.began.Compare(y.began) })
	return out
}
