// Package stamp is the one kind of time in Mulligan: a wall clock reading together with the clock that a clock change
// cannot move. Everything that orders two events or ages one compares stamps, never bare wall times.
//
// A [Time] carries the kernel's boot id and its boot-time clock beside the wall clock. Two stamps of one boot are
// compared on the boot-time clock, which runs in suspend and never jumps; stamps of different boots, or without a
// boot id, fall back to the wall. The package reads no clock itself.
package stamp

import (
	"fmt"
	"time"
)

// Time is one moment. The zero Time means "not known" and is before every other.
type Time struct {
	// Wall is the wall clock, in UTC.
	Wall time.Time `json:"wall"`
	// Boot is the kernel boot id (/proc/sys/kernel/random/boot_id on Linux), empty where there is none.
	Boot string `json:"boot,omitempty"`
	// Uptime is the boot-time clock (CLOCK_BOOTTIME), meaningful only together with Boot.
	Uptime time.Duration `json:"uptime,omitempty"`
	// Grain is how coarse the source was: the moment lies in [Wall, Wall+Grain]. Zero for an exact reading; one second
	// for a commit or reflog time.
	Grain time.Duration `json:"grain,omitempty"`
}

// Wall makes a stamp of a wall time alone, for sources that know no more (a file time, a reflog entry).
func Wall(t time.Time, grain time.Duration) Time { return Time{Wall: t.UTC(), Grain: grain} }

// IsZero reports whether the moment is not known.
func (t Time) IsZero() bool { return t.Wall.IsZero() && t.Boot == "" }

// SameBoot reports whether both stamps carry the boot-time clock of one kernel boot.
func (t Time) SameBoot(u Time) bool { return t.Boot != "" && t.Boot == u.Boot }

// Sub is the time from u to t: on the boot-time clock when both come from one boot, else on the wall.
func (t Time) Sub(u Time) time.Duration {
	if t.SameBoot(u) {
		return t.Uptime - u.Uptime
	}
	return t.Wall.Sub(u.Wall)
}

// Add moves the stamp on both of its clocks.
func (t Time) Add(d time.Duration) Time {
	t.Wall = t.Wall.Add(d)
	if t.Boot != "" {
		t.Uptime += d
	}
	return t
}

// Before reports that t is certainly before u: also the latest moment that t can mean is.
func (t Time) Before(u Time) bool { return u.Sub(t) > t.Grain }

// After reports that t is certainly after u.
func (t Time) After(u Time) bool { return u.Before(t) }

// String is the wall clock in RFC 3339, or "unknown".
func (t Time) String() string {
	if t.IsZero() {
		return "unknown"
	}
	return t.Wall.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// Window is the closed span from one moment to a later one.
type Window struct {
	From Time `json:"from"`
	To   Time `json:"to"`
}

// Backwards reports that the window ends before it begins: a clock jumped, and nothing can be said about what lies in
// it.
func (w Window) Backwards() bool { return w.To.Before(w.From) }

// Contains reports whether t may lie in the window; a coarse t counts when any moment it can mean does.
func (w Window) Contains(t Time) bool { return !t.Before(w.From) && !t.After(w.To) }

// Meets reports whether the two windows share a moment. A window without an end is still open.
func (w Window) Meets(v Window) bool {
	if !v.To.IsZero() && v.To.Before(w.From) {
		return false
	}
	if !w.To.IsZero() && w.To.Before(v.From) {
		return false
	}
	return true
}

// Short is a duration as people read it in notices: "850ms", "12s", "2m 9s", "3h 4m", "2d 5h".
func Short(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}
