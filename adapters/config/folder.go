package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The kinds of roots that have an adapter.
const (
	KindGit     = "git"
	KindPackage = "pypackage"
	KindFolder  = "folder"
)

// Folder is a folder as ownership needs it: absolute, counted from base when it is relative, with symlinks resolved. It
// must exist.
func Folder(base, dir string) (string, error) {
	abs, err := absolute(base, dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		if strings.HasPrefix(dir, "~") {
			return "", fmt.Errorf("%s: %w: a tilde is not expanded, write the whole path", dir, err)
		}
		return "", fmt.Errorf("%s: %w", abs, err)
	}
	st, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !st.IsDir() {
		return "", fmt.Errorf("%s is a file, want a folder", abs)
	}
	return real, nil
}

// Declared are folders as they were declared, absolute and unresolved, where one of them is not the same as what
// Folder found for it: a symlink leads there. Otherwise there are none. dirs and found are in the same order.
func Declared(base string, dirs, found []string) []string {
	if len(dirs) != len(found) {
		return nil // one of them was a mistake, which is reported
	}
	out, linked := make([]string, len(dirs)), false
	for i, d := range dirs {
		abs, err := absolute(base, d)
		if err != nil {
			return nil
		}
		out[i], linked = abs, linked || abs != found[i]
	}
	if !linked {
		return nil
	}
	return out
}

// future is Folder for one that may be made later: what exists of it is resolved.
func future(base, dir string) (string, error) {
	abs, err := absolute(base, dir)
	if err != nil {
		return "", err
	}
	for head, tail := abs, ""; ; {
		if real, err := filepath.EvalSymlinks(head); err == nil {
			return filepath.Join(real, tail), nil
		}
		up := filepath.Dir(head)
		if up == head {
			return abs, nil
		}
		head, tail = up, filepath.Join(filepath.Base(head), tail)
	}
}

func absolute(base, dir string) (string, error) {
	if dir == "" {
		return "", errors.New("the path is empty, want a folder")
	}
	if strings.ContainsRune(dir, 0) {
		return "", fmt.Errorf("%q is no path", dir)
	}
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir), nil
	}
	return filepath.Abs(filepath.Join(base, dir))
}

// DetectKind is the kind of a root that declares none: git when the folder is in a git work tree, else a plain folder. A
// work tree is told by its .git, a folder or, for worktrees and submodules, a file.
func DetectKind(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return KindGit
		}
		up := filepath.Dir(dir)
		if up == dir {
			return KindFolder
		}
		dir = up
	}
}
