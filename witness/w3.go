package witness

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// files looks for W3: the missing module or symbol existed on one side of the run's life and not on the other.
func (s *search) files(ctx context.Context) {
	v := &s.q.Verdict
	if v.Module == "" {
		s.absent(FileProof, "the failure names no managed module")
		return
	}
	if s.history == nil {
		s.absent(FileProof, "a root of kind %q keeps no old files to compare", s.root.Kind)
		return
	}
	// The sides are known where W1 could compare, or where the journal says what an update left.
	if !s.known {
		s.absent(FileProof, "%s", s.unsided)
		return
	}
	m := s.q.modules(s.root)
	if m == nil {
		s.absent(FileProof, "nothing is known of how runtime %q finds a module", v.Runtime)
		return
	}
	n := newName(s, m)
	if len(n.own) == 0 {
		s.absent(FileProof, "no file inside the root could be module %s", v.Module)
		return
	}
	if err := s.landed(ctx, n); err != nil {
		s.absent(FileProof, "the files of %s cannot be read: %v", n, err)
		return
	}
	was, is, err := n.sides(ctx)
	if err != nil {
		s.absent(FileProof, "the files of %s cannot be read: %v", n, err)
		return
	}
	switch {
	// Nothing is said of a file whose content nobody has: a local edit is not kept, only its digest.
	case was.presence == unsaid || is.presence == unsaid:
		s.absent(FileProof, "%s", n.unsaid(was, is))
	case was.presence == is.presence && was.presence == there:
		s.absent(FileProof, "%s existed at the boot and at the death", n)
	case was.presence == is.presence:
		s.absent(FileProof, "%s existed neither at the boot nor at the death", n)
	default:
		s.proof(ctx, n, was, is)
	}
}

// landed deals with an update that was writing files when the run died, so that the reading at the death shows the old
// revision with files of the new one. Where the name's changed files are exactly those of the revision that the history
// moved to next, the update had reached them, and the proof compares with that revision: then it has a commit to name.
func (s *search) landed(ctx context.Context, n *name) error {
	var blobs []Blob
	for _, p := range n.paths() {
		if _, dirty := s.to.dirty[p]; dirty {
			blobs = append(blobs, Blob{Path: p})
		}
	}
	if len(blobs) == 0 {
		return nil
	}
	// The history is coarse, and the run may have died in the very second of a move: every revision that may have come
	// next is tried, since only one whose files are exactly those at the death is taken.
	at := s.q.Window.To
	for range maxLanding {
		rev, in, ok, err := s.history.At(ctx, s.root, at)
		if err != nil {
			return nil // the proof goes on with what the reading alone says
		}
		if ok && rev != s.to.revision {
			if same, err := s.holdsNow(ctx, rev, blobs); err != nil || same {
				return err
			}
		}
		switch {
		case !ok && at == s.q.Window.To:
			in.To = stamp.Wall(at.Wall, time.Second) // the log begins in this second
		case !ok || in.To.IsZero():
			return nil
		}
		at = pastGrain(in.To)
	}
	return nil
}

// maxLanding bounds the moves that are looked at behind a death.
const maxLanding = 4

// holdsNow takes a revision for the side of the death if the changed files are exactly its.
func (s *search) holdsNow(ctx context.Context, rev string, blobs []Blob) (bool, error) {
	for i := range blobs {
		blobs[i].Revision = rev
	}
	contents, err := readAll(ctx, s.history, s.root, blobs)
	if err != nil {
		return false, err
	}
	clean := side{revision: rev}
	for i, b := range blobs {
		if s.to.dirty[b.Path] != clean.digest(b.Path, contents[i]) {
			return false, nil
		}
	}
	s.to = clean
	return true, nil
}

// proof writes the evidence, with the commit that did it where one can be named.
func (s *search) proof(ctx context.Context, n *name, was, is seen) {
	e := Evidence{Kind: FileProof, From: s.from.revision, To: s.to.revision, When: s.q.Window}
	change, where := "appeared", is.path
	if was.presence == there {
		change, where = "went away", was.path
	}
	e.Detail = fmt.Sprintf("%s %s between boot and death", n, change)
	found, ok, err := lastStep(ctx, n, s.from.revision, s.to.revision, is.presence)
	switch {
	case err != nil:
		e.Detail += fmt.Sprintf("; the commit could not be found: %v", err)
	case !ok && s.from.revision == s.to.revision:
		e.Detail += ", in files that were not committed"
	case !ok:
		e.Detail += "; no single commit between them did it"
	default:
		how := "in commit"
		if found.undone {
			how = "because the tree left commit"
		}
		e.Detail = fmt.Sprintf("%s %s between boot and death, %s %s (%s)", n, change, how, short(found.commit.Revision), found.commit.Subject)
		e.Culprit = &Culprit{Root: s.root.Name, Commit: found.commit.Revision, Subject: found.commit.Subject, When: found.commit.When, Path: where, Name: n.String()}
	}
	s.holds(e)
}

// name is the missing module or symbol together with the files it can live in. It is the line that the culprit is
// searched on.
type name struct {
	s      *search
	m      Modules
	module string
	symbol string
	own    []string // the files of the module
	member []string // the files of a submodule with the symbol's name: "from a import b" finds those too

	table map[Blob]Content
	have  map[string]bool // the revisions whose files are in the table
}

// newName finds the files that the missing name can live in.
func newName(s *search, m Modules) *name {
	v := &s.q.Verdict
	n := &name{s: s, m: m, module: v.Module, symbol: v.Symbol, own: s.q.moduleFiles(s.root, m, v.Module),
		table: map[Blob]Content{}, have: map[string]bool{}}
	if v.Symbol != "" {
		n.member = s.q.moduleFiles(s.root, m, v.Module+"."+v.Symbol)
	}
	return n
}

// String is the module, or module:symbol.
func (n *name) String() string {
	if n.symbol == "" {
		return n.module
	}
	return n.module + ":" + n.symbol
}

// paths are all files that can decide the presence; a commit that touches none of them cannot be the culprit.
func (n *name) paths() []string { return slices.Concat(n.own, n.member) }

// seen is what one side says of the name, and the file that says it.
type seen struct {
	presence presence
	path     string
}

// sides reads both sides of the run's life in one go.
func (n *name) sides(ctx context.Context) (was, is seen, err error) {
	paths := n.paths()
	revs := []string{n.s.from.revision, n.s.to.revision}
	table, err := n.read(ctx, revs)
	if err != nil {
		return seen{}, seen{}, err
	}
	// A dirty file's content is not kept, but its digest is: where a revision holds the same content, that is it.
	known := map[string][]byte{}
	for _, rev := range revs {
		for _, p := range paths {
			if c := table[Blob{rev, p}]; c.Exists {
				known[digestOf(c.Data)] = c.Data
			}
		}
	}
	look := func(d side) seen {
		return n.look(func(p string) (Content, bool) {
			digest, dirty := d.dirty[p]
			if !dirty {
				return table[Blob{d.revision, p}], true
			}
			data, ok := known[digest]
			return Content{Data: data, Exists: digest != ""}, ok || digest == ""
		})
	}
	return look(n.s.from), look(n.s.to), nil
}

// look decides the presence from the content of each file; read is false where a file exists whose content is not
// known.
func (n *name) look(content func(p string) (c Content, read bool)) seen {
	unread := ""
	for _, p := range n.own {
		c, read := content(p)
		switch {
		case !c.Exists:
		case n.symbol == "":
			return seen{there, p}
		case !read:
			unread = p
		case n.m.Binds(c.Data, n.symbol):
			return seen{there, p}
		}
	}
	// A submodule is bound by being there.
	for _, p := range n.member {
		if c, _ := content(p); c.Exists {
			return seen{there, p}
		}
	}
	if unread != "" {
		return seen{unsaid, unread}
	}
	return seen{presence: gone}
}

// unsaid is the sentence for a presence that cannot be told.
func (n *name) unsaid(was, is seen) string {
	at, p := "death", is.path
	if was.presence == unsaid {
		at, p = "boot", was.path
	}
	return fmt.Sprintf("%s held changes at the %s that no commit holds, so that whether it had %s is not known", p, at, n)
}

// read is the content of all the name's files at each revision. What was read once is kept: the commit that is looked
// for is often one of the two sides.
func (n *name) read(ctx context.Context, revs []string) (map[Blob]Content, error) {
	var blobs []Blob
	asked := map[string]bool{}
	for _, rev := range revs {
		if n.have[rev] || asked[rev] {
			continue
		}
		asked[rev] = true
		for _, p := range n.paths() {
			blobs = append(blobs, Blob{rev, p})
		}
	}
	contents, err := readAll(ctx, n.s.history, n.s.root, blobs)
	if err != nil {
		return nil, err
	}
	for i, b := range blobs {
		n.table[b] = contents[i]
	}
	for rev := range asked {
		n.have[rev] = true
	}
	return n.table, nil
}

// touching implements [line].
func (n *name) touching(ctx context.Context, from, to string, limit int) ([]Commit, error) {
	return n.s.history.Commits(ctx, n.s.root, from, to, n.paths(), limit)
}

// presences implements [line].
func (n *name) presences(ctx context.Context, revisions []string) ([]presence, error) {
	table, err := n.read(ctx, revisions)
	if err != nil {
		return nil, err
	}
	out := make([]presence, len(revisions))
	for i, rev := range revisions {
		out[i] = n.look(func(p string) (Content, bool) { return table[Blob{rev, p}], true }).presence
	}
	return out, nil
}
