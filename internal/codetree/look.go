package codetree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// Look is one reading of a root by a source that knows no more than what the disk holds now.
type Look struct {
	Revision string
	// Changed is the newest change among everything by which the tree is taken to be at rest.
	Changed time.Time
	// Since is the newest change of what the revision was read from: before it, the root can have held something else.
	Since time.Time
}

// Observe reads a root through its declared folders and adds what is the same for every source that works this way: the
// declared bindings, the links on the way to the folders, and the form of an identity that is unknown. read's errors
// are reasons for people. Observe's own error is that of a context that ended.
func Observe(ctx context.Context, r witness.Root, now func() stamp.Time, read func(ctx context.Context, live witness.Root) (Look, error)) (witness.Observation, Look, error) {
	at, live := now(), r.Live()
	var look Look
	err := errors.New("the root has no folder")
	if len(live.Dirs) > 0 {
		look, err = read(ctx, live)
	}
	if ended := ctx.Err(); ended != nil {
		return witness.Observation{}, Look{}, fmt.Errorf("observe root %s: %w", r.Name, ended)
	}
	if err != nil {
		return witness.Observation{
			Identity: witness.Identity{Root: r.Name, Kind: r.Kind, At: at, Unknown: err.Error()},
			NoSignal: fmt.Errorf("read the last change of root %s: %w", r.Name, err),
		}, Look{}, nil
	}
	for _, d := range live.Dirs {
		// A release switched by a link: the switch changes nothing below the folder that it leads to.
		look.Since = newer(look.Since, LinkChange(d))
	}
	look.Changed = newer(look.Changed, look.Since)
	bindings := Bindings(r)
	for _, b := range bindings {
		if fi, err := os.Lstat(b.Path); err == nil {
			look.Changed = newer(look.Changed, ChangeTime(fi))
		}
	}
	return witness.Observation{
		Identity: witness.Identity{Root: r.Name, Kind: r.Kind, At: at, Revision: look.Revision, Bindings: bindings},
		Changed:  stamp.Wall(look.Changed, 0),
	}, look, nil
}

// Named is the one file that a root names: an absolute path, or one relative to its folders, of which the first that
// has the file counts. Its errors are reasons for people.
func Named(live witness.Root, name string) (string, os.FileInfo, error) {
	if name == "" {
		return "", nil, errors.New("the root names no file")
	}
	tried := []string{name}
	if !filepath.IsAbs(name) {
		if !filepath.IsLocal(name) {
			return "", nil, fmt.Errorf("%q leads out of the root's folders: write an absolute path", name)
		}
		tried = nil
		for _, d := range live.Dirs {
			tried = append(tried, filepath.Join(d, name))
		}
	}
	for _, at := range tried {
		fi, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", nil, fmt.Errorf("file %s cannot be read: %w", at, err)
		case !fi.Mode().IsRegular():
			return "", nil, fmt.Errorf("%s is no file", at)
		}
		return at, fi, nil
	}
	return "", nil, fmt.Errorf("file %s does not exist", strings.Join(tried, ", "))
}

// Dated is the look at a root of one file, given how the file was before its content was read. One that changed in between
// is refused: what was read may be half of it.
func Dated(name, revision string, before os.FileInfo) (Look, error) {
	after, err := os.Stat(name)
	if err != nil {
		return Look{}, unreadable(name, err)
	}
	if !os.SameFile(before, after) || after.Size() != before.Size() || !ChangeTime(after).Equal(ChangeTime(before)) {
		return Look{}, fmt.Errorf("%s is being written", name)
	}
	return Look{Revision: revision, Since: newer(ChangeTime(after), LinkChange(name))}, nil
}

func newer(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
