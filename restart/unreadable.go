package restart

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// showUnreadable is how many doorbells that cannot be used are shown by themselves at a time; one row stands for all
// others. A ringer that is wrong rings wrongly every time, and nobody reads a thousand rows.
const showUnreadable = 20

// laterPause is how soon a pass follows one that had no room for all that had rung. It is no shorter, because what fills
// the room may be there to stay.
const laterPause = time.Second

// unusable notes a doorbell that no pass can use. What is wrong with it may be somebody else's affair in a pass of one
// scope, so only a pass over everything tells.
func (p *pass) unusable(f notify.UnreadableFacts) {
	if p.scope == (Scope{}) {
		p.unread = append(p.unread, f)
	}
}

// unloaded is unusable for a death whose run, or lineage, cannot be read: the doorbell is sound, and still nothing can be
// decided. Other errors pass.
func (p *pass) unloaded(r *ring, err error) {
	var damage *ledger.DamageError
	if errors.As(err, &damage) || errors.Is(err, run.ErrNotFound) {
		p.unusable(notify.UnreadableFacts{Run: r.note.Run, Place: r.place, Why: err.Error()})
	}
}

// tellUnreadable shows, once each, the doorbells that cannot be used. They stay where they are: each may be the only word
// of a death. What was told is forgotten when the doorbell is gone, so that the next of its name is told again.
func (p *pass) tellUnreadable(ctx context.Context) error {
	if p.scope != (Scope{}) {
		return nil
	}
	told := func(key string) bool {
		_, ok := p.state.Told[key]
		return ok || p.h.shown[key]
	}
	slices.SortFunc(p.unread, func(a, b notify.UnreadableFacts) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Bell, b.Bell))
	})
	var fresh []notify.UnreadableFacts
	there := map[string]bool{}
	shown := 0
	for _, f := range p.unread {
		k := f.Key()
		there[k] = true
		if told(k) {
			shown++
		} else {
			fresh = append(fresh, f)
		}
	}
	if room := max(0, showUnreadable-shown); len(fresh) > room {
		more := notify.UnreadableFacts{More: true}
		there[more.Key()] = true
		fresh = fresh[:room]
		if !told(more.Key()) {
			fresh = append(fresh, more)
		}
	}
	var errs []error
	var keys []string
	for _, f := range fresh {
		f.At = p.now.Wall
		row := notify.UnreadableRow(f)
		if err := p.deliver(ctx, row); err != nil {
			errs = append(errs, err)
			continue
		}
		keys = append(keys, row.Key)
	}
	return errors.Join(append(errs, p.markUnreadable(ctx, keys, there))...)
}

// markUnreadable remembers what was told, and forgets what is gone.
func (p *pass) markUnreadable(ctx context.Context, keys []string, there map[string]bool) error {
	if p.result.Held == policy.StateUnreadable {
		for _, k := range keys {
			p.h.shown[k] = true // there is nowhere else to remember it
		}
		return nil
	}
	var gone []string
	if !p.full {
		for k := range p.state.Told {
			if notify.Unreadable(k) && !there[k] {
				gone = append(gone, k)
			}
		}
	}
	if len(keys) == 0 && len(gone) == 0 {
		return nil
	}
	st, err := p.h.cfg.Stores.Storm.UpdateState(ctx, func(cur storm.State, now stamp.Time) (storm.State, error) {
		for _, k := range keys {
			cur = cur.MarkTold(k, now)
		}
		return cur.Forget(gone...), nil
	})
	if err != nil {
		return errors.Join(errors.New("mark the unreadable doorbells as told"), err)
	}
	p.state = st
	return nil
}

// later reports a note that the box had no room to read. This pass asks for no more then: it holds as much as it can.
func (p *pass) later(it doorbell.Item) bool {
	if !errors.Is(it.Err, doorbell.ErrLater) {
		return false
	}
	p.full = true
	p.due(p.now.Add(laterPause))
	return true
}
