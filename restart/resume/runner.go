package resume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// The defaults of a Config.
const (
	DefaultTurn   = 10 * time.Minute
	DefaultRescan = 30 * time.Second
)

const (
	// grace is how long a turn whose bound is over has to return before the others go on beside it.
	grace = 10 * time.Second
	// look bounds each access to the store.
	look = 30 * time.Second
)

// Resumer is the host: it knows what its sessions are, and runs their turns.
type Resumer interface {
	// Workload is the kind of work that a session is, one of the few that the host declares for its counters, and whether
	// this process can resume it; else why not, in words.
	Workload(st session.Status) (workload string, unsupported string)
	// Resume runs an open turn and ends it with turn.End or turn.Park. Its context ends with the turn, or when it must stop.
	// A turn that is still open when Resume returns is ended as failed.
	Resume(ctx context.Context, turn *sessions.Turn) error
}

// Metrics counts outcomes: mulligan_autoresume_total{workload,outcome}.
type Metrics interface {
	AutoResume(workload string, outcome Outcome)
}

// Config is what a runner is made of.
type Config struct {
	// Sessions is the process's way to its sessions. Required.
	Sessions *sessions.Service
	// Resumer runs the turns. Required.
	Resumer Resumer
	Limits  Limits
	// Turn bounds each resumed turn; zero means DefaultTurn.
	Turn time.Duration
	// Rescan is how long Run rests between two passes, and up to a fifth more at random; zero means DefaultRescan.
	Rescan time.Duration
	// Passed is told what became of each session after each pass of Run, and then Run rests; nil tells nobody.
	Passed func([]Item)
	// Unreadable is told once of a session that cannot be read, and again when that is over and comes back; nil leaves it to
	// the log.
	Unreadable func(*session.UnreadableError)
	// Metrics counts; nil counts nothing.
	Metrics Metrics
	// Log gets each new outcome; nil discards.
	Log *slog.Logger
}

// Runner resumes sessions. Passes do not run beside each other.
type Runner struct {
	c    Config
	pass sync.Mutex
	soon chan struct{}

	mu    sync.Mutex
	used  int
	tried map[string]uint64 // the last sequence after our own attempt
	told  map[string]told
	hands map[string]int // who has a session in hand, from before its turn begins until it is over: a pass, and who wakes it
}

// told is what was last counted of a session: a skip is one, however often it is looked at.
type told struct {
	seq     uint64
	outcome Outcome
}

// New makes a runner. It reports all that is wrong with its config at once.
func New(c Config) (*Runner, error) {
	var errs []error
	if c.Sessions == nil {
		errs = append(errs, errors.New("Sessions is missing"))
	}
	if c.Resumer == nil {
		errs = append(errs, errors.New("Resumer is missing"))
	}
	if c.Turn < 0 || c.Rescan < 0 || c.Limits.Window < 0 {
		errs = append(errs, errors.New("Turn, Rescan and Window are not negative"))
	}
	if c.Limits.Attempts < 0 || c.Limits.PerBoot < 0 {
		errs = append(errs, errors.New("Attempts and PerBoot are not negative: a host that wants no auto-resume runs none"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make an auto-resume: %w", err)
	}
	c.Limits = c.Limits.normal()
	if c.Turn == 0 {
		c.Turn = DefaultTurn
	}
	if c.Rescan == 0 {
		c.Rescan = DefaultRescan
	}
	if c.Unreadable == nil {
		c.Unreadable = func(*session.UnreadableError) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Runner{c: c, soon: make(chan struct{}, 1), tried: map[string]uint64{}, told: map[string]told{}, hands: map[string]int{}}, nil
}

// Item is one session that was interrupted, and what became of it.
type Item struct {
	Session  string `json:"session"`
	Workload string `json:"workload,omitempty"`
	Decision
	// Err is the *session.UnreadableError of a session that cannot be read, whose outcome is Failed.
	Err error `json:"-"`
}

// unreadable is the item of a session that cannot be read. It is looked at again in the next pass.
func unreadable(err *session.UnreadableError) Item {
	return Item{Session: err.Session, Decision: say(Failed, "%v", err), Err: err}
}

// Run makes a pass at once and then one every Rescan, until the context ends or the process drains: the service's Draining
// says so, and without one a pass that comes to a session which it may not take up for that. A turn that it is running is
// cancelled when the context ends; one that a drain waits for is not.
func (r *Runner) Run(ctx context.Context) {
	for ctx.Err() == nil {
		items, err := r.Pass(ctx)
		if err != nil {
			r.c.Log.Error("auto-resume could not look for interrupted sessions", "error", err)
		}
		if r.c.Passed != nil {
			r.c.Passed(items)
		}
		if slices.ContainsFunc(items, func(i Item) bool { return i.Outcome == Draining }) {
			return
		}
		timer := time.NewTimer(r.c.Rescan + rand.N(r.c.Rescan/5+1))
		select {
		case <-ctx.Done():
		case <-r.c.Sessions.Draining:
			timer.Stop()
			return
		case <-r.soon:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Running reports that the runner is about to run, or runs, a turn of a session.
func (r *Runner) Running(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hands[name] > 0
}

// hold notes that a session is in our hands, until let go.
func (r *Runner) hold(name string) (letGo func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hands[name]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.hands[name]--; r.hands[name] == 0 {
			delete(r.hands, name)
		}
	}
}

// Soon lets Run make its next pass at once: there is a session that the host could not run before.
func (r *Runner) Soon() {
	select {
	case r.soon <- struct{}{}:
	default:
	}
}

// Pass looks at every interrupted session, the one whose owner died first before the others, and does what is to be done.
// It returns what became of each; the error is for the looking alone, and then what was found before is still done.
// In a canary it does nothing: the sessions that it could see are the living service's.
func (r *Runner) Pass(ctx context.Context) ([]Item, error) {
	if inside.Inert() {
		return nil, nil
	}
	r.pass.Lock()
	defer r.pass.Unlock()
	found, lost, err := r.find(ctx)
	var out []Item
	for _, bad := range lost {
		item := unreadable(bad)
		r.tell(item, 0)
		out = append(out, item)
	}
	for _, st := range found {
		if ctx.Err() != nil {
			break
		}
		item := r.one(ctx, st.Head.Session)
		r.tell(item, st.Interruption.Seq)
		out = append(out, item)
		if item.Outcome == Draining {
			break
		}
	}
	if err == nil {
		r.forget(found, lost)
	}
	return out, err
}

// DryRun says what a pass would do now, and does nothing. Resumed and Cleared mean that it would try.
func (r *Runner) DryRun(ctx context.Context) ([]Item, error) {
	found, lost, err := r.find(ctx)
	var out []Item
	for _, bad := range lost {
		out = append(out, unreadable(bad))
	}
	used := 0
	for _, st := range found {
		item, _ := r.judge(ctx, st, used, Decide)
		if item.Outcome == Resumed {
			used++
		}
		out = append(out, item)
	}
	return out, err
}

// find are the sessions with an interruption, the oldest first, and those of which nobody can tell.
func (r *Runner) find(ctx context.Context) (out []session.Status, lost []*session.UnreadableError, err error) {
	for h, bad := range session.All(ctx, r.list) {
		var unreadable *session.UnreadableError
		switch {
		case errors.As(bad, &unreadable):
			lost = append(lost, unreadable)
			continue
		case bad != nil:
			err = bad
			continue // it is the last
		case h.Turn == nil && h.Mark == nil && h.Interrupted == nil:
			continue // most sessions, most of the time: nobody's life is of interest
		}
		if st := h.Status(r.live(ctx, h)); st.Interruption != nil {
			out = append(out, st)
		}
	}
	slices.SortStableFunc(out, func(a, b session.Status) int {
		return cmp.Compare(a.Interruption.Since.Sub(b.Interruption.Since), 0)
	})
	return out, lost, err
}

// live is what is known of a session's owner. One that cannot be asked about is not proven dead, and the others go on.
func (r *Runner) live(ctx context.Context, h session.Head) ledger.Liveness {
	ctx, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	live, err := r.c.Sessions.Liveness(ctx, h)
	if err != nil {
		r.c.Log.Warn("it is not known whether a session's owner lives", "session", h.Session, "error", err)
		return ledger.LifeUnknown
	}
	return live
}

func (r *Runner) list(ctx context.Context, after string, limit int) ([]session.Head, error) {
	ctx, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	page, err := r.c.Sessions.Store.List(ctx, after, limit)
	if err != nil {
		err = fmt.Errorf("look for interrupted sessions: %w", err)
	}
	return page, err
}

// tell counts and logs what is new. What was done is always new; a skip is, when it is another one than last time.
func (r *Runner) tell(i Item, seq uint64) {
	if !i.Outcome.Counted() {
		return
	}
	var bad *session.UnreadableError
	if errors.As(i.Err, &bad) {
		seq = 0 // nobody knows where its log ends
	}
	now := told{seq, i.Outcome}
	r.mu.Lock()
	known := r.told[i.Session] == now
	r.told[i.Session] = now
	r.mu.Unlock()
	if known && i.Outcome != Resumed && i.Outcome != Cleared {
		return
	}
	if r.c.Metrics != nil {
		r.c.Metrics.AutoResume(i.Workload, i.Outcome)
	}
	level := slog.LevelInfo
	if bad != nil {
		level = slog.LevelError // it needs somebody who mends it
		defer r.c.Unreadable(bad)
	}
	r.c.Log.Log(context.Background(), level, "auto-resume", "session", i.Session, "workload", i.Workload, "outcome", string(i.Outcome), "why", i.Text)
}

// forget drops what is remembered of sessions that are interrupted no more.
func (r *Runner) forget(found []session.Status, lost []*session.UnreadableError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	still := map[string]bool{}
	for _, st := range found {
		still[st.Head.Session] = true
	}
	for _, bad := range lost {
		still[bad.Session] = true
	}
	for name := range r.told {
		if !still[name] {
			delete(r.told, name)
			delete(r.tried, name)
		}
	}
}
