package bootnotice

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The defaults, and the bounds that nobody sets.
const (
	DefaultGrace = 600 * time.Second
	DefaultWait  = 15 * time.Second
	// Expiry is how long a notice may be undelivered, and Boots in how many boots it is tried.
	Expiry = 24 * time.Hour
	Boots  = 3
)

// The targets with a name; every other one is the id of a session.
const (
	Primary = "primary" // the first root agent
	All     = "all"     // every root agent
)

// Mode is how a notice gets to a session that nothing holds back.
type Mode string

// The modes.
const (
	Wake   Mode = "wake"   // the session begins a turn with it
	Inject Mode = "inject" // it waits for the session's next turn
)

// DefaultIgnore are the beginnings of the names of sessions that are no conversation of their own.
func DefaultIgnore() []string { return []string{"head-"} }

// Config is the block restart_notice. Its zero value means the defaults.
type Config struct {
	// Disabled switches all notices off, also those that were asked for.
	Disabled bool
	// Target is Primary, All or the id of a session; empty means Primary. It counts when a restart concerned no session.
	Target string
	// Mode is Wake when empty.
	Mode Mode
	// Grace is how long before the stop a session may have been active last; zero means DefaultGrace, less than zero none.
	Grace time.Duration
	// Wait is how long sessions may take to appear after a boot; zero means DefaultWait, less than zero not at all.
	Wait time.Duration
	// Ignore are prefixes of sessions that an unplanned stop tells nothing; nil means DefaultIgnore.
	Ignore []string
	// Text takes the place of the default text, word for word. The line that marks the notice stays above it.
	Text string
}

// WithDefaults validates the config and fills it in. A bound that was less than zero is zero afterwards.
func (c Config) WithDefaults() (Config, error) {
	var errs []error
	switch c.Mode {
	case "":
		c.Mode = Wake
	case Wake, Inject:
	default:
		errs = append(errs, fmt.Errorf("Mode: %q, want %q or %q", c.Mode, Wake, Inject))
	}
	if c.Target == "" {
		c.Target = Primary
	}
	c.Grace, c.Wait = bound(c.Grace, DefaultGrace), bound(c.Wait, DefaultWait)
	if c.Ignore == nil {
		c.Ignore = DefaultIgnore()
	}
	for _, p := range c.Ignore {
		if p == "" {
			errs = append(errs, errors.New("Ignore: an empty prefix would ignore every session"))
		}
	}
	return c, errors.Join(errs...)
}

func bound(d, normal time.Duration) time.Duration {
	if d == 0 {
		return normal
	}
	return max(d, 0)
}

func (c Config) ignores(session string) bool {
	for _, p := range c.Ignore {
		if strings.HasPrefix(session, p) {
			return true
		}
	}
	return false
}
