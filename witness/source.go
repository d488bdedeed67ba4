package witness

import (
	"context"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Source reads what a root of one kind holds. Adapters implement it; it must never change the tree.
type Source interface {
	// Identify reads the identity now. A tree that cannot be read is an Identity with Unknown set, not an error; the
	// error is for a context that ended.
	Identify(ctx context.Context, r Root) (Identity, error)
	// LastChange is the latest moment at which the tree is known to have changed. An error means that no change signal
	// can be read, and the tree is not quiet.
	LastChange(ctx context.Context, r Root) (stamp.Time, error)
}

// History is an optional power of a Source whose trees remember their past.
type History interface {
	// At is the revision in force at a moment, with the moments between which it was in force. ok is false when the
	// past does not reach that far.
	At(ctx context.Context, r Root, t stamp.Time) (rev string, in stamp.Window, ok bool, err error)
	// Changed are the paths that differ between two revisions, with the earliest change time found on disk for each
	// (for a deletion, of the parent folder).
	Changed(ctx context.Context, r Root, from, to string) ([]Change, error)
	// Read is the content of a file at a revision; ok is false when it does not exist there.
	Read(ctx context.Context, r Root, rev, path string) (content []byte, ok bool, err error)
	// Commits lists the revisions after from up to to, newest first, that touched one of the paths, following renames.
	// At most limit.
	Commits(ctx context.Context, r Root, from, to string, paths []string, limit int) ([]Commit, error)
}

// Change is one path that differs between two revisions.
type Change struct {
	Path    string     // relative to the root's first folder, with slashes
	Deleted bool       // gone in the newer revision
	At      stamp.Time // zero when the disk does not tell
}

// Commit is one revision of a History.
type Commit struct {
	Revision string     `json:"revision"`
	Parent   string     `json:"parent,omitempty"` // first parent, empty for a root commit
	Subject  string     `json:"subject,omitempty"`
	When     stamp.Time `json:"when"` // commit time, one second coarse
}
