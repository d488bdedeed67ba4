// Package culprit finds the commit that changed whether a name exists, between two revisions and without a death. A host
// labels an episode with it when the culprit was not known at the time, and people ask it which commit took a name away.
//
// Call [Find]. It refuses to guess: a name that is there at both revisions, or at neither, has no culprit, and neither
// has a change that no single commit on the way made; the answer then says why. It promises the same answer wherever on
// the way one starts: runs that booted at different commits and were broken by the same one get the same culprit. The
// error is that of a context that ended.
package culprit

import (
	"context"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// Query names what is looked for, and where.
type Query struct {
	// Root is the tree, and Source reads it; without the power of a [witness.History] there is no answer.
	Root   witness.Root
	Source witness.Source
	// Modules knows the runtime that the name belongs to.
	Modules witness.Modules
	// Module is the unit that was missing, or that lacked Symbol.
	Module string
	Symbol string
	// From and To are full revisions, in the order in which the tree held them.
	From, To string
}

// Answer is the culprit, or why there is none.
type Answer struct {
	Culprit *witness.Culprit
	// Detail is one sentence: what happened to the name, or why nothing can be said.
	Detail string
}

// Find names the last commit on the way from one revision to the other that changed whether the name exists. The way
// may lead forwards, back to an older commit, or to another line.
func Find(ctx context.Context, q Query) (Answer, error) {
	// The search does not look at the window; it only has to be one.
	moment := stamp.Wall(time.Unix(0, 0), 0)
	found, err := witness.Gather(ctx, witness.Request{
		Verdict: classify.Verdict{Module: q.Module, Symbol: q.Symbol, Root: q.Root.Name, Runtime: q.Root.Runtime},
		Roots:   []witness.Root{q.Root},
		Boot:    []witness.Identity{{Root: q.Root.Name, Kind: q.Root.Kind, Revision: q.From}},
		Death:   []witness.Identity{{Root: q.Root.Name, Kind: q.Root.Kind, Revision: q.To}},
		Window:  stamp.Window{From: moment, To: moment},
		Sources: map[string]witness.Source{q.Root.Kind: q.Source},
		Modules: map[string]witness.Modules{q.Root.Runtime: q.Modules},
	})
	if err != nil {
		return Answer{}, err
	}
	for _, e := range found.Evidence {
		if e.Kind == witness.FileProof {
			return Answer{Culprit: e.Culprit, Detail: e.Detail}, nil
		}
	}
	for _, a := range found.Absent {
		if a.Kind == witness.FileProof {
			return Answer{Detail: a.Why}, nil
		}
	}
	return Answer{Detail: "nothing was found"}, nil
}
