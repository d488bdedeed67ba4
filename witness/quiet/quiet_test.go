package quiet_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
	"github.com/mulligan-dev/mulligan/witness/quiet"
)

const quiescence = 30 * time.Second

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// at is a moment relative to the look.
func at(d time.Duration) stamp.Time { return stamp.Wall(noon.Add(d), 0) }

func input() quiet.Input {
	return quiet.Input{
		Now: stamp.Time{Wall: noon, Boot: "b", Uptime: time.Hour}, Quiescence: quiescence,
		Roots: []quiet.Root{{Name: "acme", LastChange: at(-time.Minute)}},
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	update := journal.Row{ID: "u1", Status: journal.Begun, Begun: at(-2 * time.Minute), Command: []string{"git", "pull"}}
	root := func(change stamp.Time) func(*quiet.Input) {
		return func(in *quiet.Input) { in.Roots = append(in.Roots, quiet.Root{Name: "wire", LastChange: change}) }
	}
	failing := func(err error) func(*quiet.Input) {
		return func(in *quiet.Input) { in.Roots = append(in.Roots, quiet.Root{Name: "wire", Err: err}) }
	}
	tests := []struct {
		name   string
		change func(*quiet.Input)
		why    string        // empty when quiet
		until  time.Duration // from the look
	}{
		{"at rest", func(*quiet.Input) {}, "", 0},
		{"no roots at all", func(in *quiet.Input) { in.Roots = nil }, "", 0},
		{"the lock is held", func(in *quiet.Input) { in.LockHeld, in.Holder = true, "git pull (pid 7)" }, "the writer lock is held by git pull (pid 7)", quiescence},
		{"the lock is held by somebody", func(in *quiet.Input) { in.LockHeld = true }, "the writer lock is held by somebody", quiescence},
		{"an update lives", func(in *quiet.Input) { in.Open = []quiet.Update{{Row: update, Alive: true}} }, "update u1 is under way (git pull, since 2026-05-04T11:58", quiescence},
		{"an open row whose command is dead", func(in *quiet.Input) { in.Open = []quiet.Update{{Row: update}} }, "", 0},
		{"a change just now", root(at(0)), "root wire changed just now", quiescence},
		{"a change a moment ago", root(at(-10 * time.Second)), "root wire changed 10s ago, less than 30s", 20 * time.Second},
		{"a change exactly long enough ago", root(at(-quiescence)), "", 0},
		{"a change hardly long enough ago", root(at(-quiescence + 1)), "root wire changed 29s ago", 1},
		{"a coarse change that may be too young", root(stamp.Wall(noon.Add(-quiescence), time.Second)), "root wire changed 29s ago", time.Second},
		{"a change of the future", root(at(time.Hour)), "root wire carries a change time 1h 0m in the future; the clock was set back", quiescence},
		{"a change a breath ahead", root(at(time.Second)), "root wire changed just now", quiescence},
		{"a change of the future, seen long ago", func(in *quiet.Input) {
			in.Roots[0].LastChange, in.Roots[0].Since = at(time.Hour), at(-time.Minute)
		}, "", 0},
		{"a change of the future, seen a moment ago", func(in *quiet.Input) {
			in.Roots[0].LastChange, in.Roots[0].Since = at(time.Hour), at(-10*time.Second)
		}, "in the future", 20 * time.Second},
		{"no signal", failing(errors.New("permission denied")), "no change signal of root wire can be read: permission denied", quiescence},
		{"no moment", root(stamp.Time{}), "no change signal of root wire can be read", quiescence},
		{"changing now", failing(fmt.Errorf("root wire: %w: a rebase has not ended", witness.ErrChanging)), "root wire: the tree is changing now: a rebase has not ended", quiescence},
		{"no quiescence asked for", func(in *quiet.Input) { in.Quiescence = 0; root(at(0))(in) }, "", 0},
		{"no quiescence, but a lock", func(in *quiet.Input) { in.Quiescence, in.LockHeld = 0, true }, "the writer lock", time.Second},
		{"the first reason is told, the latest moment counts", func(in *quiet.Input) {
			root(at(-25 * time.Second))(in)
			in.LockHeld, in.Holder = true, "x"
		}, "the writer lock is held by x", quiescence},
		{"the youngest change is told", func(in *quiet.Input) { root(at(-20 * time.Second))(in); root(at(-5 * time.Second))(in) }, "root wire changed 5s ago", 25 * time.Second},
	}
	for _, tt := range tests {
		in := input()
		tt.change(&in)
		got := quiet.Check(in)
		if got.Quiet != (tt.why == "") || !strings.Contains(got.Why, tt.why) {
			t.Errorf("%s: %+v, want quiet %v because %q", tt.name, got, tt.why == "", tt.why)
		}
		if got.Quiet {
			if got.Why != "" || !got.Until.IsZero() {
				t.Errorf("%s: a quiet tree has a reason or a next look: %+v", tt.name, got)
			}
			continue
		}
		if d := got.Until.Sub(in.Now); d != tt.until {
			t.Errorf("%s: the next look is in %v, want %v", tt.name, d, tt.until)
		}
	}
}

// Two stamps of one boot are compared on the clock that a change of the wall cannot move.
func TestAgeIsCountedOnTheBootClock(t *testing.T) {
	t.Parallel()
	in := input()
	in.Roots[0].LastChange = stamp.Time{Wall: noon.Add(time.Hour), Boot: "b", Uptime: time.Hour - time.Minute}
	if got := quiet.Check(in); !got.Quiet {
		t.Errorf("a change a minute ago on the boot clock is not quiet: %+v", got)
	}
}

func ExampleCheck() {
	now := stamp.Wall(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), 0)
	res := quiet.Check(quiet.Input{
		Now: now, Quiescence: 30 * time.Second,
		Roots: []quiet.Root{{Name: "acme", LastChange: now.Add(-12 * time.Second)}},
	})
	fmt.Println(res.Quiet, res.Why)
	fmt.Println("look again in", res.Until.Sub(now))
	// Output:
	// false root acme changed 12s ago, less than 30s
	// look again in 18s
}
