package handoff

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// Lister shows the states of all sessions of a store. A *sessions.Service is one.
type Lister interface {
	// List is a page of sessions above a name, in order; an empty one is the end. Those that cannot be read are named by a
	// *session.PageError beside the others.
	List(ctx context.Context, after string, limit int) ([]session.Status, error)
}

// MidTurn are the sessions of a store that a restart would cut off in the middle of a turn, in order. It is the guard of a
// process that runs none of them, for [Config.Others]. spare tells that a restart leaves the turns of an owner alone, as
// those on another machine or in another unit; nil spares nobody.
//
// A turn whose owner is proven dead is over, and so is one whose session was aborted or taken over: such a session holds
// nothing up. Where nothing proves the owner dead or alive its turn counts, and so does a session that cannot be read.
func MidTurn(ctx context.Context, l Lister, spare func(owner ledger.Instance) bool) (names []string, err error) {
	for st, err := range session.All(ctx, l.List) {
		var bad *session.UnreadableError
		switch {
		case errors.As(err, &bad):
			names = append(names, bad.Session)
		case err != nil:
			return names, fmt.Errorf("look for sessions in the middle of a turn: %w", err)
		case running(st) && (spare == nil || !spare(st.Head.Owner.Instance)):
			names = append(names, st.Head.Session)
		}
	}
	slices.Sort(names)
	return names, nil
}

// running reports that a turn is open and goes on. The headline does not tell: a gate that waits for an answer stands
// before it.
func running(st session.Status) bool {
	cut := st.Interruption != nil && st.Head.Turn != nil && st.Interruption.Turn == st.Head.Turn.ID
	return st.Head.Turn != nil && !cut && st.Headline != session.Aborted
}
