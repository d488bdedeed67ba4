package npm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/mulligan-dev/mulligan/internal/codetree"
)

// maxYAML bounds a record that is read as YAML, which takes many times its size in memory.
const maxYAML = 16 << 20

// record is what an installer wrote down of what it installed for one project.
type record struct {
	by   string // the installer, as people call it
	top  string // the project's folder
	file string // written last, or as good as that
	// facts are what the project's identity is made of.
	facts [][2]string
	// places are the installed packages by folder, relative to top, with slashes.
	places map[string]entry
	// names are packages whose folder the record does not tell, by name. Nil where it tells all.
	names map[string]entry
	// needs are the dependencies of each package in a store, which lie beside it.
	needs map[string]map[string]entry
	// members are the folders of a workspace's members.
	members map[string]bool
	// store is a folder outside of node_modules where the packages are, empty when there is none.
	store string
	// loose means that the record is no record of an installation, but of what one has to come to: what is on the disk
	// makes the identity.
	loose bool
	// lines means that a part of the record may pass for the whole.
	lines bool
}

// entry is what a record says of one package.
type entry struct {
	version   string
	versions  []string // in place of version, where the record does not tell which of them is where
	unknown   bool     // the record tells no version
	integrity string
	sums      []string // what integrity is made of, for several versions
	link      bool     // to a folder that somebody works on
	optional  bool     // it may be missing
	node      string
}

// fits reports that a package.json is that of the entry.
func (e entry) fits(m manifest) bool {
	switch {
	case e.link || e.unknown:
		return true
	case e.versions != nil:
		return slices.Contains(e.versions, m.Version)
	}
	return e.version == m.Version
}

func (e entry) String() string {
	if e.versions != nil {
		return strings.Join(e.versions, " or ")
	}
	return e.version
}

func newRecord(by, top, file string) *record {
	return &record{by: by, top: top, file: file, places: map[string]entry{}, members: map[string]bool{}}
}

func (r *record) fact(name string, text []byte) {
	r.facts = append(r.facts, [2]string{name, string(text)})
}

// name adds a version to what is known of a package whose folder the record does not tell.
func (r *record) name(name string, e entry) {
	if r.names == nil {
		r.names = map[string]entry{}
	}
	have := r.names[name]
	if have.versions == nil {
		have.versions = []string{}
	}
	have.unknown = have.unknown || e.unknown
	have.versions = insert(have.versions, e.version)
	have.sums = insert(have.sums, e.version+" "+e.integrity)
	have.integrity = strings.Join(have.sums, "\n")
	r.names[name] = have
}

// insert adds to a sorted list what it does not have: a record is read in any order, and has to come to the same.
func insert(list []string, s string) []string {
	at, there := slices.BinarySearch(list, s)
	if there {
		return list
	}
	return slices.Insert(list, at, s)
}

// lookup is what the record says of the package in a folder.
func (r *record) lookup(key string) (entry, bool) {
	if e, ok := r.places[key]; ok {
		return e, true
	}
	e, ok := r.names[nameOf(key)]
	return e, ok
}

// nameOf is the name of the package that is installed in a folder.
func nameOf(key string) string {
	if at := strings.LastIndex(key, modules+"/"); at >= 0 {
		return key[at+len(modules)+1:]
	}
	return key
}

// within reports that a path from a record stays in the project.
func within(key string) bool { return key == "" || filepath.IsLocal(filepath.FromSlash(key)) }

func (r *record) elsewhere(key string) error {
	return fmt.Errorf("%s's list (%s) names %q, which lies elsewhere", r.by, r.file, key)
}

func halfWritten(file string, err error) error {
	return fmt.Errorf("%s cannot be understood, it may be half written: %w", file, err)
}

// readYAML reads a record in YAML, or in JSON with commas where JSON has none.
func readYAML(file string, into any) (text []byte, err error) {
	if text, err = codetree.ReadFile(file, maxYAML); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		return nil, halfWritten(file, err)
	}
	return text, nil
}

// unlisted is why a project has no record although nothing is under way: its packages are known by their folders alone.
type unlisted struct {
	reason string
	pnp    bool
}

func (u unlisted) Error() string { return u.reason }

// readers are the records inside a node_modules folder.
var readers = []struct {
	name string
	read func(top, file string) (*record, error)
}{
	{listName, npmRecord},
	{".modules.yaml", pnpmRecord},
	{".yarn-integrity", classicRecord},
	{".yarn-state.yml", berryRecord},
}

// recordAt reads the record of the project in a folder: the newest, where several installers have left one. It is nil
// where nothing is installed.
func recordAt(top string) (*record, error) {
	if err := plugAndPlay(top); err != nil {
		return nil, err
	}
	dir := filepath.Join(top, modules)
	if !codetree.Exists(dir) {
		return nil, nil
	}
	var newest time.Time
	read, file := readers[0].read, ""
	for _, r := range readers {
		at := filepath.Join(dir, r.name)
		if fi, err := os.Stat(at); err == nil && (file == "" || codetree.ChangeTime(fi).After(newest)) {
			newest, read, file = codetree.ChangeTime(fi), r.read, at
		}
	}
	if file != "" {
		return read(top, file)
	}
	packages, err := visible(dir, "")
	if err != nil {
		return nil, err
	}
	there := func(parts ...string) bool { return codetree.Exists(filepath.Join(append([]string{top}, parts...)...)) }
	switch {
	case len(packages) == 0 && !there(modules, ".pnpm") && !(there(modules, ".bun") && there("bun.lock")):
		return nil, nil
	case there(modules, ".pnpm") || there("pnpm-lock.yaml"):
		return nil, fmt.Errorf("%s holds no .modules.yaml, which pnpm writes: an installation is under way, or was cut off", dir)
	case there("bun.lock"):
		return bunRecord(top, filepath.Join(top, "bun.lock"))
	case there("bun.lockb"):
		return nil, fmt.Errorf("%s is bun's old binary list, which is not read; `bun install --save-text-lockfile` writes the one that is", filepath.Join(top, "bun.lockb"))
	case there("yarn.lock") && there(modules, ".store"):
		return nil, unlisted{fmt.Sprintf("%s was filled by yarn's linker pnpm, which leaves no list; with nodeLinker: node-modules there is one", dir), false}
	case there("yarn.lock"):
		return nil, fmt.Errorf("%s holds neither .yarn-integrity nor .yarn-state.yml, which yarn writes last: an installation is under way, or was cut off", dir)
	}
	return nil, unlisted{fmt.Sprintf("%s holds no %s: an installation is under way, or another installer than npm, pnpm, yarn and bun filled it", dir, listName), false}
}

// plugAndPlay says that a project's packages are not in node_modules at all.
func plugAndPlay(top string) error {
	for _, name := range []string{".pnp.cjs", ".pnp.js"} {
		if codetree.Exists(filepath.Join(top, name)) {
			return unlisted{fmt.Sprintf("%s is installed by yarn's Plug'n'Play (%s), which keeps packages in archives: they are not read; with nodeLinker: node-modules they are", top, name), true}
		}
	}
	return nil
}

// visible are the packages that lie in a node_modules folder, and the links to such, by name. A link is true.
func visible(dir, scope string) (map[string]bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("folder %s cannot be read: %w", dir, err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		link := e.Type()&fs.ModeSymlink != 0
		switch {
		case strings.HasPrefix(e.Name(), ".") || !e.IsDir() && !link:
		case scope == "" && strings.HasPrefix(e.Name(), "@") && e.IsDir():
			below, err := visible(filepath.Join(dir, e.Name()), e.Name()+"/")
			if err != nil {
				return nil, err
			}
			maps.Copy(names, below)
		default:
			names[scope+e.Name()] = link
		}
	}
	return names, nil
}

// recordOf is the record that a folder, of a project or of an installed package, is on, with its key there: that of
// the first project from a folder upwards that speaks of it, as a workspace speaks of its members. It is nil where there
// is none; why says what was found instead.
func recordOf(from, folder string) (r *record, key string, why, err error) {
	for at := from; ; at = filepath.Dir(at) {
		if filepath.Base(at) != modules {
			r, err := recordAt(at)
			var none unlisted
			switch {
			case errors.As(err, &none):
				// A folder further up is another project's, unless it speaks of this one; but Plug'n'Play speaks of all below.
				if why == nil && (at == from || none.pnp) {
					why = none
				}
			case err != nil:
				return nil, "", nil, err
			case r != nil:
				rel, err := filepath.Rel(at, folder)
				if err != nil {
					return nil, "", nil, fmt.Errorf("%s lies outside %s: %w", folder, at, err)
				}
				if key := filepath.ToSlash(rel); r.covers(key) {
					return r, key, nil, nil
				}
			}
		}
		if at == filepath.Dir(at) {
			return nil, "", why, nil
		}
	}
}

// entryOf is what the record says of the package in a folder, whose package.json is given. A nil record says nothing, and
// none speaks of a folder that is no installed package.
func (r *record) entryOf(key string, m manifest) (entry, error) {
	if r == nil || !strings.Contains("/"+key, "/"+modules+"/") {
		return entry{}, nil
	}
	e, ok := r.lookup(key)
	switch {
	case !ok:
		return e, r.stray(key)
	case !e.fits(m):
		return e, fmt.Errorf("package %s is version %s and %s's list says %s: an installation is under way, or was cut off", nameOf(key), m.Version, r.by, e)
	}
	return e, nil
}

// covers reports that a folder is one that the record speaks of: the project, what is installed in it, or a member of its
// workspace and what is installed there.
func (r *record) covers(key string) bool {
	if key == "." || strings.HasPrefix(key, modules+"/") {
		return true
	}
	project, _, _ := strings.Cut(key, "/"+modules+"/")
	if r.members[project] {
		return true
	}
	// Yarn's first list names no members, but links to them.
	m, err := readManifest(filepath.Join(r.top, filepath.FromSlash(project)))
	if err != nil || m.Name == "" || !within(m.Name) {
		return false
	}
	linked, err := os.Stat(filepath.Join(r.top, modules, filepath.FromSlash(m.Name)))
	if err != nil {
		return false
	}
	fi, err := os.Stat(filepath.Join(r.top, filepath.FromSlash(project)))
	return err == nil && os.SameFile(linked, fi)
}

// hold adds the record to a project's identity, after holding it against the disk.
func (r *record) hold(ctx context.Context, c *codetree.Content) error {
	for _, f := range r.facts {
		c.Fact(f[0], f[1])
	}
	if err := c.Seen(r.file); err != nil {
		return err
	}
	if err := r.strays(); err != nil {
		return err
	}
	type place struct {
		folder, as string
		entry
	}
	var queue []place
	for _, key := range slices.Sorted(maps.Keys(r.places)) {
		if !within(key) {
			return r.elsewhere(key)
		}
		queue = append(queue, place{filepath.Join(r.top, filepath.FromSlash(key)), key, r.places[key]})
	}
	seen := map[string]bool{}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.link {
			continue
		}
		if err := c.Visit(); err != nil {
			return err
		}
		m, err := readManifest(p.folder)
		switch {
		case errors.Is(err, fs.ErrNotExist) && p.optional:
			// A package for another platform is listed and not there.
			continue
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is on %s's list and not there: an installation is under way, or was cut off", p.as, r.by)
		case err != nil:
			return err
		case !p.fits(m):
			return fmt.Errorf("%s is version %s and %s's list says %s: an installation is under way, or was cut off", p.as, m.Version, r.by, p.entry)
		}
		if r.loose {
			c.Fact("package "+p.as, string(m.text))
			c.Above(filepath.Join(p.folder, "package.json"), p.folder)
		}
		if p.node == "" || seen[p.node] {
			continue
		}
		seen[p.node] = true
		// In a store the dependencies of a package lie in the node_modules that it lies in itself.
		real, err := filepath.EvalSymlinks(p.folder)
		if err != nil {
			return fmt.Errorf("folder %s cannot be read: %w", p.folder, err)
		}
		at := strings.LastIndex(filepath.ToSlash(real), "/"+modules+"/")
		if at < 0 {
			return fmt.Errorf("%s is a link to %s, which is no store of %s", p.as, real, r.by)
		}
		for _, name := range slices.Sorted(maps.Keys(r.needs[p.node])) {
			queue = append(queue, place{filepath.Join(real[:at], modules, filepath.FromSlash(name)), path.Join(p.node, name), r.needs[p.node][name]})
		}
	}
	return nil
}

// strays refuses a package that lies in the project's node_modules and is not on the list: an installation that has got
// as far as this one, or a list that was cut. Where packages are folders a link is none, but leads to a member of the
// workspace or to somebody's work.
func (r *record) strays() error {
	if !r.lines {
		return nil
	}
	dir := filepath.Join(r.top, modules)
	if !codetree.Exists(dir) {
		return nil
	}
	packages, err := visible(dir, "")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		if _, ok := r.lookup(modules + "/" + name); !ok && (r.needs != nil || !packages[name]) {
			return r.stray(modules + "/" + name)
		}
	}
	return nil
}

func (r *record) stray(key string) error {
	return fmt.Errorf("%s is there and not on %s's list (%s): an installation is under way, or was cut off", filepath.Join(r.top, key), r.by, r.file)
}

// signs are what an installer changes while it is at work, in a project's folder.
var signs = []string{
	"package-lock.json", modules, "yarn.lock", ".yarn/install-state.gz", "bun.lock", modules + "/.bun",
	"pnpm-lock.yaml", modules + "/.pnpm", modules + "/.modules.yaml",
}

// listed is the newest change by which an installation in a project shows while it is under way.
func listed(top string) (newest time.Time) {
	for _, p := range signs {
		if fi, err := os.Lstat(filepath.Join(top, filepath.FromSlash(p))); err == nil {
			if at := codetree.ChangeTime(fi); at.After(newest) {
				newest = at
			}
		}
	}
	return newest
}
