package storm_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
)

func at(d time.Duration) stamp.Time {
	wall := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return stamp.Time{Wall: wall, Boot: "boot", Uptime: time.Hour}.Add(d)
}

// reserve launches n times, gap apart, and returns how often that was let through.
func reserve(s *storm.State, n int, from, gap time.Duration, episode func(int) string, l storm.Limits) (got int, why string) {
	for i := range n {
		now := from + time.Duration(i)*gap
		next, tripped := storm.Reserve(*s, storm.Slot{Launch: fmt.Sprint(from, "-", i), Episode: episode(i)}, l, at(now))
		*s = next
		if tripped != nil {
			return got, tripped.Reason
		}
		got++
	}
	return got, ""
}

func one(int) string { return "one" }

func each(i int) string { return fmt.Sprint("e", i) }

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		n       int
		gap     time.Duration
		episode func(int) string
		limits  storm.Limits
		got     int
		why     string
	}{
		"one update, the default":          {30, time.Second, one, storm.Limits{}, 12, storm.ReasonEpisode},
		"one update, slowly":               {30, 23 * time.Hour, one, storm.Limits{}, 12, storm.ReasonEpisode},
		"one update, a day apart":          {30, 24 * time.Hour, one, storm.Limits{}, 30, ""},
		"many updates, the default":        {30, time.Second, each, storm.Limits{}, 20, storm.ReasonWindow},
		"many updates, as a slow loop":     {30, 29 * time.Minute, each, storm.Limits{}, 20, storm.ReasonLoop},
		"many updates, the window between": {30, 30 * time.Minute, each, storm.Limits{}, 30, ""},
		"limits of one's own":              {30, time.Second, each, storm.Limits{PerWindow: 3, Window: time.Minute}, 3, storm.ReasonWindow},
		"a slow loop of days":              {30, 30 * time.Hour, each, storm.Limits{PerWindow: 5, Window: 48 * time.Hour}, 5, storm.ReasonLoop},
		"a window of one's own":            {30, time.Minute, each, storm.Limits{PerWindow: 3, Window: time.Minute}, 30, ""},
	} {
		var s storm.State
		got, why := reserve(&s, c.n, 0, c.gap, c.episode, c.limits)
		if got != c.got || why != c.why {
			t.Errorf("%s: %d launches, then %q; want %d, then %q", name, got, why, c.got, c.why)
		}
		if (s.Paused != nil) != (c.why != "") {
			t.Errorf("%s: paused %+v", name, s.Paused)
		}
	}
}

func TestReserveOncePerLaunch(t *testing.T) {
	t.Parallel()
	slot := storm.Slot{Launch: "L", Episode: "e"}
	s, _ := storm.Reserve(storm.State{}, slot, storm.Limits{}, at(0))
	for _, s := range []storm.State{s, s.Pause(storm.Pause{Since: at(0)}), s.Disable(at(0))} {
		again, tripped := storm.Reserve(s, slot, storm.Limits{}, at(time.Second))
		if tripped != nil || again.Revision != s.Revision || len(again.Slots) != 1 {
			t.Errorf("the same launch again: %+v, tripped %+v", again, tripped)
		}
	}
}

func TestTripIsToldOnceAndSpendsNothing(t *testing.T) {
	t.Parallel()
	var s storm.State
	reserve(&s, 13, 0, time.Second, one, storm.Limits{})
	if s.Paused == nil || len(s.Slots) != 12 {
		t.Fatalf("%d slots, pause %+v", len(s.Slots), s.Paused)
	}
	next, tripped := storm.Reserve(s, storm.Slot{Launch: "M", Episode: "other"}, storm.Limits{}, at(time.Minute))
	if tripped == nil || tripped.Reason != storm.ReasonEpisode || next.Revision != s.Revision {
		t.Errorf("while paused: %+v, revision %d of %d", tripped, next.Revision, s.Revision)
	}
	s = s.Resume(at(time.Hour))
	if _, tripped = storm.Reserve(s, storm.Slot{Launch: "M", Episode: "one"}, storm.Limits{}, at(time.Hour)); tripped != nil {
		t.Errorf("after a resume: %+v", tripped)
	}
	if got, why := reserve(&s, 30, time.Hour, time.Second, one, storm.Limits{}); got != 12 || why != storm.ReasonEpisode {
		t.Errorf("after a resume: %d launches, then %q", got, why)
	}
	s = storm.State{}.Disable(at(0))
	if _, tripped = storm.Reserve(s, storm.Slot{Launch: "M"}, storm.Limits{}, at(0)); tripped == nil || tripped.Reason != storm.ReasonDisabled {
		t.Errorf("while disabled: %+v", tripped)
	}
}

func TestSlotsArePruned(t *testing.T) {
	t.Parallel()
	var s storm.State
	for day := range 60 {
		reserve(&s, 10, time.Duration(day)*24*time.Hour, time.Minute, func(i int) string { return fmt.Sprint(day, "-", i) }, storm.Limits{})
		if s.Paused != nil || len(s.Slots) > 20 {
			t.Fatalf("day %d: %d slots, pause %+v", day, len(s.Slots), s.Paused)
		}
	}
}

// TestReserveIsItsTwin compares with a breaker that keeps every launch for ever and counts anew each time.
func TestReserveIsItsTwin(t *testing.T) {
	t.Parallel()
	type launch struct {
		at      int // minutes
		episode string
	}
	rapid.Check(t, func(t *rapid.T) {
		l := storm.Limits{PerEpisode: 3, PerWindow: 4, Window: 30 * time.Minute}
		var s storm.State
		var all []launch // since the last resume
		now, n := 0, 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.SampledFrom([]int{0, 1, 10, 29, 30, 31, 600, 1439, 1440, 3000}).Draw(t, "pass")
			ep := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "episode")
			// An episode counts back to a day without any launch of it, the burst back to a gap of the window.
			inEpisode, last := 0, now
			for i := len(all) - 1; i >= 0; i-- {
				if all[i].episode != ep {
					continue
				}
				if last-all[i].at >= 24*60 {
					break
				}
				inEpisode, last = inEpisode+1, all[i].at
			}
			inBurst, last := 0, now
			for i := len(all) - 1; i >= 0 && last-all[i].at < 30; i-- {
				inBurst, last = inBurst+1, all[i].at
			}
			n++
			next, tripped := storm.Reserve(s, storm.Slot{Launch: fmt.Sprint(n), Episode: ep}, l, at(time.Duration(now)*time.Minute))
			if inBurst >= 4 && tripped == nil {
				t.Fatalf("launch %d at %d: %d in the burst, and it was let through", n, now, inBurst)
			}
			if inEpisode >= 3 && tripped == nil {
				t.Fatalf("launch %d at %d: %d in the episode, and it was let through", n, now, inEpisode)
			}
			if inBurst < 4 && len(of(all, func(x launch) bool { return x.episode == ep })) < 3 && tripped != nil {
				t.Fatalf("launch %d at %d: %s with %d in the burst", n, now, tripped.Reason, inBurst)
			}
			s = next
			if tripped != nil {
				s, all = s.Resume(at(time.Duration(now)*time.Minute)), nil
				continue
			}
			all = append(all, launch{now, ep})
		}
	})
}

func of[T any](all []T, f func(T) bool) (out []T) {
	for _, v := range all {
		if f(v) {
			out = append(out, v)
		}
	}
	return out
}

// TestUnheldIsItsTwin compares with an age that is counted minute by minute.
func TestUnheldIsItsTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s storm.State
		now, minutes := 0, map[int]bool{} // minutes in which the healer was held
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			d := rapid.IntRange(0, 5).Draw(t, "pass")
			if _, stopped := s.Stopped(); stopped {
				for m := now; m < now+d; m++ {
					minutes[m] = true
				}
			}
			now += d
			moment := at(time.Duration(now) * time.Minute)
			switch rapid.IntRange(0, 3).Draw(t, "act") {
			case 0:
				s = s.Pause(storm.Pause{Since: moment})
			case 1:
				s = s.Resume(moment)
			case 2:
				s = s.Disable(moment)
			case 3:
				s = s.Enable(moment)
			}
		}
		from := rapid.IntRange(0, 30).Draw(t, "from")
		want := 0
		for m := from; m < now; m++ {
			if !minutes[m] {
				want++
			}
		}
		got := s.Unheld(at(time.Duration(from)*time.Minute), at(time.Duration(now)*time.Minute))
		if got != time.Duration(want)*time.Minute {
			t.Fatalf("from %d to %d: %s, want %d minutes; state %+v", from, now, got, want, s)
		}
	})
}

func TestMarkTold(t *testing.T) {
	t.Parallel()
	s := storm.State{}.MarkTold("k", at(0))
	again := s.MarkTold("k", at(time.Hour))
	if again.Revision != 1 || again.Told["k"] != at(0) {
		t.Errorf("told twice: %+v", again)
	}
	if next := s.MarkTold("l", at(0)); len(s.Told) != 1 || len(next.Told) != 2 {
		t.Errorf("the state before was altered: %+v", s.Told)
	}
}

func Example() {
	var s storm.State
	l := storm.Limits{PerEpisode: 2}
	for i := range 3 {
		next, tripped := storm.Reserve(s, storm.Slot{Launch: fmt.Sprint("launch-", i), Episode: "9fd8a08"}, l, at(0))
		s = next
		if tripped != nil {
			fmt.Println(tripped.Reason+":", tripped.Note)
		}
	}
	s = s.Resume(at(10 * time.Minute))
	fmt.Println("unpaused age after half an hour:", s.Unheld(at(0), at(30*time.Minute)))
	// Output:
	// storm_episode: launches for one update: 2, the limit is 2
	// unpaused age after half an hour: 20m0s
}

func TestForget(t *testing.T) {
	t.Parallel()
	now := stamp.Wall(time.Unix(1, 0), 0)
	s := storm.State{}.MarkTold("a", now).MarkTold("b", now)
	if next := s.Forget("c"); next.Revision != s.Revision {
		t.Error("forgetting what was never told is a change")
	}
	next := s.Forget("a", "c")
	if _, told := next.Told["b"]; len(next.Told) != 1 || !told || next.Revision <= s.Revision {
		t.Errorf("told is %v at revision %d", next.Told, next.Revision)
	}
	if len(s.Told) != 2 {
		t.Error("the state before was altered")
	}
}
