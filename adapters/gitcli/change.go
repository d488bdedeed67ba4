package gitcli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// busy are the files and folders that exist while an operation of git has not ended.
var busy = []struct{ name, what string }{
	{"index.lock", "a git command holds the index"},
	{"HEAD.lock", "a git command moves HEAD"},
	{"rebase-merge", "a rebase has not ended"},
	{"rebase-apply", "a rebase or an application of patches has not ended"},
	{"MERGE_HEAD", "a merge has not ended"},
	{"CHERRY_PICK_HEAD", "a cherry-pick has not ended"},
	{"REVERT_HEAD", "a revert has not ended"},
}

// lastChange is the newest change among git's own records and the changed files.
func (g *repo) lastChange(r witness.Root, look status) (stamp.Time, error) {
	// An operation that has not ended may write again at any moment, whatever the times say.
	for _, b := range busy {
		if at := filepath.Join(g.gitDir, b.name); codetree.Exists(at) {
			return stamp.Time{}, fmt.Errorf("root %s: %w: %s (%s)", r.Name, witness.ErrChanging, b.what, at)
		}
	}
	newest := g.linked // a release switched by a link changes nothing in the repositories
	take := func(name string) bool {
		fi, err := os.Lstat(name)
		if err != nil {
			return false
		}
		if at := codetree.ChangeTime(fi); at.After(newest) {
			newest = at
		}
		return true
	}
	// Without HEAD there is no repository to speak of, and every other time would be a relic.
	if !take(filepath.Join(g.gitDir, "HEAD")) {
		return stamp.Time{}, fmt.Errorf("read the last change of root %s: %s cannot be read", r.Name, filepath.Join(g.gitDir, "HEAD"))
	}
	// Any of these may be missing: a reflog can be switched off, ORIG_HEAD comes with the first reset or merge. What is
	// there counts. A working tree is written before the index, so that the index is the end of a checkout.
	for _, name := range []string{"logs/HEAD", "index", "ORIG_HEAD"} {
		take(filepath.Join(g.gitDir, name))
	}
	take(filepath.Join(g.common, "reftable", "tables.list"))
	if ref := g.headRef(); ref != "" && !take(filepath.Join(g.common, filepath.FromSlash(ref))) {
		// The branch is packed. A packed file is also rewritten by housekeeping, which then delays for nothing; missing
		// a move would be worse.
		take(filepath.Join(g.common, "packed-refs"))
	}
	// What was edited by hand, or is being written by an update that has not reached the index yet.
	for _, e := range g.relevant(r, look) {
		name := filepath.Join(g.top, e.path)
		if !take(name) {
			takeParent(name, g.top, take)
		}
	}
	for _, b := range codetree.Bindings(r) {
		take(b.Path)
	}
	return stamp.Wall(newest, 0), nil
}

// takeParent takes the nearest folder above a deleted file that still exists: the deletion changed it.
func takeParent(name, top string, take func(string) bool) {
	for dir := filepath.Dir(name); len(dir) >= len(top); dir = filepath.Dir(dir) {
		if take(dir) {
			return
		}
	}
}

// changeTime is when a path of the working tree last changed, zero when the disk does not tell. For a deleted path it
// is the time of the nearest folder above that still exists.
func (g *repo) changeTime(fromTop string, deleted bool) stamp.Time {
	var at stamp.Time
	take := func(name string) bool {
		fi, err := os.Lstat(name)
		if err != nil {
			return false
		}
		at = stamp.Wall(codetree.ChangeTime(fi), 0)
		return true
	}
	name := filepath.Join(g.top, fromTop)
	if deleted || !take(name) {
		takeParent(name, g.top, take)
	}
	return at
}

// isNotFolder reports that a path could not be reached because a file took the place of one of its folders.
func isNotFolder(err error) bool {
	var e *fs.PathError
	return errors.As(err, &e) && (errors.Is(e.Err, syscall.ENOTDIR) || strings.Contains(e.Err.Error(), "not a directory"))
}
