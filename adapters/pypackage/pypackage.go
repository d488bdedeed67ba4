// Package pypackage reads roots of kind "pypackage": a Python distribution that an installer put into a site-packages
// folder. It tells which version is installed, which of its files no longer are what was installed, and since when.
//
// Call [New] first; the zero [Config] is the default. [Source] fulfils witness.Source, witness.Observer and
// witness.Dated. A root names the distribution in Package and the site-packages folders in Dirs; the first folder that
// has the distribution counts, as it does for the interpreter.
//
// The identity is the version and the digest of RECORD, the installer's list of files. Its dirty part are listed code
// files of the root's modules that are gone, or whose size or content is not the listed one; content is read only where
// the file is newer than RECORD, so that an untouched installation costs one stat for each file. Files that RECORD does
// not list, and compiled caches, change nothing.
//
// It refuses to guess: a distribution whose dist-info is missing, there twice, or set aside by pip ("~ame") is unknown
// with the reason, and so is one without RECORD (a distribution's own packaging, or the old egg-info) and an editable
// installation, whose code lies elsewhere: that folder is declared as a root of its own, mostly of kind "git".
package pypackage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// Kind is the kind of root that this package reads.
const Kind = "pypackage"

// Config bounds a [Source]. The zero value is the default.
type Config struct {
	// MaxFiles bounds the files of a distribution; zero means 20000. With more the identity is unknown.
	MaxFiles int
	// Now reads the clock; nil means the host's.
	Now func() stamp.Time
}

// Source reads installed distributions. It holds nothing between calls and may be used concurrently.
type Source struct{ cfg Config }

var (
	_ witness.Source   = (*Source)(nil)
	_ witness.Observer = (*Source)(nil)
	_ witness.Dated    = (*Source)(nil)
)

// New checks the configuration and returns a Source.
func New(cfg Config) (*Source, error) {
	if cfg.MaxFiles < 0 {
		return nil, fmt.Errorf("configure the package source: MaxFiles is %d; it must not be negative", cfg.MaxFiles)
	}
	if cfg.MaxFiles == 0 {
		cfg.MaxFiles = 20000
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

// LastChange implements [witness.Source]. The signals are the dist-info folder, which every installer writes last, what
// pip has set aside, the files that are no longer what was installed, and the declared bindings. While the distribution
// is half there no signal is read: an installer is at work, or was cut off.
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
	d, err := find(r)
	var dirty []witness.File
	if err == nil {
		dirty, err = d.dirty(ctx, r, s.cfg.MaxFiles)
	}
	if ended := ctx.Err(); ended != nil {
		return witness.Observation{}, fmt.Errorf("observe package %s: %w", r.Package, ended)
	}
	if err != nil {
		return witness.Observation{
			Identity: witness.Identity{Root: r.Name, Kind: r.Kind, At: at, Unknown: err.Error()},
			NoSignal: fmt.Errorf("read the last change of package %s: %w", r.Package, err),
		}, nil
	}
	changed := d.lastChange(r, dirty)
	if at := linked(r); at.After(changed) {
		changed = at
	}
	return witness.Observation{
		Identity: witness.Identity{Root: r.Name, Kind: r.Kind, At: at, Revision: d.revision(), Dirty: dirty, Bindings: codetree.Bindings(r)},
		Changed:  stamp.Wall(changed, 0),
	}, nil
}

// linked is when a symbolic link on the way to the root's folders last changed, zero without one.
func linked(r witness.Root) (at time.Time) {
	for _, d := range r.Live().Dirs {
		if t := codetree.LinkChange(d); t.After(at) {
			at = t
		}
	}
	return at
}

// InForce implements [witness.Dated]. The moment is the earliest change time in the dist-info folder: all of it was
// made by the installation, and a later touch of one file moves only that file's time.
func (s *Source) InForce(ctx context.Context, r witness.Root) (witness.Identity, stamp.Time, error) {
	id, err := s.Identify(ctx, r)
	// Without an identity there is nothing to date.
	if err != nil || !id.Known() {
		return id, stamp.Time{}, err
	}
	d, err := find(r)
	if err != nil {
		return id, stamp.Time{}, nil // it went away between the two looks: there is no date
	}
	since, err := d.since()
	if err != nil {
		return id, stamp.Time{}, nil
	}
	if at := linked(r); at.After(since) {
		since = at // an environment switched by a link is in force since the switch
	}
	return id, stamp.Wall(since, 0), nil
}

// since is the earliest change time in the dist-info folder.
func (d *dist) since() (time.Time, error) {
	entries, err := os.ReadDir(d.info)
	if err != nil {
		return time.Time{}, err
	}
	fi, err := os.Lstat(d.info)
	if err != nil {
		return time.Time{}, err
	}
	first := codetree.ChangeTime(fi)
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && codetree.ChangeTime(fi).Before(first) {
			first = codetree.ChangeTime(fi)
		}
	}
	return first, nil
}

// lastChange is the newest of the signals.
func (d *dist) lastChange(r witness.Root, dirty []witness.File) time.Time {
	var newest time.Time
	take := func(name string) bool {
		fi, err := os.Lstat(name)
		if err != nil {
			return false
		}
		if at := codetree.ChangeTime(fi); at.After(newest) {
			newest = at
		}
		return true
	}
	// The folder changes when any of its files comes or goes, RECORD when it is written again in place.
	take(d.info)
	take(filepath.Join(d.info, "RECORD"))
	for _, name := range d.aside {
		take(name)
	}
	// Of a file that is gone the nearest folder that is left tells: it changed with the deletion.
	for _, f := range dirty {
		name := filepath.Join(r.Live().Dirs[0], filepath.FromSlash(f.Path))
		for !take(name) && name != filepath.Dir(name) {
			name = filepath.Dir(name)
		}
	}
	for _, b := range codetree.Bindings(r) {
		take(b.Path)
	}
	return newest
}
