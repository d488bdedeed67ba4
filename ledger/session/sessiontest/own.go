package sessiontest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

func fencing(ctx context.Context, b bench) error {
	if _, err := put(ctx, b.store, "s", session.Own(day(0), "own", someone(0), 0)); err != nil {
		return err
	}
	won := make([]bool, 8)
	err := race(len(won), func(i int) error {
		r, err := b.store.Append(ctx, "s", []session.Draft{session.Own(day(0), fmt.Sprint("own", i), someone(i), 1)})
		if err != nil {
			return err
		}
		won[i] = r.Outcomes[0].Refused == nil
		if !won[i] {
			return wants(r.Err(), session.ErrOwned, "who comes late")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n := len(slices.DeleteFunc(slices.Clone(won), func(w bool) bool { return !w })); n != 1 {
		return fmt.Errorf("%d instances took the session over the same fence", n)
	}
	r, err := b.store.Append(ctx, "s", []session.Draft{
		session.Begin(day(0), "stale", session.TurnBegun{}).As(1, "turn"),
		session.Begin(day(0), "begin", session.TurnBegun{}).As(2, "turn"),
		session.NewGate(day(0), session.Pause{Interrupt: "g"}),
	})
	if err != nil {
		return err
	}
	for i, code := range []session.Code{session.ErrFenced, "", ""} {
		if err := wants(r.Outcomes[i].Err(), code, fmt.Sprint("event ", i)); err != nil {
			return err
		}
	}
	h, err := b.store.Head(ctx, "s")
	if err != nil || h.Fence != 2 || !won[slices.Index(won, true)] || h.Owner.ID != someone(slices.Index(won, true)).ID {
		return fmt.Errorf("the session is %+v under fence %d, %w", h.Owner, h.Fence, orNone(err))
	}
	return nil
}

func headIsFold(ctx context.Context, b bench) error {
	r := rand.New(rand.NewPCG(1, 2))
	drafts := story(1, 1)
	for range 40 { // in batches of any size, with repeats between
		n := 1 + r.IntN(5)
		at := min(r.IntN(3), len(drafts))
		batch := append(slices.Clone(story(1, 1)[:at]), drafts[:min(n, len(drafts))]...)
		if _, err := b.store.Append(ctx, "s", batch); err != nil {
			return err
		}
		drafts = drafts[min(n, len(drafts)):]
		events, err := all(ctx, b.store, "s", 0)
		if err != nil {
			return err
		}
		h, err := b.store.Head(ctx, "s")
		if err != nil {
			return err
		}
		if err := same(h, session.Fold("s", events)); err != nil {
			return fmt.Errorf("after %d events:\n%w", len(events), err)
		}
	}
	return nil
}

func endedContext(ctx context.Context, b bench) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := b.store.Append(ended, "s", []session.Draft{say("1")})
	if !errors.Is(err, context.Canceled) || errors.Is(err, session.ErrOutcomeUnknown) {
		return fmt.Errorf("append under a context that has ended returned %w", orNone(err))
	}
	return sameLog(ctx, b.store, "s", 0)
}

// cancelled appends from many at once while the contexts of a third of them end at any moment.
func cancelled(ctx context.Context, b bench) error {
	const writers, rounds = 12, 20
	lost := make([][]string, writers)   // not known
	kept := make([][]string, writers)   // acknowledged
	denied := make([][]string, writers) // said to be not written
	err := race(writers, func(w int) error {
		for i := range rounds {
			id := fmt.Sprint(w, "/", i)
			mine, cancel := context.WithCancel(ctx)
			if w%3 == 0 {
				go cancel()
			}
			_, err := b.store.Append(mine, "s", []session.Draft{say(id)})
			cancel()
			switch {
			case err == nil:
				kept[w] = append(kept[w], id)
			case w%3 != 0:
				return fmt.Errorf("an append whose context lives failed with that of another: %w", err)
			case errors.Is(err, session.ErrOutcomeUnknown):
				lost[w] = append(lost[w], id)
			case errors.Is(err, context.Canceled):
				denied[w] = append(denied[w], id)
			default:
				return fmt.Errorf("a context that ended was answered by %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Concat(kept...) {
		if _, ok, err := b.store.Find(ctx, "s", id); err != nil || !ok {
			return fmt.Errorf("event %s was acknowledged and is not there, %w", id, orNone(err))
		}
	}
	for _, id := range slices.Concat(denied...) {
		if _, ok, err := b.store.Find(ctx, "s", id); err != nil || ok {
			return fmt.Errorf("event %s was said to be not written and is there, %w", id, orNone(err))
		}
	}
	// Who does not know asks again, and everything is there once.
	for _, id := range slices.Concat(append(lost, denied...)...) {
		if _, err := put(ctx, b.store, "s", say(id)); err != nil {
			return err
		}
	}
	return sameLog(ctx, b.store, "s", writers*rounds)
}

func leases(ctx context.Context, b bench) error {
	l, ok := b.store.(session.Leaser)
	if ok != b.sheet.Leases {
		return fmt.Errorf("the sheet says that it keeps leases: %v; it does: %v", b.sheet.Leases, ok)
	}
	if !ok {
		return nil
	}
	life, err := l.Life(ctx, someone(1).ID)
	if err != nil || life.Count != 0 {
		return fmt.Errorf("an instance that never renewed has %+v, %w", life, orNone(err))
	}
	var before session.Life
	for range 3 {
		if err := l.Renew(ctx, someone(1), 30*time.Second); err != nil {
			return err
		}
		life, err := l.Life(ctx, someone(1).ID)
		if err != nil {
			return err
		}
		switch {
		case life.Count <= before.Count:
			return fmt.Errorf("the count went from %d to %d with a renewal", before.Count, life.Count)
		case life.TTL != 30*time.Second:
			return fmt.Errorf("the TTL came back as %v", life.TTL)
		case life.Renewed.IsZero() || life.Now.Before(life.Renewed) || life.Renewed.Before(before.Renewed):
			return fmt.Errorf("the store's clock: renewed %v, then %v, now %v", before.Renewed, life.Renewed, life.Now)
		}
		before = life
	}
	if other, err := l.Life(ctx, someone(2).ID); err != nil || other.Count != 0 {
		return fmt.Errorf("another instance has its lease: %+v, %w", other, orNone(err))
	}
	return nil
}

func copies(ctx context.Context, b bench) error {
	payload := []byte(`{"said":"mine"}`)
	d := session.Say(day(0), "1", payload)
	if _, err := put(ctx, b.store, "s", d); err != nil {
		return err
	}
	if _, err := put(ctx, b.store, "s", story(1, 1)[1:]...); err != nil {
		return err
	}
	scratch := func(p json.RawMessage) {
		for i := range p {
			p[i] = 'x'
		}
	}
	h, err := b.store.Head(ctx, "s")
	if err != nil {
		return err
	}
	want, err := json.Marshal(h)
	if err != nil {
		return err
	}
	got, err := all(ctx, b.store, "s", 0)
	if err != nil {
		return err
	}
	found, ok, err := b.store.Find(ctx, "s", "1")
	if err != nil || !ok {
		return fmt.Errorf("event 1 is not there, %w", orNone(err))
	}
	scratch(payload)
	scratch(got[0].Payload)
	scratch(found.Payload)
	got, err = all(ctx, b.store, "s", 0)
	if err != nil {
		return err
	}
	if !bytes.Equal(got[0].Payload, []byte(`{"said":"mine"}`)) {
		return fmt.Errorf("the log now says %s", got[0].Payload)
	}
	if h, err = b.store.Head(ctx, "s"); err != nil {
		return err
	}
	return same(h, json.RawMessage(want))
}
