package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
)

const (
	stateName  = "state.json"
	stateLimit = 4 << 20
)

// breaker is state.json.
type breaker struct{ h *Home }

// State implements storm.Store.
func (s *breaker) State(context.Context) (st storm.State, err error) {
	b, _, err := durable.ReadPublished(s.h.root, stateName, stateLimit, sound)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return storm.State{}, nil
	case err != nil:
		return storm.State{}, fmt.Errorf("read the breaker's state: %w", err)
	}
	if bad := open(b, &st, func() int { return st.Schema }, storm.Schema); bad != nil {
		return storm.State{}, fmt.Errorf("read the breaker's state: %w", damaged(bad, s.h.root, stateName, ledger.Key{}))
	}
	return st, nil
}

// UpdateState implements storm.Store.
func (s *breaker) UpdateState(ctx context.Context, f func(storm.State, stamp.Time) (storm.State, error)) (out storm.State, err error) {
	err = s.h.locks.with(ctx, "state", func() error {
		cur, err := s.State(ctx)
		if err != nil {
			return err
		}
		next, err := f(cur, s.h.now())
		if err != nil {
			return err
		}
		out = next
		if next.Revision == cur.Revision {
			return nil
		}
		out.Schema = storm.Schema
		envelope, _, err := sealed(out)
		if err != nil {
			return err
		}
		return durable.Rewrite(s.h.root, ".swap-state", stateName, envelope, nil)
	})
	if err != nil {
		return storm.State{}, fmt.Errorf("change the breaker's state: %w", err)
	}
	return out, nil
}
