package systemd

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Ready tells the manager that a service of Type=notify has started. ok is false when no manager wants to know.
func Ready() (ok bool, err error) { return tell(daemon.SdNotifyReady) }

// Stopping tells the manager that the service is about to end.
func Stopping() (ok bool, err error) { return tell(daemon.SdNotifyStopping) }

// Status is a line for `systemctl status`.
func Status(text string) (ok bool, err error) { return tell("STATUS=" + text) }

// ExtendTimeout asks for more time to start or to stop, from now on.
func ExtendTimeout(d time.Duration) (ok bool, err error) {
	return tell(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", d.Microseconds()))
}

func tell(state string) (bool, error) {
	ok, err := daemon.SdNotify(false, state)
	if err != nil {
		return false, fmt.Errorf("tell the service manager: %w", err)
	}
	return ok, nil
}

// Watchdog tells the manager twice in each of its intervals that the service is well, as long as healthy says so, until
// the context ends. It returns at once where the unit has no WatchdogSec=.
func Watchdog(ctx context.Context, healthy func() bool) error {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return err
	}
	tick := time.NewTicker(every / 2)
	defer tick.Stop()
	for {
		if healthy() {
			if _, err := tell(daemon.SdNotifyWatchdog); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
