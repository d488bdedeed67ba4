package boot

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
)

// MidTurn are the sessions whose turns the folder's instance has noted as under way ([Keeper.Busy]), in order. It is the
// guard of a process beside a host without a store, for handoff.Config.Others. over tells that the instance is proven dead,
// or that a restart leaves it alone; nil says so of none. A marker that cannot be read is an error: nobody can tell.
func (o *Outbox) MidTurn(over func(owner ledger.Instance) bool) ([]string, error) {
	var m bootnotice.Marker
	if err := load(o.dir, markerName, &m); durable.Absent(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("look for turns that are under way: %w", err)
	}
	// What an orderly stop cut off is over, and told by the next boot.
	if len(m.Active) == 0 || !m.Stop.IsZero() || over != nil && over(m.Instance) {
		return nil, nil
	}
	names := make([]string, 0, len(m.Active))
	for _, a := range m.Active {
		names = append(names, a.Session) // in order: mark writes them so
	}
	return names, nil
}
