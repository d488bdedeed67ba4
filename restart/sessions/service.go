package sessions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// DefaultPoll is how often a tail and an open turn look at the log when no hint comes.
const DefaultPoll = time.Second

// Config is what a service is made of.
type Config struct {
	// Store keeps the logs. Required.
	Store session.Store
	// Instances names this process, and proves others dead. Required.
	Instances ledger.Instances
	// Admit is asked before each turn, and says that it is over by calling leave. A component that stops admitting, as a
	// drain does, returns its error; nil admits every turn.
	Admit func(name string) (leave func(), err error)
	// Draining is closed when this process begins to stop: what looks for work, as auto-resume does, then ends. Nil means
	// that nobody says so, and it is found out when a turn is refused.
	Draining <-chan struct{}
	// Now is the clock, which runs in suspend. Nil means the machine's.
	Now func() stamp.Time
	// Poll is how often the log is looked at when no hint comes; zero means DefaultPoll.
	Poll time.Duration
	// TTL and Renew are of the proof of life on a store that several machines share; zero means session.LeaseTTL and
	// session.LeaseRenew. A TTL under two renewals is refused.
	TTL, Renew time.Duration
	// Random is where the tokens of pauses come from; nil means crypto/rand.
	Random io.Reader
	// Log gets what nobody is there to be told; nil discards.
	Log *slog.Logger
}

// Service is one process's way to its sessions. It is safe for concurrent use.
type Service struct {
	Config
	began  time.Time // its monotonic reading is the clock of our awake time
	leaser session.Leaser

	mu      sync.Mutex
	open    map[string]*Handle // nil while one is being taken
	watches map[string]session.Watch
	renewed stamp.Time  // before the last renewal that was confirmed was sent
	expiry  *time.Timer // fires when that is as old as the TTL
	closed  bool
	stop    context.CancelFunc // of the renewals, nil before the first session
	work    sync.WaitGroup
}

// New makes a service. It reports all that is wrong with its config at once.
func New(c Config) (*Service, error) {
	var errs []error
	if c.Store == nil {
		errs = append(errs, errors.New("Store is missing"))
	}
	if c.Instances == nil {
		errs = append(errs, errors.New("Instances is missing"))
	} else if c.Instances.Self().ID == "" {
		errs = append(errs, errors.New("this process has no instance id"))
	}
	if c.Poll < 0 || c.TTL < 0 || c.Renew < 0 {
		errs = append(errs, errors.New("Poll, TTL and Renew are not negative"))
	}
	c.Poll = orElse(c.Poll, DefaultPoll)
	c.TTL = orElse(c.TTL, session.LeaseTTL)
	c.Renew = orElse(c.Renew, session.LeaseRenew)
	if c.TTL < 2*c.Renew {
		errs = append(errs, fmt.Errorf("a TTL of %v does not outlast two renewals of %v: one late renewal loses every session", c.TTL, c.Renew))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make a session service: %w", err)
	}
	if c.Admit == nil {
		c.Admit = func(string) (func(), error) { return func() {}, nil }
	}
	if c.Now == nil {
		c.Now = host.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{Config: c, began: time.Now(), open: map[string]*Handle{}, watches: map[string]session.Watch{}}
	s.leaser, _ = c.Store.(session.Leaser)
	return s, nil
}

func orElse(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return d
}

// NewID is an id for an event, a turn or an interrupt.
func NewID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}

// Close stops the renewals and ends what the service holds in memory. Sessions that are open stay so in the log: close
// their handles first, or let others see that this process is dead.
func (s *Service) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.stop != nil {
		s.stop()
		s.expiry.Stop()
	}
	handles := s.handles()
	s.mu.Unlock()
	for _, h := range handles {
		h.lose(errClosed)
	}
	s.work.Wait()
	return nil
}

// spawn starts what Close waits for; a closed service starts nothing, and its contexts are over.
func (s *Service) spawn(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(f)
	}
}

var errClosed = errors.New("the session service is closed")

// handles are those that are open. The caller holds the lock.
func (s *Service) handles() (out []*Handle) {
	for _, h := range s.open {
		if h != nil {
			out = append(out, h)
		}
	}
	return out
}

// Turns are the turns that are open in this process, for a drain that marks, waits for and cancels them.
func (s *Service) Turns() (out []*Turn) {
	s.mu.Lock()
	handles := s.handles()
	s.mu.Unlock()
	for _, h := range handles {
		if t := h.current(); t != nil {
			out = append(out, t)
		}
	}
	return out
}

// Status is the state of a session, with what is known of its owner's life.
func (s *Service) Status(ctx context.Context, name string) (session.Status, error) {
	h, err := s.Store.Head(ctx, name)
	if err != nil {
		return session.Status{}, fmt.Errorf("read session %s: %w", name, err)
	}
	live, err := s.Liveness(ctx, h)
	return h.Status(live), err
}

// List is a page of sessions above a name, in order; an empty one is the end. Sessions that cannot be read are named by a
// *session.PageError beside the others (session.All goes on after it), and an owner that cannot be asked about is not
// proven dead.
func (s *Service) List(ctx context.Context, after string, limit int) ([]session.Status, error) {
	heads, err := s.Store.List(ctx, after, limit)
	if err != nil {
		err = fmt.Errorf("list sessions: %w", err)
	}
	out := make([]session.Status, len(heads))
	for i, h := range heads {
		live, err := s.Liveness(ctx, h)
		if err != nil {
			s.Log.Warn("it is not known whether a session's owner lives", "session", h.Session, "error", err)
		}
		out[i] = h.Status(live)
	}
	return out, err
}

// Open takes a session for this process. It is refused with session.ErrOwned while another handle holds it, here or in a
// process that is not proven dead.
func (s *Service) Open(ctx context.Context, name string) (*Handle, error) {
	if err := s.reserve(name); err != nil {
		return nil, fmt.Errorf("open session %s: %w", name, err)
	}
	h, err := s.take(ctx, name)
	if err == nil {
		if err = s.keep(name, h); err == nil {
			return h, nil
		}
		// Taken, and nobody here may run it any more: others need not wait for our death.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.TTL)
		err = errors.Join(err, h.Close(bounded))
		cancel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[name] == nil {
		delete(s.open, name)
	}
	return nil, fmt.Errorf("open session %s: %w", name, err)
}

// keep makes a session that was taken one of the open ones, unless the service was closed, or its lease was over, while it
// was being taken: what ends the open ones then did not see it.
func (s *Service) keep(name string, h *Handle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errClosed
	case s.leaser != nil && !session.Held(s.renewed, s.Now(), s.TTL):
		return s.lapsed()
	}
	s.open[name] = h
	return nil
}

// Held is the handle by which this process holds a session, if it does.
func (s *Service) Held(name string) (*Handle, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.open[name] // nil while it is being taken
	return h, h != nil
}

func (s *Service) reserve(name string) error {
	if inside.Inert() {
		return inside.ErrInert // a lease taken here would be one more than the service's
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if _, taken := s.open[name]; taken {
		return &session.Refusal{Code: session.ErrOwned, Text: "it is open in this process", Owner: s.Instances.Self()}
	}
	s.open[name] = nil
	return nil
}

func (s *Service) take(ctx context.Context, name string) (*Handle, error) {
	head, err := s.Store.Head(ctx, name)
	if err != nil {
		return nil, err
	}
	live, err := s.Liveness(ctx, head)
	if err != nil {
		return nil, err
	}
	self := s.Instances.Self()
	over, refused := session.Take(head, self, live)
	if refused != nil {
		return nil, refused
	}
	if err := s.keepAlive(ctx); err != nil {
		return nil, err
	}
	receipt, err := s.Append(ctx, name, session.Own(s.Now(), NewID(), self, over))
	if err != nil {
		return nil, err
	}
	if receipt.Head.Owner.Seq != receipt.Outcomes[0].Seq {
		return nil, &session.Refusal{Code: session.ErrOwned, Text: "another instance took it at the same time", Owner: receipt.Head.Owner.Instance}
	}
	h := &Handle{service: s, name: name, lease: receipt.Outcomes[0].Seq, fence: receipt.Head.Fence}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	return h, nil
}

// Append adds events to a session's log, and asks again when it is not known whether they were written. The error is the
// first refusal, if any; the receipt then tells the outcome of each.
//
// The intent of a call is not asked for again: the answer "it is in the log" would not tell whether this call put it
// there or another one of the same key, which may be running.
func (s *Service) Append(ctx context.Context, name string, batch ...session.Draft) (session.Receipt, error) {
	if inside.Inert() {
		return session.Receipt{}, fmt.Errorf("append to session %s: %w", name, inside.ErrInert)
	}
	receipt, err := s.Store.Append(ctx, name, batch)
	if errors.Is(err, session.ErrOutcomeUnknown) && ctx.Err() == nil && !slices.ContainsFunc(batch, isCall) {
		receipt, err = s.Store.Append(ctx, name, batch)
	}
	if err == nil {
		err = receipt.Err()
	}
	if err != nil {
		return receipt, fmt.Errorf("append to session %s: %w", name, err)
	}
	return receipt, nil
}

func isCall(d session.Draft) bool { return d.Kind == session.KindCall }
