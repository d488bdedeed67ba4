package npm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/internal/codetree"
)

// classicRecord reads what yarn 1 wrote down. It takes the file away before it changes the first package and writes it when
// all is done, so that a list that is there is that of a finished installation. Which folder a package was hoisted to it
// does not say.
func classicRecord(top, file string) (*record, error) {
	text, err := codetree.ReadFile(file, maxList)
	if err != nil {
		return nil, err
	}
	var list struct {
		Folders  []string          `json:"modulesFolders"`
		Flags    []string          `json:"flags"`
		Top      []string          `json:"topLevelPatterns"`
		Resolved map[string]string `json:"lockfileEntries"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, halfWritten(file, err)
	}
	if list.Resolved == nil {
		return nil, halfWritten(file, errors.New("it has no lockfileEntries"))
	}
	r := newRecord("yarn", top, file)
	r.fact("list", text)
	for _, folder := range list.Folders {
		if key := filepath.ToSlash(folder); within(key) && strings.HasSuffix(key, "/"+modules) {
			r.members[strings.TrimSuffix(key, "/"+modules)] = true
		}
	}
	for pattern, resolved := range list.Resolved {
		name, _ := cutLocator(pattern)
		if !within(name) {
			return nil, r.elsewhere(name)
		}
		_, hash, _ := strings.Cut(resolved, "#")
		version := archiveVersion(resolved)
		r.name(name, entry{version: version, unknown: version == "", integrity: hash})
	}
	m, err := readManifest(top)
	if err != nil {
		return nil, err
	}
	for _, pattern := range list.Top {
		if _, installed := list.Resolved[pattern]; !installed {
			continue // a member of the workspace, which is linked
		}
		name, _ := cutLocator(pattern)
		e := r.names[name]
		// What a member asks for may be in its own folder; what is for development, or for another platform, nowhere.
		_, elsewhere := m.Optional[name]
		e.optional = elsewhere || len(r.members) > 0 || slices.Contains(list.Flags, "production")
		r.places[modules+"/"+name] = e
	}
	return r, nil
}

// archiveVersion is the version in the address of an archive as registries call it: .../wire/-/wire-1.0.0.tgz.
func archiveVersion(resolved string) string {
	before, archive, ok := strings.Cut(resolved, "/-/")
	if !ok {
		return ""
	}
	archive, _, _ = strings.Cut(archive, "#")
	base := before[strings.LastIndexByte(before, '/')+1:]
	version, ok := strings.CutPrefix(archive, base+"-")
	if !ok || !strings.HasSuffix(version, ".tgz") {
		return ""
	}
	return strings.TrimSuffix(version, ".tgz")
}

// berryRecord reads what yarn 2 and later wrote down, with nodeLinker: node-modules, after all packages are in place: the
// folders of each package. The versions are in its name, or else in yarn.lock.
func berryRecord(top, file string) (*record, error) {
	var list map[string]struct {
		Locations []string `yaml:"locations"`
	}
	text, err := readYAML(file, &list)
	if err != nil {
		return nil, err
	}
	if _, ok := list["__metadata"]; !ok {
		return nil, halfWritten(file, errors.New("it has no __metadata"))
	}
	r := newRecord("yarn", top, file)
	r.lines = true
	r.fact("list", text)
	var lock map[string]struct {
		Version    string `yaml:"version"`
		Resolution string `yaml:"resolution"`
	}
	locked := map[string]string{}
	for locator, p := range list {
		name, from := cutLocator(locator)
		if from == "" {
			continue
		}
		if len(p.Locations) == 0 {
			return nil, halfWritten(file, fmt.Errorf("it places %s nowhere", locator))
		}
		if folder, ok := strings.CutPrefix(from, "workspace:"); ok {
			r.members[folder] = true
		}
		soft := strings.HasPrefix(from, "workspace:") || strings.HasPrefix(from, "link:") || strings.HasPrefix(from, "portal:")
		e := entry{version: locatorVersion(from), link: soft}
		if e.version == "" && !soft {
			if lock == nil {
				if _, err := readYAML(filepath.Join(top, "yarn.lock"), &lock); err != nil {
					return nil, err
				}
				for _, l := range lock {
					locked[l.Resolution] = l.Version
				}
			}
			if e.version = locked[devirtual(name, from)]; e.version == "" {
				return nil, fmt.Errorf("%s lists %q, and yarn.lock does not: an installation is under way, was cut off, or has yet to be made", file, locator)
			}
		}
		for _, key := range p.Locations {
			if key != "" {
				r.places[key] = e
			}
		}
	}
	return r, nil
}

// devirtual is a package's name in yarn.lock, which knows nothing of the peers that it was installed with.
func devirtual(name, from string) string {
	if rest, ok := strings.CutPrefix(from, "virtual:"); ok {
		_, from, _ = strings.Cut(rest, "#")
	}
	return name + "@" + from
}

// locatorVersion is the version in the second half of a package's name: npm:1.0.0, patch:...::version=1.0.0&hash=x.
func locatorVersion(from string) string {
	if rest, ok := strings.CutPrefix(from, "virtual:"); ok {
		_, from, _ = strings.Cut(rest, "#")
	}
	from, params, _ := strings.Cut(from, "::")
	if version, ok := strings.CutPrefix(from, "npm:"); ok {
		return version
	}
	if strings.HasPrefix(from, "patch:") {
		if values, err := url.ParseQuery(params); err == nil {
			return values.Get("version")
		}
	}
	return ""
}
