package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

const (
	liveName   = "live"
	markerName = "marker.json"
	beatName   = "beat.json"
)

// Sessions shows the states of sessions. A *sessions.Service is one.
type Sessions interface {
	// Status is the state of one session.
	Status(ctx context.Context, name string) (session.Status, error)
	// List is a page of sessions above a name, in order; an empty one is the end. Those that cannot be read are named by a
	// *session.PageError beside the others.
	List(ctx context.Context, after string, limit int) ([]session.Status, error)
}

// Deliverer is how the host gets a notice into a session.
type Deliverer interface {
	// Deliver puts the message into the session and does not wait for what comes of it: with the way "wake" the session
	// begins a turn with it, with "inject" it waits for the next one. seen acknowledges the notice at once: the message
	// stands where it cannot be lost, as in the session's log under the delivery's id. Otherwise whoever sees it calls Ack.
	// An error means that it was not delivered.
	Deliver(ctx context.Context, d bootnotice.Delivery) (seen bool, err error)
	// Undeliverable says, once, that a notice was given up: nobody will deliver it any more.
	Undeliverable(ctx context.Context, n bootnotice.Notice) error
}

// Config is what a keeper is made of.
type Config struct {
	// Dir is the folder of the marker and the outbox, made when it is absent. Required, absolute; one folder for each
	// service. The command line looks for it at boot in the state folder, unless its config block restart_notice names
	// another (dir).
	Dir string
	// Instance is this process, as ledger.Instances.Self names it. Required, with its id. A host that reloads itself in
	// place keeps it, and by that the reload is told from a restart.
	Instance ledger.Instance
	// Deliver is the host's way into its sessions. Required.
	Deliver Deliverer
	// Sessions are the durable sessions; nil for a host without, which calls Busy around its turns.
	Sessions Sessions
	// Startup are the sessions of the root agents that this boot starts, in their order.
	Startup []string
	// Notice is the block restart_notice.
	Notice bootnotice.Config
	// Rule is what was decided about a session, as a Coordinator does; nil reads it from the session's state alone, for
	// hosts without auto-resume. It is called right before a notice is delivered.
	Rule func(ctx context.Context, name string) bootnotice.Ruling
	// Wake is asked before a session is woken and counts it against the cap of auto-resume; with an error the message waits
	// for the session's next turn, with that as its reason. Nil allows every wake.
	Wake func(ctx context.Context, name string) error
	// Beat is how often the heartbeat is written; zero means bootnotice.BeatEvery.
	Beat time.Duration
	// Now is the clock. Nil means the machine's.
	Now func() stamp.Time
	// Log is told what nobody is there to be told; nil discards.
	Log *slog.Logger

	fs durable.FS // nil is the machine's
}

// Keeper is one instance's part in the chain of boots. It is safe for concurrent use.
type Keeper struct {
	c    Config
	boot bootnotice.Boot
	// idle is set for a keeper that takes no part: a canary's, a second instance's.
	idle   bool
	dir    durable.Dir
	live   durable.Lock
	outbox *Outbox
	input  bootnotice.Input // under mu from when the boot has been noted
	come   chan struct{}
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup
	close  func() error

	mu      sync.Mutex
	unread  []unread // and input, from when the boot has been noted
	closed  bool
	marker  bootnotice.Marker
	busy    map[string]int
	present map[string]bool
}

func (c *Config) validate() error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("Dir is missing: the folder of the marker"))
	}
	if c.Instance.ID == "" {
		errs = append(errs, errors.New("Instance is missing: ask ledger.Instances for Self"))
	}
	if c.Deliver == nil {
		errs = append(errs, errors.New("Deliver is missing: the host's way into its sessions"))
	}
	if c.Beat < 0 {
		errs = append(errs, fmt.Errorf("Beat: %v is negative", c.Beat))
	}
	notice, err := c.Notice.WithDefaults()
	errs = append(errs, err)
	c.Notice = notice
	if c.Beat == 0 {
		c.Beat = bootnotice.BeatEvery
	}
	if c.Now == nil {
		c.Now = host.Now
	}
	if c.fs == nil {
		c.fs = durable.System{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}

// New finds out what kind of boot this is, writes down who has to be told, and begins to keep the marker. It reports all
// that is wrong with its config at once.
func New(ctx context.Context, c Config) (*Keeper, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("keep the boot: %w", err)
	}
	k := &Keeper{c: c, come: make(chan struct{}, 1), busy: map[string]int{}, present: map[string]bool{}}
	k.close = sync.OnceValue(k.release)
	k.ctx, k.stop = context.WithCancel(context.Background())
	for _, s := range c.Startup {
		k.present[s] = true
	}
	if inside.Inert() {
		k.idle, k.boot = true, bootnotice.Boot{Kind: bootnotice.Canary, ID: c.Instance.ID, At: c.Now()}
		return k, nil
	}
	if err := k.open(ctx); err != nil {
		// Nothing of ours stands in the marker yet, so no stop is recorded.
		k.idle = true
		return nil, errors.Join(fmt.Errorf("keep the boot in %s: %w", c.Dir, err), k.Close())
	}
	return k, nil
}

func (k *Keeper) open(ctx context.Context) (err error) {
	if k.dir, err = k.c.fs.Open(k.c.Dir); err != nil {
		return err
	}
	if err := durable.Private(k.dir); err != nil {
		return err
	}
	if k.live, err = k.dir.Lock(liveName); err != nil {
		return err
	}
	ours, err := k.live.Try(false)
	if err != nil {
		return err
	}
	if k.outbox, err = newOutbox(k.dir, k.c.Now); err != nil {
		return err
	}
	last, err := k.last()
	if err != nil {
		return err
	}
	k.boot = bootnotice.Classify(last, k.c.Instance, k.c.Now(), !ours)
	if !ours {
		k.idle = true
		return nil
	}
	if err := k.note(ctx, last); err != nil {
		return err
	}
	k.marker = bootnotice.Marker{Instance: k.c.Instance, Serial: host.Serial(), Started: k.boot.At}
	if k.boot.Kind == bootnotice.Reload {
		k.marker = *last
		k.marker.Stop, k.marker.Active = stamp.Time{}, nil // the keeper that noted the turns ended with them
	}
	if err := save(k.dir, markerName, k.marker); err != nil {
		return err
	}
	if err := k.beat(); err != nil {
		return err
	}
	k.work.Go(k.beats)
	return nil
}

// last is the marker of the instance before, with its last heartbeat. What cannot be read is a corrupt marker: there was
// somebody.
func (k *Keeper) last() (*bootnotice.Marker, error) {
	var m bootnotice.Marker
	err := load(k.dir, markerName, &m)
	var damage *DamageError
	switch {
	case durable.Absent(err):
		return nil, nil
	case errors.As(err, &damage):
		k.c.Log.Warn("the last marker cannot be read, so the downtime is not known", "error", err)
		return &bootnotice.Marker{Corrupt: true}, nil
	case err != nil:
		return nil, err
	}
	serial := host.Serial()
	m.Other = serial != 0 && m.Serial != 0 && m.Serial != serial
	var b heartbeat
	switch err := load(k.dir, beatName, &b); {
	case err == nil && b.Instance == m.Instance.ID:
		m.Beat = b.At
	case err != nil && !durable.Absent(err):
		k.c.Log.Warn("the last heartbeat cannot be read, so the downtime may be too long", "error", err)
	}
	return &m, nil
}

// note writes down who has to be told of the stop, before our marker takes the place of the one that tells of it.
func (k *Keeper) note(ctx context.Context, last *bootnotice.Marker) error {
	if !k.boot.Kind.Restart() {
		return nil
	}
	before, err := k.outbox.read()
	if err != nil {
		return err
	}
	stored, lost, err := k.stored(ctx)
	if err != nil {
		return err
	}
	atStop, unread := recall(last, stored, lost, before.Unread)
	k.unread = unread
	k.input = bootnotice.Input{Boot: k.boot, Sessions: atStop, Startup: k.c.Startup, Config: k.c.Notice}
	return k.outbox.update(ctx, func(c *contents) error {
		c.Unread = unread
		k.input.Requests = c.Requests
		// An instance may have gone as far as here for the same stop, and died: it was asked for all the same.
		for _, n := range c.Notices {
			if n.Why == bootnotice.Requested && n.Boot.ID == k.boot.ID {
				k.input.Requests = append(k.input.Requests, bootnotice.Request{ID: n.ID, Session: n.Session, Reason: n.Reason, At: n.Made})
			}
		}
		add(c, bootnotice.Decide(k.input), k.boot.At)
		c.Requests = nil
		return nil
	})
}

// stored are the states of all durable sessions as the stop left them, and the names of those that cannot be read.
func (k *Keeper) stored(ctx context.Context) (out []session.Status, lost []string, err error) {
	if k.c.Sessions == nil {
		return nil, nil, nil
	}
	for st, err := range session.All(ctx, k.c.Sessions.List) {
		var bad *session.UnreadableError
		switch {
		case errors.As(err, &bad):
			k.c.Log.Error("it is not known whether a session has to be told of the restart", "session", bad.Session, "error", err)
			lost = append(lost, bad.Session)
		case err != nil:
			return nil, nil, fmt.Errorf("read the sessions: %w", err)
		default:
			out = append(out, st)
		}
	}
	return out, lost, nil
}

// Boot is what is known of this boot.
func (k *Keeper) Boot() bootnotice.Boot { return k.boot }

// Outbox is where requests are noted and notices acknowledged; it ends with the keeper. Nil in a canary.
func (k *Keeper) Outbox() *Outbox { return k.outbox }

type heartbeat struct {
	Instance string     `json:"instance"`
	At       stamp.Time `json:"at"`
}

// beat says that we live. It is not flushed: a kill leaves it in the page cache, where the next instance finds it, and
// after a power cut an older one does.
func (k *Keeper) beat() error {
	return sealed(beatName).Leave(k.dir, heartbeat{k.c.Instance.ID, k.c.Now()})
}

func (k *Keeper) beats() {
	tick := time.NewTicker(k.c.Beat)
	defer tick.Stop()
	for failing := false; ; {
		select {
		case <-k.ctx.Done():
			return
		case <-tick.C:
		}
		err := k.beat()
		if err != nil && !failing {
			k.c.Log.Warn("the heartbeat could not be written: a downtime would be told too long", "error", err)
		}
		failing = err != nil
	}
}

// Busy notes durably that a turn of a session begins, so that the next instance knows of it however this one ends. Call
// idle when it is over; idle may be called twice. A host whose sessions are in a store needs neither: the log tells.
func (k *Keeper) Busy(name string) (idle func() error, err error) {
	if k.idle {
		return func() error { return nil }, nil
	}
	if err := k.mark(func() { k.busy[name]++ }); err != nil {
		// The turn does not begin. What the disk may have of it the next mark takes away.
		k.mu.Lock()
		k.leave(name)
		k.mu.Unlock()
		return nil, fmt.Errorf("note the turn of session %s: %w", name, err)
	}
	return sync.OnceValue(func() error {
		err := k.mark(func() {
			k.leave(name)
			k.marker.Last = bootnotice.Activity{Session: name, At: k.c.Now()}
		})
		if err != nil {
			return fmt.Errorf("note the end of a turn of session %s: %w", name, err)
		}
		return nil
	}), nil
}

// leave takes one turn of a session out of those that are under way. The caller holds the lock.
func (k *Keeper) leave(name string) {
	if k.busy[name]--; k.busy[name] <= 0 {
		delete(k.busy, name)
	}
}

var errClosed = errors.New("the keeper is closed")

// mark changes the marker durably.
func (k *Keeper) mark(change func()) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return errClosed
	}
	change()
	now := k.c.Now()
	was := k.marker.Active
	k.marker.Active = nil
	for _, name := range slices.Sorted(maps.Keys(k.busy)) {
		a := bootnotice.Activity{Session: name, At: now}
		if i := slices.IndexFunc(was, func(a bootnotice.Activity) bool { return a.Session == name }); i >= 0 {
			a = was[i]
		}
		k.marker.Active = append(k.marker.Active, a)
	}
	return save(k.dir, markerName, k.marker)
}

// Close records the stop, ends Run and releases everything. Turns that are still noted as under way were cut off by the
// stop, and the next instance tells their sessions. Closing again does nothing.
func (k *Keeper) Close() error { return k.close() }

// halt ends Run. It is under the lock, so that none begins from here on.
func (k *Keeper) halt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stop()
}

func (k *Keeper) release() error {
	k.halt()
	k.work.Wait()
	var err error
	if !k.idle {
		err = k.mark(func() { k.marker.Stop = k.c.Now() })
	}
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	if k.outbox != nil {
		_ = k.outbox.lock.Close()
	}
	if k.live != nil {
		_ = k.live.Close()
	}
	if k.dir != nil {
		_ = k.dir.Close()
	}
	if err != nil {
		return fmt.Errorf("record the stop in %s: %w", k.c.Dir, err)
	}
	return nil
}
