package handoff_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/handoff"
)

// TestARealOutboxHasNoStaleNotice: where the restart was refused, or nobody knows and this process lives on, the outbox on
// disk has no request left: the next boot, whatever it is for, tells nobody that it asked.
func TestARealOutboxHasNoStaleNotice(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{
		"refused": errors.New("the job was refused"),
		"unknown": handoff.ErrUnknown,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, err := boot.OpenOutbox(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			left := func() int {
				requests, err := box.Requests(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return len(requests)
			}
			bubble(t, func(c *handoff.Config) { c.Notices, c.Restarter.(*restarter).answer = box, answer }, func(t *testing.T, w *world) {
				if res := w.ask(w.begin("s"), `{"reason":"r"}`); !res.OK {
					t.Fatalf("%+v", res)
				}
				if left() != 1 {
					t.Error("the request is not on disk before the restart is asked for")
				}
				w.restarted("s")
				if name == "unknown" {
					time.Sleep(handoff.DefaultDelay + handoff.Settle - time.Millisecond)
					synctest.Wait()
					if left() != 1 {
						t.Error("withdrawn although the restart may still come")
					}
				}
				if f := <-w.failures; f.Unknown != (name == "unknown") {
					t.Errorf("%+v", f)
				}
				if left() != 0 {
					t.Error("a stale notice is left")
				}
			})
			if err := box.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
