package storm

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Pause stops all launches from p.Since on. A state that is paused already stays as it is: the first pause is the one
// that was told.
func (s State) Pause(p Pause) State {
	if s.Paused != nil {
		return s
	}
	next := s.step()
	next.Paused = &p
	return next
}

// Resume ends the pause and forgives the slots that led to it: what a person let go on is not counted against it. A
// state that is not paused stays as it is.
func (s State) Resume(now stamp.Time) State {
	if s.Paused == nil {
		return s
	}
	next := s.step()
	next.hold(stamp.Window{From: s.Paused.Since, To: now})
	next.Paused = nil
	for i := range next.Slots {
		next.Slots[i].Forgiven = true
	}
	return next
}

// Disable records that the config switched the healer off. Repeating it changes nothing.
func (s State) Disable(now stamp.Time) State {
	if s.Disabled != nil {
		return s
	}
	next := s.step()
	next.Disabled = &now
	return next
}

// Enable records that the healer is on again. Repeating it changes nothing.
func (s State) Enable(now stamp.Time) State {
	if s.Disabled == nil {
		return s
	}
	next := s.step()
	next.hold(stamp.Window{From: *s.Disabled, To: now})
	next.Disabled = nil
	return next
}

// MarkTold marks a notice about the state as acknowledged; the first time counts. Repeating it changes nothing.
func (s State) MarkTold(key string, now stamp.Time) State {
	if _, ok := s.Told[key]; ok {
		return s
	}
	next := s.step()
	next.Told = maps.Clone(s.Told)
	if next.Told == nil {
		next.Told = map[string]stamp.Time{}
	}
	next.Told[key] = now
	return next
}

// Forget drops what was told about things that are gone, so that the state stays small. Forgetting what was never told
// changes nothing.
func (s State) Forget(keys ...string) State {
	next := s
	for _, k := range keys {
		if _, ok := next.Told[k]; !ok {
			continue
		}
		if next.Revision == s.Revision {
			next = s.step()
			next.Told = maps.Clone(s.Told)
		}
		delete(next.Told, k)
	}
	return next
}

// Stopped reports whether nothing may be launched, and since when and why: the pause, else the config.
func (s State) Stopped() (p Pause, ok bool) {
	switch {
	case s.Paused != nil:
		return *s.Paused, true
	case s.Disabled != nil:
		return Pause{Since: *s.Disabled, Reason: ReasonDisabled, Note: "disabled by the config"}, true
	}
	return Pause{}, false
}

// hold remembers a span that is over. The oldest are dropped: then an old death looks older than it is, and is shown
// instead of decided.
func (s *State) hold(w stamp.Window) {
	s.Held = append(s.Held, w)
	if n := len(s.Held) - keepHeld; n > 0 {
		s.Held = slices.Delete(s.Held, 0, n)
	}
}

// Unheld is the time from one moment to a later one, less the spans in which the healer was paused or disabled, the
// present one among them. It is never negative. Spans that overlap are counted once.
func (s State) Unheld(from, to stamp.Time) time.Duration {
	total := to.Sub(from)
	if total <= 0 {
		return 0
	}
	type span struct{ from, to time.Duration } // since from
	var spans []span
	add := func(a, b stamp.Time) {
		x := span{max(0, a.Sub(from)), min(total, b.Sub(from))}
		if x.from < x.to {
			spans = append(spans, x)
		}
	}
	for _, w := range s.Held {
		add(w.From, w.To)
	}
	if s.Paused != nil {
		add(s.Paused.Since, to)
	}
	if s.Disabled != nil {
		add(*s.Disabled, to)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	held, end := time.Duration(0), time.Duration(0)
	for _, x := range spans {
		if x.to > end {
			held += x.to - max(x.from, end)
			end = x.to
		}
	}
	return total - held
}
