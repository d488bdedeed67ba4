// Package jar reads roots of kind "jar": the archives and classes from which a Java virtual machine loads, one archive or a
// folder of a class path.
//
// Call [New] first; the zero [Config] is the default. [Source] fulfils witness.Source, witness.Observer and
// witness.Dated. Dirs are folders. Package names the archives that are meant, as a file name or a pattern
// ("acme-wire-*.jar"); without it every archive (.jar, .war, .ear) below the folders counts, and the .class files of the
// root's modules. An archive that is reached through a link counts with the link.
//
// The identity is a digest over the names and the content of these files, the manifest included; where there is one
// archive, the version of its manifest (Implementation-Version, else Bundle-Version) stands before it. The same archives
// put there again are the same tree, whatever their times; logs and other files beside them change nothing, and neither
// do hidden folders.
//
// It refuses to guess: an archive without its directory, which stands at the end, is half copied or damaged, and the
// identity is unknown with that reason. So is a root without any archive or class, and one with more files or bytes than
// the bound.
package jar

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
const Kind = "jar"

// Config bounds a [Source]. The zero value is the default.
type Config struct {
	// MaxFiles bounds the entries that are looked at for one identity, code or not; zero means 50000. With more the
	// identity is unknown.
	MaxFiles int
	// MaxBytes bounds the content that is read for one identity; zero means 1024 MiB. With more the identity is unknown.
	MaxBytes int64
	// Now reads the clock; nil means the host's.
	Now func() stamp.Time
}

// Source reads archives and classes. It holds nothing between calls and may be used concurrently.
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
		errs = append(errs, fmt.Errorf("configure the jar source: MaxFiles is %d; it must not be negative", cfg.MaxFiles))
	}
	if cfg.MaxBytes < 0 {
		errs = append(errs, fmt.Errorf("configure the jar source: MaxBytes is %d; it must not be negative", cfg.MaxBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cfg.MaxFiles == 0 {
		cfg.MaxFiles = 50000
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 1024 << 20
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

// LastChange implements [witness.Source]: the newest change of an archive or class, or of a folder
// that holds one.
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
