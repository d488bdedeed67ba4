package bootnotice_test

import (
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
)

// A process was killed while session s1 was at work. The next one finds its marker.
func ExampleDecide() {
	at := func(s int) stamp.Time { return stamp.Wall(time.Date(2026, 3, 4, 10, 0, s, 0, time.UTC), 0) }
	last := &bootnotice.Marker{
		Instance: ledger.Instance{ID: "i1"}, Started: at(0), Beat: at(30),
		Active: []bootnotice.Activity{{Session: "s1", At: at(12)}},
	}
	config, err := bootnotice.Config{}.WithDefaults()
	if err != nil {
		fmt.Println(err)
		return
	}
	boot := bootnotice.Classify(last, ledger.Instance{ID: "i2"}, at(45), false)
	d := bootnotice.Decide(bootnotice.Input{
		Boot: boot, Sessions: bootnotice.Sessions(last, nil), Startup: []string{"main"}, Present: []string{"main", "s1"}, Config: config,
	})
	message, _ := bootnotice.Merge(d.Notices, "s1", "i2", bootnotice.Ruling{}, config)
	fmt.Println(boot.Kind, boot.Downtime, message.Way)
	fmt.Println(message.Text)
	// Output:
	// process_restart 15s wake
	// [Mulligan restart notice rn-e0def165c825]
	// This process was restarted at 2026-03-04 10:00:45 UTC. The previous boot was at 2026-03-04 10:00:00 UTC. Downtime: ~15s.
	// Reason: it ended without a word (a crash, a kill or a power loss).
	// You were in the middle of a turn. Resume what you were doing, or acknowledge rn-e0def165c825 if there is nothing left to do.
}
