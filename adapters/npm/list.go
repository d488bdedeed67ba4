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
	Name     string         `json:"name"`
	Version  string         `json:"version"`
	Optional map[string]any `json:"optionalDependencies"`
	text     []byte
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

// npmRecord reads npm's list: a package for each folder, those of a workspace's members included.
func npmRecord(top, file string) (*record, error) {
	text, err := codetree.ReadFile(file, maxList)
	if err != nil {
		return nil, err
	}
	var list struct {
		Packages map[string]struct {
			Version   string `json:"version"`
			Integrity string `json:"integrity"`
			Link      bool   `json:"link"`
			Optional  bool   `json:"optional"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, halfWritten(file, err)
	}
	r := newRecord("npm", top, file)
	r.fact("list", text)
	for key, p := range list.Packages {
		// What a link leads to is listed by the place where it is: a member of the workspace, and no installed package.
		if !strings.HasPrefix(key, modules+"/") && !strings.Contains(key, "/"+modules+"/") {
			r.members[key] = true
			continue
		}
		r.places[key] = entry{version: p.Version, integrity: p.Integrity, link: p.Link, optional: p.Optional}
	}
	return r, nil
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
