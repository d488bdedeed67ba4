// Package witnesstest checks that a witness.Source keeps its promises, those of its optional powers included. An
// adapter needs one function that makes a [World], and three lines:
//
//	func TestSource(t *testing.T) {
//		witnesstest.Run(t, newWorld)
//	}
//
// Call [Run]. Each check gets a fresh world and runs in parallel with the others; a check of a power that the source
// does not have is skipped. A failure names the promise that was broken. [Checks] gives the same checks one by one.
//
// The suite refuses a world that cannot show what a check asks for, and says what it lacks. It waits for nothing:
// where a change must be later than another, the world is changed again until its clock has moved on.
package witnesstest

import (
	"context"
	"errors"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// World is one tree that the source under test can read, and the hands that change it. The functions fail the test of
// the world's maker when they cannot do their work.
type World struct {
	Source witness.Source
	// Root is a healthy tree that holds code.
	Root witness.Root
	// Change changes the code as an update would, to content that the tree never held before. It may be called again.
	Change func()
	// Noise writes to a log file beside the code, which changes nothing. Nil where there is no such place.
	Noise func()
	// Break takes away what the identity is read from. It is the last thing that happens to a world.
	Break func()
	// Folders are watched while the source reads; nil means those of the root.
	Folders []string
	// Past is what the tree went through, oldest first, and must lead to what it is now. Only a source with the power
	// of a witness.History needs it.
	Past []Step
}

// Step is one revision of the past.
type Step struct {
	Revision string
	// From is when the revision came into force. Steps are at least three seconds apart.
	From stamp.Time
	// Files are all files inside the root, relative to its first folder, with their content.
	Files map[string]string
}

// Check is one promise.
type Check struct {
	// Name is a short name of the promise, fit for a test's.
	Name string
	// Run returns nil when the promise is kept, an error that says how it was broken, or [ErrSkip].
	Run func(ctx context.Context, w World) error
}

// ErrSkip is wrapped by a check that asks for a power which the source does not have.
var ErrSkip = errors.New("the source does not have this power")

// Run runs every check on a world of its own.
func Run(t *testing.T, open func(t testing.TB) World) {
	t.Helper()
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			err := c.Run(t.Context(), open(t))
			switch {
			case errors.Is(err, ErrSkip):
				t.Skip(err)
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// Checks are all promises, those of the optional powers last.
func Checks() []Check {
	return []Check{
		{"identity/names_itself", namesItself},
		{"identity/same_tree_same_key", sameTreeSameKey},
		{"identity/change_changes_the_key", changeChangesKey},
		{"identity/log_file_changes_nothing", noiseChangesNothing},
		{"identity/survives_storing", survivesStoring},
		{"identity/broken_tree_is_unknown", brokenIsUnknown},
		{"identity/ended_context_is_an_error", endedContext},
		{"identity/reading_writes_nothing", writesNothing},
		{"identity/concurrent_reads_agree", concurrentReads},
		{"last_change/rises_with_a_change", changeRises},
		{"last_change/rests_without_one", changeRests},
		{"last_change/is_not_in_the_future", changeNotInFuture},
		{"last_change/broken_tree_has_none", brokenHasNoSignal},
		{"observer/agrees_with_both", observerAgrees},
		{"dated/agrees_with_identity", datedAgrees},
		{"dated/moves_with_an_update", datedMoves},
		{"history/tells_what_was_in_force", historyInForce},
		{"history/coarse_moment_names_the_one_before", historyCoarse},
		{"history/does_not_reach_before_its_beginning", historyBeginning},
		{"history/reads_old_files", historyReads},
		{"history/unknown_revision_is_an_error", historyUnknown},
		{"history/names_what_changed_both_ways", historyChanged},
		{"history/lists_commits_newest_first", historyCommits},
		{"history/limits_commits", historyLimit},
		{"batch_reader/agrees_with_read", batchAgrees},
	}
}
