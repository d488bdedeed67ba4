package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// RunDoorbell checks a box. open makes an empty one.
func RunDoorbell(t *testing.T, open func(t *testing.T) doorbell.Box) {
	t.Helper()
	tryAll(t, open, []check[doorbell.Box]{
		{"every note that was rung lies there until it is removed", notesStay},
		{"a note that says nothing is refused", noteRefused},
		{"a watcher is woken for what lies there already and for what comes", watched},
	})
}

func notesStay(ctx context.Context, s doorbell.Box) error {
	want := map[string]bool{}
	for _, k := range awkward() {
		run := k.String()
		want[run] = true
		n := doorbell.Note{Run: run, At: day(0), Text: doorbell.Text("torn\n\xff"), Silenced: true}
		if err := s.Ring(ctx, n); err != nil {
			return fmt.Errorf("ring for %q: %w", run, err)
		}
	}
	items, err := s.Pending(ctx)
	if err != nil {
		return err
	}
	for _, i := range items {
		if i.Err != nil {
			return i.Err
		}
		if !bytes.Equal(i.Note.Text, []byte("torn\n\xff")) || !i.Note.Silenced {
			return fmt.Errorf("note of %q came back as %+v", i.Note.Run, i.Note)
		}
		delete(want, i.Note.Run)
	}
	if len(want) > 0 {
		return fmt.Errorf("%d notes do not lie there: %v", len(want), want)
	}
	for _, i := range items {
		for range 2 { // gone already is no error
			if err := s.Remove(ctx, i.ID); err != nil {
				return err
			}
		}
	}
	if items, err = s.Pending(ctx); err == nil && len(items) > 0 {
		err = fmt.Errorf("%d notes that were removed lie there", len(items))
	}
	return err
}

func noteRefused(ctx context.Context, s doorbell.Box) error {
	for name, n := range map[string]doorbell.Note{
		"no run":         {},
		"a later schema": {Run: "r", Schema: doorbell.Schema + 1},
		"too long":       {Run: "r", Text: make([]byte, doorbell.TextLimit+1)},
	} {
		if err := s.Ring(ctx, n); err == nil {
			return fmt.Errorf("a note with %s was taken", name)
		}
	}
	items, err := s.Pending(ctx)
	if err == nil && len(items) > 0 {
		err = fmt.Errorf("%d notes lie there", len(items))
	}
	return err
}

func watched(ctx context.Context, s doorbell.Box) error {
	ctx, end := context.WithTimeout(ctx, soon)
	defer end()
	if err := s.Ring(ctx, doorbell.Note{Run: "before"}); err != nil {
		return err
	}
	wake := make(chan struct{}, 1)
	ended := make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() { ended <- s.Watch(watching, wake) }()
	select { // nobody can tell when the watch stands, so what lies there by then must wake
	case <-wake:
	case err := <-ended:
		return fmt.Errorf("the watch ended by itself: %w", err)
	case <-ctx.Done():
		return errors.New("nothing woke for the note that lay there before")
	}
	for want := 1; want <= 3; want++ {
		for {
			items, err := s.Pending(ctx)
			if err != nil {
				return err
			}
			if len(items) == want {
				break
			}
			select {
			case <-wake:
			case <-ctx.Done():
				return fmt.Errorf("nothing woke for note %d", want)
			}
		}
		if want < 3 {
			if err := s.Ring(ctx, doorbell.Note{Run: fmt.Sprint("note-", want)}); err != nil {
				return err
			}
		}
	}
	stop()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return errors.New("the watch did not end with its context")
	}
}

// RunBreaker checks a store of the breaker's state. open makes one in which nothing was ever written.
func RunBreaker(t *testing.T, open func(t *testing.T) storm.Store) {
	t.Helper()
	tryAll(t, open, []check[storm.Store]{
		{"the state is empty before anything was written", func(ctx context.Context, s storm.Store) error {
			st, err := s.State(ctx)
			if err != nil {
				return err
			}
			return same(st, storm.State{})
		}},
		{"of many that reserve at once no more get a slot than the limit allows", reserved},
		{"a refused change of the state writes nothing", stateRefused},
	})
}

func reserved(ctx context.Context, s storm.Store) error {
	const racers, limit = 12, 5
	var slots, trips, errs [racers]error
	race(racers, func(i int) {
		_, errs[i] = s.UpdateState(ctx, func(cur storm.State, now stamp.Time) (storm.State, error) {
			slot := storm.Slot{Launch: fmt.Sprint("launch-", i), Episode: "e"}
			next, tripped := storm.Reserve(cur, slot, storm.Limits{PerEpisode: limit}, now)
			slots[i], trips[i] = nil, nil
			if tripped != nil {
				trips[i] = errors.New(tripped.Reason)
			}
			return next, nil
		})
	})
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	got := 0
	for _, t := range trips {
		if t == nil {
			got++
		}
	}
	st, err := s.State(ctx)
	if err != nil {
		return err
	}
	if got != limit || len(st.Slots) != limit || st.Paused == nil || st.Revision != limit+1 {
		return fmt.Errorf("%d launches were let through with a limit of %d; %d slots, revision %d, pause %+v", got, limit, len(st.Slots), st.Revision, st.Paused)
	}
	return nil
}

func stateRefused(ctx context.Context, s storm.Store) error {
	want, err := s.UpdateState(ctx, func(cur storm.State, now stamp.Time) (storm.State, error) {
		return cur.Pause(storm.Pause{Since: now, Reason: storm.ReasonByHand}), nil
	})
	if err != nil {
		return err
	}
	no := errors.New("no")
	_, err = s.UpdateState(ctx, func(cur storm.State, now stamp.Time) (storm.State, error) { return cur.Resume(now), no })
	if !errors.Is(err, no) {
		return fmt.Errorf("got %s, want the error of the change", text(err))
	}
	_, err = s.UpdateState(ctx, func(cur storm.State, _ stamp.Time) (storm.State, error) { cur.Paused = nil; return cur, nil })
	if err != nil {
		return err
	}
	got, err := s.State(ctx)
	if err != nil {
		return err
	}
	return same(got, want)
}

// RunAnswers checks a log of answers. open makes an empty one.
func RunAnswers(t *testing.T, open func(t *testing.T) ledger.Answers) {
	t.Helper()
	tryAll(t, open, []check[ledger.Answers]{{"the last answer of each run counts, in the order of the first", lastAnswers}})
}

func lastAnswers(ctx context.Context, s ledger.Answers) error {
	if _, ok, err := s.Answer(ctx, "r0"); ok || err != nil {
		return fmt.Errorf("an empty log answers: %v, %s", ok, text(err))
	}
	for i := range 9 {
		a := ledger.Answer{Run: fmt.Sprint("r", i%3), Reason: fmt.Sprint(i), Text: "line\nbreak", At: day(0)}
		if err := s.Append(ctx, a); err != nil {
			return err
		}
	}
	i := 6
	for a, err := range s.Answers(ctx) {
		if err != nil {
			return err
		}
		if a.Run != fmt.Sprint("r", i%3) || a.Reason != fmt.Sprint(i) || a.Text != "line\nbreak" {
			return fmt.Errorf("at place %d: %+v", i-6, a)
		}
		i++
	}
	if a, ok, err := s.Answer(ctx, "r2"); !ok || err != nil || a.Reason != "8" || i != 9 {
		return fmt.Errorf("r2 has the answer %+v, %v, %s; %d runs were listed", a, ok, text(err), i-6)
	}
	return nil
}

// RunJournal checks an update journal. open makes an empty one.
func RunJournal(t *testing.T, open func(t *testing.T) journal.Store) {
	t.Helper()
	tryAll(t, open, []check[journal.Store]{{"a row that is closed takes the place of its beginning", closedRows}})
}

func closedRows(ctx context.Context, s journal.Store) error {
	for _, r := range []journal.Row{
		{ID: "a", Status: journal.Begun, Begun: day(0)}, {ID: "b", Status: journal.Begun, Begun: day(time.Second)},
		{ID: "a", Status: journal.Updated, Begun: day(0), Closed: day(time.Minute), Roots: []journal.Root{{Name: "app", From: "1", To: "2"}}},
	} {
		if err := s.Append(ctx, r); err != nil {
			return err
		}
	}
	var got []string
	for r, err := range s.Rows(ctx) {
		if err != nil {
			return err
		}
		got = append(got, fmt.Sprint(r.ID, " ", r.Status, " ", len(r.Roots)))
	}
	if want := "a updated 1, b begun 0"; strings.Join(got, ", ") != want {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	return nil
}

// RunEvidence checks a store of evidence. open makes an empty one.
func RunEvidence(t *testing.T, open func(t *testing.T) ledger.Evidence) {
	t.Helper()
	tryAll(t, open, []check[ledger.Evidence]{{"evidence is written once for a lineage, and comes back as it was", evidenceOnce}})
}

func evidenceOnce(ctx context.Context, s ledger.Evidence) error {
	for i, k := range awkward() {
		if _, err := s.Get(ctx, k); !errors.Is(err, ledger.ErrNotFound) {
			return fmt.Errorf("before: got %s, want ErrNotFound", text(err))
		}
		files := map[string][]byte{"log.tail": {0, 255, '\n'}, "manifest.json": []byte(fmt.Sprint(i)), "../up": nil}
		at, err := s.Put(ctx, k, files)
		if err != nil || at == "" {
			return fmt.Errorf("put %q: %q, %s", k, at, text(err))
		}
		if again, err := s.Put(ctx, k, files); err != nil || again != at {
			return fmt.Errorf("put the same of %q again: %q, %s", k, again, text(err))
		}
		if other, err := s.Put(ctx, k, map[string][]byte{"log.tail": nil}); !errors.Is(err, ledger.ErrExists) || other != at {
			return fmt.Errorf("put other evidence of %q: %q, %s, want %q and ErrExists", k, other, text(err), at)
		}
		got, err := s.Get(ctx, k)
		if err != nil {
			return err
		}
		if len(got) != len(files) {
			return fmt.Errorf("%d files came back, want %d", len(got), len(files))
		}
		for n, b := range files {
			if !bytes.Equal(got[n], b) {
				return fmt.Errorf("%q came back as %q, want %q", n, got[n], b)
			}
		}
	}
	return nil
}

// RunReports checks a store of reports. open makes an empty one.
func RunReports(t *testing.T, open func(t *testing.T) ledger.Reports) {
	t.Helper()
	tryAll(t, open, []check[ledger.Reports]{{"the report of an episode is the last that was put", lastReport}})
}

func lastReport(ctx context.Context, s ledger.Reports) error {
	if _, err := s.GetReport(ctx, "e"); !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("before: got %s, want ErrNotFound", text(err))
	}
	for i := range 3 {
		for _, e := range []string{"e", "E", "../e", "e/../e"} {
			if err := s.PutReport(ctx, e, map[string][]byte{"report.json": []byte(fmt.Sprint(e, i)), "report.md": nil}); err != nil {
				return err
			}
		}
	}
	for _, e := range []string{"e", "E", "../e", "e/../e"} {
		got, err := s.GetReport(ctx, e)
		if err != nil {
			return err
		}
		if len(got) != 2 || string(got["report.json"]) != e+"2" {
			return fmt.Errorf("report of %s: %q", e, got)
		}
	}
	return nil
}

// RunLock checks a writer lock. open makes one that nobody holds.
func RunLock(t *testing.T, open func(t *testing.T) journal.Lock) {
	t.Helper()
	tryAll(t, open, []check[journal.Lock]{
		{"a writer excludes everybody, and is shown to who waits", exclusive},
		{"readers share the lock, and a writer waits for the last of them", sharing},
	})
}

func exclusive(ctx context.Context, s journal.Lock) error {
	if who, held, err := s.Holder(ctx); held || err != nil {
		return fmt.Errorf("a free lock is held by %q, %s", who, text(err))
	}
	release, err := s.Exclusive(ctx, "pip install app")
	if err != nil {
		return err
	}
	if who, held, err := s.Holder(ctx); !held || err != nil || !strings.Contains(who, "pip install app") {
		return fmt.Errorf("holder: %q, %v, %s", who, held, text(err))
	}
	var held *journal.HeldError
	if _, err := s.Shared(ctx, "healer"); !errors.As(err, &held) || !strings.Contains(held.Holder, "pip install app") {
		return fmt.Errorf("share it meanwhile: got %s, want a HeldError that names the holder", text(err))
	}
	short, end := context.WithTimeout(ctx, 20*time.Millisecond)
	defer end()
	_, err = s.Exclusive(short, "another")
	if !errors.As(err, &held) || !strings.Contains(held.Holder, "pip install app") || !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("take it meanwhile: got %s, want a HeldError that names the holder and wraps the deadline", text(err))
	}
	for range 2 { // releasing twice is no error, and frees nobody else's lock
		if err := release(); err != nil {
			return err
		}
	}
	over, end := context.WithDeadline(ctx, time.Unix(0, 0))
	defer end()
	next, err := s.Exclusive(over, "next")
	if err != nil {
		return fmt.Errorf("take the free lock when no time is left to wait: %w", err)
	}
	if err := release(); err != nil {
		return err
	}
	if _, err := s.Shared(ctx, "healer"); !errors.As(err, &held) {
		return fmt.Errorf("an old release freed the lock of the next holder: %w", err)
	}
	return next()
}

func sharing(ctx context.Context, s journal.Lock) error {
	ctx, end := context.WithTimeout(ctx, soon)
	defer end()
	one, err := s.Shared(ctx, "healer one")
	if err != nil {
		return err
	}
	two, err := s.Shared(ctx, "healer two")
	if err != nil {
		return err
	}
	got := make(chan error, 1)
	go func() {
		release, err := s.Exclusive(ctx, "writer")
		if err == nil {
			err = release()
		}
		got <- err
	}()
	if err := one(); err != nil {
		return err
	}
	select {
	case err := <-got:
		return fmt.Errorf("the writer did not wait for the second reader: %w", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := two(); err != nil {
		return err
	}
	return <-got
}
