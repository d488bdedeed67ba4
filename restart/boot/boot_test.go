package boot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
)

// recorder is a host that notes what it is given.
type recorder struct {
	mu     sync.Mutex
	got    []bootnotice.Delivery
	gaveUp []string
	seen   bool
	fail   error
}

func (r *recorder) Deliver(_ context.Context, d bootnotice.Delivery) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, d)
	return r.seen, r.fail
}

func (r *recorder) Undeliverable(_ context.Context, n bootnotice.Notice) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gaveUp = append(r.gaveUp, n.ID)
	return nil
}

// told are the sessions that got a message and how, in order.
func (r *recorder) told() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.got {
		out = append(out, d.Session+" "+string(d.Way))
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inst is a process that is none of this machine's, so that nothing but the config decides what kind of boot it is.
func inst(id string) ledger.Instance {
	return ledger.Instance{ID: id, Boot: "k1", PIDNS: "ns1", PID: 100, Start: uint64(len(id)) + uint64(id[len(id)-1])}
}

func boot(t *testing.T, dir, id string, change func(*Config)) (*Keeper, *recorder) {
	t.Helper()
	rec := &recorder{}
	c := Config{Dir: dir, Instance: inst(id), Deliver: rec, Startup: []string{"main"}}
	if change != nil {
		change(&c)
	}
	if r, ok := c.Deliver.(*recorder); ok {
		rec = r
	}
	k, err := New(t.Context(), c)
	must(t, err)
	t.Cleanup(func() { must(t, k.Close()) })
	return k, rec
}

// cutOff leaves a folder whose last instance stopped in the middle of turns.
func cutOff(t *testing.T, dir, id string, names ...string) {
	t.Helper()
	k, _ := boot(t, dir, id, func(c *Config) { c.Startup = nil })
	for _, n := range names {
		_, err := k.Busy(n)
		must(t, err)
	}
	must(t, k.Close())
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

var noWait = bootnotice.Config{Wait: -1}

// TestLives goes through the kinds of boot in one folder.
func TestLives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	life := func(want bootnotice.Kind, in ledger.Instance) bootnotice.Boot {
		t.Helper()
		k, rec := boot(t, dir, "x", func(c *Config) { c.Instance, c.Notice = in, noWait })
		if k.Boot().Kind != want {
			t.Errorf("%s is %s, want %s", in.ID, k.Boot().Kind, want)
		}
		must(t, k.Run(t.Context()))
		if got := len(rec.told()) > 0; got != want.Restart() {
			t.Errorf("%s: told %v", want, rec.told())
		}
		must(t, k.Close())
		must(t, k.Close())
		return k.Boot()
	}
	a := inst("a")
	life(bootnotice.FirstBoot, a)
	life(bootnotice.Reload, a)
	exec := a
	exec.ID = "a2"
	life(bootnotice.ExecInPlace, exec)
	life(bootnotice.ProcessRestart, inst("b"))
	rebooted := inst("c")
	rebooted.Boot = "k2"
	if b := life(bootnotice.HostReboot, rebooted); !b.Clean || !b.Known || b.Downtime < 0 {
		t.Errorf("after a recorded stop: %+v", b)
	}
	for i, damage := range []string{"", "{}", "not json", `{"schema":1,"sum":"x","body":{}}`} {
		must(t, os.WriteFile(filepath.Join(dir, markerName), []byte(damage), 0o600))
		if b := life(bootnotice.ProcessRestart, inst("d"+strconv.Itoa(i))); b.Known || b.Downtime != 0 {
			t.Errorf("after the marker %q the downtime is %+v", damage, b)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, outboxName), []byte("{"), 0o600))
	_, err := New(t.Context(), Config{Dir: dir, Instance: inst("e"), Deliver: &recorder{}})
	var damage *DamageError
	if !errors.As(err, &damage) || !strings.Contains(err.Error(), "outbox.json") {
		t.Errorf("a damaged outbox: %v", err)
	}
}

func TestNewSaysAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), Config{Beat: -1, Notice: bootnotice.Config{Mode: "shout"}})
	for _, want := range []string{"Dir", "Instance", "Deliver", "Beat", "shout"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s: %v", want, err)
		}
	}
}

// TestRequested tells exactly the session that asked, also when it comes late, and nobody when the request was taken
// back.
func TestRequested(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k, _ := boot(t, dir, "a", nil)
	_, err := k.Busy("other")
	must(t, err)
	ask := func(id, s string) bootnotice.Request {
		return bootnotice.Request{ID: id, Session: s, Reason: "a new build"}
	}
	must(t, k.Outbox().Request(t.Context(), ask("r1", "s1")))
	must(t, k.Outbox().Request(t.Context(), ask("r1", "s1")))
	must(t, k.Outbox().Request(t.Context(), ask("r2", "s2")))
	must(t, k.Outbox().Withdraw(t.Context(), "r2"))
	must(t, k.Close())

	k, rec := boot(t, dir, "b", func(c *Config) { c.Notice = noWait })
	running := make(chan error, 1)
	go func() { running <- k.Run(t.Context()) }()
	k.Appeared("other")
	k.Appeared("s1")
	must(t, <-running)
	same(t, "told", rec.told(), []string{"s1 wake"})
	if text := rec.got[0].Text; !strings.Contains(text, "you asked for it (a new build)") || !strings.Contains(text, "Also interrupted: other.") {
		t.Errorf("the text is %q", text)
	}
	if left, err := k.Outbox().Requests(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("the request is still there: %v, %v", left, err)
	}
}

// TestAttempts is one notice that nobody acknowledges: once in each boot, in three boots, then given up, which is told
// once; and one that is acknowledged.
func TestAttempts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cutOff(t, dir, "a", "s1")
	var ids []string
	for i, id := range []string{"b", "c", "d", "e", "f"} {
		k, rec := boot(t, dir, id, func(c *Config) { c.Startup, c.Notice = []string{"s1"}, bootnotice.Config{Wait: -1, Target: "nobody"} })
		must(t, k.Run(t.Context()))
		must(t, k.Run(t.Context()))
		for _, d := range rec.got {
			ids = append(ids, d.ID)
		}
		if want := i < 3; (len(rec.got) == 1) != want || len(rec.got) > 1 {
			t.Errorf("boot %d: told %v", i+1, rec.told())
		}
		if want := i == 3; (len(rec.gaveUp) == 1) != want {
			t.Errorf("boot %d: gave up %v", i+1, rec.gaveUp)
		}
		must(t, k.Close())
	}
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("one notice has the ids %v", ids)
	}

	cutOff(t, dir, "g", "s1")
	k, rec := boot(t, dir, "h", func(c *Config) { c.Startup, c.Notice = []string{"s1"}, noWait })
	must(t, k.Run(t.Context()))
	beside, err := OpenOutbox(dir) // as a command line does
	must(t, err)
	must(t, beside.Ack(t.Context(), rec.got[0].ID, "ada"))
	must(t, beside.Ack(t.Context(), rec.got[0].ID, "ada"))
	if err := beside.Ack(t.Context(), "rn-none", "ada"); !errors.Is(err, ErrNoNotice) {
		t.Errorf("an unknown id: %v", err)
	}
	must(t, beside.Close())
	must(t, k.Close())
	k, rec = boot(t, dir, "i", func(c *Config) { c.Startup, c.Notice = []string{"s1"}, bootnotice.Config{Wait: -1, Target: "nobody"} })
	must(t, k.Run(t.Context()))
	same(t, "after it was acknowledged", rec.told(), nil)
}

// TestMergedAck acknowledges all that was told in one message.
func TestMergedAck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cutOff(t, dir, "a", "s1")
	cutOff(t, dir, "b", "s1")
	k, rec := boot(t, dir, "c", func(c *Config) { c.Startup, c.Notice, c.Deliver = []string{"s1"}, noWait, &recorder{seen: true} })
	must(t, k.Run(t.Context()))
	if len(rec.got) != 1 || len(rec.got[0].Notices) != 2 || !strings.Contains(rec.got[0].Text, "1 earlier restart") {
		t.Fatalf("delivered %+v", rec.got)
	}
	list, err := k.Outbox().List(t.Context())
	must(t, err)
	for _, n := range list {
		if n.State != bootnotice.Acknowledged {
			t.Errorf("%s is %s", n.ID, n.State)
		}
	}
}

// TestFates delivers as the coordinator decided.
func TestFates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := []string{"aborted", "capped", "free", "held", "resumed"}
	cutOff(t, dir, "a", names...)
	var woken []string
	k, rec := boot(t, dir, "b", func(c *Config) {
		c.Startup, c.Notice = names, noWait
		c.Rule = func(_ context.Context, name string) bootnotice.Ruling {
			switch name {
			case "resumed":
				return bootnotice.Ruling{Fate: bootnotice.Resumed}
			case "held":
				return bootnotice.Ruling{Fate: bootnotice.Held, Reason: "three attempts", Way: "release it"}
			case "aborted":
				return bootnotice.Ruling{Fate: bootnotice.Aborted}
			}
			return bootnotice.Ruling{}
		}
		c.Wake = func(_ context.Context, name string) error {
			if name == "capped" {
				return errors.New("50 sessions were resumed in this boot")
			}
			woken = append(woken, name)
			return nil
		}
	})
	d, ok, err := k.Take(t.Context(), "resumed")
	if err != nil || !ok || d.Way != bootnotice.InTurn || !strings.Contains(d.Text, d.ID) {
		t.Errorf("take: %+v, %v, %v", d, ok, err)
	}
	if _, again, err := k.Take(t.Context(), "resumed"); again || err != nil {
		t.Errorf("taken twice in one boot: %v", err)
	}
	must(t, k.Run(t.Context()))
	same(t, "told", rec.told(), []string{"capped inject", "free wake", "held inject"})
	same(t, "counted against the cap", woken, []string{"free"})
	for _, d := range rec.got {
		want := map[string]string{"capped": "50 sessions were resumed", "held": "three attempts. To go on: release it."}[d.Session]
		if !strings.Contains(d.Text, want) {
			t.Errorf("%s: no %q in %q", d.Session, want, d.Text)
		}
	}
	list, err := k.Outbox().List(t.Context())
	must(t, err)
	if list[0].Session != "aborted" || list[0].State != bootnotice.Withdrawn || len(list[0].Attempts) != 0 {
		t.Errorf("an aborted session's notice is %+v", list[0])
	}
}

// states are sessions as a store would show them.
type states map[string]session.Status

func (s states) Status(_ context.Context, name string) (session.Status, error) {
	st, ok := s[name]
	if !ok {
		return st, errors.New("the store does not answer")
	}
	return st, nil
}

func (s states) List(context.Context, string, int) ([]session.Status, error) { return nil, nil }

// TestStatesDecide is a host without auto-resume: a session that cannot go on is not woken.
func TestStatesDecide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := []string{"aborted", "idle", "paused", "unreadable"}
	cutOff(t, dir, "a", names...)
	k, rec := boot(t, dir, "b", func(c *Config) {
		c.Startup, c.Notice = names, noWait
		c.Sessions = states{"idle": {Headline: session.Idle}, "paused": {Headline: session.Paused}, "aborted": {Headline: session.Aborted}}
	})
	must(t, k.Run(t.Context()))
	same(t, "told", rec.told(), []string{"idle wake", "paused inject", "unreadable inject"})
}

// TestLate is about sessions that come when something asks for them.
func TestLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration // until the session is there
		want  []string
	}{
		"just in time": {bootnotice.DefaultWait - time.Millisecond, []string{"s1 wake"}},
		"too late":     {bootnotice.DefaultWait + time.Millisecond, []string{"main wake"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				cutOff(t, dir, "a", "s1")
				k, rec := boot(t, dir, "b", nil)
				began := time.Now()
				running := make(chan error, 1)
				go func() { running <- k.Run(t.Context()) }()
				time.Sleep(c.after)
				k.Appeared("s1")
				must(t, <-running)
				same(t, "told", rec.told(), c.want)
				if took := time.Since(began); took > 2*bootnotice.DefaultWait {
					t.Errorf("the run ended after %v", took)
				}
				must(t, k.Close())
			})
		})
	}
}

// TestExpiry waits for a session that asked and never comes: a day, then it is given up.
func TestExpiry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		k, _ := boot(t, dir, "a", nil)
		must(t, k.Outbox().Request(t.Context(), bootnotice.Request{ID: "r", Session: "s1"}))
		must(t, k.Close())
		k, rec := boot(t, dir, "b", func(c *Config) { c.Beat = time.Hour })
		began := time.Now()
		must(t, k.Run(t.Context()))
		if took := time.Since(began); took < bootnotice.Expiry-time.Second || took > bootnotice.Expiry+time.Second {
			t.Errorf("given up after %v", took)
		}
		same(t, "gave up", rec.gaveUp, []string{bootnotice.NoticeID("a", "s1")})
		same(t, "told", rec.told(), nil)
		must(t, k.Run(t.Context()))
		if len(rec.gaveUp) != 1 {
			t.Errorf("it was told %d times that the notice was given up", len(rec.gaveUp))
		}
		must(t, k.Close())
	})
}

// TestForgottenStaysForgotten: a process that lives on for longer than its notices are kept makes none of them anew, and
// gives up nothing that was told.
func TestForgottenStaysForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cutOff(t, dir, "a", "s1")
		k, rec := boot(t, dir, "b", func(c *Config) {
			c.Beat, c.Startup, c.Deliver = 24*time.Hour, []string{"s1"}, &recorder{seen: true}
		})
		ctx, stop := context.WithCancel(t.Context())
		running := make(chan error, 1)
		go func() { running <- k.rounds(ctx, true) }()
		time.Sleep(keepOver + 2*bootnotice.Expiry)
		for range 3 {
			k.again()
			synctest.Wait()
		}
		stop()
		must(t, <-running)
		same(t, "told", rec.told(), []string{"s1 wake"})
		same(t, "gave up", rec.gaveUp, nil)
		if list, err := k.Outbox().List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("there are %+v (%v)", list, err)
		}
		must(t, k.Close())
	})
}

// TestBusyThatWasNotNoted: a turn whose beginning could not be written down did not begin, and nobody is told of it.
func TestBusyThatWasNotNoted(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	k, _ := boot(t, t.TempDir(), "a", func(c *Config) {
		c.Beat = time.Hour
		c.fs = faultfs.Tap(durable.System{}, func(op faultfs.Op) error {
			if full.Load() && op.Kind != faultfs.Look {
				return syscall.ENOSPC
			}
			return nil
		})
	})
	full.Store(true)
	if _, err := k.Busy("s1"); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("on a full disk: %v", err)
	}
	full.Store(false)
	_, err := k.Busy("s2")
	must(t, err)
	if got := k.marker.Active; len(got) != 1 || got[0].Session != "s2" {
		t.Errorf("under way are %+v", got)
	}
}

// TestDowntime measures from the last heartbeat, in a bubble where nothing else takes time.
func TestDowntime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		k, _ := boot(t, dir, "a", nil)
		time.Sleep(17 * time.Second) // three heartbeats
		synctest.Wait()
		kill(k)
		time.Sleep(2 * time.Minute)
		b, _ := boot(t, dir, "b", nil)
		if got := b.Boot(); got.Clean || !got.Known || got.Downtime != 2*time.Minute+2*time.Second {
			t.Errorf("%+v, want 2m2s since the heartbeat at 15 s", got)
		}
		must(t, b.Close())
	})
}

// kill ends a keeper as SIGKILL would: no stop is recorded.
func kill(k *Keeper) {
	k.stop()
	k.work.Wait()
	k.idle = true
	_ = k.live.Close()
}

func TestClosedTakesNothing(t *testing.T) {
	t.Parallel()
	k, _ := boot(t, t.TempDir(), "a", nil)
	idle, err := k.Busy("s")
	must(t, err)
	must(t, k.Close())
	if err := idle(); !errors.Is(err, errClosed) {
		t.Errorf("idle after the stop: %v", err)
	}
	if _, err := k.Busy("s"); !errors.Is(err, errClosed) {
		t.Errorf("busy after the stop: %v", err)
	}
	must(t, k.Run(t.Context()))
}
