// Package culprit finds the commit that changed whether a name exists. It walks the way a tree went from one revision to
// another, forwards or back, and names the last step on that way which made the name appear or disappear.
//
// Call [Search]. It asks a [Line] for the commits that touched the name's files and for the presence of the name at
// revisions; it holds no process and no file itself. It refuses nothing: a way on which no step can be named, because the
// history is cut off or cannot be read, is a false second result.
//
// The answer does not depend on where on the way one started: runs that booted at different commits, and were broken by
// the same one, get the same culprit.
package culprit

import (
	"context"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Commit is one revision on the way.
type Commit struct {
	Revision string
	Parents  []string
	Subject  string
	When     stamp.Time
}

// Presence says whether the name exists at a revision.
type Presence int

// The presences. Unsaid stands where the revision cannot be read.
const (
	Unsaid Presence = iota
	Absent
	Present
)

// Line is the history that is searched.
type Line interface {
	// Touching lists the commits that lead to to and not to from and that touched the name's files: newest first, no
	// parent before its child, at most limit.
	Touching(ctx context.Context, from, to string, limit int) ([]Commit, error)
	// Presences answers each revision in its place.
	Presences(ctx context.Context, revisions []string) ([]Presence, error)
}

// Found is the step that changed the presence.
type Found struct {
	Commit Commit
	// Undone is set when the step went back over the commit: the tree was set to an older or another line, and the name
	// changed because this commit is no longer part of it.
	Undone bool
}

// limit bounds the commits looked at on either side. Beyond it the search gives up rather than name an older step.
const limit = 4096

// Search names the last step of the way from one revision to another that brought the name to its final presence.
//
// The way goes back from from to where the two lines meet, then forwards to to. So a step forwards wins over a step
// back, among steps forwards the newest wins, and among steps back the one made last: the oldest commit.
func Search(ctx context.Context, line Line, from, to string, final Presence) (Found, bool, error) {
	if final == Unsaid || from == to {
		return Found{}, false, nil
	}
	forward, err := line.Touching(ctx, from, to, limit)
	if err != nil {
		return Found{}, false, fmt.Errorf("search the culprit: list the commits that came: %w", err)
	}
	s := search{line: line, known: map[string]Presence{}}
	c, ok, err := s.first(ctx, forward, final)
	if err != nil || ok {
		return Found{Commit: c}, ok, err
	}
	back, err := line.Touching(ctx, to, from, limit)
	if err != nil {
		return Found{}, false, fmt.Errorf("search the culprit: list the commits that went: %w", err)
	}
	if len(back) == limit {
		return Found{}, false, nil // the oldest ones are cut off, and the oldest is the answer
	}
	reversed := make([]Commit, len(back))
	for i, c := range back {
		reversed[len(back)-1-i] = c
	}
	c, ok, err = s.first(ctx, reversed, opposite(final))
	return Found{Commit: c, Undone: true}, ok, err
}

// search remembers the presences it has asked for: a commit's parent is often the next commit.
type search struct {
	line  Line
	known map[string]Presence
}

// first is the first of the commits that brought the name to the given presence. It asks in growing batches, because the
// answer is mostly among the first few and every question may cost a process.
func (s *search) first(ctx context.Context, commits []Commit, reached Presence) (Commit, bool, error) {
	for size := 8; len(commits) > 0; size *= 4 {
		batch := commits[:min(size, len(commits))]
		commits = commits[len(batch):]
		if err := s.ask(ctx, batch); err != nil {
			return Commit{}, false, err
		}
		for _, c := range batch {
			if s.reaches(c, reached) {
				return c, true, nil
			}
		}
	}
	return Commit{}, false, nil
}

func (s *search) ask(ctx context.Context, batch []Commit) error {
	var want []string
	add := func(rev string) {
		if _, ok := s.known[rev]; !ok {
			s.known[rev] = Unsaid
			want = append(want, rev)
		}
	}
	for _, c := range batch {
		add(c.Revision)
		for _, p := range c.Parents {
			add(p)
		}
	}
	if len(want) == 0 {
		return nil
	}
	got, err := s.line.Presences(ctx, want)
	if err != nil {
		return fmt.Errorf("search the culprit: read the name at %d revisions: %w", len(want), err)
	}
	for i, rev := range want {
		s.known[rev] = got[i]
	}
	return nil
}

// reaches reports that the name has the presence at the commit and at none of its parents. A merge that took the name
// from one of its sides is not the culprit: the commit on that side is.
func (s *search) reaches(c Commit, presence Presence) bool {
	if s.known[c.Revision] != presence {
		return false
	}
	for _, p := range c.Parents {
		if s.known[p] != opposite(presence) {
			return false
		}
	}
	// A root commit can only bring a name; before it there was nothing.
	return len(c.Parents) > 0 || presence == Present
}

func opposite(p Presence) Presence {
	switch p {
	case Present:
		return Absent
	case Absent:
		return Present
	default:
		return Unsaid
	}
}
