package managed

import (
	"context"

	"github.com/mulligan-dev/mulligan/ledger/run"
)

// Retry starts a dead run's recipe again by hand: the same name, and a new lineage with a do-over of its own. It is for a
// person who has looked at the workspace; nothing else of the old run is taken over, and its open record is closed.
func (h *Host) Retry(ctx context.Context, dead run.Run, streams IO) (Result, error) {
	return h.Exec(ctx, Spec{
		Project: dead.Project, Name: dead.Name, Recipe: dead.Recipe, Runtime: dead.Runtime, Roots: dead.Roots,
		Workspaces: dead.Workspaces, WaitsFor: dead.WaitsFor, Supervised: dead.Supervised,
	}, streams)
}
