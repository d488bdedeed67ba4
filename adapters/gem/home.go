package gem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/witness"
)

// maxSpec bounds a gemspec. Those that list many files are some 100 KiB.
const maxSpec = 1 << 20

// name is what a gem may be called. It becomes part of paths.
var name = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// version is what stands behind a gem's name in that of its folder: a version, mostly alone, sometimes with a platform.
var version = regexp.MustCompile(`^[0-9][0-9A-Za-z.]*(-[A-Za-z0-9_.-]+)?$`)

// read digests all versions of the root's gem in its gem homes.
func (s *Source) read(ctx context.Context, live witness.Root) (codetree.Look, error) {
	if !name.MatchString(live.Package) {
		return codetree.Look{}, fmt.Errorf("the root names no gem: its package is %q", live.Package)
	}
	c := codetree.NewContent(codetree.Limits{Files: s.cfg.MaxFiles, Bytes: s.cfg.MaxBytes})
	var all []string
	for i, home := range live.Dirs {
		versions, err := installed(home, live.Package)
		if err != nil {
			return codetree.Look{}, err
		}
		for _, v := range versions {
			if err := add(ctx, c, home, fmt.Sprintf("%d/", i), live.Package+"-"+v); err != nil {
				return codetree.Look{}, err
			}
		}
		all = append(all, versions...)
	}
	if len(all) == 0 {
		return codetree.Look{}, fmt.Errorf("gem %s is not installed in %s", live.Package, strings.Join(live.Dirs, ", "))
	}
	return codetree.Look{Revision: strings.Join(all, ",") + "@" + c.Sum(), Since: c.Newest()}, nil
}

// installed are the versions of a gem in a home, sorted. One of which only half is there is an error.
func installed(home, gem string) ([]string, error) {
	specs, err := names(filepath.Join(home, "specifications"))
	if err != nil {
		return nil, err
	}
	code, err := names(filepath.Join(home, "gems"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, file := range specs {
		full, isSpec := strings.CutSuffix(file, ".gemspec")
		v, ours := versionOf(full, gem)
		if !isSpec || !ours {
			continue
		}
		// A name may itself end in what looks like a version ("acme-2"); the gemspec knows.
		text, err := codetree.ReadFile(filepath.Join(home, "specifications", file), maxSpec)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(text, []byte(`s.name = "`+gem+`"`)) {
			if bytes.Contains(text, []byte(`s.name = "`)) {
				continue
			}
			return nil, fmt.Errorf("gemspec %s does not name its gem: an installation is under way, or was cut off", file)
		}
		if !slices.Contains(code, full) {
			return nil, fmt.Errorf("gem %s has a gemspec and no folder in %s: an installation is under way, or was cut off", full, home)
		}
		out = append(out, v)
	}
	// RubyGems unpacks first and writes the gemspec last.
	for _, full := range code {
		if _, ours := versionOf(full, gem); ours && !slices.Contains(specs, full+".gemspec") {
			return nil, fmt.Errorf("gem %s has a folder and no gemspec in %s: an installation is under way, or was cut off", full, home)
		}
	}
	return out, nil
}

// versionOf is the version in a full name, when it is one of this gem's.
func versionOf(full, gem string) (string, bool) {
	v, ok := strings.CutPrefix(full, gem+"-")
	return v, ok && version.MatchString(v)
}

// names are what a folder holds, sorted. A home without the folder holds nothing.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("folder %s cannot be read: %w", dir, err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out, nil
}

// add digests one installed version: its gemspec, its code and its native extensions.
func add(ctx context.Context, c *codetree.Content, home, as, full string) error {
	spec := filepath.Join(home, "specifications", full+".gemspec")
	text, err := codetree.ReadFile(spec, maxSpec)
	if err != nil {
		return err
	}
	c.Fact(as+"gemspec "+full, string(installer.ReplaceAll(text, nil)))
	if err := c.Seen(spec); err != nil {
		return err
	}
	if err := c.Tree(ctx, filepath.Join(home, "gems", full), as+full+"/", isCode); err != nil {
		return err
	}
	// extensions/PLATFORM/ABI/FULL, for whichever interpreters it was built.
	built, err := filepath.Glob(filepath.Join(home, "extensions", "*", "*"))
	if err != nil {
		return fmt.Errorf("look for the extensions of gem %s: %w", full, err)
	}
	for _, abi := range built {
		dir := filepath.Join(abi, full)
		if !codetree.Exists(dir) {
			continue
		}
		if err := c.Tree(ctx, dir, as+"extensions/"+filepath.Base(filepath.Dir(abi))+"/"+filepath.Base(abi)+"/"+full+"/", isCode); err != nil {
			return err
		}
	}
	return nil
}

// installer is the line of a gemspec that says which RubyGems installed it. It is not the gem's.
var installer = regexp.MustCompile(`(?m)^\s*s\.installed_by_version = .*$`)

// isCode reports whether a file of a gem is code: by its ending, or as a command, which has none.
func isCode(rel string) bool {
	top, _, _ := strings.Cut(rel, "/")
	return codetree.IsCode(rel) || path.Ext(rel) == "" && (top == "bin" || top == "exe")
}
