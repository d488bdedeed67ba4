package restart

import (
	"errors"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/storm"
)

// Settings are the configured bounds. Zero means the documented default.
type Settings struct {
	// Disabled switches the healer off: failures are shown, nothing is launched.
	Disabled bool
	// Quiescence is how long a tree must have been left alone, 30 s by default; negative means not at all.
	Quiescence time.Duration
	// MaxDefer bounds how long a death may wait, 30 min by default.
	MaxDefer time.Duration
	// Resurface is after how long a run that waits is shown as waiting, 10 min by default.
	Resurface time.Duration
	// StormPerEpisode and StormPer30m bound the launches, 12 and 20 by default.
	StormPerEpisode, StormPer30m int
	// Lease is how long an instance may work on a record, 60 s by default.
	Lease time.Duration
	// Retention is how long what is settled is kept, 30 days by default; see Healer.Prune. Negative means for ever.
	Retention time.Duration
	// Tick is how often the loop looks around without being woken, 30 s by default.
	Tick time.Duration
}

func (s Settings) withDefaults() Settings {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&s.Quiescence, 30*time.Second)
	def(&s.MaxDefer, 30*time.Minute)
	def(&s.Resurface, 10*time.Minute)
	def(&s.Lease, time.Minute)
	def(&s.Retention, 30*24*time.Hour)
	def(&s.Tick, 30*time.Second)
	if s.Quiescence < 0 {
		s.Quiescence = 0
	}
	if s.StormPerEpisode == 0 {
		s.StormPerEpisode = 12
	}
	if s.StormPer30m == 0 {
		s.StormPer30m = 20
	}
	return s
}

func (s Settings) validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		v    time.Duration
	}{{"MaxDefer", s.MaxDefer}, {"Resurface", s.Resurface}, {"Lease", s.Lease}, {"Tick", s.Tick}} {
		if f.v < 0 {
			errs = append(errs, fmt.Errorf("Settings.%s is %s, want 0 or more", f.name, f.v))
		}
	}
	if s.StormPerEpisode < 0 {
		errs = append(errs, fmt.Errorf("Settings.StormPerEpisode is %d, want 0 or more", s.StormPerEpisode))
	}
	if s.StormPer30m < 0 {
		errs = append(errs, fmt.Errorf("Settings.StormPer30m is %d, want 0 or more", s.StormPer30m))
	}
	// What is pruned while its death may still be decided could be decided twice.
	if d := s.withDefaults(); d.Retention >= 0 && d.Retention < max(leastRetention, 2*d.MaxDefer) {
		errs = append(errs, fmt.Errorf("Settings.Retention is %s, want at least %s, a day and twice MaxDefer, or less than 0 to keep everything",
			d.Retention, max(leastRetention, 2*d.MaxDefer)))
	}
	return errors.Join(errs...)
}

// leastRetention is the shortest time for which what is settled is kept.
const leastRetention = 24 * time.Hour

func (s Settings) limits() storm.Limits {
	return storm.Limits{PerEpisode: s.StormPerEpisode, PerWindow: s.StormPer30m, Window: 30 * time.Minute}
}
