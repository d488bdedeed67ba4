package session

import (
	"context"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Log is what a session's owner and its guard need of a store. A session exists from its first event on; before that its
// head is a zero Head with the session's name, and its log is empty.
type Log interface {
	// Append judges and writes a batch as one step against every other process, in the order given. What it accepted is
	// durable when it returns. A refused event changes nothing, has its *Refusal in its Outcome, and does not touch the
	// others. The error is for the batch as a whole: nothing was written, or, with ErrOutcomeUnknown, perhaps all of it.
	// A context that has ended before the write began writes nothing and returns the context's error. An empty batch
	// writes nothing and returns the present head.
	Append(ctx context.Context, session string, batch []Draft) (Receipt, error)
	// Read is a page of events with a sequence above after, in order; limit zero means DefaultPage. A page may be shorter
	// than the limit; an empty one is the end.
	Read(ctx context.Context, session string, after uint64, limit int) ([]Event, error)
	// Find is the event of an id.
	Find(ctx context.Context, session, id string) (e Event, ok bool, err error)
	// Head is the state of a session as of its last durable event; an *UnreadableError where that cannot be read.
	Head(ctx context.Context, session string) (Head, error)
}

// Lister lists sessions.
type Lister interface {
	// List is a page of heads with a session above after, in the order of the bytes of their names; limit zero means
	// DefaultPage. A page may be shorter than the limit; an empty one is the end. Sessions that cannot be read hold up no
	// other: the error is then a *PageError that names them, they count for the limit, and the page has the rest.
	List(ctx context.Context, after string, limit int) ([]Head, error)
}

// Store keeps the logs of many sessions.
type Store interface {
	Log
	Lister
}

// Receipt is what became of a batch.
type Receipt struct {
	// Outcomes are in the order of the batch.
	Outcomes []Outcome
	// Head is the session's state after the batch.
	Head Head
}

// Err is the refusal of the first event that was refused, nil when all were accepted.
func (r Receipt) Err() error {
	for _, o := range r.Outcomes {
		if err := o.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Outcome is what became of one event.
type Outcome struct {
	// Seq is its sequence, also when it had been appended before; zero when it was refused.
	Seq uint64
	// Repeated is set when it was in the log already.
	Repeated bool
	// Refused says why it was not appended.
	Refused *Refusal
}

// Err is Refused as an error.
func (o Outcome) Err() error {
	if o.Refused == nil {
		return nil
	}
	return o.Refused
}

// Watcher is an optional power of a Store: it tells when there is something new, so that a tail need not poll often.
type Watcher interface {
	// Watch returns a channel that gets a value some time after each append to the session, or to any session when the
	// name is empty, that begins when Watch has returned, in whatever process. Values are coalesced, and may come without a
	// reason: it is a hint, and who relies on it reads on, and polls beside it. The watch ends with the context; the channel
	// is then left as it is.
	Watch(ctx context.Context, session string) (<-chan struct{}, error)
}

// Leaser is an optional power of a Store that several machines share: proof of life of the instances that own sessions,
// on the store's clock. Where all instances are on one machine, their kernel locks prove more, and nothing is renewed.
type Leaser interface {
	// Renew says that an instance lives, for ttl from the moment the store gets it. One renewal is for all of its
	// sessions.
	Renew(ctx context.Context, owner ledger.Instance, ttl time.Duration) error
	// Life is the last renewal of an instance; a zero Count when there was none.
	Life(ctx context.Context, instance string) (Life, error)
}

// Life is the last renewal of an instance, as a store saw it.
type Life struct {
	// Count rises with each renewal.
	Count uint64
	// Renewed and Now are both on the store's clock.
	Renewed, Now stamp.Time
	TTL          time.Duration
}
