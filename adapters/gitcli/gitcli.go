// Package gitcli reads roots of kind "git" through the git program. It tells which commit and which changed files a
// working tree holds, when it last changed, and what its history says about the moment of a death.
//
// Call [New] first; the zero [Config] is the default. [Source] fulfils witness.Source, witness.Observer,
// witness.History and witness.BatchReader.
//
// It refuses to write: git runs without optional locks, file system monitors or lazy fetches, and settings of the user
// that change its output are overridden. A tree that cannot be told (no repository, no git, a HEAD without
// commit, a refusal by git, more changed files than the bound) is an identity with Unknown set and the reason in words.
// It promises one git process for an identity, for a last change or for both, and that a git which hangs is killed with
// its children after [Config.Timeout].
//
// Files that git ignores are not seen, apart from declared bindings. An untracked repository inside the tree is not
// looked into. Repositories with the reftable format have no readable HEAD reflog; their past is then not told.
package gitcli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// Kind is the kind of root that this package reads.
const Kind = "git"

// Config bounds a [Source]. The zero value is the default.
type Config struct {
	// Git is the program to run; empty means "git" on the search path, looked up when it is first needed.
	Git string
	// Timeout bounds each git process beside the caller's context; zero means 10 seconds.
	Timeout time.Duration
	// MaxFiles bounds the changed files of an identity; zero means 4096. With more the identity is unknown.
	MaxFiles int
	// MaxBytes bounds what is read of changed files for one identity; zero means 64 MiB. With more the identity is
	// unknown.
	MaxBytes int64
	// Now reads the clock; nil means the host's.
	Now func() stamp.Time
}

// Source reads git working trees. It may be used concurrently. Between calls it holds, within bounds, what git said about
// history between commits, which never changes; what the tree holds now is read anew each time.
type Source struct {
	cfg    Config
	memory memory
}

var (
	_ witness.Source      = (*Source)(nil)
	_ witness.Observer    = (*Source)(nil)
	_ witness.History     = (*Source)(nil)
	_ witness.BatchReader = (*Source)(nil)
)

// New checks the configuration and returns a Source. It does not run git: a missing program shows as an unknown
// identity.
func New(cfg Config) (*Source, error) {
	var wrong []error
	if cfg.Timeout < 0 {
		wrong = append(wrong, fmt.Errorf("Timeout is %v; it must not be negative", cfg.Timeout))
	}
	if cfg.MaxFiles < 0 {
		wrong = append(wrong, fmt.Errorf("MaxFiles is %d; it must not be negative", cfg.MaxFiles))
	}
	if cfg.MaxBytes < 0 {
		wrong = append(wrong, fmt.Errorf("MaxBytes is %d; it must not be negative", cfg.MaxBytes))
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("configure the git source: %w", errors.Join(wrong...))
	}
	// From here on the zero values have their meaning.
	if cfg.Git == "" {
		cfg.Git = "git"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.MaxFiles == 0 {
		cfg.MaxFiles = 4096
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 64 << 20
	}
	if cfg.Now == nil {
		cfg.Now = host.Now
	}
	return &Source{cfg: cfg}, nil
}

// Identify implements [witness.Source].
func (s *Source) Identify(ctx context.Context, r witness.Root) (witness.Identity, error) {
	at := s.cfg.Now()
	repo, err := open(r)
	if err == nil {
		var look status
		if look, err = s.status(ctx, repo); err == nil {
			return s.identity(r, repo, look, at), nil
		}
	}
	if ended := ctx.Err(); ended != nil {
		return witness.Identity{}, fmt.Errorf("identify root %s: %w", r.Name, ended)
	}
	return unknown(r, at, err), nil
}

// LastChange implements [witness.Source]. The signals are the files in which git records a move of HEAD or of the
// index, and the changed files themselves; somebody's git that refreshes the index delays, and hides nothing. A lock
// on the index, or a merge or rebase that has not ended, is [witness.ErrChanging].
func (s *Source) LastChange(ctx context.Context, r witness.Root) (stamp.Time, error) {
	o, err := s.Observe(ctx, r)
	if err != nil {
		return stamp.Time{}, err
	}
	return o.Changed, o.NoSignal
}

// Observe implements [witness.Observer]: identity and last change from one git process.
func (s *Source) Observe(ctx context.Context, r witness.Root) (witness.Observation, error) {
	at := s.cfg.Now()
	repo, err := open(r)
	if err == nil {
		var look status
		if look, err = s.status(ctx, repo); err == nil {
			id := s.identity(r, repo, look, at)
			// After the identity: what changes in between makes the last change recent, so that the tree is not taken
			// for quiet with an identity it no longer has.
			changed, noSignal := repo.lastChange(r, look)
			return witness.Observation{Identity: id, Changed: changed, NoSignal: noSignal}, nil
		}
	}
	if ended := ctx.Err(); ended != nil {
		return witness.Observation{}, fmt.Errorf("observe root %s: %w", r.Name, ended)
	}
	return witness.Observation{Identity: unknown(r, at, err), NoSignal: fmt.Errorf("read the last change of root %s: %w", r.Name, err)}, nil
}

// unknown is an identity that says why it is none.
func unknown(r witness.Root, at stamp.Time, why error) witness.Identity {
	return witness.Identity{Root: r.Name, Kind: r.Kind, At: at, Unknown: why.Error()}
}
