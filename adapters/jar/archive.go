package jar

import (
	"archive/zip"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/witness"
)

// reading is one identity under way.
type reading struct {
	content *codetree.Content
	name    string // the pattern of the archives that count, empty for all
	// versions are those of the manifests, empty for an archive that states none.
	versions []string
}

// read digests the archives and classes of the root's folders.
func (s *Source) read(ctx context.Context, live witness.Root) (codetree.Look, error) {
	if strings.ContainsAny(live.Package, `/\`) {
		return codetree.Look{}, fmt.Errorf("%q is no file name: declare its folder as the root's, and here the name or a pattern", live.Package)
	}
	if _, err := path.Match(live.Package, ""); err != nil {
		return codetree.Look{}, fmt.Errorf("%q is no pattern of file names: %w", live.Package, err)
	}
	r := &reading{content: codetree.NewContent(codetree.Limits{Files: s.cfg.MaxFiles, Bytes: s.cfg.MaxBytes}), name: live.Package}
	for i, dir := range live.Dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return codetree.Look{}, unreadable(dir, err)
		}
		if err := r.walk(ctx, real, fmt.Sprintf("%d/", i), codetree.NewMatcher(live, dir, codetree.Exists)); err != nil {
			return codetree.Look{}, err
		}
	}
	if r.content.Files() == 0 {
		what := "no archive and no class of the root's modules"
		if r.name != "" {
			what = "no archive " + r.name
		}
		return codetree.Look{}, fmt.Errorf("there is %s in %s", what, strings.Join(live.Dirs, ", "))
	}
	look := codetree.Look{Revision: r.content.Sum(), Since: r.content.Newest()}
	if len(r.versions) == 1 && r.versions[0] != "" {
		look.Revision = r.versions[0] + "@" + look.Revision
	}
	return look, nil
}

func (r *reading) walk(ctx context.Context, dir, as string, match *codetree.Matcher) error {
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return unreadable(name, err)
		}
		if err := r.content.Visit(); err != nil {
			return err
		}
		if e.IsDir() {
			if name != dir && strings.HasPrefix(e.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return fmt.Errorf("%s lies outside %s: %w", name, dir, err)
		}
		rel = filepath.ToSlash(rel)
		switch {
		case r.archive(e.Name()):
			r.content.Above(name, dir)
			return r.add(ctx, name, as+rel)
		case r.name == "" && path.Ext(rel) == ".class" && e.Type().IsRegular() && match.Match(rel):
			r.content.Above(name, dir)
			return r.content.File(ctx, name, as+rel, nil)
		}
		return nil
	})
}

// archive reports that a file of this name counts.
func (r *reading) archive(name string) bool {
	if r.name != "" {
		ok, err := path.Match(r.name, name)
		return err == nil && ok
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".jar", ".war", ".ear":
		return true
	}
	return false
}

// add digests one archive and takes the version out of its manifest.
func (r *reading) add(ctx context.Context, name, as string) error {
	return r.content.File(ctx, name, as, func(f io.ReaderAt, size int64) error {
		// The directory is the last thing that is written: without it the archive is not whole.
		z, err := zip.NewReader(f, size)
		if err != nil {
			return fmt.Errorf("archive %s is half written or damaged: %w", name, err)
		}
		r.versions = append(r.versions, version(z))
		return nil
	})
}

// maxManifest bounds how much of a manifest is read: its main part comes first.
const maxManifest = 64 << 10

// version is what the main part of the manifest states, empty when it cannot be read: it is there for people, and the
// digest tells the trees apart.
func version(z *zip.Reader) string {
	f, err := z.Open("META-INF/MANIFEST.MF")
	if err != nil {
		return ""
	}
	defer f.Close()
	bundle := ""
	lines := bufio.NewScanner(io.LimitReader(f, maxManifest))
	for lines.Scan() && strings.TrimSpace(lines.Text()) != "" {
		key, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimSpace(value); strings.ToLower(key) {
		case "implementation-version":
			return value
		case "bundle-version":
			bundle = value
		}
	}
	return bundle
}

func unreadable(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist", name)
	}
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s cannot be read: %w", name, err)
}
