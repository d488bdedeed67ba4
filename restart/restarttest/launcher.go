package restarttest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

var dawnStamp = stamp.Wall(dawn, 0)

// cut splits a name into module, symbol and root.
func cut(name string) (module, symbol, root string) {
	module, symbol, _ = strings.Cut(name, ":")
	root, _, _ = strings.Cut(module, ".")
	return module, symbol, root
}

// Fate is what becomes of a launch.
type Fate string

// The fates.
const (
	Runs  Fate = ""      // its runner passes the gate and the program begins
	Fails Fate = "fails" // nothing can be started
	Dies  Fate = "dies"  // its runner is gone before the gate
	Hangs Fate = "hangs" // its runner is so slow that the lease ends first; World.Late lets it go on
)

// Start is one program that the healer put back.
type Start struct {
	Name, Lineage, Launch string
	At                    stamp.Time
}

// Launches says what becomes of the launches to come.
func (w *World) Launches(f Fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fate = f
}

// Starts are the programs that were put back, in the order in which they began to run.
func (w *World) Starts() []Start {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Start(nil), w.starts...)
}

// launcher starts replacements for one healer process, each in a process of its own, and waits until the program runs or
// its runner is gone: what a launch leads to is then the same every time.
type launcher struct {
	w *World
	p *process
}

func (l launcher) Mode() restart.Mode { return restart.Runner }

// Preflight implements restart.Launcher. That a supervised run is refused is the healer's own rule, and is left to it here.
func (l launcher) Preflight(ctx context.Context, o restart.Order) policy.Preflight {
	if f := l.w.cfg.Preflight; f != nil {
		return f(ctx, o)
	}
	return policy.Preflight{}
}

// Launch implements restart.Launcher.
func (l launcher) Launch(_ context.Context, o restart.Order) (s restart.Started, err error) {
	err = l.p.step("start", func() error { s, err = l.launch(o); return err })
	return s, err
}

func (l launcher) launch(o restart.Order) (restart.Started, error) {
	l.w.mu.Lock()
	fate := l.w.fate
	l.w.mu.Unlock()
	gone := make(chan struct{})
	switch fate {
	case Fails:
		return restart.Started{}, errors.New("no room for another process")
	case Dies:
		close(gone)
	case Hangs:
		l.w.mu.Lock()
		l.w.late = append(l.w.late, o)
		l.w.mu.Unlock()
		l.p.waits(true)
	default:
		gone = l.w.replace(o).launch.gone
	}
	return restart.Started{Exited: gone}, nil
}

// replace is the runner of a replacement.
func (w *World) replace(o restart.Order) *Agent {
	a := &Agent{w: w, Name: o.Dead.Name, p: w.spawn(),
		launch: &launched{began: make(chan managed.Program, 1), end: make(chan managed.End), gone: make(chan struct{})}}
	host := a.host(a.launch)
	go func() {
		defer close(a.launch.gone)
		a.launch.res, a.launch.err = host.Replace(w.ctx, o.Key, o.Launch)
	}()
	if a.launch.begins() != nil {
		a.ended = true
		a.p.bury()
		return a
	}
	holder, err := w.people.stores.Runs.Holder(w.ctx, o.Key.Project, a.Name)
	w.must(err)
	a.id = holder.ID
	w.mu.Lock()
	w.starts = append(w.starts, Start{Name: a.Name, Lineage: o.Key.Lineage, Launch: o.Launch, At: w.Now()})
	w.mu.Unlock()
	w.join(a)
	return a
}

// Late lets the runners of launches that hung go on, now. The error is what kept one of them from running its program;
// nil means that all ran.
func (w *World) Late() error {
	w.tick()
	w.mu.Lock()
	late := w.late
	w.late = nil
	w.mu.Unlock()
	var errs []error
	for _, o := range late {
		if a := w.replace(o); a.ended {
			errs = append(errs, fmt.Errorf("the replacement of %s did not run: %w", a.Name, a.launch.err))
		}
	}
	return errors.Join(errs...)
}
