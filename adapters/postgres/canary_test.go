package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// A canary reads the live database and leaves it as it is.
func TestCanaryWritesNothing(t *testing.T) { // the environment is the process's: not parallel
	c := Config{DSN: require.SharedPostgres(t).URL("postgres"), Schema: "canary_test"}
	s := mustOpen(t, c).Sessions()
	if _, err := s.Append(t.Context(), "s", []session.Draft{say("a")}); err != nil {
		t.Fatal(err)
	}
	t.Setenv(inside.Var, "c1")
	canary := mustOpen(t, c).Sessions()
	if _, err := canary.Append(t.Context(), "s", []session.Draft{say("b")}); !errors.Is(err, inside.ErrOutside) {
		t.Errorf("an append: %v", err)
	}
	if err := canary.Renew(t.Context(), ledger.Instance{ID: "i"}, time.Second); !errors.Is(err, inside.ErrOutside) {
		t.Errorf("a lease: %v", err)
	}
	if h, err := canary.Head(t.Context(), "s"); err != nil || h.Last != 1 {
		t.Errorf("it reads %+v, %v", h, err)
	}
	c.Schema = "canary_none"
	if _, err := Open(t.Context(), c); !errors.Is(err, inside.ErrOutside) {
		t.Errorf("a schema that is not there: %v", err)
	}
}
