package ledgertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// check is one promise of a store and how it is tried. An error says what was seen instead.
type check[S any] struct {
	promise string
	try     func(ctx context.Context, s S) error
}

// tryAll tries every check on a store of its own.
func tryAll[S any](t *testing.T, open func(*testing.T) S, checks []check[S]) {
	t.Helper()
	for _, c := range checks {
		t.Run(strings.ReplaceAll(c.promise, " ", "_"), func(t *testing.T) {
			t.Parallel()
			if err := c.try(t.Context(), open(t)); err != nil {
				t.Errorf("broken promise: %s\n%v", c.promise, err)
			}
		})
	}
}

// Run checks a ledger. open makes an empty store.
func Run(t *testing.T, open func(t *testing.T) ledger.Store) {
	t.Helper()
	tryAll(t, open, ledgerChecks)
}

// day is the moment at which everything in the checks happens.
func day(d time.Duration) stamp.Time {
	t := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return stamp.Time{Wall: t, Boot: "boot", Uptime: time.Hour}.Add(d)
}

// someone is an instance that no machine has.
func someone(n int) ledger.Instance {
	return ledger.Instance{ID: fmt.Sprintf("instance-%d", n), Boot: "boot", PIDNS: "pid:[1]", PID: n + 1, Start: 7}
}

// claim is the record of a first claim.
func claim(k ledger.Key, by int) ledger.Record {
	facts := ledger.Facts{
		Death:     ledger.Death{Run: "run-" + k.Lineage, Name: "agent", At: day(-time.Second), Booted: day(-time.Minute), Phase: "booting", Exit: 1},
		Signature: ledger.Signature{Family: "torn_import", Message: "no module named \"x\" \u2028 \x00 é 🙂", Modules: []string{"a", "b"}},
		Witnesses: []ledger.Witness{{Kind: "W1", Root: "app", From: "1", To: "2", Detail: "changed"}},
	}
	r, err := ledger.New(k, ledger.Change{Event: ledger.Claim, Now: day(0), Actor: someone(by), Facts: &facts, Reason: "claimed", Note: fmt.Sprint("by ", by)})
	if err != nil {
		panic(err) // the machine refuses what this file made: no store is at fault
	}
	return r
}

// change applies one event at a later time.
func change(s ledger.Store, k ledger.Key, c ledger.Change) (ledger.Record, error) {
	return s.Update(context.Background(), k, func(cur ledger.Record, _ stamp.Time) (ledger.Record, error) {
		if c.Now.IsZero() {
			c.Now = day(time.Second)
		}
		return ledger.Apply(cur, c)
	})
}

// same reports how two values differ as JSON, which is all that a store has to keep.
func same(got, want any) error {
	g, err := json.Marshal(got)
	if err != nil {
		return err
	}
	w, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if !bytes.Equal(g, w) {
		return fmt.Errorf("got  %s\nwant %s", g, w)
	}
	return nil
}

// text is an error that was seen, also none, for a message that is about it and does not pass it on.
func text(err error) string { return fmt.Sprint(err) }

// race runs f n times at once.
func race(n int, f func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() { <-start; f(i) })
	}
	close(start)
	all.Wait()
}

// awkward are keys that a careless store confuses or cannot name.
func awkward() []ledger.Key {
	long := strings.Repeat("long ", 60)
	return []ledger.Key{
		{Project: "p", Lineage: "l"}, {Project: "P", Lineage: "l"}, {Project: "", Lineage: "l"}, {Project: "", Lineage: "p__l"},
		{Project: "p__l", Lineage: "l"}, {Project: "p", Lineage: "l__l"}, {Project: "p_", Lineage: "_l"}, {Project: "p__", Lineage: "l"},
		{Project: "p/l", Lineage: "l"}, {Project: "p", Lineage: "l/l"}, {Project: "..", Lineage: ".."}, {Project: ".", Lineage: "."},
		{Project: "../../etc", Lineage: "passwd"}, {Project: "p", Lineage: "l.json"}, {Project: "p", Lineage: ".l"},
		{Project: "p", Lineage: "l\n"}, {Project: "p", Lineage: "l\x00"}, {Project: "p", Lineage: "_6C"}, {Project: "p", Lineage: "l "},
		{Project: "🙂", Lineage: "é"}, {Project: "🙂", Lineage: "e\u0301"}, {Project: "p", Lineage: "%2F"}, {Project: "p", Lineage: "~"},
		{Project: long, Lineage: long + "a"}, {Project: long, Lineage: long + "b"}, {Project: long + "a", Lineage: long},
	}
}

var ledgerChecks = []check[ledger.Store]{
	{"a lineage is claimed once, for good, whatever became of its record", claimedForGood},
	{"of many that claim one lineage at once exactly one wins, and the record is the winner's", oneWinner},
	{"what was written is what is read", roundTrip},
	{"no two keys share a record", keysApart},
	{"a record that is not there is ErrNotFound, and nothing is decided about it", notFound},
	{"an update is one step against all others", oneStep},
	{"of many that begin the launch exactly one does, and of many at the gate exactly one passes", oneLaunch},
	{"a change that is refused writes nothing, and its error is returned", refusedWritesNothing},
	{"a record with the present revision is not written", presentRevision},
	{"a change cannot give a record another key or take back a revision", noOtherKey},
	{"an update is given the store's clock, which does not stand still at zero or go back", clock},
	{"a context that ended writes nothing", endedContext},
	{"what a caller holds is a copy", copies},
	{"a list yields every record once", list},
	{"the newest records are those that changed last, newest first", newest},
}

func claimedForGood(ctx context.Context, s ledger.Store) error {
	ends := map[string][]ledger.Change{
		"claimed":  nil,
		"deferred": {{Event: ledger.Defer, Actor: someone(0), Reason: "not_quiet"}},
		"declined": {{Event: ledger.Decline, Actor: someone(0), Reason: "no_update_witness"}},
		"aborted":  {begin("L1"), {Event: ledger.Abort, Actor: someone(0), Reason: "launch_aborted"}},
		"ok":       {begin("L2"), bind("L2", 5), {Event: ledger.SettleOK, Actor: someone(0)}},
		"failed":   {begin("L3"), bind("L3", 5), {Event: ledger.SettleBad, Actor: someone(0), Reason: "already_restarted"}},
		"pruned": {{Event: ledger.Decline, Actor: someone(0), Reason: "no_update_witness"},
			{Event: ledger.Prune, Actor: someone(0)}},
	}
	for name, steps := range ends {
		k := ledger.Key{Project: "p", Lineage: name}
		if err := s.Create(ctx, claim(k, 0)); err != nil {
			return fmt.Errorf("first claim of %s: %w", k, err)
		}
		for i := -1; i < len(steps); i++ {
			if i >= 0 {
				if _, err := change(s, k, steps[i]); err != nil {
					return fmt.Errorf("%s of %s: %w", steps[i].Event, k, err)
				}
			}
			if err := s.Create(ctx, claim(k, 1)); !errors.Is(err, ledger.ErrExists) {
				return fmt.Errorf("second claim of %s after %d changes: got %s, want ErrExists", k, i+1, text(err))
			}
		}
	}
	return nil
}

func begin(launch string) ledger.Change {
	return ledger.Change{Event: ledger.BeginLaunch, Actor: someone(0), Launch: launch, Episode: "e", Evidence: "evidence/x"}
}

func bind(launch string, by int) ledger.Change {
	return ledger.Change{Event: ledger.Bind, Actor: someone(by), Launch: launch, Run: fmt.Sprint("run-", by)}
}

func oneWinner(ctx context.Context, s ledger.Store) error {
	const claimers = 8
	for i := range 16 {
		k := ledger.Key{Project: "p", Lineage: fmt.Sprint("l", i)}
		var errs [claimers]error
		race(claimers, func(by int) { errs[by] = s.Create(ctx, claim(k, by)) })
		winner := -1
		for by, err := range errs {
			switch {
			case err == nil && winner >= 0:
				return fmt.Errorf("claimers %d and %d both won %s", winner, by, k)
			case err == nil:
				winner = by
			case !errors.Is(err, ledger.ErrExists):
				return fmt.Errorf("claimer %d of %s: got %w, want nil or ErrExists", by, k, err)
			}
		}
		if winner < 0 {
			return fmt.Errorf("nobody won %s", k)
		}
		r, err := s.Get(ctx, k)
		if err != nil {
			return err
		}
		if r.Owner == nil || !r.Owner.Instance.Same(someone(winner)) {
			return fmt.Errorf("claimer %d won %s, and the record is owned by %+v", winner, k, r.Owner)
		}
	}
	return nil
}

func roundTrip(ctx context.Context, s ledger.Store) error {
	k := ledger.Key{Project: "p", Lineage: "l"}
	want := claim(k, 0)
	if err := s.Create(ctx, want); err != nil {
		return err
	}
	for _, c := range []ledger.Change{
		{Event: ledger.Annotate, Actor: someone(0), Told: []string{"a"}},
		begin("L"), bind("L", 3), {Event: ledger.SettleBad, Actor: someone(4), Reason: "already_restarted", Note: "it is over"},
	} {
		got, err := s.Get(ctx, k)
		if err == nil {
			err = same(got, want)
		}
		if err != nil {
			return fmt.Errorf("before %s: %w", c.Event, err)
		}
		c.Now = day(time.Second)
		if want, err = ledger.Apply(want, c); err != nil {
			return err
		}
		got, err = change(s, k, c)
		if err == nil {
			err = same(got, want)
		}
		if err != nil {
			return fmt.Errorf("returned by %s: %w", c.Event, err)
		}
	}
	got, err := s.Get(ctx, k)
	if err != nil {
		return err
	}
	return same(got, want)
}

func keysApart(ctx context.Context, s ledger.Store) error {
	for i, k := range awkward() {
		if err := s.Create(ctx, claim(k, i)); err != nil {
			return fmt.Errorf("claim of %q, which nobody has: %w", k, err)
		}
	}
	for i, k := range awkward() {
		r, err := s.Get(ctx, k)
		if err != nil {
			return fmt.Errorf("get %q: %w", k, err)
		}
		if err := same(r, claim(k, i)); err != nil {
			return fmt.Errorf("get %q: %w", k, err)
		}
	}
	return nil
}

func notFound(ctx context.Context, s ledger.Store) error {
	k := ledger.Key{Project: "p", Lineage: "nobody"}
	if _, err := s.Get(ctx, k); !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("get: got %s, want ErrNotFound", text(err))
	}
	asked := false
	_, err := s.Update(ctx, k, func(ledger.Record, stamp.Time) (ledger.Record, error) { asked = true; return claim(k, 0), nil })
	if !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("update: got %s, want ErrNotFound", text(err))
	}
	if asked {
		return errors.New("the change was asked for")
	}
	if err := s.Create(ctx, claim(k, 0)); err != nil {
		return fmt.Errorf("claim after it was looked for: %w", err)
	}
	return nil
}

func oneStep(ctx context.Context, s ledger.Store) error {
	const writers, each = 6, 12
	k := ledger.Key{Project: "p", Lineage: "l"}
	if err := s.Create(ctx, claim(k, 0)); err != nil {
		return err
	}
	var errs [writers]error
	race(writers, func(w int) {
		for i := range each {
			c := ledger.Change{Event: ledger.Annotate, Actor: someone(w), Told: []string{fmt.Sprint(w, "-", i)}}
			if _, err := change(s, k, c); err != nil {
				errs[w] = err
			}
		}
	})
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	r, err := s.Get(ctx, k)
	if err != nil {
		return err
	}
	if r.Revision != 1+writers*each || len(r.Told) != writers*each {
		return fmt.Errorf("%d changes left revision %d with %d of them in it", writers*each, r.Revision, len(r.Told))
	}
	return nil
}

func oneLaunch(ctx context.Context, s ledger.Store) error {
	const racers = 8
	for i := range 6 {
		k := ledger.Key{Project: "p", Lineage: fmt.Sprint("l", i)}
		if err := s.Create(ctx, claim(k, 0)); err != nil {
			return err
		}
		name := func(n int) string { return fmt.Sprint("launch-", i, "-", n) }
		one, err := exactlyOne(racers, func(n int) error { _, err := change(s, k, begin(name(n))); return err })
		if err != nil {
			return fmt.Errorf("begin the launch of %s: %w", k, err)
		}
		r, err := s.Get(ctx, k)
		if err != nil {
			return err
		}
		if r.Launch == nil || r.Launch.ID != name(one) {
			return fmt.Errorf("%s began, and the record has %+v", name(one), r.Launch)
		}
		one, err = exactlyOne(racers, func(n int) error { _, err := change(s, k, bind(r.Launch.ID, n)); return err })
		if err != nil {
			return fmt.Errorf("pass the gate of %s: %w", k, err)
		}
		if r, err = s.Get(ctx, k); err != nil {
			return err
		}
		if r.Launch.Bound == nil || !r.Launch.Bound.Same(someone(one)) {
			return fmt.Errorf("instance-%d passed, and the record has %+v", one, r.Launch.Bound)
		}
	}
	return nil
}

func exactlyOne(n int, f func(int) error) (int, error) {
	errs := make([]error, n)
	race(n, func(i int) { errs[i] = f(i) })
	one := -1
	for i, err := range errs {
		if err == nil && one >= 0 {
			return 0, fmt.Errorf("both %d and %d did", one, i)
		}
		if err == nil {
			one = i
		}
	}
	if one < 0 {
		return 0, fmt.Errorf("nobody could: %w", errs[0])
	}
	return one, nil
}

func refusedWritesNothing(ctx context.Context, s ledger.Store) error {
	k := ledger.Key{Project: "p", Lineage: "l"}
	want := claim(k, 0)
	if err := s.Create(ctx, want); err != nil {
		return err
	}
	no := errors.New("no")
	_, err := s.Update(ctx, k, func(cur ledger.Record, _ stamp.Time) (ledger.Record, error) {
		cur.Revision++
		cur.State = ledger.Declined
		return cur, no
	})
	if !errors.Is(err, no) {
		return fmt.Errorf("got %s, want the error of the change", text(err))
	}
	_, err = change(s, k, ledger.Change{Event: ledger.SettleOK, Actor: someone(0)})
	if illegal := (*ledger.IllegalTransitionError)(nil); !errors.As(err, &illegal) {
		return fmt.Errorf("got %s, want an IllegalTransitionError", text(err))
	}
	got, err := s.Get(ctx, k)
	if err != nil {
		return err
	}
	return same(got, want)
}

func presentRevision(ctx context.Context, s ledger.Store) error {
	k := ledger.Key{Project: "p", Lineage: "l"}
	want := claim(k, 0)
	if err := s.Create(ctx, want); err != nil {
		return err
	}
	_, err := s.Update(ctx, k, func(cur ledger.Record, _ stamp.Time) (ledger.Record, error) {
		cur.Note = "altered"
		return cur, nil
	})
	if err != nil {
		return err
	}
	got, err := s.Get(ctx, k)
	if err != nil {
		return err
	}
	return same(got, want)
}

func noOtherKey(ctx context.Context, s ledger.Store) error {
	k, other := ledger.Key{Project: "p", Lineage: "l"}, ledger.Key{Project: "p", Lineage: "other"}
	if err := s.Create(ctx, claim(k, 0)); err != nil {
		return err
	}
	want, err := change(s, k, ledger.Change{Event: ledger.Annotate, Actor: someone(0), Told: []string{"x"}})
	if err != nil {
		return err
	}
	for name, f := range map[string]func(*ledger.Record){
		"another key":         func(r *ledger.Record) { r.Key = other; r.Revision++ },
		"an earlier revision": func(r *ledger.Record) { r.Revision-- },
	} {
		_, err := s.Update(ctx, k, func(cur ledger.Record, _ stamp.Time) (ledger.Record, error) { f(&cur); return cur, nil })
		if err == nil {
			return fmt.Errorf("a change to %s was taken", name)
		}
	}
	got, err := s.Get(ctx, k)
	if err != nil {
		return err
	}
	return same(got, want)
}

func clock(ctx context.Context, s ledger.Store) error {
	k := ledger.Key{Project: "p", Lineage: "l"}
	if err := s.Create(ctx, claim(k, 0)); err != nil {
		return err
	}
	var last stamp.Time
	for range 5 {
		var now stamp.Time
		if _, err := s.Update(ctx, k, func(cur ledger.Record, n stamp.Time) (ledger.Record, error) { now = n; return cur, nil }); err != nil {
			return err
		}
		if now.IsZero() || now.Before(last) {
			return fmt.Errorf("%s came after %s", now, last)
		}
		last = now
	}
	return nil
}

func endedContext(ctx context.Context, s ledger.Store) error {
	ended, end := context.WithCancel(ctx)
	end()
	k := ledger.Key{Project: "p", Lineage: "l"}
	if err := s.Create(ended, claim(k, 0)); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("claim: got %s, want context.Canceled", text(err))
	}
	want := claim(k, 1)
	if err := s.Create(ctx, want); err != nil {
		return fmt.Errorf("the claim that was given up is there: %w", err)
	}
	_, err := s.Update(ended, k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		return ledger.Apply(cur, ledger.Change{Event: ledger.Decline, Now: day(0), Actor: someone(1), Reason: "x"})
	})
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("update: got %s, want context.Canceled", text(err))
	}
	got, err := s.Get(ctx, k)
	if err != nil {
		return err
	}
	return same(got, want)
}

func copies(ctx context.Context, s ledger.Store) error {
	k := ledger.Key{Project: "p", Lineage: "l"}
	r := claim(k, 0)
	if err := s.Create(ctx, r); err != nil {
		return err
	}
	r.History[0].Note, r.Facts.Signature.Modules[0] = "altered", "altered"
	r, err := change(s, k, ledger.Change{Event: ledger.Annotate, Actor: someone(0), Told: []string{"x"}})
	if err != nil {
		return err
	}
	r.History[0].Note, r.Told["y"] = "altered", day(0)
	if r, err = s.Get(ctx, k); err != nil {
		return err
	}
	r.Facts.Witnesses[0].Detail = "altered"
	_, err = s.Update(ctx, k, func(cur ledger.Record, _ stamp.Time) (ledger.Record, error) {
		cur.History[0].Note = "altered"
		return cur, nil
	})
	if err != nil {
		return err
	}
	got, err := s.Get(ctx, k)
	if err != nil {
		return err
	}
	if b, _ := json.Marshal(got); bytes.Contains(b, []byte("altered")) || len(got.Told) != 1 {
		return fmt.Errorf("what a caller altered in his hands is in the store: %s", b)
	}
	return nil
}

func list(ctx context.Context, s ledger.Store) error {
	for r, err := range s.List(ctx) {
		return fmt.Errorf("an empty store lists %v, %s", r.Key, text(err))
	}
	want := map[ledger.Key]bool{}
	for i, k := range awkward() {
		want[k] = true
		if err := s.Create(ctx, claim(k, i)); err != nil {
			return err
		}
	}
	for r, err := range s.List(ctx) {
		if err != nil {
			return err
		}
		if !want[r.Key] {
			return fmt.Errorf("%q is listed twice, or was never written", r.Key)
		}
		delete(want, r.Key)
	}
	if len(want) > 0 {
		return fmt.Errorf("%d records are not listed: %v", len(want), want)
	}
	for _, err := range s.List(ctx) {
		return err // a caller may stop
	}
	return nil
}

// newest is skipped by stores without the power.
func newest(ctx context.Context, s ledger.Store) error {
	lister, ok := s.(ledger.Newest)
	if !ok {
		return nil
	}
	var order []string // newest first
	expect := func(n int) error {
		rs, err := lister.Newest(ctx, n)
		if err != nil {
			return err
		}
		var got []string
		for _, r := range rs {
			full, err := s.Get(ctx, r.Key)
			if err == nil {
				err = same(r, full)
			}
			if err != nil {
				return fmt.Errorf("%s among the newest: %w", r.Key, err)
			}
			got = append(got, r.Lineage)
		}
		if want := order[:min(n, len(order))]; strings.Join(got, " ") != strings.Join(want, " ") {
			return fmt.Errorf("the newest %d are %v, want %v", n, got, want)
		}
		return nil
	}
	for i := range 12 {
		if err := expect(5); err != nil {
			return err
		}
		k := ledger.Key{Project: "p", Lineage: fmt.Sprint("l", i)}
		if err := s.Create(ctx, claim(k, 0)); err != nil {
			return err
		}
		order = append([]string{k.Lineage}, order...)
	}
	for _, i := range []int{3, 0, 11, 3} {
		k := ledger.Key{Project: "p", Lineage: fmt.Sprint("l", i)}
		// Each time another notice, so that each time something is written.
		c := ledger.Change{Event: ledger.Annotate, Actor: someone(0), Told: []string{fmt.Sprint(len(order), order)}}
		if _, err := change(s, k, c); err != nil {
			return err
		}
		for j, l := range order {
			if l == k.Lineage {
				order = append(append([]string{l}, order[:j]...), order[j+1:]...)
			}
		}
		for _, n := range []int{0, 1, 5, 50} {
			if err := expect(n); err != nil {
				return err
			}
		}
	}
	return nil
}
