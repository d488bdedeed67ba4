package managed

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// slowSource counts its readings and lets them go on one by one.
type slowSource struct {
	begun atomic.Int32
	tree  atomic.Int32
	pass  chan struct{}
}

func (s *slowSource) Identify(context.Context, witness.Root) (witness.Identity, error) {
	s.begun.Add(1)
	rev := s.tree.Load()
	<-s.pass
	return witness.Identity{Revision: string('a' + rev)}, nil
}

func (s *slowSource) LastChange(context.Context, witness.Root) (stamp.Time, error) {
	return stamp.Time{}, nil
}

// TestReadsAreSharedAndFresh: callers that come while a reading is under way share the next one, which sees what the
// tree was when they asked.
func TestReadsAreSharedAndFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &slowSource{pass: make(chan struct{})}
		root := witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{"/acme"}}, Kind: "slow"}
		var s reads
		var wg sync.WaitGroup
		ask := func(want string) {
			wg.Go(func() {
				if id := s.identify(t.Context(), src, root); id.Revision != want {
					t.Errorf("the reading is %q, want %q: a reading that began before it was asked for", id.Revision, want)
				}
			})
		}
		ask("a")
		synctest.Wait()
		src.tree.Store(1)
		for range 4 {
			ask("b")
		}
		synctest.Wait()
		if n := src.begun.Load(); n != 1 {
			t.Fatalf("%d readings began, want 1: the others wait for it", n)
		}
		src.pass <- struct{}{}
		src.pass <- struct{}{}
		wg.Wait()
		if n := src.begun.Load(); n != 2 {
			t.Errorf("%d readings for five callers, want 2", n)
		}
	})
}

// TestReplacementTakesTheHealersReading: what the healer read a moment before on this machine is not read again; all else
// is.
func TestReplacementTakesTheHealersReading(t *testing.T) {
	t.Parallel()
	now := stamp.Time{Wall: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), Boot: "b", Uptime: time.Hour}
	elsewhere := now
	elsewhere.Boot = "another"
	dirty := witness.Identity{Revision: "v2", Dirty: []witness.File{{Path: "a.py", Digest: "1"}}}
	for name, tc := range map[string]struct {
		by   []ledger.RootChange
		want string
	}{
		"read a moment before":      {[]ledger.RootChange{{Root: "acme", Now: "v2", NowAt: now.Add(-foundFor)}}, "v2"},
		"read long before":          {[]ledger.RootChange{{Root: "acme", Now: "v2", NowAt: now.Add(-foundFor - 1)}}, "a"},
		"read on another machine":   {[]ledger.RootChange{{Root: "acme", Now: "v2", NowAt: elsewhere}}, "a"},
		"read with changed files":   {[]ledger.RootChange{{Root: "acme", Now: dirty.Key(), NowAt: now}}, "a"},
		"unknown to the healer":     {[]ledger.RootChange{{Root: "acme", NowAt: now}}, "a"},
		"another root was read":     {[]ledger.RootChange{{Root: "other", Now: "v2", NowAt: now}}, "a"},
		"nothing was written of it": {nil, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := &slowSource{pass: make(chan struct{})}
			close(src.pass)
			h := &Host{cfg: Config{Now: func() stamp.Time { return now }, Sources: map[string]witness.Source{"slow": src}}}
			root := witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{"/acme"}}, Kind: "slow"}
			ids := h.found(t.Context(), []witness.Root{root}, tc.by)
			if len(ids) != 1 || ids[0].Revision != tc.want || ids[0].Root != "acme" || ids[0].Kind != "slow" || ids[0].At.IsZero() {
				t.Fatalf("the identities are %+v, want revision %s", ids, tc.want)
			}
			if n := src.begun.Load(); (n == 0) != (tc.want == "v2") {
				t.Errorf("the root was read %d times", n)
			}
		})
	}
}
