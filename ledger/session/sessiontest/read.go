package sessiontest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

func pages(ctx context.Context, b bench) error {
	const n = 23
	for i := range n {
		if _, err := put(ctx, b.store, "s", say(fmt.Sprint(i))); err != nil {
			return err
		}
	}
	for _, size := range []int{1, 2, 7, n, n + 1, 0} {
		got, err := all(ctx, b.store, "s", size)
		if err != nil {
			return err
		}
		if len(got) != n {
			return fmt.Errorf("in pages of %d there are %d events of %d", size, len(got), n)
		}
	}
	for _, after := range []uint64{n, n + 1, 1 << 62} {
		if page, err := b.store.Read(ctx, "s", after, 0); err != nil || len(page) != 0 {
			return fmt.Errorf("after event %d there are %d more, %w", after, len(page), orNone(err))
		}
	}
	names := append(awkward(), "s")
	for _, name := range awkward() {
		if _, err := put(ctx, b.store, name, say("hello")); err != nil {
			return err
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, size := range []int{1, 5, len(names), 0} {
		got, err := listed(ctx, b.store, size)
		if err != nil {
			return err
		}
		if !slices.Equal(got, names) {
			return fmt.Errorf("in pages of %d the sessions are\n%q, want\n%q", size, got, names)
		}
	}
	return nil
}

func listed(ctx context.Context, s session.Store, size int) (out []string, err error) {
	after := ""
	for {
		page, err := s.List(ctx, after, size)
		if err != nil {
			return nil, fmt.Errorf("list after %q: %w", after, err)
		}
		if len(page) == 0 {
			return out, nil
		}
		if size > 0 && len(page) > size {
			return nil, fmt.Errorf("a page of %d has %d sessions", size, len(page))
		}
		for _, h := range page {
			if h.Session <= after {
				return nil, fmt.Errorf("session %q comes after %q", h.Session, after)
			}
			after = h.Session
			out = append(out, h.Session)
			head, err := s.Head(ctx, h.Session)
			if err != nil {
				return nil, err
			}
			if err := same(h, head); err != nil {
				return nil, fmt.Errorf("session %q is listed otherwise than it is:\n%w", h.Session, err)
			}
		}
	}
}

func finds(ctx context.Context, b bench) error {
	if _, err := put(ctx, b.store, "s", say("1"), say("2")); err != nil {
		return err
	}
	if _, err := put(ctx, b.store, "t", say("3")); err != nil {
		return err
	}
	e, ok, err := b.store.Find(ctx, "s", "2")
	if err != nil || !ok {
		return fmt.Errorf("event 2 is not found, %w", orNone(err))
	}
	want := say("2").Event
	want.Seq = 2
	if err := same(e, want); err != nil {
		return err
	}
	for _, id := range []string{"3", "", "4", "1 ", "%"} {
		if e, ok, err := b.store.Find(ctx, "s", id); err != nil || ok {
			return fmt.Errorf("session s has event %q: %+v, %w", id, e, orNone(err))
		}
	}
	return nil
}

// follow reads a session's log as it grows, until it has n events. It reads on whenever a hint comes, and at every tick.
func follow(ctx context.Context, s session.Store, n int) (out []session.Event, err error) {
	var hint <-chan struct{}
	if w, ok := s.(session.Watcher); ok {
		if hint, err = w.Watch(ctx, "s"); err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var after uint64
	for {
		page, err := s.Read(ctx, "s", after, 0)
		if err != nil {
			return out, fmt.Errorf("after event %d: %w", after, err)
		}
		for _, e := range page {
			if e.Seq != after+1 {
				return out, fmt.Errorf("event %d was seen after event %d", e.Seq, after)
			}
			after = e.Seq
		}
		if out = append(out, page...); len(out) >= n {
			return out, nil
		}
		if len(page) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return out, fmt.Errorf("%d of %d events were seen: %w", len(out), n, ctx.Err())
		case <-hint:
		case <-tick.C:
		}
	}
}

func tail(ctx context.Context, b bench) error { return tailOf(ctx, b.store, b.store) }

// tailOf follows a log at one place while it is written at another.
func tailOf(ctx context.Context, writer, reader session.Store) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	const writers, rounds = 4, 25
	return race(writers+2, func(w int) error {
		if w >= writers {
			_, err := follow(ctx, reader, writers*rounds)
			return err
		}
		for i := range rounds {
			if _, err := put(ctx, writer, "s", say(fmt.Sprint(w, "/", i))); err != nil {
				return err
			}
		}
		return nil
	})
}

func watches(ctx context.Context, b bench) error {
	w, ok := b.store.(session.Watcher)
	if ok != b.sheet.Watches {
		return fmt.Errorf("the sheet says that it watches: %v; it does: %v", b.sheet.Watches, ok)
	}
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	one, err := w.Watch(ctx, "s")
	if err != nil {
		return err
	}
	every, err := w.Watch(ctx, "")
	if err != nil {
		return err
	}
	for round := range 3 {
		if _, err := put(ctx, b.store, "s", say(fmt.Sprint(round))); err != nil {
			return err
		}
		for name, c := range map[string]<-chan struct{}{"of the session": one, "of all": every} {
			select {
			case <-c:
			case <-ctx.Done():
				return fmt.Errorf("round %d: the watch %s had no hint", round, name)
			}
		}
	}
	if err := watchesAtOnce(ctx, w, b); err != nil {
		return err
	}
	// Nobody takes these, and nobody waits for them.
	for i := range 100 {
		if _, err := put(ctx, b.store, "s", say(fmt.Sprint("more", i))); err != nil {
			return err
		}
	}
	return nil
}

// watchesAtOnce appends the moment a watch is handed out, here and as another process does: who watches has not looked yet,
// and is told of nothing that comes before the store watches.
func watchesAtOnce(ctx context.Context, w session.Watcher, b bench) error {
	writers := map[string]session.Store{"the same process": b.store}
	if b.another != nil {
		writers["another process"] = b.another()
	}
	for round := range 10 {
		for from, writer := range writers {
			watching, end := context.WithCancel(ctx)
			hint, err := w.Watch(watching, "s")
			if err == nil {
				_, err = put(ctx, writer, "s", say(fmt.Sprint("at once ", round, " from ", from)))
			}
			if err != nil {
				end()
				return err
			}
			select {
			case <-hint:
			case <-ctx.Done():
				err = fmt.Errorf("round %d: what %s appended right after the watch began gave no hint", round, from)
			}
			if end(); err != nil {
				return err
			}
		}
	}
	return nil
}

func reopened(ctx context.Context, b bench) error {
	if b.reopen == nil {
		return nil
	}
	if _, err := put(ctx, b.store, "s", story(1, 1)...); err != nil {
		return err
	}
	if _, err := put(ctx, b.store, "t", say("1"), say("2")); err != nil {
		return err
	}
	before, err := all(ctx, b.store, "s", 0)
	if err != nil {
		return err
	}
	s := b.reopen()
	after, err := all(ctx, s, "s", 0)
	if err != nil {
		return err
	}
	if err := same(after, before); err != nil {
		return fmt.Errorf("the log:\n%w", err)
	}
	h, err := s.Head(ctx, "s")
	if err != nil {
		return err
	}
	if err := same(h, session.Fold("s", before)); err != nil {
		return fmt.Errorf("the head:\n%w", err)
	}
	r, err := s.Append(ctx, "t", []session.Draft{say("2"), say("3")})
	if err != nil {
		return err
	}
	if err := same(r.Outcomes, []session.Outcome{{Seq: 2, Repeated: true}, {Seq: 3}}); err != nil {
		return fmt.Errorf("appending on:\n%w", err)
	}
	names, err := listed(ctx, s, 0)
	if err == nil && !slices.Equal(names, []string{"s", "t"}) {
		err = fmt.Errorf("the sessions are %q", names)
	}
	return err
}

func twoProcesses(ctx context.Context, b bench) error {
	if b.another == nil {
		return nil
	}
	stores := []session.Store{b.store, b.another()}
	if err := tailOf(ctx, stores[0], stores[1]); err != nil {
		return fmt.Errorf("a tail in the second process: %w", err)
	}
	if err := race(8, func(i int) error {
		for round := range 20 {
			if _, err := put(ctx, stores[i%2], "s", say(fmt.Sprint("both", i, "/", round))); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for _, s := range stores {
		if err := sameLog(ctx, s, "s", 100+160); err != nil {
			return err
		}
	}
	// What one took the other cannot, and learns it.
	if _, err := put(ctx, stores[0], "o", session.Own(day(0), "own", someone(0), 0)); err != nil {
		return err
	}
	r, err := stores[1].Append(ctx, "o", []session.Draft{session.Own(day(0), "own too", someone(1), 0)})
	if err != nil {
		return err
	}
	if err := wants(r.Err(), session.ErrOwned, "the second process"); err != nil {
		return err
	}
	if _, err := put(ctx, stores[1], "o", session.Own(day(0), "own now", someone(1), 1)); err != nil {
		return err
	}
	r, err = stores[0].Append(ctx, "o", []session.Draft{session.Begin(day(0), "begin", session.TurnBegun{}).As(1, "turn")})
	if err != nil {
		return err
	}
	return wants(r.Err(), session.ErrFenced, "the first process")
}
