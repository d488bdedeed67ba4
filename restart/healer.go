package restart

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/witness"
)

// Runtime is what the healer needs to know of one runtime: where a module lies, and how to prove that it loads.
type Runtime struct {
	// Modules maps module names to files, for the file proof (W3).
	Modules witness.Modules
	// Planner says what to load, and Prober loads it; without them every relaunch is declined with no_prober.
	Planner Planner
	Prober  probe.Prober
}

// Planner makes the probe of one death: which modules of the current tree have to load for it to be healthy, of those on the
// failing stack (Verdict.ManagedModules) and the one that was asked for (Verdict.Module). ok is false when nothing is left
// to load: empty is no pass. A planner that also is a [Refuser] says of which runs it never has one.
type Planner interface {
	Plan(r run.Run, v classify.Verdict) (p probe.Plan, ok bool)
}

// Refuser is an optional power of a [Planner]: it knows the runs that it will never have a plan for, whatever becomes of
// the tree, because nobody knows which interpreter they had, say. Such a run is declined at once, with no_prober; one whose
// planner has not this power waits, as where nothing is left to load, and expires.
type Refuser interface {
	// Refuses says why, in one sentence for people, with what to do about it; empty for any other run.
	Refuses(r run.Run) string
}

// Config is all that a healer needs. Stores, Classifier and Launcher are required.
type Config struct {
	Stores     Stores
	Classifier *classify.Classifier
	// Sources read identities, by Root.Kind.
	Sources map[string]witness.Source
	// Runtimes load modules, by Root.Runtime.
	Runtimes map[string]Runtime
	Launcher Launcher
	// Ends tells how a runner ended that left no word itself; nil when nobody knows.
	Ends Ends
	// Admission may keep a replacement back, or refuse it, beside the launcher's own preflight; nil admits every one.
	Admission Admission
	// Notifiers are all told; a notice is acknowledged when every one took it.
	Notifiers []notify.Notifier
	Settings  Settings
	// Logger is told what goes on; nil discards.
	Logger *slog.Logger
	// Now is this machine's clocks by default; a simulated host brings its own.
	Now func() stamp.Time
}

// Healer is the engine. Its methods may be called at the same time; any number of healers, in any number of
// processes, may share one set of stores.
type Healer struct {
	cfg  Config
	set  Settings
	log  *slog.Logger
	self ledger.Instance
	// dry turns every write off; see dryrun.go.
	dry bool

	mu   sync.Mutex // one pass at a time in this process
	memo probe.Memo
	// seen are the records as this healer last saw them; a hint for what is open and who belongs to an episode, read
	// anew by every full pass.
	seen map[ledger.Key]ledger.Record
	// owed are the episodes whose report or row may be behind, with the records that are ahead; nil until the first full
	// pass has looked.
	owed map[string][]ledger.Key
	// shown are the notices that were shown while the state, which would remember them, could not be read, and what else
	// is said once in this healer's life.
	shown map[string]bool
	// changes are the last changes of roots, by their place.
	changes map[string]change
	held    sync.WaitGroup // programs that were started held and are watched to their end
	// switched is set once this healer's switch is on record; over are the runs that can not be lost any more.
	switched bool
	over     map[string]bool
	// strange are launches that something keeps the end of and that are not in this ledger.
	strange map[string]bool
	// lingering are runs whose runner is gone and whose program lives, with when that was seen first.
	lingering map[string]stamp.Time
	// watching has the run ids of those whose end is not on record yet.
	watching sync.Map
}

// New validates the config and reports all that is wrong with it at once.
func New(cfg Config) (*Healer, error) {
	errs := []error{cfg.Stores.Validate(), cfg.Settings.validate()}
	if cfg.Classifier == nil {
		errs = append(errs, errors.New("Classifier is missing"))
	}
	switch {
	case cfg.Launcher == nil:
		errs = append(errs, errors.New("Launcher is missing"))
	case cfg.Launcher.Mode() != Runner && cfg.Launcher.Mode() != Held:
		errs = append(errs, fmt.Errorf("the launcher declares mode %q, want %q or %q: a replacement that starts before the launch gate could run twice",
			cfg.Launcher.Mode(), Runner, Held))
	}
	for name, rt := range cfg.Runtimes {
		if (rt.Prober == nil) != (rt.Planner == nil) {
			errs = append(errs, fmt.Errorf("runtime %q: Prober and Planner go together", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("healer: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = host.Now
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Healer{cfg: cfg, set: cfg.Settings.withDefaults(), log: log, self: cfg.Stores.Instances.Self(),
		seen: map[ledger.Key]ledger.Record{}, shown: map[string]bool{}, changes: map[string]change{}, strange: map[string]bool{},
		lingering: map[string]stamp.Time{}}, nil
}

// Wait returns when every program that this healer started held has ended. Only a host whose launcher is of that mode
// needs it.
func (h *Healer) Wait() { h.held.Wait() }

// Resume ends a pause, whoever or whatever made it, and tells what was paused. It is no error when nothing was.
func (h *Healer) Resume(ctx context.Context, by string) (was bool, err error) {
	if inside.Inert() {
		return false, fmt.Errorf("resume: %w", inside.ErrInert)
	}
	_, err = h.cfg.Stores.Storm.UpdateState(ctx, func(cur storm.State, now stamp.Time) (storm.State, error) {
		was = cur.Paused != nil
		return cur.Resume(now), nil
	})
	if err != nil {
		return false, fmt.Errorf("resume: %w", err)
	}
	h.log.Info("resumed", "by", by, "was_paused", was)
	return was, nil
}
