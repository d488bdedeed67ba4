package sessions_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// leases is a shared store that notes who says that it lives.
type leases struct {
	session.Store
	renewed int
}

func (l *leases) Renew(context.Context, ledger.Instance, time.Duration) error {
	l.renewed++
	return nil
}

func (l *leases) Life(context.Context, string) (session.Life, error) { return session.Life{}, nil }

// TestCanaryTakesNoSession opens a session of a shared store inside a canary: nothing is written, and no lease is renewed.
func TestCanaryTakesNoSession(t *testing.T) { // the environment is the process's: not parallel
	home := memory.New(memory.Config{})
	store := &leases{Store: memory.NewSessions(memory.SessionsConfig{})}
	s, err := sessions.New(sessions.Config{Store: store, Instances: home.Instances()})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(inside.Var, "c1")
	if _, err := s.Open(t.Context(), "s1"); !errors.Is(err, inside.ErrInert) {
		t.Errorf("open: %v", err)
	}
	if err := s.Abort(t.Context(), "s1", "stop"); !errors.Is(err, inside.ErrInert) {
		t.Errorf("abort: %v", err)
	}
	if h, err := store.Head(t.Context(), "s1"); h.Last != 0 || store.renewed != 0 {
		t.Errorf("%d events and %d renewals in a canary, %v", h.Last, store.renewed, err)
	}
	t.Setenv(inside.Var, "")
	if _, err := s.Open(t.Context(), "s1"); err != nil || store.renewed != 1 {
		t.Errorf("outside again: %v, %d renewals", err, store.renewed)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
