package handoff

import (
	"context"
	"fmt"
	"slices"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// Lister shows the states of all sessions of a store. A *sessions.Service is one.
type Lister interface {
	// List is a page of sessions above a name, in order; an empty one is the end.
	List(ctx context.Context, after string, limit int) ([]session.Status, error)
}

// MidTurn are the sessions of a store that a restart would cut off in the middle of a turn, in order. It is the guard of a
// process that runs none of them, for [Config.Others]. spare tells that a restart leaves the turns of an owner alone, as
// those on another machine or in another unit; nil spares nobody.
//
// A turn whose owner is proven dead is over, and so is one whose session was aborted or taken over: such a session holds
// nothing up. Where nothing proves the owner dead or alive its turn counts.
func MidTurn(ctx context.Context, l Lister, spare func(owner ledger.Instance) bool) (names []string, err error) {
	for after := ""; ; {
		page, err := l.List(ctx, after, 0)
		if err != nil {
			return names, fmt.Errorf("look for sessions in the middle of a turn: %w", err)
		}
		if len(page) == 0 {
			slices.Sort(names)
			return names, nil
		}
		for _, st := range page {
			if running(st) && (spare == nil || !spare(st.Head.Owner.Instance)) {
				names = append(names, st.Head.Session)
			}
		}
		after = page[len(page)-1].Head.Session
	}
}

// running reports that a turn is open and goes on. The headline does not tell: a gate that waits for an answer stands
// before it.
func running(st session.Status) bool {
	cut := st.Interruption != nil && st.Head.Turn != nil && st.Interruption.Turn == st.Head.Turn.ID
	return st.Head.Turn != nil && !cut && st.Headline != session.Aborted
}
