package drain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// ErrDraining is the code of the refusal that everything gets which asks for admission after a drain began, and the cause
// of the cancellation of what was waited for in vain.
const ErrDraining session.Code = "draining"

// The defaults of a Config.
const (
	DefaultWait     = 30 * time.Second
	DefaultMaxWait  = 5 * time.Minute // with a Budget
	DefaultMark     = 5 * time.Second
	DefaultGrace    = 5 * time.Second
	DefaultTeardown = 10 * time.Second
)

// dumpTime is how long the watchdog waits for its writer: a full pipe must not hold up what it watches.
const dumpTime = time.Second

// Config is how a drain goes.
type Config struct {
	// Wait is how long a turn without a budget of its own is waited for, from the drain's beginning; zero means DefaultWait.
	Wait time.Duration
	// Budget is a turn's own budget, from the drain's beginning; zero or less means Wait. Nil means Wait for all.
	Budget func(*sessions.Turn) time.Duration
	// MaxWait is the most that any budget may be, so that Bound is known beforehand. Zero means Wait without a Budget, else
	// DefaultMaxWait or Wait, whichever is longer.
	MaxWait time.Duration
	// Mark bounds the writing of marks; zero means DefaultMark.
	Mark time.Duration
	// Grace is how long cancelled turns have to end; zero means DefaultGrace.
	Grace time.Duration
	// Teardown bounds the teardown; zero means DefaultTeardown. The context that it gets ends when four fifths of that are
	// over, so a teardown that minds its context never overruns.
	Teardown time.Duration
	// Dump gets the stacks of all goroutines when the teardown overruns; nil means standard error.
	Dump io.Writer
	// Metrics counts; nil counts nothing.
	Metrics Metrics
	// Log gets what happens; nil discards.
	Log *slog.Logger
}

// Metrics counts what a drain does.
type Metrics interface {
	// MarkFailed counts a mark that could not be written: if the turn then fails, nobody will resume it.
	MarkFailed()
}

// Owner is who runs turns. A *sessions.Service is one.
type Owner interface {
	// Turns are the turns that are open in this process.
	Turns() []*sessions.Turn
	// Mark says durably that a turn was open; session.ErrNoOpenTurn when it has ended.
	Mark(ctx context.Context, session, turn, why string) error
}

// Phase is how far a drain is.
type Phase string

// The phases, in order.
const (
	Open    Phase = "open"     // everything is admitted
	Waiting Phase = "waiting"  // nothing is admitted, and open turns go on
	Frozen  Phase = "frozen"   // turns are cancelled, and begin no call
	Leaving Phase = "teardown" // the host's teardown runs
	Drained Phase = "drained"  // it is over
)

// Drain is one process's way to stop. It is safe for concurrent use.
type Drain struct {
	c Config

	mu       sync.Mutex
	phase    Phase
	since    time.Time
	why      string
	admitted map[*admission]struct{}
	left     chan struct{} // has a value when somebody left since the last look
	begun    chan struct{} // closed when the drain begins
	done     chan struct{}
	result   Result
}

// admission is somebody who was admitted and has not left.
type admission struct {
	name  string
	since time.Time
}

// New makes a drain that has not begun. It reports all that is wrong with its config at once.
func New(c Config) (*Drain, error) {
	var errs []error
	for _, d := range []struct {
		name  string
		value *time.Duration
		or    time.Duration
	}{{"Wait", &c.Wait, DefaultWait}, {"Mark", &c.Mark, DefaultMark}, {"Grace", &c.Grace, DefaultGrace},
		{"Teardown", &c.Teardown, DefaultTeardown}} {
		if *d.value < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", d.name))
		}
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	if c.MaxWait == 0 {
		c.MaxWait = c.Wait
		if c.Budget != nil {
			c.MaxWait = max(c.Wait, DefaultMaxWait)
		}
	}
	if c.MaxWait < c.Wait {
		errs = append(errs, fmt.Errorf("MaxWait (%v) is shorter than Wait (%v)", c.MaxWait, c.Wait))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make a drain: %w", err)
	}
	if c.Dump == nil {
		c.Dump = os.Stderr
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Drain{c: c, phase: Open, admitted: map[*admission]struct{}{}, left: make(chan struct{}, 1),
		begun: make(chan struct{}), done: make(chan struct{})}, nil
}

// Bound is how long a drain takes at most, from its beginning to the return of Drain.
func (d *Drain) Bound() time.Duration {
	return d.c.MaxWait + 2*d.c.Mark + d.c.Grace + d.c.Teardown + dumpTime
}

// Phase is how far the drain is. A host that answers health checks is no longer ready once it is not Open.
func (d *Drain) Phase() Phase {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.phase
}

// Begun is closed when the drain begins, after which nobody is admitted. It is the Draining of a sessions.Config.
func (d *Drain) Begun() <-chan struct{} { return d.begun }

// Admit lets one piece of work in, by the name of its session, until leave is called; calling that twice is once. After
// the drain began it is refused with ErrDraining. It is the Admit of a sessions.Config; a host may ask it too for what is
// no turn, which is then waited for like one, and cannot be marked or cancelled.
func (d *Drain) Admit(name string) (leave func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase != Open {
		return nil, d.refusal()
	}
	a := &admission{name: name, since: time.Now()}
	d.admitted[a] = struct{}{}
	return func() {
		d.mu.Lock()
		delete(d.admitted, a)
		d.mu.Unlock()
		select {
		case d.left <- struct{}{}:
		default: // the drain has not looked since the last one left
		}
	}, nil
}

// refusal is the answer while draining. The caller holds the lock.
func (d *Drain) refusal() *session.Refusal {
	return &session.Refusal{Code: ErrDraining, Text: fmt.Sprintf("this process is stopping (%s) and begins nothing new: "+
		"ask again when its successor is up", d.why)}
}

// Order is what is to be drained.
type Order struct {
	// Sessions are those whose turns are marked and cancelled; nil when there are only admissions.
	Sessions Owner
	// Why is written into the marks, for people.
	Why string
	// Teardown closes what the host has open: handles, services, stores, listeners. It runs last; nil does nothing.
	Teardown func(context.Context) error
}

// Drain stops the process's work and returns when it is over, at the latest after Bound. When ctx ends the wait is cut
// short, and turns are frozen and cancelled at once: give the second signal the context's cancel. The error is that of
// the teardown. A second call waits for the first one's result; its error is its context's when that ends before.
func (d *Drain) Drain(ctx context.Context, o Order) (Result, error) {
	if !d.begin(o.Why) {
		select {
		case <-d.done:
			return d.result, d.result.Teardown
		case <-ctx.Done():
			return Result{}, fmt.Errorf("wait for the drain that is under way: %w", context.Cause(ctx))
		}
	}
	d.result = d.run(ctx, o)
	d.enter(Drained)
	close(d.done)
	d.c.Log.Info("the process has drained", "took", d.result.Took, "survivors", len(d.result.Survivors),
		"cancelled", d.result.Cancelled, "unmarked", len(d.result.Unmarked), "overran", d.result.Overran)
	return d.result, d.result.Teardown
}

// begin stops admission, in one step with the look whether somebody was admitted: who got in is seen by the drain.
func (d *Drain) begin(why string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase != Open {
		return false
	}
	if why == "" {
		why = "it was asked to"
	}
	d.phase, d.since, d.why = Waiting, time.Now(), why
	close(d.begun)
	return true
}

func (d *Drain) enter(p Phase) {
	d.mu.Lock()
	d.phase = p
	d.mu.Unlock()
	d.c.Log.Info("the drain goes on", "phase", string(p))
}
