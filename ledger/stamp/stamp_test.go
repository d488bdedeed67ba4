package stamp_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestOneBootAgesOnItsOwnClock(t *testing.T) {
	t.Parallel()
	a := stamp.Time{Wall: noon, Boot: "b", Uptime: time.Hour}
	jumped := stamp.Time{Wall: noon.Add(-24 * time.Hour), Boot: "b", Uptime: time.Hour + time.Second}
	if !a.Before(jumped) || jumped.Sub(a) != time.Second {
		t.Errorf("a clock set back a day: %s between", jumped.Sub(a))
	}
	other := stamp.Time{Wall: noon.Add(time.Minute), Boot: "c", Uptime: time.Second}
	if other.Sub(a) != time.Minute {
		t.Errorf("over a reboot: %s between", other.Sub(a))
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	stamps := rapid.Custom(func(t *rapid.T) stamp.Time {
		s := stamp.Time{Wall: noon.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "wall")) * time.Second)}
		s.Grain = time.Duration(rapid.IntRange(0, 2).Draw(t, "grain")) * time.Second
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := stamps.Draw(t, "a"), stamps.Draw(t, "b")
		// A coarse stamp is an interval: certainly before means that the intervals do not meet.
		if want := a.Wall.Add(a.Grain).Before(b.Wall); a.Before(b) != want || b.After(a) != want {
			t.Fatalf("%v before %v: %v, after: %v, want %v", a, b, a.Before(b), b.After(a), want)
		}
		w := stamp.Window{From: a, To: b}
		c := stamps.Draw(t, "c")
		if w.Contains(c) != (!c.Before(a) && !c.After(b)) {
			t.Fatalf("%v contains %v: %v", w, c, w.Contains(c))
		}
		if w.Backwards() != b.Before(a) {
			t.Fatalf("%v is backwards: %v", w, w.Backwards())
		}
		v := stamp.Window{From: stamps.Draw(t, "from"), To: stamps.Draw(t, "to")}
		if w.Meets(v) != v.Meets(w) {
			t.Fatalf("%v meets %v in one direction only", w, v)
		}
		if open := (stamp.Window{From: a}); open.Meets(v) != !v.To.Before(a) {
			t.Fatalf("the open %v meets %v: %v", open, v, open.Meets(v))
		}
	})
}

func Example() {
	before := stamp.Time{Wall: noon, Boot: "b", Uptime: time.Hour}
	after := before.Add(2*time.Minute + 9*time.Second)
	fmt.Println(stamp.Short(after.Sub(before)), after.After(before))
	fmt.Println(stamp.Time{})
	// Output:
	// 2m 9s true
	// unknown
}
