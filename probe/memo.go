package probe

import (
	"slices"
	"time"
)

// How long an answer is used. The tree's identity does not cover everything that an import reads, such as third-party
// packages, so no answer holds for ever; a failure is asked again soon, for what it waits on may have come.
const (
	HealthyFor = 5 * time.Minute
	FailedFor  = time.Minute
)

// memoLimit bounds a memo; the oldest answers go first.
const memoLimit = 256

// Memo is what is known from earlier probes. It is a value: every change returns a new one, and the zero Memo knows
// nothing. Times are of one clock, the caller's.
type Memo struct {
	// Answers are oldest first.
	Answers []Answer
}

// Answer is one remembered result.
type Answer struct {
	Need   Need
	Result Result
	At     time.Time
}

// fresh reports whether the answer may still be used. A clock that was set back makes it stale.
func (a Answer) fresh(now time.Time) bool {
	age, limit := now.Sub(a.At), FailedFor
	if a.Result.Outcome == Healthy {
		limit = HealthyFor
	}
	return age >= 0 && age < limit
}

// answers reports whether the answer is one to n: a healthy result answers everything it covers, another result only
// the same set of modules.
func (a Answer) answers(n Need) bool {
	return a.Need.Covers(n) && (a.Result.Outcome == Healthy || n.Covers(a.Need))
}

// Lookup is the newest answer to n, if there is one that may be used now.
func (m Memo) Lookup(n Need, now time.Time) (Result, bool) {
	for _, a := range slices.Backward(m.Answers) {
		if a.answers(n) && a.fresh(now) {
			return a.Result, true
		}
	}
	return Result{}, false
}

// Remember adds a confirmed result. A need of an unknown tree or without modules is not kept, because nothing could
// ever be answered from it.
func (m Memo) Remember(n Need, r Result, now time.Time) Memo {
	kept := make([]Answer, 0, len(m.Answers)+1)
	for _, a := range m.Answers {
		if a.fresh(now) {
			kept = append(kept, a)
		}
	}
	if n.Tree != "" && len(n.Modules) > 0 {
		kept = append(kept, Answer{Need: n, Result: r, At: now})
	}
	if len(kept) > memoLimit {
		kept = slices.Clone(kept[len(kept)-memoLimit:])
	}
	return Memo{Answers: kept}
}

// Changed forgets the failures of every tree that is not among the present ones. Call it with the trees of a pass
// before its lookups: a tree that changed and came back is asked anew.
func (m Memo) Changed(present ...string) Memo {
	kept := make([]Answer, 0, len(m.Answers))
	for _, a := range m.Answers {
		if a.Result.Outcome == Healthy || slices.Contains(present, a.Need.Tree) {
			kept = append(kept, a)
		}
	}
	return Memo{Answers: kept}
}
