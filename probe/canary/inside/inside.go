// Package inside tells a process whether it is a canary: a candidate that package canary booted beside the living
// service, to be thrown away. It is the one place where the parts of Mulligan ask, so that none of them acts in such a
// process.
//
// [Inert] is asked by what would act: a lease, a heartbeat, an auto-resume, a notice, a healer. [Refuse] is asked by
// what would write, with the path: in a canary only paths below its own folder are allowed. A store of a stranger's
// calls the same two.
//
// What is promised: outside of a canary both say no at the price of one look at the environment. A process that was
// told its id and not its folder may write nowhere. Children inherit both variables, so that they are inert as well.
//
// Failure shows as [ErrInert] from what would have acted, and [ErrOutside] from a store.
package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The variables by which a process knows: its id as a canary, and the folder that it may write to.
const (
	Var    = "MULLIGAN_CANARY"
	DirVar = "MULLIGAN_CANARY_DIR"
)

// ErrInert means that nothing was done because this process is a canary.
var ErrInert = errors.New("this process is a canary ($" + Var + "): Mulligan does nothing in it")

// ErrOutside means that a store outside of the canary's folder was about to be written to.
var ErrOutside = errors.New("it is outside of the canary's folder ($" + DirVar + "): declare an override for this state folder, so that the canary gets one of its own")

// ID is the id of this process as a canary, empty for any other process.
func ID() string { return os.Getenv(Var) }

// Inert reports whether this process is a canary.
func Inert() bool { return ID() != "" }

// Refuse is nil when this process may write below path: it is no canary, or path lies in its folder, with symlinks
// resolved. Otherwise it is [ErrOutside].
func Refuse(path string) error {
	if !Inert() {
		return nil
	}
	dir, path := resolve(os.Getenv(DirVar)), resolve(path)
	if dir != "" && path != "" {
		rel, err := filepath.Rel(dir, path)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return nil
		}
	}
	return fmt.Errorf("write to %s: %w", path, ErrOutside)
}

// resolve is the absolute path with the symlinks of the part that exists resolved; the rest would be made there. Empty
// is empty.
func resolve(path string) string {
	if path == "" {
		return ""
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			return filepath.Join(real, rest)
		}
		// A symlink to nothing leads somewhere all the same, and nobody can tell yet where.
		if _, err := os.Lstat(abs); err == nil || abs == filepath.Dir(abs) {
			return ""
		}
		rest, abs = filepath.Join(filepath.Base(abs), rest), filepath.Dir(abs)
	}
}
