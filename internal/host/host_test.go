package host

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
)

func TestNowOrdersMoments(t *testing.T) {
	t.Parallel()
	last := Now()
	if last.Boot == "" || last.Uptime == 0 {
		t.Fatalf("no boot-time clock: %+v", last)
	}
	for range 10000 {
		now := Now()
		if now.Sub(last) < 0 {
			t.Fatalf("the clock went back from %v to %v", last.Uptime, now.Uptime)
		}
		last = now
	}
}

func TestNowIsTheKernelsClockOutsideABubble(t *testing.T) {
	t.Parallel()
	for range 1000 {
		before := boottime()
		now := Now().Uptime
		if after := boottime(); now < before || now > after {
			t.Fatalf("%v is not between the kernel's %v and %v", now, before, after)
		}
	}
}

func TestNowAgesWithTheBubblesTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := Now()
		time.Sleep(time.Hour)
		to := Now()
		if got := to.Sub(from); got != time.Hour {
			t.Errorf("an hour in the bubble is %v on the boot-time clock", got)
		}
		if got := to.Wall.Sub(from.Wall); got != time.Hour {
			t.Errorf("an hour in the bubble is %v on the wall", got)
		}
	})
}

func TestLiveness(t *testing.T) {
	t.Parallel()
	self := Self()
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	child, err := Process(sleeper.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if got := Liveness(child); got != ledger.Alive {
		t.Errorf("a running child is %s", got)
	}
	if err := sleeper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Not waited for yet: first it is going, then a zombie.
	for Liveness(child) == ledger.Alive {
		time.Sleep(time.Millisecond)
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(child.PID)); err != nil {
		t.Errorf("the zombie is not there: %v", err)
	}
	if got := Liveness(child); got != ledger.Dead {
		t.Errorf("a zombie is %s", got)
	}
	_ = sleeper.Wait()

	alter := func(f func(*ledger.Instance)) ledger.Instance { i := self; f(&i); return i }
	for name, c := range map[string]struct {
		i    ledger.Instance
		want ledger.Liveness
	}{
		"this process":              {self, ledger.Alive},
		"a child that ended":        {child, ledger.Dead},
		"another start time":        {alter(func(i *ledger.Instance) { i.Start++ }), ledger.Dead},
		"an earlier boot":           {alter(func(i *ledger.Instance) { i.Boot = "before" }), ledger.Dead},
		"another pid namespace":     {alter(func(i *ledger.Instance) { i.PIDNS = "pid:[1]" }), ledger.LifeUnknown},
		"no pid namespace recorded": {alter(func(i *ledger.Instance) { i.PIDNS = "" }), ledger.LifeUnknown},
		"no boot recorded":          {alter(func(i *ledger.Instance) { i.Boot = "" }), ledger.LifeUnknown},
		"no start recorded":         {alter(func(i *ledger.Instance) { i.Start = 0 }), ledger.LifeUnknown},
		"nothing recorded":          {ledger.Instance{}, ledger.LifeUnknown},
	} {
		if got := Liveness(c.i); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	tail := " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	for in, want := range map[string]uint64{
		"12 (sh) S" + tail:            4711,
		"12 (a b) c) R 9) Z" + tail:   4711,
		"12 (sh) S 1 2":               0,
		"":                            0,
		"12 (sh) SS" + tail:           0,
		"12 (sh) S 1 2 3 4 5 6 7 8 9": 0,
	} {
		got, _, err := parseStat("stat", []byte(in))
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v, want %d", in, got, err, want)
		}
	}
}
