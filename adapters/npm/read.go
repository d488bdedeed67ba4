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
	folder, err := find(live)
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
	m, err := readManifest(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return codetree.Look{}, fmt.Errorf("package %s has no package.json in %s: it is half installed", live.Package, folder)
	}
	if err != nil {
		return codetree.Look{}, err
	}
	e, listed, err := entryOf(folder)
	switch {
	case err != nil:
		return codetree.Look{}, err
	case listed && !e.Link && e.Version != m.Version:
		return codetree.Look{}, fmt.Errorf("package %s is version %s and npm's list says %s: an installation is under way, or was cut off", live.Package, m.Version, e.Version)
	}
	c.Fact("package.json", string(m.text))
	c.Fact("integrity", e.Integrity)
	if err := c.Seen(filepath.Join(folder, "package.json")); err != nil {
		return codetree.Look{}, err
	}
	// Once its package.json is known the folder is read where it is: pnpm links to its own store.
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

// find is the folder of the root's package.
func find(live witness.Root) (string, error) {
	name := live.Package
	parts := strings.Split(name, "/")
	if len(parts) > 2 || (len(parts) == 2) != strings.HasPrefix(name, "@") || slices.ContainsFunc(parts, func(p string) bool { return p == "" || p[0] == '.' }) || strings.ContainsRune(name, '\\') {
		return "", fmt.Errorf("%q is no name of a package: want NAME or @SCOPE/NAME", name)
	}
	for _, dir := range live.Dirs {
		// Its own folder, also where it is not below a node_modules.
		if m, err := readManifest(dir); err == nil && m.Name == name {
			return dir, nil
		}
		if under(dir, name) {
			if codetree.Exists(dir) {
				return dir, nil
			}
			continue
		}
		holder := dir
		if filepath.Base(dir) != modules {
			holder = filepath.Join(dir, modules)
		}
		folder := filepath.Join(holder, filepath.FromSlash(name))
		fi, err := os.Lstat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if aside, err := setAside(filepath.Dir(folder), filepath.Base(folder)); err == nil && aside != "" {
				return "", fmt.Errorf("package %s has been set aside (%s) and not been put back: an installation is under way, or was cut off", name, aside)
			}
			continue
		case err != nil:
			return "", fmt.Errorf("folder %s cannot be read: %w", folder, err)
		case fi.Mode()&fs.ModeSymlink != 0:
			return folder, within(folder, holder, name)
		}
		return folder, nil
	}
	return "", fmt.Errorf("package %s is not installed in %s", name, strings.Join(live.Dirs, ", "))
}

// under reports that a folder is where a package of that name is installed.
func under(dir, name string) bool {
	return strings.HasSuffix(filepath.ToSlash(dir), "/"+modules+"/"+name)
}

// within refuses a package that is a link to a folder outside of its node_modules: npm makes it for a folder that
// somebody works on, and the package's version would stay the same through every edit.
func within(folder, holder, name string) error {
	to, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return fmt.Errorf("folder %s cannot be read: %w", folder, err)
	}
	real, err := filepath.EvalSymlinks(holder)
	if err != nil {
		return fmt.Errorf("folder %s cannot be read: %w", holder, err)
	}
	if rel, err := filepath.Rel(real, to); err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("package %s is a link, its code is in %s; declare that folder as a root", name, to)
	}
	return nil
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
	if err := dependencies(ctx, c, top); err != nil {
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
	return codetree.Look{Revision: version + "@" + c.Sum(), Changed: listed(top), Since: c.Newest()}, nil
}

// dependencies adds what is installed for a project, after holding npm's list against the disk.
func dependencies(ctx context.Context, c *codetree.Content, top string) error {
	dir := filepath.Join(top, modules)
	if !codetree.Exists(dir) {
		c.Fact("list", "")
		return nil
	}
	aside, err := setAside(dir, "")
	if err != nil {
		return err
	}
	if aside != "" {
		return fmt.Errorf("a package has been set aside (%s): an installation is under way, or was cut off", aside)
	}
	l, err := readList(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds no %s: an installation is under way, or another installer than npm filled it", dir, listName)
	}
	if err != nil {
		return err
	}
	c.Fact("list", string(l.text))
	if err := c.Seen(l.file); err != nil {
		return err
	}
	for key, e := range l.Packages {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// What a link leads to is listed by the place where it is, and is no installed package.
		if e.Link || !strings.HasPrefix(key, modules+"/") {
			continue
		}
		if !filepath.IsLocal(filepath.FromSlash(key)) {
			return fmt.Errorf("npm's list (%s) names %q, which lies elsewhere", l.file, key)
		}
		if err := c.Visit(); err != nil {
			return err
		}
		m, err := readManifest(filepath.Join(top, filepath.FromSlash(key)))
		switch {
		case errors.Is(err, fs.ErrNotExist) && e.Optional:
			// A package for another platform is listed and not there.
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is on npm's list and not there: an installation is under way, or was cut off", key)
		case err != nil:
			return err
		case m.Version != e.Version:
			return fmt.Errorf("%s is version %s and npm's list says %s: an installation is under way, or was cut off", key, m.Version, e.Version)
		}
	}
	return nil
}

// listed is the newest change by which an installation in a project shows while it is under way.
func listed(top string) (newest time.Time) {
	for _, p := range []string{"package-lock.json", modules} {
		if fi, err := os.Lstat(filepath.Join(top, p)); err == nil {
			if at := codetree.ChangeTime(fi); at.After(newest) {
				newest = at
			}
		}
	}
	return newest
}
