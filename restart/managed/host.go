package managed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/witness"
)

// Config is all that a host of runs needs.
type Config struct {
	// Stores are the healer's own. Only Ledger, Instances, Doorbells and Runs are used.
	Stores restart.Stores
	// Sources read the identities of roots, by Root.Kind.
	Sources map[string]witness.Source
	// Programs runs programs; only Exec and Replace need it.
	Programs Programs
	// Dir is the folder for phase files and logs. It must exist.
	Dir string
	// Logger is told what goes on; nil discards.
	Logger *slog.Logger
	// Now is this machine's clocks by default; a simulated host brings its own.
	Now func() stamp.Time
}

// Host registers runs.
type Host struct {
	cfg   Config
	log   *slog.Logger
	reads reads
}

// New validates the config and reports all that is wrong with it at once.
func New(cfg Config) (*Host, error) {
	var errs []error
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"Stores.Ledger", cfg.Stores.Ledger != nil}, {"Stores.Instances", cfg.Stores.Instances != nil},
		{"Stores.Doorbells", cfg.Stores.Doorbells != nil}, {"Stores.Runs", cfg.Stores.Runs != nil}, {"Dir", cfg.Dir != ""},
	} {
		if !f.set {
			errs = append(errs, fmt.Errorf("%s is missing", f.name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("managed host: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = host.Now
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Host{cfg: cfg, log: log}, nil
}

// Spec describes a run to start.
type Spec struct {
	Project, Name string
	Recipe        run.Recipe
	// Runtime is the interpreter that the program boots with, nil when it has none that can be probed.
	Runtime    *run.Runtime
	Roots      []witness.Root
	Workspaces []string
	// WaitsFor are names of the same project whose runs this one waits for.
	WaitsFor []string
	// Supervised names what restarts the run by itself, empty for nothing.
	Supervised string
	// Silenced says that the host holds the run's own failure notice back for the healer.
	Silenced bool
}

func (s Spec) validate() error {
	var errs []error
	if s.Project == "" {
		errs = append(errs, errors.New("the project is empty"))
	}
	if s.Name == "" {
		errs = append(errs, errors.New("the name is empty"))
	}
	if !utf8.ValidString(s.Project) || !utf8.ValidString(s.Name) {
		errs = append(errs, fmt.Errorf("project %q and name %q: want valid UTF-8", s.Project, s.Name))
	}
	seen := map[string]bool{}
	for i, r := range s.Roots {
		if r.Name == "" {
			errs = append(errs, fmt.Errorf("root %d has no name", i+1))
		}
		if seen[r.Name] {
			errs = append(errs, fmt.Errorf("root %q is declared twice", r.Name))
		}
		seen[r.Name] = true
	}
	return errors.Join(errs...)
}

// errMoved means that the name went from one dead run to another between a look and the start.
var errMoved = errors.New("the name keeps changing hands")

// moves bounds how often a start looks again. Each time somebody else took the name and died within a moment.
const moves = 10

// register creates the run of a spec and takes its name from whoever is dead. The run that had it before is on record
// with the new one, in the same step, so that it can be followed whatever happens next. phases is where the run's program
// marks its phases; nil for a run without a program of its own.
func (h *Host) register(ctx context.Context, spec Spec, p Person, phases func(run.Run) string) (run.Run, error) {
	if err := spec.validate(); err != nil {
		return run.Run{}, fmt.Errorf("start a run: %w", err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return run.Run{}, fmt.Errorf("make a run id: %w", err)
	}
	r := run.Run{
		Schema: run.Schema, ID: id.String(), Lineage: id.String(), Project: spec.Project, Name: spec.Name,
		Recipe: spec.Recipe, Runtime: spec.Runtime, Instance: h.cfg.Stores.Instances.Self(), Phase: run.Booting,
		Roots: spec.Roots, Workspaces: spec.Workspaces, WaitsFor: spec.WaitsFor,
		Supervised: spec.Supervised, Silenced: spec.Silenced, Started: h.cfg.Now(),
	}
	if phases != nil {
		r.PhaseFile = phases(r)
	}
	if inside.Inert() {
		return r, nil // a run of a canary is nobody's run: it takes no name
	}
	r.Boot = h.identities(ctx, spec.Roots)
	var before *run.Run
	for try := 0; try == 0 || errors.Is(err, errMoved) && try < moves; try++ {
		var last run.Run
		if last, err = h.cfg.Stores.Runs.Holder(ctx, r.Project, r.Name); err != nil && !errors.Is(err, run.ErrNotFound) {
			break
		}
		if r.After = ""; err == nil && !endedWell(last) {
			r.After = last.ID
		}
		err = h.cfg.Stores.Runs.Start(ctx, r, func(holder *run.Run) error {
			before = holder
			if err := h.free(holder); err != nil {
				return err
			}
			if holder != nil && !endedWell(*holder) && holder.ID != r.After {
				return errMoved
			}
			return nil
		})
	}
	if err != nil {
		return run.Run{}, fmt.Errorf("start %s/%s: %w", spec.Project, spec.Name, err)
	}
	if before != nil && !endedWell(*before) {
		h.supersede(ctx, *before, r.ID, p)
	}
	return r, nil
}

func endedWell(r run.Run) bool { return r.Ended != nil && r.Ended.OK }

// free refuses a holder that is, or may be, alive.
func (h *Host) free(holder *run.Run) error {
	if holder != nil && restart.MayLive(h.cfg.Stores.Instances, *holder) {
		return &run.NameHeldError{Project: holder.Project, Name: holder.Name, Run: holder.ID, Instance: holder.Instance}
	}
	return nil
}
