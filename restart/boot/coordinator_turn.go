package boot

import (
	"context"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// resuming is the host as auto-resume sees it.
type resuming struct{ c *Coordinator }

func (r resuming) Workload(st session.Status) (workload, unsupported string) {
	r.c.keeper.found(st) // before a turn takes it up, and with it the traces of the one that was cut off
	return r.c.c.Host.Workload(st)
}

// Resume hands the notice over inside the turn that takes the session up.
func (r resuming) Resume(ctx context.Context, turn *sessions.Turn) error {
	r.c.owed.Add(-1)
	defer r.c.keeper.again() // the next one in the pass may only have to be cleared
	d, err := r.c.hand(ctx, turn, bootnotice.Ruling{Fate: bootnotice.Resumed})
	if err != nil {
		return err
	}
	return r.c.c.Host.Turn(ctx, turn, d)
}

// telling is how notices get to sessions in which no turn begins.
type telling struct{ c *Coordinator }

// Deliver puts the message into the session's log. There the next turn finds it, whoever runs it.
func (t telling) Deliver(ctx context.Context, d bootnotice.Delivery) (seen bool, err error) {
	_, err = t.c.c.Sessions.Append(ctx, d.Session, session.Say(t.c.now(), d.ID, t.c.c.Message(d)))
	return err == nil, err
}

func (t telling) Undeliverable(ctx context.Context, n bootnotice.Notice) error {
	return t.c.c.Host.Undeliverable(ctx, n)
}

// hand makes the session's notice the first words of an open turn: the attempt is noted, then the turn's log holds the
// message, then it is acknowledged. Nil when there is none.
func (c *Coordinator) hand(ctx context.Context, turn *sessions.Turn, r bootnotice.Ruling) (*bootnotice.Delivery, error) {
	if c.keeper.idle {
		return nil, nil
	}
	d, ok, err := c.keeper.attempt(ctx, turn.Session(), r)
	if err != nil {
		return nil, fmt.Errorf("note that session %s is told of the restart: %w", turn.Session(), err)
	}
	if !ok {
		return nil, nil
	}
	if _, err := turn.Append(ctx, session.Say(c.now(), d.ID, c.c.Message(d))); err != nil {
		return nil, fmt.Errorf("tell session %s of the restart: %w", turn.Session(), err)
	}
	if err := c.keeper.outbox.Ack(ctx, d.ID, "the session's log"); err != nil {
		// The log holds it, and the next boot looks there.
		c.c.Log.Warn("a notice was told, which could not be noted", "notice", d.ID, "session", d.Session, "error", err)
	}
	return &d, nil
}

// notWoken is why a session was not woken, as a ruling.
type notWoken struct{ ruling bootnotice.Ruling }

func (e *notWoken) Error() string { return e.ruling.Reason }

// wake begins a turn with the session's notice, and returns when the notice is in its log. The turn goes on by itself.
func (c *Coordinator) wake(ctx context.Context, name string) error {
	told, over := make(chan struct{}), make(chan resume.Item, 1)
	c.turns.Go(func() {
		over <- c.runner.Wake(c.ctx, name, func(ctx context.Context, turn *sessions.Turn) error {
			d, err := c.hand(ctx, turn, bootnotice.Ruling{})
			if err == nil && d == nil {
				err = errors.New("nobody has to be told any more")
			}
			if err == nil {
				c.c.Woken(name) // before it could ask for a restart
			}
			close(told)
			if err != nil {
				return err
			}
			return c.c.Host.Turn(ctx, turn, d)
		})
	})
	select {
	case <-told:
		// Where it could not be told the attempt stands, and the next boot tries again.
		return nil
	case i := <-over:
		select {
		case <-told:
			return nil
		default:
		}
		return c.refused(ctx, i)
	}
}

// refused is the ruling when no turn began: something came between the decision and it.
func (c *Coordinator) refused(ctx context.Context, i resume.Item) error {
	if i.Outcome == resume.Draining || i.Outcome == resume.NotAdmitted {
		return &notWoken{later}
	}
	r := c.rule(ctx, i.Session)
	if r.Fate == bootnotice.Free {
		r = heldBy(i.Decision, show(i.Session))
	}
	return &notWoken{r}
}
