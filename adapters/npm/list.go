package npm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mulligan-dev/mulligan/internal/codetree"
)

const (
	// maxManifest bounds a package.json.
	maxManifest = 4 << 20
	// maxList bounds npm's list: some 200,000 packages.
	maxList = 64 << 20
	// listName is where npm writes down what it installed, last of all.
	listName = ".package-lock.json"
	// modules is the folder of installed packages.
	modules = "node_modules"
)

// manifest is what counts of a package.json.
type manifest struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	text    []byte
}

// readManifest reads the package.json of a folder. Without one the error is fs.ErrNotExist.
func readManifest(dir string) (manifest, error) {
	var m manifest
	text, err := codetree.ReadFile(filepath.Join(dir, "package.json"), maxManifest)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s cannot be understood, it may be half written: %w", filepath.Join(dir, "package.json"), err)
	}
	m.text = text
	return m, nil
}

// entry is what npm's list says of one package.
type entry struct {
	Version   string `json:"version"`
	Integrity string `json:"integrity"`
	Link      bool   `json:"link"`
	Optional  bool   `json:"optional"`
}

// list is npm's list of a project.
type list struct {
	Packages map[string]entry `json:"packages"`
	file     string
	text     []byte
}

// readList reads the list of a node_modules folder. Without one the error is fs.ErrNotExist.
func readList(dir string) (list, error) {
	l := list{file: filepath.Join(dir, listName)}
	text, err := codetree.ReadFile(l.file, maxList)
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return l, fmt.Errorf("%s cannot be understood, it may be half written: %w", l.file, err)
	}
	l.text = text
	return l, nil
}

// entryOf is what npm's list says of the package in a folder. The list lies in the outermost node_modules above it. ok is
// false where there is no list.
func entryOf(folder string) (e entry, ok bool, err error) {
	for at := folder; at != filepath.Dir(at); at = filepath.Dir(at) {
		if filepath.Base(at) != modules {
			continue
		}
		l, err := readList(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return e, false, err
		}
		key, err := filepath.Rel(filepath.Dir(at), folder)
		if err != nil {
			return e, false, fmt.Errorf("%s lies outside %s: %w", folder, at, err)
		}
		e, listed := l.Packages[filepath.ToSlash(key)]
		if !listed {
			return e, false, fmt.Errorf("%s is there and not on npm's list (%s): an installation is under way, or was cut off", folder, l.file)
		}
		return e, true, nil
	}
	return e, false, nil
}

// retired is how npm calls a folder that it has set aside until the installation is over: hidden, with eight letters
// behind the name.
var retired = regexp.MustCompile(`^\.(.+)-[A-Za-z0-9]{8}$`)

// setAside finds a package set aside in a node_modules folder, or in one of a scope. Empty means any package.
func setAside(dir, name string) (string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("folder %s cannot be read: %w", dir, err)
	}
	for _, e := range entries {
		if m := retired.FindStringSubmatch(e.Name()); m != nil && e.IsDir() && (name == "" || m[1] == name) {
			return filepath.Join(dir, e.Name()), nil
		}
		if name == "" && strings.HasPrefix(e.Name(), "@") && e.IsDir() {
			if at, err := setAside(filepath.Join(dir, e.Name()), ""); err != nil || at != "" {
				return at, err
			}
		}
	}
	return "", nil
}
