package handoff_test

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/handoff"
)

// TestDefaults pins what users know.
func TestDefaults(t *testing.T) {
	t.Parallel()
	if handoff.DefaultDeadline != 120*time.Second || handoff.DefaultDelay != time.Second || handoff.Settle != 2*time.Minute ||
		handoff.Limit != 3 || handoff.Window != 10*time.Minute {
		t.Error("120 s for all stages, 1 s before the job, 2 minutes for an unknown answer, 3 restarts in 10 minutes")
	}
	if handoff.Passed != "passed" || handoff.Failed != "failed" || handoff.Skipped != "skipped" {
		t.Error("a canary is passed, failed or skipped")
	}
	var keys []string
	for f := range reflect.TypeFor[handoff.Result]().Fields() {
		if key := f.Tag.Get("json"); key != "-" {
			keys = append(keys, key)
		}
	}
	if want := strings.Fields("ok restarting sessionId reason error canary canaryDetail inFlight waitedMs"); !slices.Equal(keys, want) {
		t.Errorf("the result has the keys %v, want %v", keys, want)
	}
	if handoff.ErrNoUnit.Error() != "restartUnit not configured" {
		t.Error(handoff.ErrNoUnit)
	}
}

// TestToken holds the names of units to what may be passed on to a manager's command line.
func TestToken(t *testing.T) {
	t.Parallel()
	token := regexp.MustCompile(`\A[A-Za-z0-9_.@-]+\z`)
	for b := range 256 {
		if s := string([]byte{byte(b)}); handoff.Token(s) != token.MatchString(s) {
			t.Errorf("%q: %v", s, handoff.Token(s))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9_.@ \n-]{0,9}`)).Draw(t, "unit")
		if handoff.Token(s) != token.MatchString(s) {
			t.Fatalf("%q: %v", s, handoff.Token(s))
		}
	})
}

// batches notes what is appended together.
type batches struct {
	session.Store
	all []string
}

func (b *batches) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	var kinds []string
	for _, d := range batch {
		kinds = append(kinds, string(d.Kind))
	}
	b.all = append(b.all, strings.Join(kinds, " "))
	return b.Store.Append(ctx, name, batch)
}

// TestTheEndOfTheTurnIsOneBatch: the completion of the call and the end of the turn cannot be told apart by any crash.
func TestTheEndOfTheTurnIsOneBatch(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, w *world) {
		store := &batches{Store: w.s.Store}
		w.s.Store = store
		turn := w.begin("s")
		if res := w.ask(turn, `{}`); !res.OK {
			t.Fatalf("%+v", res)
		}
		if !slices.Contains(store.all, "result turn_ended") {
			t.Errorf("the batches are %q", store.all)
		}
	})
}

// TestAPersonsAnswerIsWithinTheDeadline has a person who does not answer: the one deadline bounds that stage too.
func TestAPersonsAnswerIsWithinTheDeadline(t *testing.T) {
	t.Parallel()
	silent := func(c *handoff.Config) {
		c.Confirm = func(ctx context.Context, _ handoff.Question) (bool, error) {
			<-ctx.Done()
			return false, context.Cause(ctx)
		}
	}
	bubble(t, silent, func(t *testing.T, w *world) {
		one := w.begin("one")
		w.begin("two")
		res := w.ask(one, `{"force":true}`)
		if res.OK || res.WaitedMs != handoff.DefaultDeadline.Milliseconds() {
			t.Errorf("%+v", res)
		}
		synctest.Wait()
		w.begin("three") // nothing is held up
	})
}
