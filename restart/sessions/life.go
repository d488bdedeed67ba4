package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// Liveness is what is known of a session's owner. On a shared store an instance of another machine is watched from call
// to call: its death is proven once the same renewal was seen for its whole TTL, so the first look proves nothing.
func (s *Service) Liveness(ctx context.Context, h session.Head) (ledger.Liveness, error) {
	owner := h.Owner.Instance
	self := s.Instances.Self()
	if owner.ID == "" {
		return ledger.LifeUnknown, nil
	}
	if owner.Same(self) {
		return ledger.Alive, nil
	}
	// Only on one machine do instances share the folder of their locks, and a pid or the end of a kernel's boot prove
	// anything. A store with leases is shared by several: there one kernel boot is the proof of one machine.
	here := s.leaser == nil || owner.Boot != "" && owner.Boot == self.Boot
	if here && owner.Host == self.Host {
		if l := s.Instances.Liveness(owner); l != ledger.LifeUnknown {
			return l, nil
		}
	}
	if s.leaser == nil {
		return ledger.LifeUnknown, nil
	}
	life, err := s.leaser.Life(ctx, owner.ID)
	if err != nil {
		return ledger.LifeUnknown, fmt.Errorf("read the lease of instance %s: %w", owner.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watches[owner.ID].See(life, time.Since(s.began))
	s.watches[owner.ID] = w
	return w.Liveness(), nil
}

// keepAlive renews this process's lease once, before its first session is taken, and from then on. A lease that is over,
// because the store could not be reached for a while, is renewed before another session is taken on it.
func (s *Service) keepAlive(ctx context.Context) error {
	if s.leaser == nil {
		return nil
	}
	begun, err := s.beginRenewals(ctx)
	if err != nil || !begun {
		return err
	}
	s.mu.Lock()
	held := session.Held(s.renewed, s.Now(), s.TTL)
	s.mu.Unlock()
	if held {
		return nil
	}
	return s.renewOnce(ctx)
}

// beginRenewals begins to renew; begun is set when that was done before.
func (s *Service) beginRenewals(ctx context.Context) (begun bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false, errClosed
	case s.stop != nil:
		return true, nil
	}
	sent := s.Now()
	if err := s.leaser.Renew(ctx, s.Instances.Self(), s.TTL); err != nil {
		return false, fmt.Errorf("say that this instance lives: %w", err)
	}
	s.renewed = sent
	s.expiry = time.AfterFunc(s.TTL-s.Now().Sub(sent), s.expire)
	running, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.work.Go(func() { s.renewals(running) })
	return false, nil
}

func (s *Service) renewals(ctx context.Context) {
	tick := time.NewTicker(s.Renew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.expire() // the timer stood still if the machine slept
		s.renew(ctx)
	}
}

// renew says once that this process lives.
func (s *Service) renew(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, s.TTL)
	defer cancel()
	if err := s.renewOnce(bounded); err != nil && ctx.Err() == nil {
		s.Log.Warn("this instance could not say that it lives", "error", err)
	}
}

func (s *Service) renewOnce(ctx context.Context) error {
	sent := s.Now()
	if err := s.leaser.Renew(ctx, s.Instances.Self(), s.TTL); err != nil {
		return fmt.Errorf("say that this instance lives: %w", err)
	}
	s.expire() // what came back after the lease was over saves no session that was open then
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || sent.Before(s.renewed) {
		return nil
	}
	s.renewed = sent
	s.expiry.Reset(s.TTL - s.Now().Sub(sent))
	return nil
}

// expire loses every session when the last confirmed renewal is as old as the TTL: others may take them from then on.
func (s *Service) expire() {
	s.mu.Lock()
	var lost []*Handle
	if !session.Held(s.renewed, s.Now(), s.TTL) {
		lost = s.handles()
	}
	s.mu.Unlock()
	for _, h := range lost {
		h.lose(s.lapsed())
	}
}

func (s *Service) lapsed() error {
	return &session.Refusal{Code: session.ErrFenced, Text: fmt.Sprintf("the lease could not be renewed for %v: others may own the session now", s.TTL)}
}
