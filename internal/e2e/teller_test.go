package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/inbox"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
)

// tale is a healer that makes some passes and is killed on the way.
type tale struct {
	// Kill is the durable operation before which it is killed, 0 for never.
	Kill int
	// Passes is how many it makes at most, Count a file that gets a byte for each.
	Passes int
	Count  string
	// Disabled is the switch in the config, Ahead what its clock is ahead by.
	Disabled bool
	Ahead    time.Duration
}

// notifiers are the role's: an inbox that all healers of the story share, or none.
func (m more) notifiers(o *options) error {
	if m.Inbox == "" {
		o.notifiers = []notify.Notifier{}
		return nil
	}
	box, err := inbox.New(inbox.Config{Dir: m.Inbox})
	o.notifiers = []notify.Notifier{box}
	return err
}

// tell is a healer that says at its end how many durable operations it made. An error of a pass is not its end: what
// could not be read or told is the next pass's.
func (m more) tell(ctx context.Context, r role) error {
	var ops atomic.Int64
	kill := faultfs.KillAt(m.Kill)
	o := options{
		// A healer that is killed in a launch leaves it to the next one for a lease, and a slot that counts for half an hour.
		settings: restart.Settings{Quiescence: r.Quiescence, Disabled: m.Disabled, Lease: 3 * time.Second,
			StormPerEpisode: 1000, StormPer30m: 1000},
		now:      func() stamp.Time { return host.Now().Add(m.Ahead) },
		launcher: func(*parts) restart.Launcher { return runnerLauncher(r.Home, 0) },
		fs: faultfs.Tap(durable.System{}, func(op faultfs.Op) error {
			if op.Kind != faultfs.Look {
				ops.Add(1)
			}
			return kill(op)
		}),
	}
	if err := m.notifiers(&o); err != nil {
		return err
	}
	p, err := wire(ctx, r.Home, o)
	if err != nil {
		return err
	}
	for range m.Passes {
		_, _ = p.healer.Pass(ctx, everything)
		if err := m.counted(); err != nil {
			return err
		}
	}
	if err := p.close(); err != nil {
		return err
	}
	fmt.Println(ops.Load())
	return nil
}

func (m more) counted() error {
	if m.Count == "" {
		return nil
	}
	f, err := os.OpenFile(filepath.Clean(m.Count), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(".")
	return err
}
