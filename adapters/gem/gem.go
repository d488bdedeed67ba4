// Package gem reads roots of kind "gem": a gem that RubyGems or Bundler installed into a gem home. It tells which versions
// are there, what their code is, and since when.
//
// Call [New] first; the zero [Config] is the default. [Source] fulfils witness.Source, witness.Observer and
// witness.Dated. A root names the gem in Package; Dirs are gem homes, the folders that hold "specifications" and "gems"
// (gem env home; vendor/bundle/ruby/VERSION for Bundler). All of them count, as they do for Ruby.
//
// Several versions of a gem may be installed beside each other, and the program's own lock decides which is loaded. All of
// them are the identity, therefore: the versions, and a digest over each gemspec and the content of each code file, which
// are told by their ending or lie in bin or exe, and of the native extensions. Logs and other files beside them change
// nothing. The same content installed again is the same tree, whatever its times.
//
// It refuses to guess: a gemspec without its folder, and a folder without its gemspec, which RubyGems writes last, are
// unknown with the reason, because an installation is under way or was cut off. So is a root with more files or bytes
// than the bound. Gems that Bundler takes from git or from a path have no gemspec there: such a folder is declared as a
// root of kind "git" or "folder".
package gem

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
const Kind = "gem"

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

// Source reads installed gems. It holds nothing between calls and may be used concurrently.
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
		errs = append(errs, fmt.Errorf("configure the gem source: MaxFiles is %d; it must not be negative", cfg.MaxFiles))
	}
	if cfg.MaxBytes < 0 {
		errs = append(errs, fmt.Errorf("configure the gem source: MaxBytes is %d; it must not be negative", cfg.MaxBytes))
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

// LastChange implements [witness.Source]: the newest change of a gemspec, of a code file, or of a
// folder that holds one.
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
