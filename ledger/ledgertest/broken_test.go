package ledgertest

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// faults are what is wrong with a broken store.
type faults struct {
	reopens      bool // a final record may be claimed again
	racyCreate   bool // looks and writes in two steps
	losesFacts   bool
	naiveNames   bool
	invents      bool // an update makes the record that is missing
	racyUpdate   bool
	writesErrors bool // writes although the change was refused
	writesAlways bool // writes although the revision is the present one
	movesKeys    bool // takes whatever the change makes
	noClock      bool
	deaf         bool // does not look at the context
	shares       bool // hands out what it keeps
	listsTwice   bool
	misorders    bool // newest by first claim
}

// broken is a store in memory with faults, sound when it has none.
type broken struct {
	faults
	mu    sync.Mutex
	kept  map[string]ledger.Record
	moved []string
}

func newBroken(f faults) *broken { return &broken{faults: f, kept: map[string]ledger.Record{}} }

func (b *broken) name(k ledger.Key) string {
	if b.naiveNames {
		return strings.ToLower(k.Project + "__" + k.Lineage)
	}
	return k.Project + "\xff" + k.Lineage
}

func (b *broken) copied(r ledger.Record) ledger.Record {
	if b.shares {
		return r
	}
	var out ledger.Record
	raw, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

func (b *broken) put(r ledger.Record) {
	n := b.name(r.Key)
	if b.losesFacts {
		r.Facts.Witnesses = nil
	}
	b.kept[n] = b.copied(r)
	if i := slices.Index(b.moved, n); i >= 0 {
		if b.misorders {
			return
		}
		b.moved = slices.Delete(b.moved, i, i+1)
	}
	b.moved = append(b.moved, n)
}

// apart leaves the lock for a moment in which others may come.
func (b *broken) apart(do bool) {
	if do {
		b.mu.Unlock()
		time.Sleep(time.Millisecond)
		b.mu.Lock()
	}
}

func (b *broken) Create(ctx context.Context, r ledger.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil && !b.deaf {
		return ctx.Err()
	}
	cur, ok := b.kept[b.name(r.Key)]
	if ok && !(b.reopens && cur.State.Final()) {
		return ledger.ErrExists
	}
	b.apart(b.racyCreate)
	b.put(r)
	return nil
}

func (b *broken) Get(_ context.Context, k ledger.Key) (ledger.Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.kept[b.name(k)]
	if !ok {
		return r, ledger.ErrNotFound
	}
	return b.copied(r), nil
}

func (b *broken) Update(ctx context.Context, k ledger.Key, f func(ledger.Record, stamp.Time) (ledger.Record, error)) (ledger.Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil && !b.deaf {
		return ledger.Record{}, ctx.Err()
	}
	cur, ok := b.kept[b.name(k)]
	if !ok && !b.invents {
		return cur, ledger.ErrNotFound
	}
	now := stamp.Wall(time.Now(), 0)
	if b.noClock {
		now = stamp.Time{}
	}
	next, err := f(b.copied(cur), now)
	b.apart(b.racyUpdate)
	switch {
	case err != nil && !b.writesErrors:
		return ledger.Record{}, err
	case err == nil && next.Revision == cur.Revision && !b.writesAlways:
		return b.copied(cur), nil
	case err == nil && (next.Key != k || next.Revision < cur.Revision) && !b.movesKeys && !b.invents:
		return ledger.Record{}, context.DeadlineExceeded
	}
	b.put(next)
	return b.copied(next), err
}

func (b *broken) List(context.Context) iter.Seq2[ledger.Record, error] {
	return func(yield func(ledger.Record, error) bool) {
		b.mu.Lock()
		all := slices.Collect(maps.Values(b.kept))
		b.mu.Unlock()
		if b.listsTwice && len(all) > 1 {
			all = append(all[1:], all[1])
		}
		for _, r := range all {
			if !yield(b.copied(r), nil) {
				return
			}
		}
	}
}

func (b *broken) Newest(_ context.Context, n int) ([]ledger.Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []ledger.Record
	for _, name := range slices.Backward(b.moved) {
		if len(out) < n {
			out = append(out, b.copied(b.kept[name]))
		}
	}
	return out, nil
}

// TestEveryBrokenStoreIsCaught breaks each promise once, and expects the check of that promise to see it.
func TestEveryBrokenStoreIsCaught(t *testing.T) {
	t.Parallel()
	caught := map[string]bool{}
	for promise, f := range map[string]faults{
		"a lineage is claimed once":             {reopens: true},
		"of many that claim one lineage":        {racyCreate: true},
		"what was written is what is read":      {losesFacts: true},
		"no two keys share a record":            {naiveNames: true},
		"a record that is not there":            {invents: true},
		"an update is one step":                 {racyUpdate: true},
		"of many that begin the launch":         {racyUpdate: true},
		"a change that is refused":              {writesErrors: true},
		"a record with the present revision":    {writesAlways: true},
		"a change cannot give a record another": {movesKeys: true},
		"an update is given the store's clock":  {noClock: true},
		"a context that ended":                  {deaf: true},
		"what a caller holds is a copy":         {shares: true},
		"a list yields every record once":       {listsTwice: true},
		"the newest records":                    {misorders: true},
	} {
		for _, c := range ledgerChecks {
			if !strings.HasPrefix(c.promise, promise) {
				continue
			}
			caught[c.promise] = true
			if err := c.try(t.Context(), newBroken(f)); err == nil {
				t.Errorf("%+v is not caught by the check: %s", f, c.promise)
			} else if testing.Verbose() {
				t.Logf("%s\n%v", c.promise, err)
			}
		}
	}
	for _, c := range ledgerChecks {
		if !caught[c.promise] {
			t.Errorf("no broken store for the check: %s", c.promise)
		}
		if err := c.try(t.Context(), newBroken(faults{})); err != nil {
			t.Errorf("the sound store fails the check: %s\n%v", c.promise, err)
		}
	}
}
