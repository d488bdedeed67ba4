package gitcli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/witness"
)

// repo is where a root's repository lies. It is found by looking at files, not by asking git: that would be a process
// for every question.
type repo struct {
	top    string    // the working tree's top folder
	gitDir string    // of this working tree: HEAD, index, logs/HEAD
	common string    // shared by all working trees: refs, packed-refs
	dirs   []string  // the root's folders relative to top, with slashes, "." for top itself
	real   []string  // the root's folders with symbolic links resolved
	linked time.Time // when a symbolic link on the way to one of them last changed, zero without one
}

// open finds the repository of a root. Its errors are reasons for people.
func open(r witness.Root) (*repo, error) {
	if len(r.Dirs) == 0 {
		return nil, errors.New("the root has no folder")
	}
	g := &repo{}
	// A root may have several folders, but one identity: they must share a HEAD.
	for _, d := range r.Live().Dirs {
		if at := codetree.LinkChange(d); at.After(g.linked) {
			g.linked = at
		}
		real, err := filepath.EvalSymlinks(d)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("folder %s does not exist", d)
			}
			return nil, fmt.Errorf("folder %s cannot be read: %w", d, err)
		}
		top, err := topOf(real)
		if err != nil {
			return nil, err
		}
		if g.top != "" && g.top != top {
			return nil, fmt.Errorf("the root's folders lie in two repositories, %s and %s", g.top, top)
		}
		g.top = top
		rel, err := filepath.Rel(top, real)
		if err != nil {
			return nil, fmt.Errorf("folder %s is not below %s: %w", real, top, err)
		}
		g.real = append(g.real, real)
		g.dirs = append(g.dirs, filepath.ToSlash(rel))
	}
	return g, g.findGitDir()
}

// topOf is the nearest folder at or above dir that holds a .git.
func topOf(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a git repository", dir)
		}
	}
}

// findGitDir follows the .git file of a linked working tree or a submodule.
func (g *repo) findGitDir() error {
	at := filepath.Join(g.top, ".git")
	fi, err := os.Stat(at)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", at, err)
	}
	if !fi.IsDir() {
		text, err := os.ReadFile(at)
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", at, err)
		}
		target, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
		if !ok {
			return fmt.Errorf("%s is neither a git folder nor points to one", at)
		}
		at = under(g.top, target)
	}
	g.gitDir, g.common = at, at
	// A linked working tree keeps HEAD and index to itself, and branches with the others.
	if text, err := os.ReadFile(filepath.Join(at, "commondir")); err == nil {
		g.common = under(at, strings.TrimRight(string(text), "\r\n"))
	}
	return nil
}

// under is a path that a file of git names, relative to the folder that the file speaks of.
func under(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// toRoot turns a path as git reports it, from the top, into one relative to the root's first folder.
func (g *repo) toRoot(fromTop string) string {
	rel, err := filepath.Rel(g.real[0], filepath.Join(g.top, fromTop))
	if err != nil {
		return fromTop
	}
	return filepath.ToSlash(rel)
}

// toTop is the way back. ok is false for a path outside the working tree.
func (g *repo) toTop(rel string) (string, bool) {
	at, err := filepath.Rel(g.top, filepath.Join(g.real[0], filepath.FromSlash(rel)))
	if err != nil || at == ".." || strings.HasPrefix(at, ".."+string(filepath.Separator)) {
		return "", false
	}
	return filepath.ToSlash(at), true
}

// headRef is the full name of the branch that HEAD stands on, empty when it is detached.
func (g *repo) headRef() string {
	text, err := os.ReadFile(filepath.Join(g.gitDir, "HEAD"))
	if err != nil {
		return ""
	}
	ref, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "ref: ")
	if !ok {
		return ""
	}
	return ref
}
