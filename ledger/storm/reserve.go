package storm

import (
	"fmt"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// The defaults of Limits.
const (
	DefaultPerEpisode = 12
	DefaultPerWindow  = 20
	DefaultWindow     = 30 * time.Minute
)

// The reasons of a Pause.
const (
	ReasonEpisode  = "storm_episode" // one update needed too many launches
	ReasonWindow   = "storm_window"  // too many launches within the window
	ReasonLoop     = "storm_loop"    // too many launches in one burst, slower than the window
	ReasonByHand   = "by_hand"       // a person paused
	ReasonDisabled = "disabled"      // switched off by the config; only ever returned, never stored
)

const (
	// remember is how long an episode's slots are kept after its last launch: within it they count for the episode.
	remember = 24 * time.Hour
	// keepHeld bounds the spans that are kept; what is older cannot matter to a death that may still be decided.
	keepHeld = 256
)

// WithDefaults is l with the defaults in the place of zeros.
func (l Limits) WithDefaults() Limits {
	if l.PerEpisode == 0 {
		l.PerEpisode = DefaultPerEpisode
	}
	if l.PerWindow == 0 {
		l.PerWindow = DefaultPerWindow
	}
	if l.Window == 0 {
		l.Window = DefaultWindow
	}
	return l
}

// Reserve reserves a slot for a launch, or says why there is none. A launch id that has a slot already keeps it,
// whatever happened since. Zero limits mean their defaults.
//
// When tripped is nil the slot is in next. Otherwise nothing may be launched: either the state was paused or disabled
// before, and next is cur; or the slot would have exceeded a limit, and next is paused. Only then is its revision a new
// one, so that the pause is told once.
func Reserve(cur State, slot Slot, l Limits, now stamp.Time) (next State, tripped *Pause) {
	l = l.WithDefaults()
	for _, s := range cur.Slots {
		if s.Launch == slot.Launch {
			return cur, nil
		}
	}
	switch {
	case cur.Paused != nil:
		p := *cur.Paused
		return cur, &p
	case cur.Disabled != nil:
		return cur, &Pause{Since: *cur.Disabled, Reason: ReasonDisabled, Note: "disabled by the config"}
	}
	if p := over(cur.Slots, slot.Episode, l, now); p != nil {
		next = cur.Pause(*p)
		stored := *p
		return next, &stored
	}
	next = cur.step()
	slot.At, slot.Forgiven = now, false
	next.Slots = append(prune(cur.Slots, l, now), slot)
	return next, nil
}

// over says which limit one more launch would exceed.
func over(slots []Slot, episode string, l Limits, now stamp.Time) *Pause {
	inEpisode, inWindow, inBurst := 0, 0, 0
	for _, s := range slots {
		if s.Forgiven {
			continue
		}
		if s.Episode == episode {
			inEpisode++
		}
		if now.Sub(s.At) < l.Window {
			inWindow++
		}
	}
	for range burst(slots, l, now) {
		inBurst++
	}
	p := Pause{Since: now}
	switch {
	case inEpisode >= l.PerEpisode:
		p.Reason = ReasonEpisode
		p.Note = fmt.Sprintf("launches for one update: %d, the limit is %d", inEpisode, l.PerEpisode)
	case inWindow >= l.PerWindow:
		p.Reason = ReasonWindow
		p.Note = fmt.Sprintf("launches within %s: %d, the limit is %d", stamp.Short(l.Window), inWindow, l.PerWindow)
	case inBurst >= l.PerWindow:
		p.Reason = ReasonLoop
		p.Note = fmt.Sprintf("launches with never %s between them: %d, the limit is %d", stamp.Short(l.Window), inBurst, l.PerWindow)
	default:
		return nil
	}
	return &p
}

// burst is the tail of the slots that a launch now would be chained to: back from now, as long as each gap is shorter
// than the window. Forgiven slots are not counted and chain nothing.
func burst(slots []Slot, l Limits, now stamp.Time) []Slot {
	var chain []Slot
	at := now
	for _, s := range slices.Backward(slots) {
		if s.Forgiven {
			continue
		}
		if at.Sub(s.At) >= l.Window {
			break
		}
		chain = append(chain, s)
		at = s.At
	}
	return chain
}

// prune leaves out the slots that cannot count any more: their window has ended, they are not part of the present burst,
// and their episode had no launch for a day.
func prune(slots []Slot, l Limits, now stamp.Time) []Slot {
	kept := make([]Slot, 0, len(slots)+1)
	live := map[string]bool{}
	for _, s := range burst(slots, l, now) {
		live[s.Launch] = true
	}
	episode := map[string]bool{}
	for _, s := range slots {
		if now.Sub(s.At) < remember {
			episode[s.Episode] = true
		}
	}
	for _, s := range slots {
		if now.Sub(s.At) < l.Window || live[s.Launch] || episode[s.Episode] {
			kept = append(kept, s)
		}
	}
	return kept
}

// step is a copy of the state, with a new revision, that may be altered.
func (s State) step() State {
	s.Revision++
	s.Schema = Schema
	s.Slots = slices.Clone(s.Slots)
	s.Held = slices.Clone(s.Held)
	return s
}
