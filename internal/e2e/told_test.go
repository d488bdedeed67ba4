package e2e

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/inbox"
	"github.com/mulligan-dev/mulligan/notify"
)

// flaky is a notifier that fails two deliveries out of three, half of the time after the row has arrived.
type flaky struct {
	notify.Notifier
	n atomic.Int32
}

func (f *flaky) Notify(ctx context.Context, r notify.Row) error {
	switch f.n.Add(1) % 4 {
	case 1:
		return errors.New("the line is down")
	case 2:
		_ = f.Notifier.Notify(ctx, r) // it arrived, and nobody was told
		return errors.New("the line broke off")
	}
	return f.Notifier.Notify(ctx, r)
}

// counter counts deliveries.
type counter struct {
	notify.Notifier
	n atomic.Int32
}

func (c *counter) Notify(ctx context.Context, r notify.Row) error {
	c.n.Add(1)
	return c.Notifier.Notify(ctx, r)
}

// TestToldOnce: deliveries fail again and again, also after the row arrived, and two healers take turns. Every silenced
// failure ends up as exactly one row with one toast.
func TestToldOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "inbox")
	box, err := inbox.New(inbox.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	w := newWorld(t, options{notifiers: []notify.Notifier{&flaky{Notifier: box}}})
	other := w.another(options{})
	w.branch("v2", renamed...)
	cast := map[string]*agent{
		"rate_limit": w.start("rate", "rate_limit"),
		"disk_full":  w.start("disk", "disk_full"),
		"tool":       w.start("tool", "tool"),
		"handoff":    w.start("asker", "mark:handoff", "wait:update", "encode"),
		"work":       w.start("worker", "mark:provider_running", "wait:update", "encode"),
		"episode":    w.start("scout", "mark:preparing", "wait:update", "encode"),
		"broken":     w.start("warden", "mark:preparing", "wait:update", "encode", "bug"),
	}
	for _, n := range []string{"asker", "worker", "scout", "warden"} {
		w.until(n+" to wait", func() bool { return w.has(n + "-waits-for-update") })
	}
	w.update("v2")
	w.tell("update")
	for _, a := range cast {
		a.dies()
	}
	want := map[string]int{"rate_limit": 1, "disk_full": 1, "tool_failure": 1, "handoff": 1, "notify_post_provider": 1, "already_restarted": 1, "episode": 1}
	errs := 0
	pass := func(p *parts) {
		if _, err := p.healer.Pass(w.ctx, everything); err != nil {
			errs++
		}
	}
	count := func() map[string]int {
		all, err := box.Entries(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, e := range all {
			got[e.Row.Kind]++
			if e.Toasts != 1 {
				t.Errorf("%s: %d toasts, want one", e.Row.Key, e.Toasts)
			}
		}
		return got
	}
	w.until("everything to be told", func() bool {
		pass(w.parts)
		pass(other)
		got := count()
		for k := range want {
			if got[k] == 0 {
				return false
			}
		}
		return w.stands(cast["episode"]) == "settled_ok replacement_ok"
	})
	for range 15 {
		pass(w.parts)
		pass(other)
	}
	got := count()
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%d rows of kind %s, want %d", got[k], k, n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the inbox has %v, want %v", got, want)
	}
	if errs == 0 {
		t.Error("the story is wrong: no delivery failed")
	}
	// In the end everything is acknowledged, and a pass delivers nothing more.
	before := w.opts.notifiers[0].(*flaky).n.Load()
	pass(w.parts)
	pass(other)
	if after := w.opts.notifiers[0].(*flaky).n.Load(); after != before {
		t.Errorf("%d deliveries after everything was told", after-before)
	}
}
