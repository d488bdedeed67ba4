package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// Host is what runs the turns that a coordinator begins.
type Host interface {
	// Workload is the kind of work that a session is, one of the few that the host declares for its counters, and whether
	// this process can run it now; else why not, in words. A session that cannot be run is told when it has appeared.
	Workload(st session.Status) (workload string, unsupported string)
	// Turn runs an open turn and ends it with turn.End or turn.Park. Its context ends with the turn, or when it must stop;
	// a turn that is still open when Turn returns is ended as failed. notice is what the session is told of the restart,
	// and nil when there is nothing: the session's log holds it already, as the turn's first message, under the event id
	// notice.ID. So the model reads it either from there or from notice, and never twice.
	Turn(ctx context.Context, turn *sessions.Turn, notice *bootnotice.Delivery) error
	// Undeliverable says, once, that a notice was given up: nobody will deliver it any more.
	Undeliverable(ctx context.Context, n bootnotice.Notice) error
}

// CoordinatorConfig is what a coordinator is made of.
type CoordinatorConfig struct {
	// Dir is the folder of the marker and the outbox, made when it is absent. Required, absolute; one folder for each
	// service.
	Dir string
	// Sessions is the process's way to its sessions, and names its instance. Required.
	Sessions *sessions.Service
	// Host runs the turns. Required.
	Host Host
	// Startup are the sessions of the root agents that this boot starts, in their order: the target of a notice that
	// concerns nobody else is among them.
	Startup []string
	// Notice is the block restart_notice.
	Notice bootnotice.Config
	// Limits are those of auto-resume, and hold for the sessions that are woken too: the attempts, and the turns of one
	// instance.
	Limits resume.Limits
	// Turn bounds each turn; zero means resume.DefaultTurn. Rescan is the rest between two looks for sessions that were
	// interrupted meanwhile; zero means resume.DefaultRescan.
	Turn, Rescan time.Duration
	// Woken is told of a session that a notice starts, before its turn runs: the Woken of a handoff. Nil tells nobody.
	Woken func(name string)
	// Message is a notice as the content of a message event, in the host's own form; nil is the text as a JSON string.
	Message func(d bootnotice.Delivery) json.RawMessage
	// Unreadable is told of a session that cannot be read, once until it can be: it names the place, and what to do. The
	// others are not held up by it. Nil leaves it to the log.
	Unreadable func(*session.UnreadableError)
	// Metrics counts what becomes of interrupted sessions; nil counts nothing.
	Metrics resume.Metrics
	// Beat is how often the heartbeat is written; zero means bootnotice.BeatEvery.
	Beat time.Duration
	// Log is told what nobody is there to be told; nil discards.
	Log *slog.Logger

	fs durable.FS // nil is the machine's
}

// Coordinator decides, at a boot and after it, which sessions go on by themselves and how each is told of the restart:
//
//	interrupted, may go on      resumed, and the notice is the first words of that turn
//	skipped, quarantined,       the notice is put into its log with the reason and the command that leads on, and no turn
//	paused                      begins
//	aborted                     nothing
//	unreadable                  nothing yet: it is looked at again with each pass, and then is one of the others
//	else, with a notice         woken: a turn begins with it (or with the mode "inject" it waits for the next one)
//
// A turn that a notice starts is begun as auto-resume begins one. It is admitted, written down as an attempt before it, and
// counts against the same breaker and the same cap, so that a session which ends the process each time it is woken is
// quarantined like one that does when it is resumed. A session that this process has open is woken by its own handle, and
// when a turn of it runs the notice waits in its log.
//
// A notice is acknowledged as soon as the session's log holds it, under its id. So one that was written by a process which
// died before it could note that is not told again, and one that was lost is told in the next boot. Such a message asks for no
// turn: a host that begins one for each new message passes over events whose id begins with bootnotice.IDPrefix.
//
// In a canary nothing happens. Beside a living instance in the same folder only auto-resume runs; notices are the other
// one's. While the process drains, or is about to restart, nobody is woken, and the notices stay for the next boot.
type Coordinator struct {
	c      CoordinatorConfig
	keeper *Keeper
	runner *resume.Runner
	run    sync.Mutex      // held by Run
	ctx    context.Context // of the turns that notices start
	turns  sync.WaitGroup
	// owed are the places of this instance that the first pass needs for sessions which it has not taken up yet.
	owed atomic.Int64
}

// NewCoordinator finds out what kind of boot this is, writes down who has to be told, and begins to keep the marker. Call it
// before any session runs. It reports all that is wrong with its config at once.
func NewCoordinator(ctx context.Context, c CoordinatorConfig) (*Coordinator, error) {
	co := &Coordinator{}
	kept := Config{Dir: c.Dir, Deliver: telling{co}, Startup: c.Startup, Notice: c.Notice, Rule: co.rule, Wake: co.wake,
		Beat: c.Beat, Log: c.Log, fs: c.fs}
	run := resume.Config{Sessions: c.Sessions, Limits: c.Limits, Turn: c.Turn, Rescan: c.Rescan, Unreadable: c.Unreadable,
		Metrics: c.Metrics, Log: c.Log, Resumer: resuming{co}, Passed: func([]resume.Item) { co.passed() }}
	var errs []error
	if c.Host == nil {
		errs = append(errs, errors.New("Host is missing: it runs the turns"))
	}
	if c.Sessions != nil {
		kept.Sessions, kept.Instance, kept.Now = c.Sessions, c.Sessions.Instances.Self(), c.Sessions.Now
	} else {
		kept.Instance.ID = "none" // it comes with the sessions, and one thing that is missing is said once
	}
	var err error
	co.runner, err = resume.New(run)
	if err := errors.Join(append(errs, err, kept.validate())...); err != nil {
		return nil, fmt.Errorf("coordinate the boot: %w", err)
	}
	if c.Message == nil {
		c.Message = plain
	}
	if c.Woken == nil {
		c.Woken = func(string) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	co.c = c
	if co.keeper, err = New(ctx, kept); err != nil {
		return nil, err
	}
	return co, nil
}

func plain(d bootnotice.Delivery) json.RawMessage {
	b, err := json.Marshal(d.Text)
	if err != nil {
		panic("a text does not encode: " + err.Error())
	}
	return b
}

// Boot is what is known of this boot.
func (c *Coordinator) Boot() bootnotice.Boot { return c.keeper.Boot() }

// Appeared says that a session is there which Host could not run before: it is resumed or told at once.
func (c *Coordinator) Appeared(name string) {
	c.keeper.Appeared(name)
	c.runner.Soon()
}

// Ack acknowledges a notice before its delivery: its session knows. It is for hosts that learn that elsewhere; what a
// session's log holds is acknowledged by itself. See [Outbox.Ack].
func (c *Coordinator) Ack(ctx context.Context, id, by string) error { return c.keeper.Ack(ctx, id, by) }

// Close ends Run and waits for it, records the stop and releases everything. Close it before the session service.
func (c *Coordinator) Close() error {
	c.keeper.halt()
	c.run.Lock()
	defer c.run.Unlock()
	return c.keeper.Close()
}

// Run decides which sessions auto-resume takes up, and takes them up one after the other; meanwhile it delivers the notices
// of the others, which need not wait for turns that take long. It then looks after sessions that are interrupted or appear
// later, until ctx ends, with Close, or when the process drains, which the Draining of the sessions says; without that it
// begins nothing more then, and may return before. The turns that it began are cancelled when ctx ends or with Close, and
// not by a drain, which waits for them; Run returns when they have. The error is of notices that could not be read or
// written: auto-resume has then ended too. Call it once.
func (c *Coordinator) Run(ctx context.Context) error {
	if c.keeper.Boot().Kind == bootnotice.Canary {
		return nil
	}
	c.run.Lock()
	defer c.run.Unlock()
	if c.keeper.ctx.Err() != nil {
		return nil // it is closed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.keeper.ctx, cancel)()
	c.ctx = ctx
	if err := c.settle(ctx); err != nil {
		return fmt.Errorf("coordinate the boot: %w", err)
	}
	items, err := c.runner.DryRun(ctx)
	if err != nil {
		c.c.Log.Error("auto-resume could not look for interrupted sessions", "error", err)
	}
	for _, i := range items {
		if i.Outcome == resume.Resumed {
			c.owed.Add(1)
		}
	}
	admitting, drained := context.WithCancel(ctx)
	defer c.turns.Wait()
	defer drained()
	c.turns.Go(func() {
		defer drained()
		c.runner.Run(ctx)
	})
	c.look()
	if err := c.keeper.rounds(admitting, true); err != nil {
		cancel()
		return fmt.Errorf("coordinate the boot: %w", err)
	}
	return nil
}

// passed follows each pass: its places are free for others.
func (c *Coordinator) passed() {
	c.owed.Store(0)
	c.look()
}

// look finds out which sessions are there: some were not before, and what was held may have been answered.
func (c *Coordinator) look() {
	if c.keeper.idle {
		return
	}
	defer c.keeper.again()
	open, err := c.pending(c.keeper.ctx)
	if err != nil {
		c.c.Log.Warn("it could not be looked who has to be told of the restart", "error", err)
		return
	}
	for _, n := range open {
		_, st := c.runner.Look(c.keeper.ctx, n.Session)
		if st.Head.Last == 0 {
			continue // its host has to say that it is there
		}
		if _, unsupported := c.c.Host.Workload(st); unsupported == "" || st.Headline == session.Aborted {
			c.keeper.Appeared(n.Session)
		}
	}
}

func (c *Coordinator) pending(ctx context.Context) (out []bootnotice.Notice, err error) {
	all, err := c.keeper.outbox.List(ctx)
	for _, n := range all {
		if n.State == bootnotice.Pending {
			out = append(out, n)
		}
	}
	return out, err
}

// settle acknowledges what an instance that died had delivered, and could not note any more: the logs hold it.
func (c *Coordinator) settle(ctx context.Context) error {
	if c.keeper.idle {
		return nil
	}
	open, err := c.pending(ctx)
	if err != nil {
		return err
	}
	for _, n := range open {
		if len(n.Attempts) == 0 {
			continue
		}
		_, told, err := c.c.Sessions.Store.Find(ctx, n.Session, n.ID)
		if err != nil {
			// The others do not wait for this one. Told again, its log has the message under the same id.
			c.c.Log.Warn("it cannot be seen whether a session was told", "session", n.Session, "notice", n.ID, "error", err)
			continue
		}
		if !told {
			continue
		}
		if err := c.keeper.outbox.Ack(ctx, n.ID, "the session's log"); err != nil {
			return fmt.Errorf("note that session %s was told: %w", n.Session, err)
		}
	}
	return nil
}

func (c *Coordinator) now() stamp.Time { return c.c.Sessions.Now() }
