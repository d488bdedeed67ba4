package boot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
)

// operations notes what is done to a disk, by the name of the file.
type operations struct {
	mu  sync.Mutex
	all []faultfs.Op
}

func (o *operations) hook(op faultfs.Op) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, op)
	return nil
}

// since gives what was done since the last call.
func (o *operations) since() []faultfs.Op {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.all
	o.all = nil
	return all
}

// TestHeartbeat comes each 5 s, and is never flushed: a kill leaves it to be found, and a disk is not kept busy for it.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ops operations
		k, _ := boot(t, "/boot", "a", func(c *Config) { c.fs = faultfs.Tap(&faultfs.Disk{}, ops.hook) })
		ops.since()
		for beat := range 3 {
			time.Sleep(5*time.Second - time.Millisecond)
			synctest.Wait()
			if got := ops.since(); len(got) != 0 {
				t.Errorf("before heartbeat %d is due: %v", beat+1, got)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			wrote := false
			for _, op := range ops.since() {
				wrote = wrote || strings.HasSuffix(op.Path, beatName)
				if op.Kind == faultfs.SyncFile || op.Kind == faultfs.SyncFolder {
					t.Errorf("heartbeat %d is flushed: %v", beat+1, op)
				}
			}
			if !wrote {
				t.Errorf("heartbeat %d did not come", beat+1)
			}
		}
		must(t, k.Close())
	})
}

// TestALateSessionIsNotPolledFor waits for one that comes after 10 s, and does nothing until it does.
func TestALateSessionIsNotPolledFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ops operations
		disk := &faultfs.Disk{}
		k, _ := boot(t, "/boot", "a", func(c *Config) { c.fs, c.Startup = disk, nil })
		_, err := k.Busy("s1")
		must(t, err)
		must(t, k.Close())
		k, rec := boot(t, "/boot", "b", func(c *Config) { c.fs, c.Beat = faultfs.Tap(disk, ops.hook), time.Hour })
		running := make(chan error, 1)
		go func() { running <- k.Run(t.Context()) }()
		synctest.Wait()
		ops.since()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := ops.since(); len(got) != 0 {
			t.Errorf("while it waits it does %v", got)
		}
		k.Appeared("s1")
		synctest.Wait()
		same(t, "told at once", rec.told(), []string{"s1 wake"})
		must(t, <-running)
		must(t, k.Close())
	})
}

// forgetful is a host that cannot be told at first that a notice was given up.
type forgetful struct {
	recorder
	fails int
}

func (f *forgetful) Undeliverable(ctx context.Context, n bootnotice.Notice) error {
	if f.fails--; f.fails >= 0 {
		return errors.New("nobody listens")
	}
	return f.recorder.Undeliverable(ctx, n)
}

// TestUndeliverableIsToldUntilItIsHeard tells a host again in the next boot what it could not be told in the one before,
// and then no more.
func TestUndeliverableIsToldUntilItIsHeard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cutOff(t, dir, "a", "s1")
	host := &forgetful{fails: 1}
	for i, id := range []string{"b", "c", "d", "e", "f", "g"} {
		k, _ := boot(t, dir, id, func(c *Config) {
			c.Startup, c.Notice, c.Deliver = []string{"s1"}, bootnotice.Config{Wait: -1, Target: "nobody"}, host
		})
		must(t, k.Run(t.Context()))
		must(t, k.Close())
		if want := map[bool]int{true: 1}[i >= 4]; len(host.gaveUp) != want {
			t.Errorf("boot %d: it has heard of %d", i+1, len(host.gaveUp))
		}
	}
	same(t, "heard", host.gaveUp, []string{bootnotice.NoticeID("a", "s1")})
}

// TestCloseReleasesEverything leaves no handle in the folder: not after a stop, not of a second instance, and not when New
// fails.
func TestCloseReleasesEverything(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("handles are counted in /proc")
	}
	dir := t.TempDir()
	handles := func(when string) {
		t.Helper()
		entries, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		for _, e := range entries {
			if target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && strings.HasPrefix(target, dir) {
				t.Errorf("%s: %s is still open", when, target)
			}
		}
	}
	first, _ := boot(t, dir, "a", func(c *Config) { c.Notice = noWait })
	second, _ := boot(t, dir, "b", nil)
	beside, err := OpenOutbox(dir)
	must(t, err)
	_, err = first.Busy("s")
	must(t, err)
	must(t, errors.Join(second.Close(), first.Run(t.Context()), first.Close(), beside.Close()))
	handles("after Close")
	must(t, os.WriteFile(filepath.Join(dir, outboxName), []byte("{"), 0o600))
	if _, err := New(t.Context(), Config{Dir: dir, Instance: inst("c"), Deliver: &recorder{}}); err == nil {
		t.Error("a damaged outbox is no error")
	}
	handles("after New failed")
}
