package npm

import (
	"errors"
	"path"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/mulligan-dev/mulligan/internal/codetree"
)

// bunNeeds are the dependencies that bun.lock names.
type bunNeeds struct {
	Dependencies map[string]string `yaml:"dependencies"`
	Dev          map[string]string `yaml:"devDependencies"`
	Optional     map[string]string `yaml:"optionalDependencies"`
	Peer         map[string]string `yaml:"peerDependencies"`
	Name         string            `yaml:"name"` // of a workspace's member
	OS           any               `yaml:"os"`
	CPU          any               `yaml:"cpu"`
}

// bunPackage is one package of bun.lock: NAME@VERSION first, and what it needs somewhere behind it.
type bunPackage struct {
	id string
	bunNeeds
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *bunPackage) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || n.Content[0].Kind != yaml.ScalarNode {
		return errors.New("a package is no list that begins with its name")
	}
	p.id = n.Content[0].Value
	for _, part := range n.Content[1:] {
		if part.Kind == yaml.MappingNode {
			return part.Decode(&p.bunNeeds)
		}
	}
	return nil
}

// bunLock is bun.lock.
type bunLock struct {
	Form       int                   `yaml:"lockfileVersion"`
	Workspaces map[string]bunNeeds   `yaml:"workspaces"`
	Packages   map[string]bunPackage `yaml:"packages"`
	folders    map[string]string     // of the workspace's members, by name
}

// bunRecord reads bun.lock. Bun leaves no list of what it installed, so this one, which may have been changed since by a
// pull, only says what to look for: what is on the disk is the project's identity, and where the two differ bun is at work,
// or has yet to be called.
func bunRecord(top, file string) (*record, error) {
	var lock bunLock
	if _, err := readYAML(file, &lock); err != nil {
		return nil, err
	}
	if lock.Form == 0 && lock.Workspaces == nil {
		return nil, halfWritten(file, errors.New("it has no workspaces"))
	}
	r := newRecord("bun", top, file)
	r.lines = true
	r.loose = true
	lock.folders = map[string]string{}
	for folder, w := range lock.Workspaces {
		if !within(folder) {
			return nil, r.elsewhere(folder)
		}
		r.members[folder] = true
		if folder != "" {
			lock.folders[w.Name] = folder
		}
	}
	for key := range lock.Packages {
		if !within(key) {
			return nil, r.elsewhere(key)
		}
	}
	if codetree.Exists(filepath.Join(top, modules, ".bun")) {
		lock.isolated(r)
	} else {
		lock.hoisted(r)
	}
	return r, nil
}

// hoisted gives every package the folder that its key stands for. What is only for development may be left out.
func (l *bunLock) hoisted(r *record) {
	wanted := map[string]bool{}
	var walk func(key string, needs bunNeeds)
	walk = func(key string, needs bunNeeds) {
		for name := range needs.Dependencies {
			at, ok := l.resolve(key, name)
			if !ok || wanted[at] {
				continue
			}
			wanted[at] = true
			walk(at, l.Packages[at].bunNeeds)
		}
	}
	for folder, w := range l.Workspaces {
		if folder == "" {
			walk("", w)
		} else {
			walk(w.Name, w)
		}
	}
	for key, p := range l.Packages {
		e := p.entry()
		e.optional = e.optional || !wanted[key]
		e.node = ""
		r.places[l.place(key)] = e
	}
}

// isolated gives a folder to what the projects ask for themselves. The rest lies in the store, beside what needs it.
func (l *bunLock) isolated(r *record) {
	r.needs = map[string]map[string]entry{}
	find := func(from string, needs bunNeeds) map[string]entry {
		found := map[string]entry{}
		for i, group := range []map[string]string{needs.Dev, needs.Peer, needs.Optional, needs.Dependencies} {
			for name := range group {
				if at, ok := l.resolve(from, name); ok && within(name) {
					e := l.Packages[at].entry()
					e.optional = e.optional || i < 3
					e.node = at
					found[name] = e
				}
			}
		}
		return found
	}
	for folder, w := range l.Workspaces {
		from := w.Name
		if folder == "" {
			from = ""
		}
		for name, e := range find(from, w) {
			r.places[path.Join(folder, modules, name)] = e
		}
	}
	for key, p := range l.Packages {
		p.Dev = nil
		r.needs[key] = find(key, p.bunNeeds)
		e := p.entry()
		r.name(nameIn(key), e)
	}
}

// resolve is the key of what a package finds under a name: below itself, else below what it lies in, and so on.
func (l *bunLock) resolve(from, name string) (key string, ok bool) {
	for ; from != ""; from = strings.TrimSuffix(strings.TrimSuffix(from, nameIn(from)), "/") {
		if _, ok := l.Packages[from+"/"+name]; ok {
			return from + "/" + name, true
		}
	}
	_, ok = l.Packages[name]
	return name, ok
}

// nameIn is the last name of a key: @acme/wire of left/@acme/wire.
func nameIn(key string) string {
	at := strings.LastIndexByte(key, '/')
	if at < 0 {
		return key
	}
	if before := key[:at]; strings.HasPrefix(before[strings.LastIndexByte(before, '/')+1:], "@") {
		at = strings.LastIndexByte(before, '/')
	}
	return key[at+1:]
}

// place is the folder of a key: below the member whose name it begins with, or below the whole project.
func (l *bunLock) place(key string) string {
	at := ""
	for key != "" {
		parts := strings.SplitN(key, "/", 3)
		n := 1
		if strings.HasPrefix(key, "@") && len(parts) > 1 {
			n = 2
		}
		name := strings.Join(parts[:n], "/")
		key = strings.Join(parts[n:], "/")
		if folder, member := l.folders[name]; member && at == "" && key != "" {
			at = folder
			continue
		}
		at = path.Join(at, modules, name)
	}
	return at
}

// entry is what the lockfile says of a package.
func (p bunPackage) entry() entry {
	_, from := cutLocator(p.id)
	e := entry{optional: p.OS != nil || p.CPU != nil}
	switch {
	case from != "" && from[0] >= '0' && from[0] <= '9':
		e.version = from
	case strings.HasPrefix(from, "workspace:") || strings.HasPrefix(from, "link:") || strings.HasPrefix(from, "root:"):
		e.link = true
	default:
		e.unknown = true // an archive or a repository: its version is in its package.json alone
	}
	return e
}
