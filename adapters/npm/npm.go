// Package npm reads roots of kind "npm": a package that npm, pnpm, yarn or bun installed into a node_modules folder, or a
// whole project with what is installed for it. It tells which version is there, whether it is what the installer's own
// list says, and since when.
//
// Call [New] first; the zero [Config] is the default. [Source] fulfils witness.Source, witness.Observer and
// witness.Dated.
//
// A root that names a package (Package: "@acme/wire") is that package: Dirs are its own folder, the node_modules folder, or
// the folder that holds node_modules; the first that has the package counts. A link into the installer's own store is
// followed. A root without one is a project: each of Dirs, the first of which holds its package.json. A member of a
// workspace is on the list of the workspace.
//
// The lists are what each installer leaves; where several did, the newest counts:
//
//   - npm: node_modules/.package-lock.json.
//   - pnpm 9 and later: node_modules/.modules.yaml and node_modules/.pnpm/lock.yaml, with nodeLinker isolated (its store in
//     the project or shared by the machine) or hoisted.
//   - yarn 1: node_modules/.yarn-integrity, which is gone while yarn works. It does not say which folder a package went to,
//     so only those that the project asks for itself are held against the disk.
//   - yarn 2 and later with nodeLinker: node-modules: node_modules/.yarn-state.yml, with yarn.lock for the versions of
//     archives.
//   - bun: none, so bun.lock says what to look for, and what is found is the identity.
//
// The identity is the version and a digest. For a package the digest is over package.json, the integrity that the list
// has for it (a global installation has no list, and those of bun and of yarn 2 tell none), and the content of its code
// files. For a project it is over package.json, the whole of that list, and the content of the project's own code files,
// those of the root's modules (all of them where a module is the project's name). Code files are told by their ending;
// logs, caches, hidden folders and nested node_modules change nothing. The same content installed again is the same tree,
// whatever its times.
//
// It refuses to guess: a package set aside by npm (".wire-Ab3dEf9h"), one without package.json, one whose version is not
// that of the list, a project with a package of its list missing or of another version, and one whose list is gone, cut
// or, of pnpm, yarn 2 and bun, without a package that is there, are unknown with the reason, because an installation is
// under way or was cut off. So are a package that is a link to a folder elsewhere, which is declared as a root of its own,
// a project whose node_modules was filled by another installer or as yarn's Plug'n'Play and its linker pnpm do, one with
// bun's old binary list, and a root with more files or bytes than the bound.
//
// Bun and yarn 2 write their lists before the packages' own scripts run. While those do, the new versions are known, and
// the tree is as young as the last file that changed.
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

// Source reads what an installer of Node.js packages left. It holds nothing between calls and may be used concurrently.
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
// one, of package.json, or of the installer's list.
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
