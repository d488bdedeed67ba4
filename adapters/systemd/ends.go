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

// A connection tells how runners ended that left no word.
var _ restart.Ends = (*Conn)(nil)

// unitPrefix begins the name of every unit that the launcher makes; the launch id follows.
const unitPrefix = "mulligan-"

// kinds are the two kinds of unit that the launcher makes.
var kinds = [...]string{".service", ".scope"}

const (
	// noticeWithin is how long the manager may take to notice that a unit's process is gone.
	noticeWithin = 3 * time.Second
	noticePoll   = 20 * time.Millisecond
)

// End implements restart.Ends: the result of the unit that the launcher made for r, or, for a run that was started
// otherwise, of the service whose main process its runner was. A scope has no main process, so its result tells of no
// signal. Where the service has been started again since, its result is another run's, and nothing is known.
func (c *Conn) End(ctx context.Context, r run.Run) (restart.End, error) {
	unit, name, err := c.unitOf(ctx, r)
	if err != nil || unit == "" {
		return restart.End{}, err
	}
	res, err := c.noticed(ctx, unit)
	switch {
	case noUnit(err), err == nil && (res.Result == "" || res.Result == "success"):
		return restart.End{}, nil
	case err != nil:
		return restart.End{}, fmt.Errorf("read how %s ended: %w", name, err)
	}
	return restart.End{Cause: res.Cause(), Text: fmt.Sprintf("systemd says of its unit %s: %s.", name, res)}, nil
}

// unitOf is the unit that a run's runner was the main process of, as the bus knows it, and its name. Both are empty when
// there is none.
func (c *Conn) unitOf(ctx context.Context, r run.Run) (unit, name string, err error) {
	if r.Launch != "" {
		for _, kind := range kinds {
			name := unitPrefix + r.Launch + kind
			state, err := property[string](ctx, c, name, "Unit", "LoadState")
			if err != nil || state == "loaded" {
				return name, name, err
			}
		}
		return "", "", nil
	}
	// The manager gives every start of a unit an id of its own, which the program's environment has and the bus takes in a
	// unit's place. Whoever is not the main process has merely inherited it.
	for _, kv := range r.Recipe.Env {
		if id, ok := strings.CutPrefix(kv, "INVOCATION_ID="); ok {
			unit = id
		}
	}
	if unit == "" {
		return "", "", nil
	}
	name, err1 := property[string](ctx, c, unit, "Unit", "Id")
	if noUnit(err1) || err1 == nil && !strings.HasSuffix(name, ".service") {
		return "", "", nil
	}
	pid, err2 := property[uint32](ctx, c, unit, "Service", "ExecMainPID")
	if noUnit(err2) || err2 == nil && int(pid) != r.Instance.PID {
		return "", "", nil
	}
	return unit, name, errors.Join(err1, err2)
}

// noticed is the result of a unit whose main process is gone, once the manager has noticed that.
func (c *Conn) noticed(ctx context.Context, unit string) (res Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, noticeWithin)
	defer cancel()
	for {
		state, err := property[string](ctx, c, unit, "Unit", "ActiveState")
		if err != nil {
			return res, err
		}
		if res, err = c.Result(ctx, unit); err != nil || res.Result != "success" || state != "active" {
			return res, err
		}
		select {
		case <-time.After(noticePoll):
		case <-ctx.Done():
			return res, nil // it has not ended: something else of it lives on
		}
	}
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
	var errs []error
	for _, u := range failed {
		for _, kind := range kinds {
			launch, ours := strings.CutSuffix(strings.TrimPrefix(u.Name, unitPrefix), kind)
			if !ours || !over(launch) {
				continue
			}
			// Another healer may have been faster.
			if err := c.bus.ResetFailedUnitContext(ctx, u.Name); err != nil && !noUnit(err) {
				errs = append(errs, fmt.Errorf("reset %s: %w", u.Name, err))
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
