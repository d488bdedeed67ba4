package storm_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/ledger/storm"
)

// slow is a breaker that keeps every launch for ever and counts anew each time. It knows minutes and nothing else.
type slow struct {
	perEpisode, perWindow, window int
	launches                      []slowLaunch
}

type slowLaunch struct {
	at      int
	episode string
}

// why is the limit that one more launch would exceed, empty for none.
func (s slow) why(now int, episode string) string {
	inEpisode, inWindow := 0, 0
	for _, l := range s.launches {
		if l.episode == episode {
			inEpisode++
		}
		if now-l.at < s.window {
			inWindow++
		}
	}
	// Minute by minute back from now, until as many as the window has are empty.
	inBurst, empty := 0, 0
	for m := now; m >= 0 && empty < s.window; m-- {
		n := 0
		for _, l := range s.launches {
			if l.at == m {
				n++
			}
		}
		inBurst += n
		empty++
		if n > 0 {
			empty = 1
		}
	}
	switch {
	case inEpisode >= s.perEpisode:
		return storm.ReasonEpisode
	case inWindow >= s.perWindow:
		return storm.ReasonWindow
	case inBurst >= s.perWindow:
		return storm.ReasonLoop
	}
	return ""
}

// TestReserveIsItsSlowTwin holds the breaker to the very answer of the slow one, the reason included, for any limits:
// what it leaves out of its state never changes an answer within a day.
func TestReserveIsItsSlowTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		twin := slow{perEpisode: rapid.IntRange(1, 5).Draw(t, "per episode"), perWindow: rapid.IntRange(1, 6).Draw(t, "per window"),
			window: rapid.IntRange(1, 40).Draw(t, "window")}
		l := storm.Limits{PerEpisode: twin.perEpisode, PerWindow: twin.perWindow, Window: time.Duration(twin.window) * time.Minute}
		var s storm.State
		now := 0
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			now += rapid.SampledFrom([]int{0, 0, 1, 2, twin.window - 1, twin.window, twin.window + 1}).Draw(t, "pass")
			episode := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "episode")
			want, got := twin.why(now, episode), ""
			next, tripped := storm.Reserve(s, storm.Slot{Launch: fmt.Sprint(i), Episode: episode}, l, at(time.Duration(now)*time.Minute))
			if tripped != nil {
				got = tripped.Reason
			}
			if got != want {
				t.Fatalf("launch %d of %s at minute %d: %q, the twin says %q; limits %+v, launches %v", i, episode, now, got, want, l, twin.launches)
			}
			s = next
			if tripped == nil {
				twin.launches = append(twin.launches, slowLaunch{now, episode})
				continue
			}
			// A person resumes: what was launched before counts no more.
			s, twin.launches = s.Resume(at(time.Duration(now)*time.Minute)), nil
		}
	})
}
