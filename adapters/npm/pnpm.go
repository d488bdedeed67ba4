package npm

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// pnpmModules is what counts of pnpm's .modules.yaml.
type pnpmModules struct {
	Linker   string `yaml:"nodeLinker"`
	Store    string `yaml:"virtualStoreDir"`
	Included *struct {
		Dependencies bool `yaml:"dependencies"`
		Dev          bool `yaml:"devDependencies"`
		Optional     bool `yaml:"optionalDependencies"`
	} `yaml:"included"`
	Skipped   []string            `yaml:"skipped"`
	Locations map[string][]string `yaml:"hoistedLocations"`
}

// pnpmDependency is a dependency of a project.
type pnpmDependency struct {
	Version string `yaml:"version"`
}

// pnpmLock is what counts of the lockfile that pnpm keeps in node_modules/.pnpm of what it installed.
type pnpmLock struct {
	Form      string `yaml:"lockfileVersion"`
	Importers map[string]struct {
		Dependencies map[string]pnpmDependency `yaml:"dependencies"`
		Dev          map[string]pnpmDependency `yaml:"devDependencies"`
		Optional     map[string]pnpmDependency `yaml:"optionalDependencies"`
	} `yaml:"importers"`
	Packages map[string]struct {
		Version    string `yaml:"version"`
		Resolution struct {
			Integrity string `yaml:"integrity"`
		} `yaml:"resolution"`
	} `yaml:"packages"`
	Snapshots map[string]struct {
		Dependencies map[string]string `yaml:"dependencies"`
		Optional     map[string]string `yaml:"optionalDependencies"`
	} `yaml:"snapshots"`
}

// pnpmRecord reads what pnpm wrote down: how it installs (.modules.yaml), and what (.pnpm/lock.yaml, moved into place
// after all packages are).
func pnpmRecord(top, file string) (*record, error) {
	var how pnpmModules
	if _, err := readYAML(file, &how); err != nil {
		return nil, err
	}
	if how.Included == nil {
		return nil, halfWritten(file, errors.New("it does not say what is included"))
	}
	list := filepath.Join(filepath.Dir(file), ".pnpm", "lock.yaml")
	r := newRecord("pnpm", top, list)
	r.lines = true
	var lock pnpmLock
	_, err := readYAML(list, &lock)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// With nothing to install pnpm keeps no list.
		packages, err := visible(filepath.Dir(file), "")
		if err != nil {
			return nil, err
		}
		if len(packages) > 0 {
			return nil, fmt.Errorf("%s is not there, and packages are: an installation is under way, or was cut off", list)
		}
		r.file = file
		r.members["."] = true
		return r, nil
	case err != nil:
		return nil, err
	case !strings.HasPrefix(lock.Form, "9."):
		return nil, fmt.Errorf("%s is of form %q, which is not read; pnpm 9 and later write form 9.0", list, lock.Form)
	}
	if err := lock.whole(); err != nil {
		return nil, halfWritten(list, err)
	}
	r.fact("list", lock.canonical())
	r.fact("linker", []byte(how.Linker))
	switch how.Linker {
	case "isolated":
		r.store = how.Store
		if !filepath.IsAbs(r.store) {
			r.store = filepath.Join(filepath.Dir(file), r.store)
		}
	case "hoisted":
	case "pnp":
		return nil, unlisted{fmt.Sprintf("%s says that pnpm's nodeLinker is pnp; isolated and hoisted are read", file), true}
	default:
		return nil, fmt.Errorf("%s says that pnpm's nodeLinker is %q; isolated and hoisted are read", file, how.Linker)
	}
	for folder, imp := range lock.Importers {
		if !within(folder) {
			// A project beside this one that shares the lockfile.
			continue
		}
		r.members[folder] = true
		if how.Linker != "isolated" {
			continue
		}
		for i, group := range []map[string]pnpmDependency{imp.Dependencies, imp.Dev, imp.Optional} {
			if !(i == 0 && how.Included.Dependencies || i == 1 && how.Included.Dev || i == 2 && how.Included.Optional) {
				continue
			}
			for name, d := range group {
				if !within(name) {
					return nil, r.elsewhere(name)
				}
				r.places[path.Join(folder, modules, name)] = lock.entry(name, d.Version, i == 2)
			}
		}
	}
	if how.Linker == "hoisted" {
		for id, at := range how.Locations {
			name, _ := cutLocator(id)
			e := lock.entry(name, id, slices.Contains(how.Skipped, id))
			e.node = ""
			for _, key := range at {
				r.places[filepath.ToSlash(key)] = e
			}
		}
		return r, nil
	}
	// Beside the project's own dependencies pnpm links packages that tools look for, which the list places nowhere.
	for id := range lock.Packages {
		name, _ := cutLocator(id)
		r.name(name, lock.entry(name, id, false))
	}
	r.needs = map[string]map[string]entry{}
	for id, s := range lock.Snapshots {
		needs := map[string]entry{}
		for name, version := range s.Dependencies {
			needs[name] = lock.entry(name, version, false)
		}
		for name, version := range s.Optional {
			needs[name] = lock.entry(name, version, true)
		}
		for name := range needs {
			if !within(name) {
				return nil, r.elsewhere(name)
			}
		}
		r.needs[id] = needs
	}
	return r, nil
}

// whole refuses half a lockfile that is whole YAML: what is asked for has to be listed, and all that is listed has its
// dependencies listed in the last part, which have to be listed too.
func (l *pnpmLock) whole() error {
	for _, imp := range l.Importers {
		for _, group := range []map[string]pnpmDependency{imp.Dependencies, imp.Dev, imp.Optional} {
			for name, d := range group {
				if err := l.lists(name, d.Version); err != nil {
					return err
				}
			}
		}
	}
	for id, s := range l.Snapshots {
		for _, group := range []map[string]string{s.Dependencies, s.Optional} {
			for name, version := range group {
				if err := l.lists(name, version); err != nil {
					return err
				}
			}
		}
		id, _, _ = strings.Cut(id, "(")
		if _, ok := l.Packages[id]; !ok {
			return fmt.Errorf("it does not list %s", id)
		}
	}
	listed := map[string]bool{}
	for id := range l.Snapshots {
		id, _, _ = strings.Cut(id, "(")
		listed[id] = true
	}
	for id := range l.Packages {
		if !listed[id] {
			return fmt.Errorf("it does not list what %s needs", id)
		}
	}
	return nil
}

func (l *pnpmLock) lists(name, version string) error {
	e := l.entry(name, version, false)
	if _, ok := l.Snapshots[e.node]; !ok && !e.link {
		return fmt.Errorf("it does not list %s", e.node)
	}
	return nil
}

// canonical is the lockfile's content, however it is written: the second installation of the same packages may write
// another text.
func (l *pnpmLock) canonical() []byte {
	var lines []string
	for folder, imp := range l.Importers {
		for _, group := range []map[string]pnpmDependency{imp.Dependencies, imp.Dev, imp.Optional} {
			for name, d := range group {
				lines = append(lines, fmt.Sprintf("project %q %q %q", folder, name, d.Version))
			}
		}
	}
	for id, p := range l.Packages {
		lines = append(lines, fmt.Sprintf("package %q %q", id, p.Resolution.Integrity))
	}
	for id, s := range l.Snapshots {
		for _, group := range []map[string]string{s.Dependencies, s.Optional} {
			for name, version := range group {
				lines = append(lines, fmt.Sprintf("needs %q %q %q", id, name, version))
			}
		}
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, "\n"))
}

// entry is what the lockfile says of a dependency, given by its name and what is written behind it: a version with the
// peers it was resolved with, a whole identifier where that has another name, or a link.
func (l *pnpmLock) entry(name, version string, optional bool) entry {
	if strings.HasPrefix(version, "link:") {
		return entry{link: true}
	}
	node := name + "@" + version
	if _, whole := l.Snapshots[version]; whole {
		node = version
	} else if _, whole := l.Packages[version]; whole {
		node = version
	}
	id, _, _ := strings.Cut(node, "(")
	p := l.Packages[id]
	e := entry{version: p.Version, integrity: p.Resolution.Integrity, optional: optional, node: node}
	if e.version == "" {
		if _, rest := cutLocator(id); rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			e.version = rest
		} else {
			e.unknown = true
		}
	}
	return e
}

// cutLocator cuts NAME@REST, where the name may begin with a scope.
func cutLocator(id string) (name, rest string) {
	if id == "" {
		return "", ""
	}
	at := strings.IndexByte(id[1:], '@')
	if at < 0 {
		return id, ""
	}
	return id[:at+1], id[at+2:]
}
