package notify_test

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/notify"
)

// TestRedactIsLinear gives each hostile text three times what eight times the length may cost, where a quadratic scan needs
// eight times that. The cost is the processor's time for this thread alone: however many others want the processors, and
// however long they keep this one waiting, that is what the scan takes.
func TestRedactIsLinear(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const times = 8
	short, long := hostile(32<<10), hostile(times*32<<10)
	spent := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	cost := func(s string) time.Duration {
		begun := spent()
		notify.Redact(s)
		return spent() - begun
	}
	for name := range short {
		one, all := time.Duration(1<<62), time.Duration(1<<62)
		for range 10 {
			one, all = min(one, cost(short[name])), min(all, cost(long[name]))
			if all <= 3*times*one {
				break
			}
		}
		if all > 3*times*one {
			t.Errorf("%s: %v for a text, and %v for one %d times as long", name, one, all, times)
		}
	}
}
