package restarttest

import (
	"fmt"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// dawn is when every world begins.
var dawn = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is the machine's wall clock and boot-time clock. It stands still until it is moved.
type clock struct {
	mu     sync.Mutex
	wall   time.Time
	uptime time.Duration
	boot   int
}

func newClock() *clock { return &clock{wall: dawn, uptime: time.Hour, boot: 1} }

func (c *clock) now() stamp.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return stamp.Time{Wall: c.wall, Boot: bootID(c.boot), Uptime: c.uptime}
}

func bootID(n int) string { return fmt.Sprintf("boot-%d", n) }

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.uptime = c.wall.Add(d), c.uptime+d
}

// jump sets the wall clock alone, as a person or a time server does.
func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

// reboot is the clock of the machine's next boot, a minute later.
func (c *clock) reboot() *clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &clock{wall: c.wall.Add(time.Minute), uptime: time.Second, boot: c.boot + 1}
}
