package witness

import (
	"context"
	"fmt"
)

// presence says whether a name exists at a revision.
type presence int

// unsaid stands where the revision's files cannot be read.
const (
	unsaid presence = iota
	gone
	there
)

// line is the history of one name.
type line interface {
	// touching lists the commits that lead to to and not to from and that touched the name's files: newest first, no
	// parent before its child, at most limit.
	touching(ctx context.Context, from, to string, limit int) ([]Commit, error)
	// presences answers each revision in its place.
	presences(ctx context.Context, revisions []string) ([]presence, error)
}

// step is what changed the presence.
type step struct {
	commit Commit
	// undone is set when the step went back over the commit: the tree was set to an older or another line, and the name
	// changed because this commit is no longer part of it.
	undone bool
}

// farthest bounds the commits looked at on either side. Beyond it the search gives up rather than name an older step.
const farthest = 4096

// lastStep names the last step of the way from one revision to another that brought the name to its final presence.
//
// The way goes back from from to where the two lines meet, then forwards to to. So a step forwards wins over a step
// back, among steps forwards the newest wins, and among steps back the one made last: the oldest commit.
func lastStep(ctx context.Context, l line, from, to string, final presence) (step, bool, error) {
	if final == unsaid || from == to {
		return step{}, false, nil
	}
	// What came since the two lines met decides last, so it is looked at first.
	forward, err := l.touching(ctx, from, to, farthest)
	if err != nil {
		return step{}, false, fmt.Errorf("list the commits that came: %w", err)
	}
	w := way{line: l, known: map[string]presence{}}
	c, ok, err := w.first(ctx, forward, final)
	if err != nil || ok {
		return step{commit: c}, ok, err
	}
	// Nothing that came did it, so something that went did: the way back is walked from its end.
	back, err := l.touching(ctx, to, from, farthest)
	if err != nil {
		return step{}, false, fmt.Errorf("list the commits that went: %w", err)
	}
	if len(back) == farthest {
		return step{}, false, nil // the oldest ones are cut off, and the oldest is the answer
	}
	reversed := make([]Commit, len(back))
	for i, c := range back {
		reversed[len(back)-1-i] = c
	}
	c, ok, err = w.first(ctx, reversed, opposite(final))
	return step{commit: c, undone: true}, ok, err
}

// way remembers the presences it has asked for: a commit's parent is often the next commit.
type way struct {
	line  line
	known map[string]presence
}

// first is the first of the commits that brought the name to the given presence. It asks in growing batches, because
// the answer is mostly among the first few and every question may cost a process.
func (w *way) first(ctx context.Context, commits []Commit, reached presence) (Commit, bool, error) {
	for size := 8; len(commits) > 0; size *= 4 {
		batch := commits[:min(size, len(commits))]
		commits = commits[len(batch):]
		if err := w.ask(ctx, batch); err != nil {
			return Commit{}, false, err
		}
		for _, c := range batch {
			if w.reaches(c, reached) {
				return c, true, nil
			}
		}
	}
	return Commit{}, false, nil
}

// ask reads the presences of a batch and its parents that are not known yet, in one question.
func (w *way) ask(ctx context.Context, batch []Commit) error {
	var want []string
	add := func(rev string) {
		if _, ok := w.known[rev]; !ok {
			w.known[rev] = unsaid
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
	got, err := w.line.presences(ctx, want)
	if err != nil {
		return fmt.Errorf("read the name at %d revisions: %w", len(want), err)
	}
	for i, rev := range want {
		w.known[rev] = got[i]
	}
	return nil
}

// reaches reports that the name has the presence at the commit and at none of its parents. A merge that took the name
// from one of its sides is not the culprit: the commit on that side is.
func (w *way) reaches(c Commit, want presence) bool {
	if w.known[c.Revision] != want {
		return false
	}
	for _, p := range c.Parents {
		if w.known[p] != opposite(want) {
			return false
		}
	}
	// A root commit can only bring a name; before it there was nothing.
	return len(c.Parents) > 0 || want == there
}

// opposite is the other presence; what is not known has none.
func opposite(p presence) presence {
	switch p {
	case there:
		return gone
	case gone:
		return there
	default:
		return unsaid
	}
}
