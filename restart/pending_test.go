package restart_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// board is what a person sees: the rows by key, and how often each was delivered.
type board struct {
	rows map[string]notify.Row
	came map[string]int
}

func (b *board) Notify(_ context.Context, r notify.Row) error {
	if b.rows == nil {
		b.rows, b.came = map[string]notify.Row{}, map[string]int{}
	}
	b.rows[r.Key] = notify.Merge(b.rows[r.Key], r)
	b.came[r.Key]++
	return nil
}

// of are the keys of the rows about a run, with how often each came.
func (b *board) of(run string) (out []string) {
	for k, n := range b.came {
		if strings.HasPrefix(k, "run:"+run+":") {
			out = append(out, fmt.Sprint(strings.TrimPrefix(k, "run:"+run+":"), " ", n))
		}
	}
	return out
}

// bytesOf is the ledger as it is kept.
func bytesOf(t *testing.T, s ledger.Store) string {
	t.Helper()
	var out strings.Builder
	for r, err := range s.List(t.Context()) {
		b, bad := json.Marshal(r)
		if err != nil || bad != nil {
			t.Fatal(err, bad)
		}
		out.Write(append(b, '\n'))
	}
	return out.String()
}

// TestHeld: while the healer is paused or disabled, over many passes of many healers, the ledger does not change by a
// byte, doorbells stay, no deferral ages, and each failure is shown exactly once. Afterwards what is still young
// enough is decided, what is not is answered held_too_long, and the rows say what became of it.
func TestHeld(t *testing.T) {
	t.Parallel()
	for _, held := range []string{policy.Paused, policy.Disabled} {
		t.Run(held, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s, err := newSim(dir, restart.Settings{Quiescence: 30 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				var shown board
				healer := func(off bool) *restart.Healer {
					h, err := restart.New(s.config(func(c *restart.Config) {
						c.Notifiers, c.Settings.Disabled = []notify.Notifier{&shown}, off
					}))
					if err != nil {
						t.Fatal(err)
					}
					return h
				}
				dies := func(name, rev string) *managed.Run {
					r, err := s.breaks(t.Context(), name, rev)
					if err != nil {
						t.Fatal(err)
					}
					return r
				}
				old := dies("old", "v2")
				time.Sleep(31 * time.Minute)
				deferred := dies("deferred", "v3")
				if res, err := healer(false).Pass(t.Context(), restart.Scope{Name: "deferred"}); err != nil || res.Outcomes[0].Code != policy.NotQuiet {
					t.Fatalf("before the hold: %+v, %v", res, err)
				}
				young := dies("young", "v4")
				off := held == policy.Disabled
				if !off {
					_, err := s.stores.Storm.UpdateState(t.Context(), func(cur storm.State, now stamp.Time) (storm.State, error) {
						return cur.Pause(storm.Pause{Since: now, Reason: storm.ReasonByHand}), nil
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				before := bytesOf(t, s.stores.Ledger)
				for i := range 100 {
					res, err := healer(off).Pass(t.Context(), restart.Scope{})
					if err != nil || res.Held != held || len(res.Outcomes) != 3 {
						t.Fatalf("pass %d: %+v, %v", i, res, err)
					}
					time.Sleep(7 * time.Minute)
				}
				if after := bytesOf(t, s.stores.Ledger); after != before {
					t.Errorf("the ledger changed during the hold:\n%s\n%s", before, after)
				}
				if items, err := s.stores.Doorbells.Pending(t.Context()); err != nil || len(items) != 3 {
					t.Errorf("%d doorbells are left (%v), want all three", len(items), err)
				}
				for _, r := range []*managed.Run{old, deferred, young} {
					if got := fmt.Sprint(shown.of(r.ID())); got != "["+held+" 1]" {
						t.Errorf("%s was shown as %s, want once", r.Registered().Name, got)
					}
				}
				if !off {
					if _, err := healer(false).Resume(t.Context(), "a test"); err != nil {
						t.Fatal(err)
					}
				}
				want := map[string]string{"old": "decline held_too_long", "deferred": "relaunch relaunch", "young": "relaunch relaunch"}
				res, err := healer(false).Pass(t.Context(), restart.Scope{})
				if err != nil || len(res.Outcomes) != 3 {
					t.Fatalf("after the hold: %+v, %v", res, err)
				}
				for _, o := range res.Outcomes {
					if got := string(o.Verdict) + " " + o.Code; got != want[o.Name] {
						t.Errorf("%s: %s %s, want %s", o.Name, got, o.Text, want[o.Name])
					}
				}
				s.launcher.Wait()
				if _, err := healer(false).Pass(t.Context(), restart.Scope{}); err != nil {
					t.Fatal(err)
				}
				for r, kind := range map[*managed.Run]string{old: policy.HeldTooLong, deferred: policy.Relaunching, young: policy.Relaunching} {
					row := shown.rows["run:"+r.ID()+":"+held]
					if row.Kind != kind && row.Kind != policy.ReplacementOK || row.Tone != notify.Dim {
						t.Errorf("%s: the row of the hold ends as %s (%s), want %s, dim", r.Registered().Name, row.Kind, row.Tone, kind)
					}
				}
				st, err := s.stores.Storm.State(t.Context())
				if err != nil || len(st.Told) != 0 {
					t.Errorf("the state still remembers %v (%v)", st.Told, err)
				}
			})
		})
	}
}

// TestWaitingIsShownOnce: a deferral that takes long is one dim row, once; its outcome is the same row's last form.
func TestWaitingIsShownOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		says policy.Preflight
		want string
	}{
		"put back": {policy.Preflight{}, policy.Relaunching},
		"refused":  {policy.Preflight{Code: "retired", Text: "It is retired.", ForGood: true}, "retired"},
		"expired":  {policy.Preflight{Code: "no_gpu", Text: "No GPU is free."}, policy.DeferredExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s, err := newSim(dir, restart.Settings{Quiescence: -1})
				if err != nil {
					t.Fatal(err)
				}
				var shown board
				l := &refuser{Launcher: s.launcher, says: policy.Preflight{Code: "no_gpu", Text: "No GPU is free."}}
				healer := func() *restart.Healer {
					h, err := restart.New(s.config(func(c *restart.Config) { c.Launcher, c.Notifiers = l, []notify.Notifier{&shown} }))
					if err != nil {
						t.Fatal(err)
					}
					return h
				}
				r, err := s.breaks(t.Context(), "scout", "v2")
				if err != nil {
					t.Fatal(err)
				}
				key := "run:" + r.ID() + ":waiting"
				for i := range 20 {
					one(t, healer(), "scout")
					if n := shown.came[key]; n > 1 || (n == 1) != (i >= 10) {
						t.Fatalf("after %d minutes it was shown %d times, want once from the tenth on", i, n)
					}
					time.Sleep(time.Minute)
				}
				row := shown.rows[key]
				if row.Tone != notify.Dim || row.Toast || row.Loud || !strings.Contains(fmt.Sprint(row.Notes), "No GPU is free") {
					t.Errorf("the row is %+v, want a dim one with the cause", row)
				}
				l.says = end.says
				time.Sleep(11 * time.Minute * time.Duration(strings.Count(name, "expired")))
				for range 3 {
					if _, err := healer().Pass(t.Context(), restart.Scope{}); err != nil {
						t.Fatal(err)
					}
				}
				s.launcher.Wait()
				row = shown.rows[key]
				if shown.came[key] != 2 || row.Kind != end.want || row.Tone != notify.Dim {
					t.Errorf("the row came %d times and ends as %s (%s), want twice and %s", shown.came[key], row.Kind, row.Tone, end.want)
				}
				if why := fmt.Sprint(row.Notes); end.want == policy.Relaunching && strings.Contains(why, "GPU") {
					t.Errorf("the cause of the wait stands below its outcome: %s", why)
				}
			})
		})
	}
}
