package witness

import (
	"context"
	"fmt"
	"strings"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Gather looks for the witnesses of one death: W1 and W2 in every root that the failure involves, W3 in the root that
// owns the module which lacks the name. It reads as little as the question needs, and asks nothing twice.
//
// The error is that of a context that ended; the findings are then void.
func Gather(ctx context.Context, q Request) (Findings, error) {
	g, err := Begin(ctx, q)
	if err != nil {
		return Findings{}, err
	}
	return g.Finish(ctx)
}

// Search is a [Gather] in two steps, for a caller that has something to do as soon as one witness holds. It is used by
// one goroutine at a time.
type Search struct {
	q     Request
	roots []*search // none when there is nothing to be looked at
	void  Findings  // then
}

// Begin looks for W1 and W2, which cost little where the identities were recorded. The error is as with Gather.
func Begin(ctx context.Context, q Request) (*Search, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("gather witnesses: %w", err)
	}
	g := &Search{q: q}
	// Without a span there is nothing to be bound to: even two identities that differ may have nothing to do with the
	// run.
	if why, jump := unusable(q.Window); why != "" {
		g.void.ClockJump = jump
		g.nothing(why)
		return g, nil
	}
	roots := q.relevant()
	if len(roots) == 0 {
		why := "the failure names no root that the run declared"
		if q.Verdict.Root == "" && len(q.Verdict.Asked) == 0 {
			why = "the failure names no managed root"
		}
		g.nothing(why)
		return g, nil
	}
	// The identities come first: they find the two sides that the file proof compares, and the journal fills one in
	// where the identities leave it open.
	for _, r := range roots {
		s := &search{q: &g.q, root: r, source: q.Sources[r.Kind], out: &Findings{}}
		s.history, _ = s.source.(History)
		s.identities(ctx)
		s.journal(ctx)
		g.roots = append(g.roots, s)
		if err := s.cut(ctx); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Found is what was found up to now. What Finish finds beside it takes no witness back.
func (g *Search) Found() Findings {
	f := Findings{ClockJump: g.void.ClockJump}
	for _, s := range g.roots {
		f.Evidence = append(f.Evidence, s.out.Evidence...)
	}
	return f
}

// Finish looks for W3 and returns all that was found. It is called once; the error is as with Gather.
func (g *Search) Finish(ctx context.Context) (Findings, error) {
	if len(g.roots) == 0 {
		return g.void, nil
	}
	var f Findings
	for _, s := range g.roots {
		if s.root.Name == g.q.Verdict.Root {
			s.files(ctx)
			if err := s.cut(ctx); err != nil {
				return Findings{}, err
			}
		}
		f.Evidence, f.Absent = append(f.Evidence, s.out.Evidence...), append(f.Absent, s.out.Absent...)
	}
	if g.q.Verdict.Root == "" || g.roots[0].root.Name != g.q.Verdict.Root {
		f.absent(FileProof, "", "no declared root owns the module that lacks the name")
	}
	return f, nil
}

func (g *Search) nothing(why string) {
	for _, k := range []Kind{BootIdentity, UpdateJournal, FileProof} {
		g.void.absent(k, "", why)
	}
}

// cut is the error of a context that ended: a question that it cut off reads as an absence, and such findings must not be
// taken for an answer.
func (s *search) cut(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("gather witnesses of root %s: %w", s.root.Name, err)
	}
	return nil
}

// unusable says why nothing can be a witness in a window, and whether a jump of the clock is why.
func unusable(w stamp.Window) (why string, jump bool) {
	switch {
	case w.From.IsZero():
		return "the moment of the boot is not known", false
	case w.To.IsZero():
		return "the moment of the death is not known", false
	case w.Backwards():
		return fmt.Sprintf("the clock jumped: the death (%s) lies before the boot (%s)", w.To, w.From), true
	}
	return "", false
}

func (f *Findings) absent(k Kind, root, why string) {
	f.Absent = append(f.Absent, Absence{Kind: k, Root: root, Why: why})
}

// search is the search in one root.
type search struct {
	q       *Request
	root    Root
	source  Source
	history History // nil when the source has none
	out     *Findings

	// from and to are the sides that the file proof compares; known is false while one of them is not known, and
	// unsided says why.
	from, to side
	known    bool
	unsided  string

	diffs map[[2]string]diffResult
}

// side is what a root held at one end of the run's life.
type side struct {
	revision string
	// dirty maps the paths that differ from the revision to their digests, empty for a deleted file.
	dirty map[string]string
}

// sideOf is an identity as the file proof looks at it.
func sideOf(id Identity) side {
	s := side{revision: id.Revision, dirty: make(map[string]string, len(id.Dirty))}
	for _, f := range id.Dirty {
		s.dirty[f.Path] = f.Digest
	}
	return s
}

// sides fixes what the file proof compares.
func (s *search) sides(from, to side) { s.from, s.to, s.known = from, to, true }

// holds writes a witness down, bound to the root of this search.
func (s *search) holds(e Evidence) {
	e.Root = s.root.Name
	s.out.Evidence = append(s.out.Evidence, e)
}

// absent writes down why a witness does not hold.
func (s *search) absent(k Kind, format string, args ...any) {
	s.out.absent(k, s.root.Name, fmt.Sprintf(format, args...))
}

// diffResult is one answer of the history, kept together with its failure so that neither is asked for again.
type diffResult struct {
	changes []Change
	err     error
}

// changed asks the history once per pair of revisions: the identity, the journal and the spanning update may all ask.
func (s *search) changed(ctx context.Context, from, to string) ([]Change, error) {
	key := [2]string{from, to}
	if d, ok := s.diffs[key]; ok {
		return d.changes, d.err
	}
	changes, err := s.history.Changed(ctx, s.root, from, to)
	if s.diffs == nil {
		s.diffs = map[[2]string]diffResult{}
	}
	s.diffs[key] = diffResult{changes, err}
	return changes, err
}

// short is a revision as people read it.
func short(rev string) string {
	if len(rev) >= 40 && strings.Trim(rev, "0123456789abcdef") == "" {
		return rev[:10]
	}
	return rev
}

// short is an identity as people read it.
func (i Identity) short() string {
	n := len(i.Dirty) + len(i.Bindings)
	if len(i.Dirty) == 0 || n == 0 {
		return short(i.Revision)
	}
	if len(i.Dirty) == 1 {
		return short(i.Revision) + " with 1 changed file"
	}
	return fmt.Sprintf("%s with %d changed files", short(i.Revision), len(i.Dirty))
}
