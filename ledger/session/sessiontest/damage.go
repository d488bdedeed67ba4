package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// damaged makes some of many sessions unreadable, looks at all, and writes to all at once.
func damaged(ctx context.Context, b bench) error {
	if b.damage == nil {
		return nil
	}
	names := []string{"a", "b", "c", "d", "e", "f"}
	bad := []string{"a", "c", "d", "f"} // the first, the last, and two in a row
	heads := map[string]session.Head{}
	for _, name := range names {
		r, err := put(ctx, b.store, name, say("1"))
		if err != nil {
			return err
		}
		heads[name] = r.Head
	}
	var mend []func()
	for _, name := range bad {
		mend = append(mend, b.damage(name))
	}
	s := b.store
	if b.another != nil {
		s = b.another() // which remembers nothing of them
	}
	for _, size := range []int{1, 2, 4, len(names), 0} {
		if err := listedAround(ctx, s, size, names, bad, heads); err != nil {
			return fmt.Errorf("in pages of %d: %w", size, err)
		}
	}
	if err := writtenAround(ctx, s, names, bad); err != nil {
		return err
	}
	for _, f := range mend {
		f()
	}
	got, err := listed(ctx, s, 0)
	if err != nil || !slices.Equal(got, names) {
		return fmt.Errorf("once they can be read again there are %q, %w", got, orNone(err))
	}
	for _, name := range bad {
		h, err := s.Head(ctx, name)
		if err != nil {
			return err
		}
		if err := same(h, heads[name]); err != nil {
			return fmt.Errorf("session %s has changed while it could not be read:\n%w", name, err)
		}
		if err := sameLog(ctx, s, name, 1); err != nil {
			return fmt.Errorf("session %s: %w", name, err)
		}
	}
	return nil
}

// listedAround wants every session once and in order, the bad ones as what they are.
func listedAround(ctx context.Context, s session.Store, size int, names, bad []string, heads map[string]session.Head) error {
	var got []string
	pages := func(ctx context.Context, after string, _ int) ([]session.Head, error) {
		return s.List(ctx, after, size)
	}
	for h, err := range session.All(ctx, pages) {
		var unreadable *session.UnreadableError
		switch {
		case errors.As(err, &unreadable) && unreadable.Place != "" && slices.Contains(bad, unreadable.Session):
			got = append(got, unreadable.Session)
		case err != nil:
			return fmt.Errorf("after %q: %w", got, err)
		case slices.Contains(bad, h.Session):
			return fmt.Errorf("session %s cannot be read, and is %+v", h.Session, h)
		default:
			got = append(got, h.Session)
			if err := same(h, heads[h.Session]); err != nil {
				return err
			}
		}
	}
	if !slices.Equal(got, names) {
		return fmt.Errorf("the sessions are %q, want %q", got, names)
	}
	return nil
}

// writtenAround appends to all at once: what cannot be read is refused, and fails nobody that is written with it.
func writtenAround(ctx context.Context, s session.Store, names, bad []string) error {
	const each = 8
	errs := make([]error, len(names)*each)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			name := names[i%len(names)]
			_, err := put(ctx, s, name, say(fmt.Sprint("later ", i)))
			var unreadable *session.UnreadableError
			switch isBad := slices.Contains(bad, name); {
			case isBad && !errors.As(err, &unreadable):
				errs[i] = fmt.Errorf("an append to session %s, which cannot be read: %w", name, orNone(err))
			case !isBad && err != nil:
				errs[i] = fmt.Errorf("beside sessions that cannot be read: %w", err)
			}
		})
	}
	wg.Wait()
	for _, name := range bad {
		var unreadable *session.UnreadableError
		if _, err := s.Head(ctx, name); !errors.As(err, &unreadable) || unreadable.Session != name {
			errs = append(errs, fmt.Errorf("the head of session %s, which cannot be read: %w", name, orNone(err)))
		}
	}
	return errors.Join(errs...)
}
