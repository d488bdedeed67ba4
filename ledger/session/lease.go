package session

import (
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// How long an owner's proof of life is good on a store that several machines share, and how often it is renewed.
const (
	LeaseTTL   = 30 * time.Second
	LeaseRenew = 5 * time.Second
)

// Held is the owner's side of its lease: whether the renewal that was sent at a moment, and confirmed since, still holds.
// It counts from before the renewal was sent, so an owner stops before anybody may take over. Both stamps are on a clock
// that runs in suspend. An owner that no longer holds cancels what it runs; writing on is refused by the fence, but no
// fence reaches a call that is already under way outside.
func Held(sent, now stamp.Time, ttl time.Duration) bool { return now.Sub(sent) < ttl }

// Watch is what one observer has seen of an instance's renewals: how long the newest one has been standing still. Give
// each answer of Leaser.Life to See. The zero Watch has seen nothing.
type Watch struct {
	life Life
	// since is the observer's awake time at which it first saw the count.
	since time.Duration
	seen  bool
	now   time.Duration
}

// See is the watch after one more look. awake is the observer's own monotonic clock, which stands still in suspend: an
// observer that slept for an hour has watched nobody for an hour.
func (w Watch) See(l Life, awake time.Duration) Watch {
	if !w.seen || l.Count != w.life.Count || awake < w.since {
		w.since = awake
	}
	w.life, w.now, w.seen = l, awake, true
	return w
}

// Liveness is what the watch proves: dead when one and the same renewal stood for its whole TTL, both on the store's
// clock and on the observer's own; alive while it is fresh on the store's; unknown between, and for an instance that
// never renewed.
func (w Watch) Liveness() ledger.Liveness {
	if !w.seen || w.life.Count == 0 {
		return ledger.LifeUnknown
	}
	age := w.life.Now.Sub(w.life.Renewed)
	switch {
	case age < 0:
		return ledger.LifeUnknown // the store's clock went back
	case age <= w.life.TTL: // at its very end the owner is just stopping
		return ledger.Alive
	case w.now-w.since >= w.life.TTL:
		return ledger.Dead
	}
	return ledger.LifeUnknown
}

// Take says whether an instance may take a session, and over which fence: a free one, its own, or one whose owner is
// dead. Unknown is no permission. The store judges once more that the fence has not moved since.
func Take(h Head, self ledger.Instance, owner ledger.Liveness) (over uint64, refused *Refusal) {
	if h.Owner.ID == "" {
		return 0, nil
	}
	if h.Owner.Same(self) || owner == ledger.Dead {
		return h.Fence, nil
	}
	r := refuse(ErrOwned, "instance %s holds the session and is not proven dead (%s)", h.Owner.ID, owner).at(h.Owner.Seq)
	r.Owner, r.Fence = h.Owner.Instance, h.Fence
	return 0, r
}
