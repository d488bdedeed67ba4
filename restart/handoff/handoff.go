package handoff

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// The defaults and bounds of a self-restart.
const (
	// DefaultDeadline bounds all stages of a request together: authority, confirmation, canary, waiting for others.
	DefaultDeadline = 120 * time.Second
	// DefaultDelay is from the answer to the job.
	DefaultDelay = time.Second
	// Limit is how many restarts may be asked for in Window.
	Limit  = 3
	Window = 10 * time.Minute
	// Settle is how long this process has to live on before an unknown answer is taken for a refusal.
	Settle = 2 * time.Minute
)

// look is how often a waiting restart looks for turns that were lost or aborted: those say nothing when they go.
const look = time.Second

// Config is what a handoff is made of.
type Config struct {
	// Restarter is who restarts. Required.
	Restarter Restarter
	// Unit names what to restart, where the restarter needs a name; empty is what Own finds.
	Unit string
	// Own finds the unit that this process runs in; nil finds nothing.
	Own Unit
	// History is the durable budget. Required; see [OpenHistory].
	History History
	// Notices keeps what the session is told after the restart; nil tells nobody.
	Notices Notices
	// Confirm asks a person, or the host's own rule; nil confirms nothing.
	Confirm func(context.Context, Question) (bool, error)
	// Canary tries the new code; nil is skipped, and said so.
	Canary func(context.Context) (Outcome, string)
	// Always runs the canary for requests that do not ask for it too.
	Always bool
	// Others finds sessions in the middle of a turn that this process does not run, in any order: for a handoff in another
	// process than the host's, [MidTurn] over the host's store. It is asked anew each second of a wait. With an error nobody
	// can tell, and nothing is restarted. Nil finds none.
	Others func(context.Context) ([]string, error)
	// Admit is asked for each turn beside the handoff itself, as a drain's is; nil admits all.
	Admit func(name string) (leave func(), err error)
	// Asked gets what the restarter said, for a process that lives on to read it: nil when the restart was accepted, an error
	// that matches ErrUnknown when the answer was lost. A refusal goes to Failed. It must not block; nil ignores it.
	Asked func(error)
	// Failed gets a restart that did not come although the answer said that it would. It must not block; nil ignores it.
	Failed func(Failure)
	// Deadline and Delay; zero means DefaultDeadline and DefaultDelay.
	Deadline, Delay time.Duration
	// Now is the clock of records; nil means the machine's.
	Now func() stamp.Time
	// Log gets what happens; nil discards.
	Log *slog.Logger
}

// Unit finds a process's own unit. The systemd adapter has one.
type Unit interface {
	// Own is the unit's name.
	Own(ctx context.Context) (string, error)
}

// Notices keeps what a session is told after a restart. It is also the record that the restart was meant: a boot that
// finds it is no crash. A *boot.Outbox is one.
type Notices interface {
	// Request writes a notice down, durably when it returns.
	Request(ctx context.Context, r bootnotice.Request) error
	// Withdraw takes one back; one that is not there is no error.
	Withdraw(ctx context.Context, id string) error
}

// Sessions is who runs turns. A *sessions.Service is one.
type Sessions interface {
	// Turns are the turns that are open in this process.
	Turns() []*sessions.Turn
	// Status is the state of one session.
	Status(ctx context.Context, name string) (session.Status, error)
}

// Failure is a restart that was announced and did not come.
type Failure struct {
	// Sessions are those that were told that it would.
	Sessions []string
	// Unknown is set when it was not refused, and this process lives on all the same.
	Unknown bool
	Err     error
}

// Outcome is what a canary came to, in the words of probe/canary.
type Outcome string

// The outcomes. A canary that was skipped lets the restart go on.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Handoff prepares restarts of one process. It is safe for concurrent use.
type Handoff struct {
	c Config

	mu       sync.Mutex
	sessions Sessions
	attempt  *attempt // under way, or committed; nil when there is none
	shut     bool     // no turn begins
	admitted map[*admission]struct{}
	woken    map[string]struct{}
	changed  chan struct{} // closed and made anew at each change that a waiting restart wants to see

	stop context.Context
	halt context.CancelFunc
	work sync.WaitGroup
}

// New makes a handoff. It reports all that is wrong with its config at once.
func New(c Config) (*Handoff, error) {
	var errs []error
	if c.Restarter == nil {
		errs = append(errs, errors.New("Restarter is missing"))
	}
	if c.History == nil {
		errs = append(errs, errors.New("History is missing"))
	}
	if c.Deadline < 0 || c.Delay < 0 {
		errs = append(errs, errors.New("Deadline and Delay are not negative"))
	}
	if c.Unit != "" && !Token(c.Unit) {
		errs = append(errs, fmt.Errorf("Unit %q is no unit's name: letters, digits and _ . @ -", c.Unit))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make a handoff: %w", err)
	}
	if c.Deadline == 0 {
		c.Deadline = DefaultDeadline
	}
	if c.Delay == 0 {
		c.Delay = DefaultDelay
	}
	if c.Now == nil {
		c.Now = host.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handoff{c: c, admitted: map[*admission]struct{}{}, woken: map[string]struct{}{}, changed: make(chan struct{})}
	h.stop, h.halt = context.WithCancel(context.Background())
	return h, nil
}

// Attach tells who runs the turns that were admitted. Without it every admission counts until it has left.
func (h *Handoff) Attach(s Sessions) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions = s
}

// Close gives up what waits. A restart that was announced and not yet asked for is not asked for any more; what is
// written down stays, because the process is ending: whoever begins next tells the sessions whose turns ended for it.
func (h *Handoff) Close() error {
	h.mu.Lock()
	h.halt()
	h.mu.Unlock()
	h.work.Wait()
	return nil
}

// spawn starts what Close waits for; false when it is closed. The caller holds the lock.
func (h *Handoff) spawn(f func()) bool {
	if h.stop.Err() != nil {
		return false
	}
	h.work.Go(f)
	return true
}

// notify wakes whoever waits for a change. The caller holds the lock.
func (h *Handoff) notify() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// Token reports whether a text may be the name of a unit: letters, digits, and _ . @ -
func Token(s string) bool {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '@', r == '-':
		default:
			return false
		}
	}
	return s != ""
}

// ErrNoUnit means that the restarter needs a unit, and none was given or found.
var ErrNoUnit = errors.New("restartUnit not configured")

// unit is what is to be restarted; empty for a restarter that needs no name.
func (h *Handoff) unit(ctx context.Context) (string, error) {
	if !h.c.Restarter.NeedsUnit() || h.c.Unit != "" {
		return h.c.Unit, nil
	}
	if h.c.Own == nil {
		return "", ErrNoUnit
	}
	unit, err := h.c.Own.Own(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoUnit, err)
	}
	if !Token(unit) {
		return "", fmt.Errorf("%w: this process runs in %q, which is no name that can be passed on", ErrNoUnit, unit)
	}
	return unit, nil
}
