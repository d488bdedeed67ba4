package handoff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// writeWithin bounds what is written for one session, askWithin the call of the restarter.
const (
	writeWithin = 30 * time.Second
	askWithin   = 30 * time.Second
)

// commit makes durable that the restart is wanted: the budget first, then each asker's part. With nobody's part written
// there is no restart.
func (h *Handoff) commit(a *attempt) *refusal {
	unit, err := h.unit(a.ctx)
	if err != nil {
		return refuse(CodeNoUnit, "%v", err)
	}
	h.mu.Lock()
	askers := a.askers()
	h.mu.Unlock()
	e := Entry{ID: sessions.NewID(), At: h.c.Now(), Unit: unit, Reason: askers[0].request.Reason, Cause: askers[0].request.Cause}
	for _, p := range askers {
		if name := p.session(); name != "" {
			e.Sessions = append(e.Sessions, name)
		}
	}
	if err := h.c.History.Reserve(a.ctx, e); err != nil {
		if errors.Is(err, ErrBudget) {
			return refuse(CodeBudget, "%v", err)
		}
		return refuse(CodeBudget, "the restart could not be written down: %v", err)
	}
	h.mu.Lock()
	a.entry = e
	h.mu.Unlock()
	good := 0
	for wrote := map[*participant]bool{}; ; {
		h.mu.Lock()
		askers := slices.DeleteFunc(a.askers(), func(p *participant) bool { return wrote[p] }) // some may join meanwhile
		a.committed = len(askers) == 0 && good > 0
		h.mu.Unlock()
		if len(askers) == 0 {
			break
		}
		for _, p := range askers {
			h.write(a, p)
			wrote[p] = true
			if p.refused == nil {
				good++
			}
		}
	}
	if good == 0 {
		h.undo(a)
		return refuse(CodeNotWritten, "nobody's part of the restart could be written")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range a.asked {
		close(p.done)
	}
	a.asked = nil
	return nil
}

// write makes one asker's part durable: its notice, then the completion of its call and the end of its turn as one batch.
// It is not cancelled with the request, since a half of it would be worse than none.
func (h *Handoff) write(a *attempt, p *participant) {
	h.mu.Lock()
	p.canary, p.detail, p.inFlight = a.canary, a.detail, a.inFlight
	h.mu.Unlock()
	p.answer = p.result()
	turn := p.who.Turn
	if p.session() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	n := bootnotice.Request{ID: sessions.NewID(), Session: p.session(), Reason: p.request.Reason, At: h.c.Now()}
	if h.c.Notices != nil {
		if err := h.c.Notices.Request(ctx, n); err != nil {
			p.refused = refuse(CodeNotWritten, "the notice for after the restart could not be written: %v", err)
			h.withdraw(n) // it may be there all the same
			return
		}
	}
	var err error
	if turn != nil {
		err = h.end(ctx, p)
	}
	if err == nil || errors.Is(err, session.ErrOutcomeUnknown) {
		// Where nobody knows whether the turn has ended, the session is told when the restart comes.
		h.mu.Lock()
		a.notices = append(a.notices, n)
		h.mu.Unlock()
	} else {
		h.withdraw(n)
	}
	if err != nil {
		p.refused = refuse(CodeNotWritten, "the end of the turn could not be written: %v", err)
		return
	}
	if turn == nil {
		return
	}
	// The batch stands; this only tells the session's handle. The end is in the log already, under the same id.
	if err := turn.End(ctx, session.TurnEnded{End: session.EndRestarting}); err != nil {
		h.c.Log.Warn("a turn that ended for a restart is still open in memory", "session", n.Session, "error", err)
	}
}

// end writes the batch.
func (h *Handoff) end(ctx context.Context, p *participant) error {
	turn := p.who.Turn
	receipt, err := turn.Append(ctx)
	if err != nil {
		return err
	}
	now := h.c.Now()
	var batch []session.Draft
	if call, ok := dangling(receipt.Head, turn.Invocation(), p.who.Call); ok {
		batch = append(batch, session.NewResult(now, session.Result{Call: call, Value: p.answer.encode()}))
	}
	end := session.Finish(now, "end/"+turn.ID(), session.TurnEnded{End: session.EndRestarting})
	if len(batch) > 0 {
		end = end.After()
	}
	_, err = turn.Append(ctx, append(batch, end)...)
	return err
}

// dangling is the event of the call that asks, unless it is completed or in no log: a read-only tool's is in none.
func dangling(head session.Head, invocation, call string) (string, bool) {
	if call == "" {
		return "", false
	}
	// A key has as many tries as it was known to have done nothing; only the last can be open.
	for try := 1; len(head.Calls) > 0 && try <= 64; try++ {
		if id := session.CallID(invocation, call, try); known(head, id) {
			return id, true
		}
	}
	return "", false
}

func known(head session.Head, id string) bool {
	_, ok := head.Dangling(id)
	return ok
}

// fire asks for the restart once the answer is out, and watches what comes of it.
func (h *Handoff) fire(a *attempt) {
	if !h.rest(h.c.Delay) {
		// This process is ending by itself. The turns have ended for a restart, so the next boot has to tell them.
		h.c.Log.Warn("the process ends before its restart was asked for: the notices stay", "unit", a.entry.Unit)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	err := h.c.Restarter.Restart(ctx, a.entry.Unit)
	cancel()
	unknown := errors.Is(err, ErrUnknown) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if err != nil && !unknown {
		h.takenBack(a, Failure{Err: err})
		return
	}
	h.c.Log.Info("the restart was asked for", "unit", a.entry.Unit, "accepted", err == nil, "error", err)
	if unknown && !errors.Is(err, ErrUnknown) {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if h.c.Asked != nil {
		h.c.Asked(err)
	}
	if !h.rest(Settle) {
		return
	}
	if unknown {
		h.takenBack(a, Failure{Unknown: true, Err: err})
		return
	}
	// It was accepted: it may still come, and the notice stays. Work goes on until then.
	h.reopen(a)
	h.c.Log.Warn("a restart was accepted and has not come", "unit", a.entry.Unit, "after", Settle)
}

// rest waits; false when the handoff was closed meanwhile, also where the time is over by then.
func (h *Handoff) rest(d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-h.stop.Done():
	}
	return h.stop.Err() == nil
}

// takenBack ends a restart that does not come.
func (h *Handoff) takenBack(a *attempt, f Failure) {
	h.reopen(a)
	for _, n := range h.undo(a) {
		f.Sessions = append(f.Sessions, n.Session)
	}
	h.c.Log.Error("the restart does not come", "sessions", f.Sessions, "unknown", f.Unknown, "error", f.Err)
	if h.c.Failed != nil {
		h.c.Failed(f)
	}
}

// reopen admits turns again. Those that are still joining end first.
func (h *Handoff) reopen(a *attempt) {
	h.mu.Lock()
	h.attempt, h.shut = nil, false
	h.notify()
	h.mu.Unlock()
	a.late.Wait()
}

// undo takes back what was written before the restart was asked for. The turns have ended; only the host can go on with
// them, which Config.Failed is for.
func (h *Handoff) undo(a *attempt) []bootnotice.Request {
	h.mu.Lock()
	notices := a.notices
	h.mu.Unlock()
	for _, n := range notices {
		h.withdraw(n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	if err := h.c.History.Withdraw(ctx, a.entry.ID); err != nil {
		h.c.Log.Error("a restart that does not come is still written down as wanted", "id", a.entry.ID, "error", err)
	}
	return notices
}

func (h *Handoff) withdraw(n bootnotice.Request) {
	if h.c.Notices == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	if err := h.c.Notices.Withdraw(ctx, n.ID); err != nil {
		h.c.Log.Error("the notice of a restart that does not come is still there", "session", n.Session, "notice", n.ID, "error", err)
	}
}
