package boot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
)

// add puts decided notices into the outbox. One that is there already, from a look at the same stop before a crash, stays
// as it is. One that is too old to be delivered is not made: it was there, is over, and was forgotten, in a process that
// lives on for longer than notices are kept.
func add(c *contents, d bootnotice.Decision, now stamp.Time) {
	for _, n := range d.Notices {
		i := slices.IndexFunc(c.Notices, func(o bootnotice.Notice) bool { return o.ID == n.ID })
		switch {
		case i < 0 && now.Sub(n.Made) > bootnotice.Expiry:
			continue
		case i < 0:
			c.Notices = append(c.Notices, n)
			i = len(c.Notices) - 1
		case c.Notices[i].State == bootnotice.Pending && len(c.Notices[i].Attempts) == 0:
			c.Notices[i].Others = n.Others // who else was cut off may be better known by now
		}
		if slices.Contains(d.Passed, n.ID) && c.Notices[i].State == bootnotice.Pending && len(c.Notices[i].Attempts) == 0 {
			c.Notices[i].State, c.Notices[i].By = bootnotice.PassedOn, "its session did not appear in time"
		}
	}
}

// Appeared says that a session is there: it has been resumed, or began. Its notice is delivered at once. The sessions of
// Config.Startup are there from the beginning.
func (k *Keeper) Appeared(name string) {
	k.mu.Lock()
	k.present[name] = true
	k.mu.Unlock()
	k.again()
}

// again lets Run look once more.
func (k *Keeper) again() {
	select {
	case k.come <- struct{}{}:
	default:
	}
}

func (k *Keeper) there() (out []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.present {
		out = append(out, name)
	}
	return out
}

// Run delivers the notices: to the sessions that are there at once, to the others when they appear. When the wait is over
// and nobody of those concerned came, the target is told. It returns nil when nobody is left to be told in this boot, when
// ctx ends, or with Close; so it needs no goroutine of its own where all sessions are there from the beginning.
//
// Call it after it was decided which sessions are resumed, for that decides how a session is told. A [Coordinator] does
// both.
func (k *Keeper) Run(ctx context.Context) error { return k.rounds(ctx, false) }

// rounds is Run. With stay it goes on when nobody is left, until ctx ends.
func (k *Keeper) rounds(ctx context.Context, stay bool) error {
	if k.idle {
		return nil
	}
	k.mu.Lock()
	if k.closed || k.ctx.Err() != nil {
		k.mu.Unlock()
		return nil
	}
	k.work.Add(1)
	k.mu.Unlock()
	defer k.work.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(k.ctx, cancel)()

	wait := time.NewTimer(k.c.Notice.Wait)
	defer wait.Stop()
	expiry := time.NewTimer(bootnotice.Expiry)
	defer expiry.Stop()
	for over := k.c.Notice.Wait == 0; ; {
		left, next, err := k.round(ctx, over)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("deliver notices: %w", err)
		case !left && over && !stay:
			return nil
		}
		expiry.Reset(next)
		select {
		case <-ctx.Done():
			return nil
		case <-k.come:
		case <-expiry.C:
		case <-wait.C:
			over = true
		}
	}
}

// round decides anew with the sessions that are there by now, and delivers what can be. left says that somebody may still
// come, next when the first notice will be too old.
func (k *Keeper) round(ctx context.Context, over bool) (left bool, next time.Duration, err error) {
	k.look(ctx)
	present := k.there()
	var open []bootnotice.Notice
	err = k.outbox.update(ctx, func(c *contents) error {
		k.decide(c, present, over)
		for i := range c.Notices {
			c.Notices[i] = c.Notices[i].Settle(k.c.Now(), k.c.Instance.ID)
		}
		open = slices.Clone(c.Notices)
		return nil
	})
	if err != nil {
		return false, 0, err
	}
	next = bootnotice.Expiry
	done := map[string]bool{}
	for _, n := range open {
		switch {
		case n.State == bootnotice.Undeliverable && !n.Told:
			k.giveUp(ctx, n)
		case n.State != bootnotice.Pending || n.Tried(k.c.Instance.ID) || done[n.Session]:
		case !slices.Contains(present, n.Session):
			left = true
			next = min(next, max(time.Millisecond, bootnotice.Expiry-k.c.Now().Sub(n.Made)+time.Millisecond))
		default:
			done[n.Session] = true
			if err := k.deliver(ctx, n.Session); err != nil {
				return false, 0, err
			}
		}
	}
	return left, next, nil
}

// giveUp tells the host, once, of a notice that nobody will deliver.
func (k *Keeper) giveUp(ctx context.Context, n bootnotice.Notice) {
	if err := k.c.Deliver.Undeliverable(ctx, n); err != nil {
		k.c.Log.Warn("a notice is undeliverable, and the host could not be told", "notice", n.ID, "session", n.Session, "error", err)
		return // it is told at the next look
	}
	err := k.outbox.update(ctx, func(c *contents) error {
		for i := range c.Notices {
			c.Notices[i].Told = c.Notices[i].Told || c.Notices[i].ID == n.ID
		}
		return nil
	})
	if err != nil {
		k.c.Log.Warn("it could not be noted that an undeliverable notice was told", "notice", n.ID, "error", err)
	}
}

// ruling is what the coordinator decided, else what the session's state says.
func (k *Keeper) ruling(ctx context.Context, name string) bootnotice.Ruling {
	if k.c.Rule != nil {
		return k.c.Rule(ctx, name)
	}
	if k.c.Sessions == nil {
		return bootnotice.Ruling{}
	}
	st, err := k.c.Sessions.Status(ctx, name)
	if err != nil {
		// Nobody knows whether it may be woken.
		return bootnotice.Ruling{Fate: bootnotice.Held, Reason: "its state could not be read: " + err.Error()}
	}
	return bootnotice.RulingOf(st)
}

// deliver makes this boot's one attempt for a session.
func (k *Keeper) deliver(ctx context.Context, name string) error {
	r := k.ruling(ctx, name)
	switch {
	case r.Fate == bootnotice.Resumed:
		return nil // the turn that resumes it takes the notice along
	case r.Fate == bootnotice.Aborted:
		return k.drop(ctx, name)
	case r.Fate == bootnotice.Free && k.c.Notice.Mode == bootnotice.Wake && k.c.Wake != nil:
		err := k.c.Wake(ctx, name)
		var not *notWoken
		switch {
		case errors.As(err, &not):
			if r = not.ruling; r.Fate == bootnotice.Resumed {
				return nil
			}
		case err != nil:
			r = bootnotice.Ruling{Fate: bootnotice.Held, Reason: err.Error()}
		}
	}
	d, ok, err := k.attempt(ctx, name, r)
	if err != nil || !ok {
		return err
	}
	seen, err := k.c.Deliver.Deliver(ctx, d)
	switch {
	case err != nil:
		k.c.Log.Warn("a notice could not be delivered; the next boot tries again", "notice", d.ID, "session", name, "error", err)
	case seen:
		if err := k.outbox.Ack(ctx, d.ID, "delivery"); err != nil {
			k.c.Log.Warn("a notice was seen, which could not be noted", "notice", d.ID, "error", err)
		}
	}
	return nil
}

// drop ends the notices of an aborted session.
func (k *Keeper) drop(ctx context.Context, name string) error {
	return k.outbox.update(ctx, func(c *contents) error {
		for i, n := range c.Notices {
			if n.Session == name && n.State == bootnotice.Pending {
				c.Notices[i].State, c.Notices[i].By = bootnotice.Withdrawn, "its session was aborted"
			}
		}
		return nil
	})
}

// attempt writes the attempt down before it is made, and gives the message.
func (k *Keeper) attempt(ctx context.Context, name string, r bootnotice.Ruling) (d bootnotice.Delivery, ok bool, err error) {
	err = k.outbox.update(ctx, func(c *contents) error {
		now := k.c.Now()
		k.recalled(c)
		for i := range c.Notices {
			c.Notices[i] = c.Notices[i].Settle(now, k.c.Instance.ID)
		}
		if d, ok = bootnotice.Merge(c.Notices, name, k.c.Instance.ID, r, k.c.Notice); !ok {
			return nil
		}
		for i := range c.Notices {
			if slices.Contains(d.Notices, c.Notices[i].ID) {
				c.Notices[i].Attempts = append(c.Notices[i].Attempts,
					bootnotice.Attempt{Instance: k.c.Instance.ID, At: now, Way: d.Way})
			}
		}
		return nil
	})
	return d, ok && err == nil, err
}

// Take is the notice of a session for the turn that resumes it, as that turn's first words. ok is false when there is
// none, or when this boot has delivered it already. It counts as this boot's attempt.
func (k *Keeper) Take(ctx context.Context, name string) (d bootnotice.Delivery, ok bool, err error) {
	if k.idle {
		return d, false, nil
	}
	d, ok, err = k.attempt(ctx, name, bootnotice.Ruling{Fate: bootnotice.Resumed})
	if err != nil {
		return d, false, fmt.Errorf("take the notice of session %s: %w", name, err)
	}
	return d, ok, nil
}

// Ack acknowledges a notice: its session has seen it. See [Outbox.Ack].
func (k *Keeper) Ack(ctx context.Context, id, by string) error {
	if k.outbox == nil {
		return fmt.Errorf("acknowledge %s: this process takes no part in its state folder: %w", id, ErrNoNotice)
	}
	return k.outbox.Ack(ctx, id, by)
}
