// Package npm reads roots of kind "npm": a package that npm installed into a node_modules folder, or a whole project with
// what is installed for it. It tells which version is there, whether it is what npm's own list says, and since when.
//
// Call [New] first; the zero [Config] is the default. [Source] fulfils witness.Source, witness.Observer and
// witness.Dated.
//
// A root that names a package (Package: "@acme/wire") is that package: Dirs are its own folder, the node_modules folder, or
// the folder that holds node_modules; the first that has the package counts. A root without one is a project: each of
// Dirs, the first of which holds its package.json.
//
// The identity is the version and a digest. For a package the digest is over package.json, the integrity that npm keeps
// for it in node_modules/.package-lock.json (where npm keeps that list; a global installation has none), and the content
// of its code files. For a project it is over package.json, the whole of that list, and the content of the project's own
// code files, those of the root's modules (all of them where a module is the project's name). Code files are told by
// their ending; logs, caches, hidden folders and nested node_modules change nothing. The same content installed again is
// the same tree, whatever its times.
//
// It refuses to guess: a package set aside by npm (".wire-Ab3dEf9h"), one without package.json, one whose version is not
// that of npm's list, and a project with a package of its list missing or of another version are unknown with the
// reason, because an installation is under way or was cut off. So are a package that is a link to a folder elsewhere,
// which is declared as a root of its own, a project whose node_modules was filled by another installer, and a root with
// more files or bytes than the bound.
package npm

import (
	"context"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// Kind is the kind of root that this package reads.
const Kind = "npm"

// Config bounds a [Source]. The zero value is the default.
type Config struct {
	// MaxFiles bounds the entries that are looked at for one identity, code or not; zero means 50000. With more the
	// identity is unknown.
	MaxFiles int
	// MaxBytes bounds the content that is read for one identity; zero means 256 MiB. With more the identity is unknown.
	MaxBytes int64
	// Now reads the clock; nil means the host's.
	Now func() stamp.Time
}

// Source reads what npm installed. It holds nothing between calls and may be used concurrently.
type Source struct{ cfg Config }

var (
	_ witness.Source   = (*Source)(nil)
	_ witness.Observer = (*Source)(nil)
	_ witness.Dated    = (*Source)(nil)
)

// New checks the configuration and returns a Source.
func New(cfg Config) (*Source, error) {
	var errs []error
	if cfg.MaxFiles < 0 {
		errs = append(errs, fmt.Errorf("configure the npm source: MaxFiles is %d; it must not be negative", cfg.MaxFiles))
	}
	if cfg.MaxBytes < 0 {
		errs = append(errs, fmt.Errorf("configure the npm source: MaxBytes is %d; it must not be negative", cfg.MaxBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cfg.MaxFiles == 0 {
		cfg.MaxFiles = 50000
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 256 << 20
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

// LastChange implements [witness.Source]: the newest change of a code file, of a folder that holds
// one, of package.json, or of npm's list.
func (s *Source) LastChange(ctx context.Context, r witness.Root) (stamp.Time, error) {
	o, err := s.Observe(ctx, r)
	if err != nil {
		return stamp.Time{}, err
	}
	return o.Changed, o.NoSignal
}

// Observe implements [witness.Observer].
func (s *Source) Observe(ctx context.Context, r witness.Root) (witness.Observation, error) {
	o, _, err := codetree.Observe(ctx, r, s.cfg.Now, s.read)
	return o, err
}

// InForce implements [witness.Dated]. The moment is the newest
// change of anything that the identity is read from, so an update that was still writing is not dated too early; a later
// touch makes it younger, and the date is then of no use rather than wrong.
func (s *Source) InForce(ctx context.Context, r witness.Root) (witness.Identity, stamp.Time, error) {
	o, look, err := codetree.Observe(ctx, r, s.cfg.Now, s.read)
	if err != nil || !o.Identity.Known() {
		return o.Identity, stamp.Time{}, err
	}
	return o.Identity, stamp.Wall(look.Since, 0), nil
}
