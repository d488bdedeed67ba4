package systemd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	godbus "github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart"
)

// A connection tells how runners ended that left no word, and so do the programs.
var (
	_ restart.Ends = (*Conn)(nil)
	_ restart.Ends = (*Programs)(nil)
)

// unitPrefix begins the name of every unit that the launcher makes; the launch id follows.
const unitPrefix = "mulligan-"

// kinds are the two kinds of unit that the launcher makes.
var kinds = [...]string{".service", ".scope"}

const (
	// noticeWithin is how long the manager may take to notice that a unit's process is gone.
	noticeWithin = 3 * time.Second
	noticePoll   = 20 * time.Millisecond
)

// seen is what a manager says of a unit. Without a name it knows none.
type seen struct {
	name, load, active string
	main               int // the main process of its last start
	result             Result
}

// asker is a way to ask a manager.
type asker interface {
	// look reads a unit by its name, or by the id of one of its starts.
	look(ctx context.Context, ref string) (seen, error)
}

// End implements restart.Ends: the result of the unit that the launcher made for r, or, for a run that was started
// otherwise, of the service whose main process its runner was. A scope has no main process, so its result tells of no
// signal. Where the service has been started again since, its result is another run's, and nothing is known.
func (c *Conn) End(ctx context.Context, r run.Run) (restart.End, error) { return end(ctx, c, r) }

// End is [Conn.End].
func (p *Programs) End(ctx context.Context, r run.Run) (restart.End, error) { return end(ctx, p, r) }

func end(ctx context.Context, m asker, r run.Run) (restart.End, error) {
	unit, err := unitOf(ctx, m, r)
	if err != nil || unit.name == "" {
		return restart.End{}, err
	}
	s, err := noticed(ctx, m, unit.ref)
	switch {
	case err != nil:
		return restart.End{}, fmt.Errorf("read how %s ended: %w", unit.name, err)
	case s.result.Result == "" || s.result.Result == "success":
		return restart.End{}, nil
	}
	return restart.End{Cause: s.result.Cause(), Text: fmt.Sprintf("systemd says of its unit %s: %s.", unit.name, s.result)}, nil
}

// named is a unit by its name, and by what it is asked for.
type named struct{ name, ref string }

// unitOf is the unit that a run's runner was the main process of; empty when there is none.
func unitOf(ctx context.Context, m asker, r run.Run) (named, error) {
	if r.Launch != "" {
		for _, kind := range kinds {
			name := unitPrefix + r.Launch + kind
			s, err := m.look(ctx, name)
			if err != nil || s.load == "loaded" {
				return named{name, name}, err
			}
		}
		return named{}, nil
	}
	// The manager gives every start of a unit an id of its own, which the program's environment has and the bus takes in a
	// unit's place. Whoever is not the main process has merely inherited it.
	id := ""
	for _, kv := range r.Recipe.Env {
		if v, ok := strings.CutPrefix(kv, "INVOCATION_ID="); ok {
			id = v
		}
	}
	if id == "" {
		return named{}, nil
	}
	s, err := m.look(ctx, id)
	if err != nil || !strings.HasSuffix(s.name, ".service") || s.main != r.Instance.PID {
		return named{}, err
	}
	return named{s.name, id}, nil
}

// noticed is a unit whose main process is gone, once the manager has noticed that.
func noticed(ctx context.Context, m asker, ref string) (seen, error) {
	ctx, cancel := context.WithTimeout(ctx, noticeWithin)
	defer cancel()
	for {
		s, err := m.look(ctx, ref)
		if err != nil || s.result.Result != "success" || s.active != "active" {
			return s, err
		}
		select {
		case <-time.After(noticePoll):
		case <-ctx.Done():
			return s, nil // it has not ended: something else of it lives on
		}
	}
}

// look implements asker. A unit that the manager forgets meanwhile is none.
func (c *Conn) look(ctx context.Context, ref string) (s seen, err error) {
	if s.name, err = property[string](ctx, c, ref, "Unit", "Id"); err == nil && strings.HasSuffix(s.name, ".service") {
		var pid uint32
		pid, err = property[uint32](ctx, c, ref, "Service", "ExecMainPID")
		s.main = int(pid)
	}
	if err == nil {
		s.load, err = property[string](ctx, c, ref, "Unit", "LoadState")
	}
	if err == nil { // read before the result, which it is to be no younger than
		s.active, err = property[string](ctx, c, ref, "Unit", "ActiveState")
	}
	if err == nil && s.load == "loaded" {
		s.result, err = c.Result(ctx, ref)
	}
	if noUnit(err) {
		return seen{}, nil
	}
	return s, err
}

// noUnit tells an error that says that the manager has forgotten the unit.
func noUnit(err error) bool {
	var bus godbus.Error
	if !errors.As(err, &bus) {
		return false
	}
	switch bus.Name {
	case "org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.systemd1.NoUnitForInvocationID", "org.freedesktop.DBus.Error.UnknownObject":
		return true
	}
	return false
}

// Release implements restart.Ends: failed units of the launcher are reset, after which the manager forgets them.
func (c *Conn) Release(ctx context.Context, over func(launch string) bool) error {
	failed, err := c.bus.ListUnitsByPatternsContext(ctx, []string{"failed"}, []string{unitPrefix + "*"})
	if err != nil {
		return fmt.Errorf("list the failed units of launches: %w", err)
	}
	var names []string
	for _, u := range failed {
		names = append(names, u.Name)
	}
	return release(names, over, func(unit string) error {
		if err := c.bus.ResetFailedUnitContext(ctx, unit); !noUnit(err) {
			return err
		}
		return nil // another healer was faster
	})
}

// release resets those of the failed units whose launches are over.
func release(failed []string, over func(launch string) bool, reset func(unit string) error) error {
	var errs []error
	for _, unit := range failed {
		for _, kind := range kinds {
			launch, ours := strings.CutSuffix(strings.TrimPrefix(unit, unitPrefix), kind)
			if !ours || !over(launch) {
				continue
			}
			if err := reset(unit); err != nil {
				errs = append(errs, fmt.Errorf("reset %s: %w", unit, err))
			}
		}
	}
	return errors.Join(errs...)
}

// String is the result in the manager's words, with what ended the main process: "signal (SIGKILL)".
func (r Result) String() string {
	switch r.Code {
	case 1:
		return fmt.Sprintf("%s (exit status %d)", r.Result, r.Status)
	case 2, 3:
		if name := unix.SignalName(unix.Signal(r.Status)); name != "" {
			return fmt.Sprintf("%s (%s)", r.Result, name)
		}
	}
	return r.Result
}
