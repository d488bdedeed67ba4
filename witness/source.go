package witness

import (
	"context"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// ErrChanging is wrapped by LastChange when the tree is being changed at this moment: a lock of the tool that writes it
// is held, or an operation of several steps has not ended. The tree is not quiet, and the message says what goes on.
var ErrChanging = errors.New("the tree is changing now")

// Source reads what a root of one kind holds. Adapters implement it; it must never change the tree.
type Source interface {
	// Identify reads the identity now. A tree that cannot be read is an Identity with Unknown set, not an error; the
	// error is for a context that ended.
	Identify(ctx context.Context, r Root) (Identity, error)
	// LastChange is the latest moment at which the tree is known to have changed. An error means that no change signal
	// can be read ([ErrChanging]: that it changes right now), and the tree is not quiet.
	LastChange(ctx context.Context, r Root) (stamp.Time, error)
}

// History is an optional power of a Source whose trees remember their past. Paths are relative to the root's first
// folder, with slashes; a file in another folder of the root begins with "../".
type History interface {
	// At is the revision in force at a moment, with the moments between which it was in force; the end is zero when it
	// still is. Where the record is coarse, it is the revision whose beginning is certainly not after t, so that the
	// next one may have come just before t. ok is false when the past does not reach that far, or contradicts itself.
	At(ctx context.Context, r Root, t stamp.Time) (rev string, in stamp.Window, ok bool, err error)
	// Changed are the paths inside the root that differ between two revisions, with the change time found on disk for
	// each (for a deletion, of the parent folder). Both orders of the revisions are allowed.
	Changed(ctx context.Context, r Root, from, to string) ([]Change, error)
	// Read is the content of a file at a revision; ok is false when it does not exist there. A revision that is not
	// there is an error.
	Read(ctx context.Context, r Root, rev, path string) (content []byte, ok bool, err error)
	// Commits lists the revisions that lead to to and not to from and that touched one of the paths, deletions
	// included and renames followed: newest first, no parent before its child, at most limit.
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
	Parents  []string   `json:"parents,omitempty"` // the first parent first; none for a root commit
	Subject  string     `json:"subject,omitempty"`
	When     stamp.Time `json:"when"` // commit time, one second coarse
}

// Blob names one file at one revision.
type Blob struct {
	Revision string
	Path     string // relative to the root's first folder, with slashes
}

// Content is what a [Blob] holds.
type Content struct {
	Data   []byte
	Exists bool // false when the revision has no such file
}

// BatchReader is an optional power of a [History] that reads many files at the price of one.
type BatchReader interface {
	// ReadAll answers each blob in its place. A revision that is not there is an error.
	ReadAll(ctx context.Context, r Root, blobs []Blob) ([]Content, error)
}

// Dated is an optional power of a Source without a History that can tell from the disk since when the identity of now
// is in force.
type Dated interface {
	// InForce is the identity now and the latest moment at which it can have begun to come into force. The moment is
	// zero when the disk does not tell.
	InForce(ctx context.Context, r Root) (Identity, stamp.Time, error)
}

// Observation is one look at a root.
type Observation struct {
	Identity Identity
	// Changed is what LastChange said.
	Changed stamp.Time
	// NoSignal is the error of LastChange, nil when Changed holds.
	NoSignal error
}

// Observer is an optional power of a Source that reads identity and last change in one look.
type Observer interface {
	Observe(ctx context.Context, r Root) (Observation, error)
}

// Observe looks at a root once, in one step where src can and in two where it cannot. The error is for a context that
// ended.
func Observe(ctx context.Context, src Source, r Root) (Observation, error) {
	if o, ok := src.(Observer); ok {
		return o.Observe(ctx, r)
	}
	// The identity is read first: what changes between the two reads then makes the last change recent, and the tree is
	// not taken for quiet with an identity that it no longer has.
	id, err := src.Identify(ctx, r)
	if err != nil {
		return Observation{}, err
	}
	at, noSignal := src.LastChange(ctx, r)
	if err := ctx.Err(); err != nil {
		return Observation{}, fmt.Errorf("observe root %s: %w", r.Name, err)
	}
	return Observation{Identity: id, Changed: at, NoSignal: noSignal}, nil
}

// readAll is ReadAll with the slow path for a History that reads one file at a time.
func readAll(ctx context.Context, h History, r Root, blobs []Blob) ([]Content, error) {
	if len(blobs) == 0 {
		return nil, nil
	}
	if b, ok := h.(BatchReader); ok {
		return b.ReadAll(ctx, r, blobs)
	}
	out := make([]Content, len(blobs))
	for i, b := range blobs {
		data, ok, err := h.Read(ctx, r, b.Revision, b.Path)
		if err != nil {
			return nil, err
		}
		out[i] = Content{Data: data, Exists: ok}
	}
	return out, nil
}
