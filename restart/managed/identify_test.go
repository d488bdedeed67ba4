package managed

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mulligan-dev/mulligan/classify"
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
