package sessions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// Handle is a session that this process owns. It is safe for concurrent use; one turn is open at a time.
type Handle struct {
	service *Service
	name    string
	lease   uint64 // the event by which we own it
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu    sync.Mutex
	fence uint64
	turn  *Turn
	// begins are the turns whose beginning is being written, by their ids: one of them may stand in the log already.
	begins map[string]bool
}

// Session is its name.
func (h *Handle) Session() string { return h.name }

// Fence is the fencing number under which the handle writes.
func (h *Handle) Fence() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fence
}

func (h *Handle) current() *Turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.turn
}

// lose ends the handle in this process; the log is left as it is.
func (h *Handle) lose(why error) {
	h.cancel(why)
	h.service.mu.Lock()
	if h.service.open[h.name] == h {
		delete(h.service.open, h.name)
	}
	h.service.mu.Unlock()
}

// Close gives the session up, so that any process may take it. It is refused while a turn is open.
func (h *Handle) Close(ctx context.Context) error {
	_, err := h.Append(ctx, session.Disown(h.service.Now(), NewID(), h.service.Instances.Self()))
	if err != nil && !errors.Is(err, session.ErrFenced) {
		return fmt.Errorf("give session %s up: %w", h.name, err)
	}
	h.lose(errClosed)
	return nil
}

// Append adds events as the owner.
func (h *Handle) Append(ctx context.Context, batch ...session.Draft) (session.Receipt, error) {
	return h.append(ctx, "", batch)
}

func (h *Handle) append(ctx context.Context, turn string, batch []session.Draft) (session.Receipt, error) {
	if err := context.Cause(h.ctx); err != nil {
		return session.Receipt{}, fmt.Errorf("append to session %s: %w", h.name, err)
	}
	for {
		fence := h.Fence()
		ours := make([]session.Draft, len(batch))
		for i, d := range batch {
			ours[i] = d.As(fence, turn)
		}
		receipt, err := h.service.Append(ctx, h.name, ours...)
		if !errors.Is(err, session.ErrFenced) {
			return receipt, err
		}
		// An acknowledgement raises the fence and leaves a living owner in place: it goes on under the new one.
		if receipt.Head.Owner.Seq == h.lease && receipt.Head.Fence > fence {
			h.mu.Lock()
			h.fence = max(h.fence, receipt.Head.Fence)
			h.mu.Unlock()
			continue
		}
		h.lose(err)
		return receipt, err
	}
}

// Start is how a turn begins.
type Start struct {
	// ID is the turn's id; empty makes one.
	ID string
	// Invocation is the request that it works for; empty means the turn's own id.
	Invocation string
	// Resumes is the turn that it takes up, if any.
	Resumes string
	// Attempt is written before the turn when auto-resume runs it.
	Attempt *session.Attempt
	// Seen, when not zero, is the last sequence that the decision to run the turn was based on: the turn is refused with
	// session.ErrSuperseded when anything but our own taking of the session came after it.
	Seen uint64
}

// Begin opens a turn. It is refused when an abort or a gate stands, when a turn is open, and when the service does not
// admit one.
func (h *Handle) Begin(ctx context.Context, s Start) (*Turn, error) {
	if s.ID == "" {
		s.ID = NewID()
	}
	if !h.enter(s.ID) {
		return nil, fmt.Errorf("begin a turn of session %s: %w", h.name,
			&session.Refusal{Code: session.ErrTurnOpen, Text: "turn " + s.ID + " is being begun"})
	}
	defer h.entered(s.ID)
	leave, err := h.service.Admit(h.name)
	if err != nil {
		return nil, fmt.Errorf("begin a turn of session %s: %w", h.name, err)
	}
	t, err := h.begin(ctx, s, leave)
	if err != nil {
		leave()
		return nil, fmt.Errorf("begin a turn: %w", err)
	}
	return t, nil
}

// enter notes that a turn's beginning is being written; false when it is already.
func (h *Handle) enter(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begins[id] {
		return false
	}
	if h.begins == nil {
		h.begins = map[string]bool{}
	}
	h.begins[id] = true
	return true
}

func (h *Handle) entered(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.begins, id)
}

func (h *Handle) begin(ctx context.Context, s Start, leave func()) (*Turn, error) {
	now := h.service.Now()
	var batch []session.Draft
	begin := session.Begin(now, "begin/"+s.ID, session.TurnBegun{Invocation: s.Invocation, Resumes: s.Resumes})
	if s.Attempt != nil {
		// The attempt counts also when the turn is then refused: it must never be possible to try without being counted.
		batch = append(batch, session.New(session.KindAttempt, now, NewID(), s.Attempt))
		begin = begin.After()
	}
	batch = append(batch, begin)
	if s.Seen != 0 {
		batch[0] = batch[0].Seen(h.seenWithLease(s.Seen))
	}
	receipt, err := h.append(ctx, s.ID, batch)
	if errors.Is(err, session.ErrTurnOpen) && h.abandoned(receipt.Head) {
		if err := h.finishAbandoned(ctx, receipt.Head.Turn.ID); err != nil {
			return nil, err
		}
		receipt, err = h.append(ctx, s.ID, batch)
	}
	if err != nil {
		return nil, err
	}
	t := &Turn{handle: h, id: s.ID, invocation: receipt.Head.Turn.Invocation, ambiguous: receipt.Head.Turn.Ambiguous,
		seq: receipt.Outcomes[len(batch)-1].Seq, leave: leave}
	t.ctx, t.cancel = context.WithCancelCause(h.ctx)
	h.mu.Lock()
	h.turn = t
	h.mu.Unlock()
	h.service.spawn(t.watch)
	return t, nil
}

// finishAbandoned ends a turn that nobody runs: one whose begin had an outcome that nobody learned. What refused ours may
// be a while ago, and the turn have run and ended since, so the log is asked again.
func (h *Handle) finishAbandoned(ctx context.Context, turn string) error {
	head, err := h.service.Store.Head(ctx, h.name)
	if err != nil || head.Turn == nil || head.Turn.ID != turn {
		return err
	}
	end := session.Finish(h.service.Now(), "end/"+turn, session.TurnEnded{End: session.EndFailed, Why: "its beginning was not confirmed"})
	_, err = h.append(ctx, turn, []session.Draft{end})
	return err
}

// seenWithLease moves a sequence that was seen past our own taking of the session, when that was the very next event.
func (h *Handle) seenWithLease(seen uint64) uint64 {
	if h.lease == seen+1 {
		return h.lease
	}
	return seen
}

// abandoned reports that the open turn is ours, runs nowhere and is not just being begun by somebody else here.
func (h *Handle) abandoned(head session.Head) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return head.Turn != nil && head.Turn.Fence == h.fence && h.turn == nil && !h.begins[head.Turn.ID]
}

// Turn is an open turn of this process.
type Turn struct {
	handle     *Handle
	id         string
	invocation string
	ambiguous  bool
	seq        uint64
	leave      func()
	ctx        context.Context
	cancel     context.CancelCauseFunc
	once       sync.Once
}

// ID is the turn's id.
func (t *Turn) ID() string { return t.id }

// Session is the session's name.
func (t *Turn) Session() string { return t.handle.name }

// Invocation is the request that the turn works for.
func (t *Turn) Invocation() string { return t.invocation }

// Ambiguous reports that mutating calls are refused in this turn.
func (t *Turn) Ambiguous() bool { return t.ambiguous }

// Context is cancelled when the turn has ended or must stop; context.Cause tells why: a *session.Refusal with
// session.ErrAborted or session.ErrFenced, or what was given to Cancel.
func (t *Turn) Context() context.Context { return t.ctx }

// Cancel asks what runs in the turn to stop. The turn stays open until it is ended.
func (t *Turn) Cancel(why error) { t.cancel(why) }

// Append adds events of the turn.
func (t *Turn) Append(ctx context.Context, batch ...session.Draft) (session.Receipt, error) {
	return t.handle.append(ctx, t.id, batch)
}

// Find is the event of an id in the turn's session.
func (t *Turn) Find(ctx context.Context, id string) (session.Event, bool, error) {
	return t.handle.service.Store.Find(ctx, t.handle.name, id)
}

// End closes the turn. It is written also when the turn's own context is cancelled, as long as ctx is not. An error
// leaves the turn open, and End may be called again, also with ctx renewed.
func (t *Turn) End(ctx context.Context, e session.TurnEnded) error {
	return t.end(ctx, session.Finish(t.handle.service.Now(), "end/"+t.id, e))
}

// Park ends the turn with a question, as one step: both are written or neither. Service.NewPause makes the
// pause and its token.
func (t *Turn) Park(ctx context.Context, p session.Pause) error {
	now := t.handle.service.Now()
	return t.end(ctx, session.NewPark(now, p),
		session.Finish(now, "end/"+t.id, session.TurnEnded{End: session.EndParked}).After())
}

func (t *Turn) end(ctx context.Context, batch ...session.Draft) error {
	_, err := t.Append(ctx, batch...)
	if err != nil && !errors.Is(err, session.ErrFenced) && !errors.Is(err, errClosed) {
		return fmt.Errorf("end turn %s: %w", t.id, err)
	}
	// Also a turn that was lost is over in this process.
	t.once.Do(func() {
		t.handle.mu.Lock()
		if t.handle.turn == t { // the next one may have begun as soon as the end was written
			t.handle.turn = nil
		}
		t.handle.mu.Unlock()
		t.cancel(context.Canceled)
		t.leave()
	})
	return err
}

// watch looks for an abort, and for another owner, until the turn is over. It looks once before it waits: what came
// between the turn's beginning and the first hint gives none.
func (t *Turn) watch() {
	s := t.handle.service
	hint := s.hints(t.ctx, t.handle.name)
	tick := time.NewTicker(s.Poll)
	defer tick.Stop()
	for t.look() {
		select {
		case <-t.ctx.Done():
			return
		case <-hint:
		case <-tick.C:
		}
	}
}

// look cancels the turn when it must stop, and says whether it goes on.
func (t *Turn) look() bool {
	s := t.handle.service
	head, err := s.Store.Head(t.ctx, t.handle.name)
	switch {
	case t.ctx.Err() != nil:
		return false
	case err != nil:
		s.Log.Warn("an open turn could not look for an abort", "session", t.handle.name, "error", err)
	case head.Abort != nil:
		t.cancel(&session.Refusal{Code: session.ErrAborted, Text: "the session was aborted", Seq: head.Abort.Seq})
		return false
	case head.Owner.Seq != t.handle.lease:
		t.handle.lose(&session.Refusal{Code: session.ErrFenced, Text: "another owner took the session", Owner: head.Owner.Instance, Fence: head.Fence})
		return false
	}
	return true
}
