package process

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
)

// release is a folder that a root had when the run booted, and what is there now.
type release struct{ then, now string }

// current is a run and its verdict with each path of a release that was switched since as it is now. An interpreter
// prints the folder that a link led to, and the old release often still lies there: a plan by those paths would try the
// old code, and take the program's file for a module of another name.
func current(r run.Run, v classify.Verdict) (run.Run, classify.Verdict) {
	var moved []release
	r.Roots = slices.Clone(r.Roots)
	for i, root := range r.Roots {
		if len(root.Declared) != len(root.Dirs) {
			continue
		}
		r.Roots[i].Dirs = slices.Clone(root.Dirs)
		for j, declared := range root.Declared {
			now, err := filepath.EvalSymlinks(declared)
			if err != nil || now == root.Dirs[j] {
				continue
			}
			r.Roots[i].Dirs[j] = now
			moved = append(moved, release{root.Dirs[j], now})
		}
	}
	if len(moved) == 0 {
		return r, v
	}
	if r.Runtime != nil {
		runtime := *r.Runtime
		runtime.Path = follow(moved, runtime.Path)
		r.Runtime = &runtime
	}
	v.ManagedModules = follow(moved, v.ManagedModules)
	v.Module = followed(moved, v.Module)
	v.Frames = slices.Clone(v.Frames)
	for i, f := range v.Frames {
		v.Frames[i].File, v.Frames[i].Module = followed(moved, f.File), followed(moved, f.Module)
	}
	return r, v
}

func follow(moved []release, paths []string) []string {
	paths = slices.Clone(paths)
	for i, p := range paths {
		paths[i] = followed(moved, p)
	}
	return paths
}

// followed is a path in the release that is there now; what is no path in one stays as it is. The longest folder wins.
func followed(moved []release, path string) string {
	at, out := -1, path
	for _, m := range moved {
		if rest, ok := strings.CutPrefix(path, m.then); ok && (rest == "" || rest[0] == '/') && len(m.then) > at {
			at, out = len(m.then), m.now+rest
		}
	}
	return out
}
