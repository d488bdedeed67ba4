package managed

import (
	"context"

	"github.com/mulligan-dev/mulligan/ledger/run"
)

// Retry starts a dead run's recipe again by hand: the same name, and a new lineage with a do-over of its own. It is for a
// person who has looked at the workspaces (dead.Workspaces), in which half-done work may lie. Nothing else of the old run
// is taken over; that it was restarted by hand is noted on it and on its record, which is closed where it is open. Like
// Exec it returns when the program has ended. A name that is held by a living run, the replacement among them, is a
// *run.NameHeldError, and nothing is started or noted.
func (h *Host) Retry(ctx context.Context, dead run.Run, p Person, streams IO) (Result, error) {
	return h.exec(ctx, Spec{
		Project: dead.Project, Name: dead.Name, Recipe: dead.Recipe, Runtime: dead.Runtime, Roots: dead.Roots,
		Workspaces: dead.Workspaces, WaitsFor: dead.WaitsFor, Supervised: dead.Supervised,
	}, p, streams)
}
