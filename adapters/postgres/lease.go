package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// Renew implements session.Leaser. The lease counts from when the server got the statement.
func (s *Sessions) Renew(ctx context.Context, owner ledger.Instance, ttl time.Duration) error {
	if err := session.CheckName(owner.ID); err != nil {
		return fmt.Errorf("renew the lease of %q: the instance id: %w", owner.ID, err)
	}
	if inside.Inert() {
		return fmt.Errorf("renew the lease of %s: %w", owner.ID, inside.ErrOutside)
	}
	if _, err := s.db.pool.Exec(ctx, s.db.q.renew, owner.ID, int64(ttl)); err != nil {
		return fmt.Errorf("renew the lease of %s: %w", owner.ID, err)
	}
	return nil
}

// Life implements session.Leaser. Both times are the server's wall clock.
func (s *Sessions) Life(ctx context.Context, instance string) (session.Life, error) {
	var (
		now        time.Time
		renewed    *time.Time
		count, ttl *int64
	)
	if err := session.CheckName(instance); err != nil {
		return session.Life{}, fmt.Errorf("read the lease of %q: the instance id: %w", instance, err)
	}
	if err := s.db.pool.QueryRow(ctx, s.db.q.life, instance).Scan(&now, &count, &renewed, &ttl); err != nil {
		return session.Life{}, fmt.Errorf("read the lease of %s: %w", instance, err)
	}
	l := session.Life{Now: stamp.Wall(now, 0)}
	if count != nil && renewed != nil && ttl != nil {
		l.Count, l.Renewed, l.TTL = uint64(*count), stamp.Wall(*renewed, 0), time.Duration(*ttl)
	}
	return l, nil
}
