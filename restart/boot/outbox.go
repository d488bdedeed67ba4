package boot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// ErrNoNotice means that no notice has that id: it never did, or it was over and forgotten.
var ErrNoNotice = errors.New("there is no such notice")

// keepOver is how long notices that are over can still be listed.
const keepOver = 7 * 24 * time.Hour

const outboxName = "outbox.json"

// Outbox is the notices of a state folder and the restarts that were asked for. Any process of the machine may open it,
// beside the living instance: a command line lists and acknowledges. It is safe for concurrent use.
type Outbox struct {
	dir  durable.Dir
	now  func() stamp.Time
	mu   sync.Mutex
	lock durable.Lock
}

// contents is what the file holds.
type contents struct {
	Requests []bootnotice.Request `json:"requests,omitempty"`
	Notices  []bootnotice.Notice  `json:"notices,omitempty"`
	Unread   []unread             `json:"unread,omitempty"`
}

// OpenOutbox opens the outbox in the folder of a keeper ([Config.Dir]), made when it is absent.
func OpenOutbox(dir string) (*Outbox, error) {
	if err := inside.Refuse(dir); err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	d, err := durable.System{}.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	if err := durable.Private(d); err != nil {
		return nil, errors.Join(fmt.Errorf("open the outbox: %w", err), d.Close())
	}
	o, err := newOutbox(d, host.Now)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the outbox: %w", err), d.Close())
	}
	return o, nil
}

func newOutbox(d durable.Dir, now func() stamp.Time) (*Outbox, error) {
	l, err := d.Lock("outbox.lock")
	if err != nil {
		return nil, err
	}
	return &Outbox{dir: d, now: now, lock: l}, nil
}

// Close releases the handles. Nothing may be under way.
func (o *Outbox) Close() error { return errors.Join(o.lock.Close(), o.dir.Close()) }

// List are the notices, oldest first: all that are pending, and those that were over within the last week.
func (o *Outbox) List(context.Context) ([]bootnotice.Notice, error) {
	c, err := o.read()
	if err != nil {
		return nil, fmt.Errorf("list notices: %w", err)
	}
	return c.Notices, nil
}

// Requests are the restarts that were asked for and have not happened yet.
func (o *Outbox) Requests(context.Context) ([]bootnotice.Request, error) {
	c, err := o.read()
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	return c.Requests, nil
}

// Request writes down durably that a session asks for a restart, before that is asked for. The same id again changes
// nothing.
func (o *Outbox) Request(ctx context.Context, r bootnotice.Request) error {
	if r.ID == "" || r.Session == "" {
		return errors.New("note a request: it needs an id and a session")
	}
	if r.At.IsZero() {
		r.At = o.now()
	}
	err := o.update(ctx, func(c *contents) error {
		if !slices.ContainsFunc(c.Requests, func(q bootnotice.Request) bool { return q.ID == r.ID }) {
			c.Requests = append(c.Requests, r)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note the request of session %s: %w", r.Session, err)
	}
	return nil
}

// Withdraw takes a request back: the restart was refused, so nobody is to be told of it. One that is not there is no
// error. It belongs after a definite refusal; when it is not known whether the restart comes, the request has to stay.
func (o *Outbox) Withdraw(ctx context.Context, id string) error {
	err := o.update(ctx, func(c *contents) error {
		c.Requests = slices.DeleteFunc(c.Requests, func(q bootnotice.Request) bool { return q.ID == id })
		return nil
	})
	if err != nil {
		return fmt.Errorf("withdraw request %s: %w", id, err)
	}
	return nil
}

// Ack acknowledges a notice, and with it all that were told in the same message. by is who did. Again is no error;
// [ErrNoNotice] for an id that nobody has.
func (o *Outbox) Ack(ctx context.Context, id, by string) error {
	err := o.update(ctx, func(c *contents) error {
		i := slices.IndexFunc(c.Notices, func(n bootnotice.Notice) bool { return n.ID == id })
		if i < 0 {
			return ErrNoNotice
		}
		acked := c.Notices[i]
		for j, n := range c.Notices {
			if n.State == bootnotice.Pending && (n.ID == id || n.Session == acked.Session && together(n, acked)) {
				c.Notices[j].State, c.Notices[j].By = bootnotice.Acknowledged, by
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("acknowledge %s: %w", id, err)
	}
	return nil
}

// together reports whether two notices of a session were in one message.
func together(a, b bootnotice.Notice) bool {
	return slices.ContainsFunc(a.Attempts, func(t bootnotice.Attempt) bool { return b.Tried(t.Instance) })
}

func (o *Outbox) read() (contents, error) {
	var c contents
	if err := load(o.dir, outboxName, &c); err != nil && !durable.Absent(err) {
		return contents{}, err
	}
	return c, nil
}

// update is one durable change, alone among all processes.
func (o *Outbox) update(ctx context.Context, change func(*contents) error) (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := durable.Take(ctx, o.lock, lockRest, durable.Patience); err != nil {
		return fmt.Errorf("wait for the outbox: %w", err)
	}
	defer func() {
		if e := o.lock.Unlock(); err == nil {
			err = e
		}
	}()
	c, err := o.read()
	if err != nil {
		return err
	}
	before, err := sealed(outboxName).Encode(c)
	if err != nil {
		return err
	}
	if err := change(&c); err != nil {
		return err
	}
	now := o.now()
	c.Notices = slices.DeleteFunc(c.Notices, func(n bootnotice.Notice) bool {
		open := n.State == bootnotice.Pending || n.State == bootnotice.Undeliverable && !n.Told
		return !open && now.Sub(n.Made) > keepOver
	})
	after, err := sealed(outboxName).Encode(c)
	if err != nil || string(after) == string(before) {
		return err
	}
	return save(o.dir, outboxName, c)
}
