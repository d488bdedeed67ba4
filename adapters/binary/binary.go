// Package binary reads roots of kind "binary": one program or native library. It tells one build of it from another.
//
// Call [New] first; the zero [Config] is the default. [Source] fulfils witness.Source, witness.Observer and
// witness.Dated. Package is the file: an absolute path, or one relative to the root's folders, of which the first that
// has it counts. Further libraries are declared as the root's bindings.
//
// The identity is the build id that the linker wrote into an ELF file: the GNU one ("gnu:..."), else that of the Go command
// ("go:..."). The same build put there again is the same tree, whatever its times. A file without either, a script or a
// program of another system, is told by its size and modification time ("stat:..."): written again, it is another tree.
// No other file counts.
//
// It refuses to guess: an ELF file of which a part is missing, and an empty file, are being written or damaged; the
// identity is then unknown with that reason. Of a file only headers and notes are read, so its size does not matter.
package binary

import (
	"context"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// Kind is the kind of root that this package reads.
const Kind = "binary"

// Config is the configuration of a [Source]. The zero value is the default.
type Config struct {
	// Now reads the clock; nil means the host's.
	Now func() stamp.Time
}

// Source reads programs. It holds nothing between calls and may be used concurrently.
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
