package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The kinds of roots that have an adapter.
const (
	KindGit     = "git"
	KindPackage = "pypackage"
	KindFolder  = "folder"
	KindNPM     = "npm"
	KindGem     = "gem"
	KindJar     = "jar"
	KindImage   = "image"
	KindBinary  = "binary"
)

// Kinds are the kinds of roots that have an adapter.
func Kinds() []string {
	return []string{KindGit, KindPackage, KindFolder, KindNPM, KindGem, KindJar, KindImage, KindBinary}
}

// named are the kinds of roots that have a package, with what it is.
var named = map[string]struct {
	what     string
	optional bool
}{
	KindPackage: {what: "the name of the installed distribution"},
	KindNPM:     {what: "the name of the installed package", optional: true},
	KindGem:     {what: "the name of the installed gem"},
	KindJar:     {what: "the file name of the archive, or a pattern", optional: true},
	KindImage:   {what: "the file that names the image's digest"},
	KindBinary:  {what: "the file of the program or library"},
}

// NeedsPackage is what the package of a root of this kind must be, empty where it needs none.
func NeedsPackage(kind string) string {
	if n := named[kind]; !n.optional {
		return n.what
	}
	return ""
}

// TakesPackage reports whether a root of this kind may have a package.
func TakesPackage(kind string) bool { return named[kind].what != "" }

// PackageKinds are the kinds of roots that may have a package, as errors list them.
func PackageKinds() string {
	return strings.Join(slices.DeleteFunc(Kinds(), func(k string) bool { return !TakesPackage(k) }), ", ")
}

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

// DetectKind is the kind of a root that declares none, given its folder and its package, which may be empty.
//
// A package is one of npm where the folder is, or holds, the node_modules with it; a gem where the folder is a gem home; an
// archive where it is called like one; else a Python distribution. Without a package it is git when the folder is in a git
// work tree, told by its .git, a folder or, for worktrees and submodules, a file; a project of npm where its package.json
// stands beside what npm, pnpm, yarn or bun installed for it; else a plain folder. The kinds image and binary are never guessed.
func DetectKind(dir, pkg string) string {
	if pkg != "" {
		return detectPackage(dir, pkg)
	}
	for up := dir; ; up = filepath.Dir(up) {
		if there(up, ".git") {
			return KindGit
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	if there(dir, "package.json") && there(dir, "node_modules") {
		for _, list := range []string{"node_modules/.package-lock.json", "node_modules/.modules.yaml", "node_modules/.yarn-integrity", "node_modules/.yarn-state.yml", "bun.lock"} {
			if there(dir, filepath.FromSlash(list)) {
				return KindNPM
			}
		}
	}
	return KindFolder
}

func detectPackage(dir, pkg string) string {
	below := filepath.FromSlash(pkg)
	switch ext := strings.ToLower(filepath.Ext(pkg)); {
	case filepath.Base(dir) == "node_modules",
		strings.HasSuffix(dir, filepath.Join(string(filepath.Separator), "node_modules", below)),
		filepath.IsLocal(below) && there(dir, "node_modules", below, "package.json"):
		return KindNPM
	case there(dir, "specifications") && there(dir, "gems"):
		return KindGem
	case ext == ".jar" || ext == ".war" || ext == ".ear":
		return KindJar
	}
	return KindPackage
}

func there(parts ...string) bool {
	_, err := os.Lstat(filepath.Join(parts...))
	return err == nil
}
