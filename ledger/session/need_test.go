package session_test

import (
	"slices"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// TestNeeds pins who has to act: nobody for a call in flight, somebody once its owner is dead.
func TestNeeds(t *testing.T) {
	t.Parallel()
	call := session.Dangling{ID: "c", Seq: 5, Turn: "t", Class: session.Mutating}
	spawn := session.Dangling{ID: "s", Seq: 5, Turn: "t", Class: session.Spawning}
	owned := session.Head{Fence: 1, Owner: session.Owner{Instance: ledger.Instance{ID: "i"}}, Turn: &session.Turn{ID: "t", Seq: 4, Fence: 1}}
	with := func(h session.Head, c ...session.Dangling) session.Head { h.Calls = c; return h }
	for _, c := range []struct {
		name string
		head session.Head
		life ledger.Liveness
		want []session.Need
	}{
		{"idle", session.Head{}, "", nil},
		{"a call in flight", with(owned, call), ledger.Alive, nil},
		{"a call in flight, perhaps", with(owned, call), ledger.LifeUnknown, nil},
		{"a call whose owner died", with(owned, call), ledger.Dead, []session.Need{session.NeedResolve}},
		{"an older call while a turn runs", with(owned, session.Dangling{Seq: 2, Class: session.Mutating}), ledger.Alive, []session.Need{session.NeedResolve}},
		{"a session that was being spawned", with(owned, spawn), ledger.Dead, nil},
		{"a park", session.Head{Parks: []session.Open{{Interrupt: "p"}}}, "", []session.Need{session.NeedAnswer}},
		{"a gate in quarantine", session.Head{Gates: []session.Open{{Interrupt: "g"}}, Attempts: 3}, "", []session.Need{session.NeedAnswer, session.NeedRelease}},
		{"aborted", session.Head{Abort: &session.Fact{}, Gates: []session.Open{{Interrupt: "g"}}, Attempts: 3}, "", nil},
	} {
		if got := c.head.Status(c.life).Needs(); !slices.Equal(got, c.want) {
			t.Errorf("%s: needs %v, want %v", c.name, got, c.want)
		}
	}
}
