package restart

import (
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// change is what the files of a root say of its last change, and when this healer first saw them say so.
type change struct{ at, since stamp.Time }

// since is when this very change was first seen. A change that is stamped in the future, because the clock was set back,
// is at least as old as that; without it such a tree would not be at rest for as long as the clock was set back.
func (p *pass) since(r witness.Root, at stamp.Time) stamp.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.h.changes[r.Place()]
	if !ok || c.at != at {
		c = change{at, p.now}
		p.h.changes[r.Place()] = c
	}
	return c.since
}
