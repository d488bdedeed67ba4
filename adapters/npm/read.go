package npm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/witness"
)

// read tells what the root holds: one package, or a project.
func (s *Source) read(ctx context.Context, live witness.Root) (codetree.Look, error) {
	c := codetree.NewContent(codetree.Limits{Files: s.cfg.MaxFiles, Bytes: s.cfg.MaxBytes})
	if live.Package != "" {
		return installed(ctx, c, live)
	}
	return project(ctx, c, live)
}

// installed reads the package that the root names.
func installed(ctx context.Context, c *codetree.Content, live witness.Root) (codetree.Look, error) {
	folder, held, err := find(live)
	if err != nil {
		return codetree.Look{}, err
	}
	aside, err := setAside(filepath.Dir(folder), filepath.Base(folder))
	if err != nil {
		return codetree.Look{}, err
	}
	if aside != "" {
		return codetree.Look{}, fmt.Errorf("package %s has been set aside (%s): an installation is under way, or was cut off", live.Package, aside)
	}
	r, key, _, err := recordOf(filepath.Dir(folder), folder)
	if err != nil {
		return codetree.Look{}, err
	}
	if held {
		if err := linkedAway(folder, r, live.Package); err != nil {
			return codetree.Look{}, err
		}
	}
	m, err := readManifest(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return codetree.Look{}, fmt.Errorf("package %s has no package.json in %s: it is half installed", live.Package, folder)
	}
	if err != nil {
		return codetree.Look{}, err
	}
	e, err := r.entryOf(key, m)
	if err != nil {
		return codetree.Look{}, err
	}
	c.Fact("package.json", string(m.text))
	c.Fact("integrity", e.integrity)
	if err := c.Seen(filepath.Join(folder, "package.json")); err != nil {
		return codetree.Look{}, err
	}
	// Once its package.json is known the folder is read where it is: pnpm and bun link to their own store.
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return codetree.Look{}, fmt.Errorf("folder %s cannot be read: %w", folder, err)
	}
	if err := c.Tree(ctx, real, "", codetree.IsCode, modules); err != nil {
		return codetree.Look{}, err
	}
	look := codetree.Look{Revision: m.Version + "@" + c.Sum(), Since: c.Newest()}
	if link := codetree.LinkChange(folder); link.After(look.Since) {
		look.Since = link
	}
	return look, nil
}

// find is the folder of the root's package. held says that it was found in a node_modules folder, and not declared itself.
func find(live witness.Root) (folder string, held bool, err error) {
	name := live.Package
	parts := strings.Split(name, "/")
	if len(parts) > 2 || (len(parts) == 2) != strings.HasPrefix(name, "@") || slices.ContainsFunc(parts, func(p string) bool { return p == "" || p[0] == '.' }) || strings.ContainsRune(name, '\\') {
		return "", false, fmt.Errorf("%q is no name of a package: want NAME or @SCOPE/NAME", name)
	}
	var why error
	for _, dir := range live.Dirs {
		// Its own folder, also where it is not below a node_modules.
		if m, err := readManifest(dir); err == nil && m.Name == name {
			return dir, false, nil
		}
		if under(dir, name) {
			if codetree.Exists(dir) {
				return dir, false, nil
			}
			continue
		}
		holder := dir
		if filepath.Base(dir) != modules {
			holder = filepath.Join(dir, modules)
		}
		folder := filepath.Join(holder, filepath.FromSlash(name))
		_, err := os.Lstat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if aside, err := setAside(filepath.Dir(folder), filepath.Base(folder)); err == nil && aside != "" {
				return "", false, fmt.Errorf("package %s has been set aside (%s) and not been put back: an installation is under way, or was cut off", name, aside)
			}
			if err := plugAndPlay(filepath.Dir(holder)); err != nil && why == nil {
				why = err
			}
			continue
		case err != nil:
			return "", false, fmt.Errorf("folder %s cannot be read: %w", folder, err)
		}
		return folder, true, nil
	}
	if why != nil {
		return "", false, why
	}
	return "", false, fmt.Errorf("package %s is not installed in %s", name, strings.Join(live.Dirs, ", "))
}

// under reports that a folder is where a package of that name is installed.
func under(dir, name string) bool {
	return strings.HasSuffix(filepath.ToSlash(dir), "/"+modules+"/"+name)
}

// linkedAway refuses a package that is a link to a folder outside of what is installed: npm makes it for a folder that
// somebody works on, and the package's version would stay the same through every edit. Pnpm and bun link to a store, in
// the node_modules of the whole workspace or, for all projects of the machine, elsewhere.
func linkedAway(folder string, r *record, name string) error {
	if fi, err := os.Lstat(folder); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return nil // what cannot be read is seen when it is
	}
	to, err := filepath.EvalSymlinks(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("package %s is a link to nothing: an installation is under way, or was cut off", name)
	}
	if err != nil {
		return fmt.Errorf("folder %s cannot be read: %w", folder, err)
	}
	stores := []string{filepath.Dir(folder)}
	if strings.HasPrefix(name, "@") {
		stores[0] = filepath.Dir(stores[0])
	}
	if r != nil {
		stores = append(stores, filepath.Join(r.top, modules), r.store)
	}
	for _, store := range stores {
		real, err := filepath.EvalSymlinks(store)
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(real, to); err == nil && filepath.IsLocal(rel) {
			return nil
		}
	}
	return fmt.Errorf("package %s is a link, its code is in %s; declare that folder as a root", name, to)
}

// project reads the project in the root's folders.
func project(ctx context.Context, c *codetree.Content, live witness.Root) (codetree.Look, error) {
	top := live.Dirs[0]
	m, err := readManifest(top)
	if errors.Is(err, fs.ErrNotExist) {
		return codetree.Look{}, fmt.Errorf("folder %s has no package.json; of an installed package say the name (package=P)", top)
	}
	if err != nil {
		return codetree.Look{}, err
	}
	c.Fact("package.json", string(m.text))
	if err := c.Seen(filepath.Join(top, "package.json")); err != nil {
		return codetree.Look{}, err
	}
	changed, err := dependencies(ctx, c, top)
	if err != nil {
		return codetree.Look{}, err
	}
	for i, dir := range live.Dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return codetree.Look{}, fmt.Errorf("folder %s cannot be read: %w", dir, err)
		}
		counts := codetree.NewMatcher(live, dir, codetree.Exists).Match
		if slices.Contains(live.Modules, m.Name) {
			counts = codetree.IsCode
		}
		if err := c.Tree(ctx, real, fmt.Sprintf("%d/", i), counts, modules); err != nil {
			return codetree.Look{}, err
		}
	}
	version := m.Version
	if version == "" {
		version = "0" // a project that is never published needs none
	}
	return codetree.Look{Revision: version + "@" + c.Sum(), Changed: changed, Since: c.Newest()}, nil
}

// dependencies adds what is installed for a project, after holding the installer's list against the disk. changed is the
// newest change by which an installation shows while it is under way.
func dependencies(ctx context.Context, c *codetree.Content, top string) (changed time.Time, err error) {
	changed = listed(top)
	dir := filepath.Join(top, modules)
	aside, err := setAside(dir, "")
	if err != nil {
		return changed, err
	}
	if aside != "" {
		return changed, fmt.Errorf("a package has been set aside (%s): an installation is under way, or was cut off", aside)
	}
	r, _, why, err := recordOf(top, top)
	switch {
	case err != nil:
		return changed, err
	case why != nil:
		return changed, why
	case r == nil:
		c.Fact("list", "")
		return changed, nil
	}
	if r.top != top {
		if at := listed(r.top); at.After(changed) {
			changed = at
		}
	}
	return changed, r.hold(ctx, c)
}
