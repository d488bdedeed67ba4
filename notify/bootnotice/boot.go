package bootnotice

import (
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// BeatEvery is how often an instance says that it lives: the error of a downtime after a kill.
const BeatEvery = 5 * time.Second

// Kind is what a boot is in relation to the instance before.
type Kind string

// The kinds. Only the three in the middle are restarts, and make notices.
const (
	FirstBoot      Kind = "first_boot"
	ProcessRestart Kind = "process_restart"
	HostReboot     Kind = "host_reboot"
	ExecInPlace    Kind = "exec_in_place" // the same process, with another program or the same one anew
	Reload         Kind = "reload"        // the same instance: nothing happened
	SecondInstance Kind = "second_instance"
	Canary         Kind = "canary" // a candidate that is only tried: it takes no part
)

// Restart reports whether the sessions of the instance before were cut off.
func (k Kind) Restart() bool { return k == ProcessRestart || k == HostReboot || k == ExecInPlace }

// Marker is what an instance leaves for the next one. It serialises as JSON.
type Marker struct {
	Instance ledger.Instance `json:"instance"`
	// Serial is the kernel's own number of the process, 0 where it keeps none.
	Serial  uint64     `json:"serial,omitempty"`
	Started stamp.Time `json:"started"`
	// Beat is the last heartbeat: a proof of life that needs no orderly end.
	Beat stamp.Time `json:"beat,omitzero"`
	// Stop is when the instance ended in order, zero when it did not.
	Stop stamp.Time `json:"stop,omitzero"`
	// Active are the turns that were under way, written before each began.
	Active []Activity `json:"active,omitempty"`
	// Last is the session whose turn ended last.
	Last Activity `json:"last,omitzero"`
	// Corrupt is set by whoever could not read the marker: there was an instance, and nothing is known of it.
	Corrupt bool `json:"-"`
	// Other is set by whoever knows that the process of the marker was another one than this, whatever its pid and start
	// time are.
	Other bool `json:"-"`
}

// Activity is a session that did something, and when.
type Activity struct {
	Session string     `json:"session"`
	At      stamp.Time `json:"at"`
}

// Boot is what is known of this boot and of the stop before it.
type Boot struct {
	Kind Kind `json:"kind"`
	// ID is the same for every look at the same stop: the id of the instance that stopped, or this one's when that is not
	// known.
	ID string     `json:"id"`
	At stamp.Time `json:"at"`
	// Previous is when the instance before began, zero when that is not known.
	Previous stamp.Time `json:"previous,omitzero"`
	// Stopped is the recorded stop or the last proof of life, zero when neither is known.
	Stopped stamp.Time `json:"stopped,omitzero"`
	// Clean is set when the stop was recorded.
	Clean bool `json:"clean,omitempty"`
	// Downtime is from Stopped to At. It means something only if Known.
	Downtime time.Duration `json:"downtime,omitempty"`
	Known    bool          `json:"known,omitempty"`
}

// Classify tells what kind of boot this is. last is nil when no instance ever left a marker. held says that another
// living process holds the lock of the state folder: with it the same marker is that of a second instance.
//
// A reload is known by the random id, which lives in memory alone. An exec keeps pid and start time and loses the id.
// Pid 1 in a container proves nothing by itself, and neither does a pid namespace, whose number the kernel uses again:
// kernel boot, namespace, pid and start time have to agree all four. Where containers have clocks of their own even these
// do, and only the kernel's number of the process tells ([Marker.Other]).
func Classify(last *Marker, self ledger.Instance, now stamp.Time, held bool) Boot {
	b := Boot{ID: self.ID, At: now}
	if last == nil {
		b.Kind = FirstBoot
		if held {
			b.Kind = SecondInstance // it is only about to write its marker
		}
		return b
	}
	if last.Corrupt {
		b.Kind = ProcessRestart
		if held {
			b.Kind = SecondInstance
		}
		return b
	}
	b.ID, b.Previous = last.Instance.ID, last.Started
	was := last.Instance
	switch {
	case was.Same(self):
		b.Kind = Reload
		return b
	case held:
		b.Kind = SecondInstance
		return b
	case was.Boot != "" && self.Boot != "" && was.Boot != self.Boot:
		b.Kind = HostReboot
	case !last.Other && sameProcess(was, self):
		b.Kind = ExecInPlace
	default:
		b.Kind = ProcessRestart
	}
	b.Stopped, b.Clean = last.life(), !last.Stop.IsZero()
	if !b.Stopped.IsZero() {
		b.Downtime = now.Sub(b.Stopped)
		b.Known = b.Downtime >= 0
	}
	if !b.Known {
		b.Downtime = 0 // a clock went back: nobody knows
	}
	return b
}

func sameProcess(a, b ledger.Instance) bool {
	return a.Boot != "" && a.Boot == b.Boot && a.PIDNS != "" && a.PIDNS == b.PIDNS && a.PID > 0 && a.PID == b.PID &&
		a.Start != 0 && a.Start == b.Start
}

// life is the recorded stop, else the last moment at which the instance proved that it lived.
func (m Marker) life() stamp.Time {
	if !m.Stop.IsZero() {
		return m.Stop
	}
	last := m.Started
	for _, t := range []stamp.Time{m.Beat, m.Last.At} {
		last = later(last, t)
	}
	for _, a := range m.Active {
		last = later(last, a.At)
	}
	return last
}

func later(a, b stamp.Time) stamp.Time {
	if a.IsZero() || !b.IsZero() && b.After(a) {
		return b
	}
	return a
}
