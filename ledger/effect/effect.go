package effect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// NotApplied is the error of a call that certainly did nothing, such as a connection that was refused. Wrap it together
// with the reason: fmt.Errorf("scale: %w: %w", effect.NotApplied, err). The call is then closed, and may be tried again
// under the same key.
const NotApplied session.Code = "not_applied"

// Tools says what each tool may do. A tool that is not in it is mutating.
type Tools map[string]session.Class

// Class is that of a tool.
func (t Tools) Class(tool string) session.Class {
	if c, ok := t[tool]; ok {
		return c
	}
	return session.Mutating
}

// Turn is the open turn on whose behalf calls are made. *sessions.Turn is one.
type Turn interface {
	// Append adds events to the turn's session, as its owner. Its error is that of the store, or the first refusal.
	Append(ctx context.Context, batch ...session.Draft) (session.Receipt, error)
	// Find is the event of an id in the turn's session.
	Find(ctx context.Context, id string) (session.Event, bool, error)
	// Invocation is the request that the turn works for; a turn that takes up another one has the same.
	Invocation() string
}

// Config is what a guard is made of.
type Config struct {
	// Turn is the open turn. Required.
	Turn Turn
	// Tools says what each tool may do; without it all are mutating.
	Tools Tools
	// Now is the clock for the events' times. Required.
	Now func() stamp.Time
}

// Guard stands between a turn and its tools. It has no state of its own, and is safe for concurrent use.
type Guard struct {
	turn  Turn
	tools Tools
	now   func() stamp.Time
}

// New makes the guard of one turn. It reports all that is wrong with its config at once.
func New(c Config) (*Guard, error) {
	var errs []error
	if c.Turn == nil {
		errs = append(errs, errors.New("Turn is missing"))
	} else if c.Turn.Invocation() == "" {
		errs = append(errs, errors.New("the turn has no invocation"))
	}
	if c.Now == nil {
		errs = append(errs, errors.New("Now is missing"))
	}
	for tool, class := range c.Tools {
		switch class {
		case session.ReadOnly, session.Mutating, session.Spawning:
		default:
			errs = append(errs, fmt.Errorf("tool %s is %q: a tool is read_only, mutating or spawning", tool, class))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make an effect guard: %w", err)
	}
	return &Guard{turn: c.Turn, tools: c.Tools, now: c.Now}, nil
}

// Call is one call of a tool.
type Call struct {
	// ID names the call within its invocation. The same ID again means the same call.
	ID   string
	Tool string
	Args json.RawMessage
}

// Result is what a call returned.
type Result struct {
	Value json.RawMessage
	// Failed marks an error of the tool: it ran, and says that it could not. It completes the call.
	Failed bool
	// Replayed is set when the call had been completed before, and did not run now.
	Replayed bool
}

// Do runs a call, unless its key has completed: then that result is returned. The error is f's; or a refusal, and f did
// not run; or that the completion could not be written, and then the result is returned with it, because f did run.
func (g *Guard) Do(ctx context.Context, c Call, f func(context.Context) (Result, error)) (Result, error) {
	if g.tools.Class(c.Tool) == session.ReadOnly {
		return f(ctx)
	}
	ticket, err := g.Begin(ctx, c)
	if err != nil {
		return Result{}, err
	}
	if ticket.Done {
		return ticket.Result, nil
	}
	// A panic passes: the call stays dangling, as after a crash.
	result, err := f(ctx)
	if err != nil {
		if errors.Is(err, NotApplied) {
			err = errors.Join(err, g.Undo(ctx, ticket))
		}
		return Result{}, err
	}
	return result, g.Complete(ctx, ticket, result)
}

// Ticket is a call that has begun, or that had been completed before.
type Ticket struct {
	// Done is set when the call must not run: Result is what it returned then.
	Done   bool
	Result Result

	call string // the id of the intent; empty for a read-only call
	tool string
}

// Begin writes the intent of a call. With no error, and unless the ticket is done, the caller runs the call and then
// calls Complete, or Undo when it certainly did nothing, or neither when it does not know.
func (g *Guard) Begin(ctx context.Context, c Call) (Ticket, error) {
	class := g.tools.Class(c.Tool)
	if class == session.ReadOnly {
		return Ticket{tool: c.Tool}, nil
	}
	t, err := g.begin(ctx, c, class)
	if err != nil {
		return Ticket{}, fmt.Errorf("begin call %s of %s: %w", c.ID, c.Tool, err)
	}
	return t, nil
}

func (g *Guard) begin(ctx context.Context, c Call, class session.Class) (Ticket, error) {
	// Each round is a try of the key that is known to have done nothing, so there are as many rounds as there were tries.
	for try := 1; ; try++ {
		if err := context.Cause(ctx); err != nil {
			return Ticket{}, err
		}
		draft := session.NewCall(g.now(), session.Call{Invocation: g.turn.Invocation(), Call: c.ID, Try: try, Tool: c.Tool,
			Args: c.Args, Class: class})
		ticket := Ticket{call: draft.ID, tool: c.Tool}
		// Detached: a cancellation in the middle of the write would leave an intent of which nobody knows.
		receipt, err := g.turn.Append(context.WithoutCancel(ctx), draft)
		if err != nil {
			return Ticket{}, err
		}
		if !receipt.Outcomes[0].Repeated {
			if err := context.Cause(ctx); err != nil {
				return Ticket{}, errors.Join(err, g.Undo(ctx, ticket))
			}
			return ticket, nil
		}
		again, err := g.known(ctx, &ticket, receipt)
		if err != nil || !again {
			return ticket, err
		}
	}
}

// known is what follows from an intent that is in the log already: the result that it has, another try when it is known
// to have done nothing, or a refusal.
func (g *Guard) known(ctx context.Context, t *Ticket, receipt session.Receipt) (again bool, err error) {
	seq := receipt.Outcomes[0].Seq
	if _, dangling := receipt.Head.Dangling(t.call); dangling {
		if turn := receipt.Head.Turn; turn != nil && seq > turn.Seq {
			return false, refuse(session.ErrInProgress, seq, "it is in flight in this turn")
		}
		return false, refuse(session.ErrAmbiguous, seq, "it began in an earlier turn, and nobody knows whether it happened: resolve or acknowledge it")
	}
	if e, ok, err := g.turn.Find(ctx, session.ResultID(t.call)); err != nil {
		return false, err
	} else if ok {
		var r session.Result
		if err := e.Into(&r); err != nil {
			return false, err
		}
		t.Done, t.Result = !r.NotApplied, Result{Value: r.Value, Failed: r.Failed, Replayed: true}
		return r.NotApplied, nil
	}
	e, ok, err := g.turn.Find(ctx, session.ResolveID(t.call))
	if err != nil {
		return false, err
	}
	if !ok { // neither completed nor resolved, and not dangling either
		return false, refuse(session.ErrAcceptedUnknown, seq, "its outcome was accepted as unknown: call it under a new id to run it again")
	}
	var r session.Resolve
	if err := e.Into(&r); err != nil {
		return false, err
	}
	switch r.Outcome {
	case session.DidNotHappen:
		return true, nil
	case session.Happened:
		t.Done, t.Result = true, Result{Value: r.Value, Replayed: true}
		return false, nil
	}
	return false, refuse(session.ErrCompensated, seq, "it happened and was undone: call it under a new id to run it again")
}

func refuse(code session.Code, seq uint64, text string) error {
	return &session.Refusal{Code: code, Text: text, Seq: seq}
}

// Complete writes the completion of a call that returned. It writes also when the request has been cancelled meanwhile.
// An error means that the call is dangling in the log although it happened.
func (g *Guard) Complete(ctx context.Context, t Ticket, r Result) error {
	return g.close(ctx, t, session.Result{Call: t.call, Value: r.Value, Failed: r.Failed})
}

// Undo closes a call that certainly did nothing, so that it may be tried again.
func (g *Guard) Undo(ctx context.Context, t Ticket) error {
	return g.close(ctx, t, session.Result{Call: t.call, NotApplied: true})
}

func (g *Guard) close(ctx context.Context, t Ticket, r session.Result) error {
	if t.call == "" || t.Done {
		return nil // read-only, or completed long ago
	}
	ctx = context.WithoutCancel(ctx)
	draft := session.NewResult(g.now(), r)
	_, err := g.turn.Append(ctx, draft)
	if errors.Is(err, session.ErrOutcomeUnknown) {
		_, err = g.turn.Append(ctx, draft) // its id makes that safe
	}
	if err != nil {
		return fmt.Errorf("write the completion of %s (its call is dangling now): %w", t.tool, err)
	}
	return nil
}

// On is a turn that its caller has begun on a log by its own means.
func On(log session.Log, name string, fence uint64, turn, invocation string) Turn {
	return bare{log, name, fence, turn, invocation}
}

type bare struct {
	log        session.Log
	session    string
	fence      uint64
	turn       string
	invocation string
}

func (b bare) Invocation() string { return b.invocation }

func (b bare) Append(ctx context.Context, batch ...session.Draft) (session.Receipt, error) {
	ours := make([]session.Draft, len(batch))
	for i, d := range batch {
		ours[i] = d.As(b.fence, b.turn)
	}
	receipt, err := b.log.Append(ctx, b.session, ours)
	if err == nil {
		err = receipt.Err()
	}
	return receipt, err
}

func (b bare) Find(ctx context.Context, id string) (session.Event, bool, error) {
	return b.log.Find(ctx, b.session, id)
}
