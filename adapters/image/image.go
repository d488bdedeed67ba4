// Package image reads roots of kind "image": code that comes in a container image, where a file says which. A deploy step
// writes the file, or it is part of the image.
//
// Call [New] first; the zero [Config] is the default. [Source] fulfils witness.Source, witness.Observer and
// witness.Dated. Package is the file: an absolute path, or one relative to the root's folders, of which the first that
// has it counts.
//
// The identity is the digest that the file names (sha256:... or sha512:...), alone or within a reference or other text
// ("registry.example/acme@sha256:..."). Only the digest counts: the same one written again, under another tag or with
// another date beside it, is the same tree; and no other file counts at all.
//
// It refuses to guess: a file that is missing, empty or half written names no digest, one that names several leaves open
// which is the image's, and one of more than 64 KiB is none of this kind; the identity is then unknown with the reason.
package image

import (
	"context"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// Kind is the kind of root that this package reads.
const Kind = "image"

// Config is the configuration of a [Source]. The zero value is the default.
type Config struct {
	// Now reads the clock; nil means the host's.
	Now func() stamp.Time
}

// Source reads files that name an image. It holds nothing between calls and may be used concurrently.
type Source struct{ cfg Config }

var (
	_ witness.Source   = (*Source)(nil)
	_ witness.Observer = (*Source)(nil)
	_ witness.Dated    = (*Source)(nil)
)

// New checks the configuration and returns a Source.
func New(cfg Config) (*Source, error) {
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

// LastChange implements [witness.Source]: the change of the file, or of a link on the way to it.
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

// InForce implements [witness.Dated]. The moment is the change time of the file, or of a link on the way
// to it: what stands there now was there by then.
func (s *Source) InForce(ctx context.Context, r witness.Root) (witness.Identity, stamp.Time, error) {
	o, look, err := codetree.Observe(ctx, r, s.cfg.Now, s.read)
	if err != nil || !o.Identity.Known() {
		return o.Identity, stamp.Time{}, err
	}
	return o.Identity, stamp.Wall(look.Since, 0), nil
}
