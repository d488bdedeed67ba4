// Package folder reads roots of kind "folder": code that was put into place without git or a package, by an archive
// or a file copy. All that can be told of it is what the disk tells: which code files there are, how large, and when
// each was modified.
//
// Call [New] first; the zero [Config] is the default. [Source] fulfils witness.Source and witness.Observer.
//
// The identity is the digest of a manifest: path, size and modification time of every code file of the root's
// modules. A file that was written again with the same content is another tree, then; one whose content was replaced
// at equal size with its time set back is not. Hidden folders, compiled caches and installed dependencies
// (node_modules, site-packages) are left out; links are told by their target's name and not followed, except when a
// root's folder itself is one, as where releases are switched by a link. With more files than the bound the identity
// is unknown, rather than slow or cut off. There is no past: what a root held at a death is known only if the run's
// side recorded it.
package folder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// Kind is the kind of root that this package reads.
const Kind = "folder"

// Config bounds a [Source]. The zero value is the default.
type Config struct {
	// MaxFiles bounds the entries that are looked at, code or not; zero means 50000. With more the identity is unknown.
	MaxFiles int
	// Now reads the clock; nil means the host's.
	Now func() stamp.Time
}

// Source reads plain folders. It holds nothing between calls and may be used concurrently.
type Source struct{ cfg Config }

var (
	_ witness.Source   = (*Source)(nil)
	_ witness.Observer = (*Source)(nil)
)

// New checks the configuration and returns a Source.
func New(cfg Config) (*Source, error) {
	if cfg.MaxFiles < 0 {
		return nil, fmt.Errorf("configure the folder source: MaxFiles is %d; it must not be negative", cfg.MaxFiles)
	}
	if cfg.MaxFiles == 0 {
		cfg.MaxFiles = 50000
	}
	if cfg.Now == nil {
		cfg.Now = host.Now
	}
	return &Source{cfg: cfg}, nil
}

// Identify implements [witness.Source].
func (s *Source) Identify(ctx context.Context, r witness.Root) (witness.Identity, error) {
	o, err := s.Observe(ctx, r)
	return o.Identity, err
}

// LastChange implements [witness.Source]: the newest change of a code file, of a folder that holds code, since that is
// where a deletion shows, or of a declared binding.
func (s *Source) LastChange(ctx context.Context, r witness.Root) (stamp.Time, error) {
	o, err := s.Observe(ctx, r)
	if err != nil {
		return stamp.Time{}, err
	}
	return o.Changed, o.NoSignal
}

// Observe implements [witness.Observer].
func (s *Source) Observe(ctx context.Context, r witness.Root) (witness.Observation, error) {
	at := s.cfg.Now()
	m, err := s.read(ctx, r)
	if ended := ctx.Err(); ended != nil {
		return witness.Observation{}, fmt.Errorf("observe root %s: %w", r.Name, ended)
	}
	if err != nil {
		return witness.Observation{
			Identity: witness.Identity{Root: r.Name, Kind: r.Kind, At: at, Unknown: err.Error()},
			NoSignal: fmt.Errorf("read the last change of root %s: %w", r.Name, err),
		}, nil
	}
	return witness.Observation{
		Identity: witness.Identity{Root: r.Name, Kind: r.Kind, At: at, Revision: hex.EncodeToString(m.digest.Sum(nil)), Bindings: codetree.Bindings(r)},
		Changed:  stamp.Wall(m.newest, 0),
	}, nil
}

// manifest is gathered while walking; only its digest and the newest time are kept.
type manifest struct {
	digest hash.Hash
	newest time.Time
	files  int
	seen   int
	most   int
	above  map[string]bool // folders that were looked at for a deletion
}

// read walks the root's folders. Its errors are reasons for people.
func (s *Source) read(ctx context.Context, r witness.Root) (*manifest, error) {
	if len(r.Dirs) == 0 {
		return nil, errors.New("the root has no folder")
	}
	r = r.Live()
	m := &manifest{digest: sha256.New(), most: s.cfg.MaxFiles, above: map[string]bool{}}
	for i, dir := range r.Dirs {
		real, err := filepath.EvalSymlinks(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("folder %s does not exist", dir)
		}
		if err != nil {
			return nil, fmt.Errorf("folder %s cannot be read: %w", dir, err)
		}
		if err := m.walk(ctx, real, i, codetree.NewMatcher(r, dir, codetree.Exists)); err != nil {
			return nil, err
		}
		if real != filepath.Clean(dir) {
			// A release switched by a link: the switch changes the link's own folder and nothing below.
			m.link(dir, real)
		}
	}
	// A library outside the folders, or without the ending of one, still belongs to the root when it is declared.
	for _, b := range codetree.Bindings(r) {
		if fi, err := os.Stat(b.Path); err == nil {
			m.take(fi)
		}
	}
	// An empty manifest would make every emptied folder the same healthy tree.
	if m.files == 0 {
		return nil, fmt.Errorf("there is no code of the root's modules in %s", strings.Join(r.Dirs, ", "))
	}
	return m, nil
}

// left are the names of folders whose content is not the root's own code.
var left = map[string]bool{"__pycache__": true, "node_modules": true, "site-packages": true}

func (m *manifest) walk(ctx context.Context, dir string, index int, match *codetree.Matcher) error {
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && name != dir:
			return nil // removed while we walked; its folder's time tells
		case err != nil:
			return fmt.Errorf("%s cannot be read: %w", name, err)
		}
		// The bound is on what is looked at: a folder of a million data files is slow whether they count or not.
		if m.seen++; m.seen > m.most {
			return fmt.Errorf("the root holds more than %d files", m.most)
		}
		if e.IsDir() {
			if name != dir && (left[e.Name()] || strings.HasPrefix(e.Name(), ".")) {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return fmt.Errorf("%s lies outside %s: %w", name, dir, err)
		}
		rel = filepath.ToSlash(rel)
		if !match.Match(rel) {
			return nil
		}
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", name, err)
		}
		m.add(dir, name, rel, index, fi)
		return nil
	})
}

func (m *manifest) add(top, name, rel string, index int, fi fs.FileInfo) {
	target := ""
	if fi.Mode()&fs.ModeSymlink != 0 {
		target, _ = os.Readlink(name) // a link that vanished reads as one without target
	}
	fmt.Fprintf(m.digest, "%d\x00%s\x00%d\x00%d\x00%s\x00", index, rel, fi.Size(), fi.ModTime().UnixNano(), target)
	m.files++
	m.take(fi)
	// A deletion leaves no file to look at, but its folder changes, and that of a whole folder the one above. A file that
	// is no code and comes or goes beside the code moves that time as well, which delays and decides nothing.
	for dir := filepath.Dir(name); !m.above[dir]; dir = filepath.Dir(dir) {
		m.above[dir] = true
		if fi, err := os.Lstat(dir); err == nil {
			m.take(fi)
		}
		if dir == top {
			break
		}
	}
}

// link adds a folder that is reached through a link.
func (m *manifest) link(dir, real string) {
	fmt.Fprintf(m.digest, "link\x00%s\x00", real)
	m.since(codetree.LinkChange(dir))
}

func (m *manifest) take(fi fs.FileInfo) {
	// Not the modification time: an unpacked archive may carry one of the future, and would never be at rest.
	m.since(codetree.ChangeTime(fi))
}

func (m *manifest) since(at time.Time) {
	if at.After(m.newest) {
		m.newest = at
	}
}
