package files_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// counter counts the operations of homes that are opened on it, by kind.
type counter struct {
	mu  sync.Mutex
	ops map[faultfs.Kind]int
}

func (c *counter) open(t *testing.T, dir string) *files.Home {
	t.Helper()
	h, err := files.Open(files.Config{Dir: dir, FS: faultfs.Tap(durable.System{}, func(op faultfs.Op) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ops[op.Kind]++
		return nil
	})})
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	return h
}

// reset forgets what was counted so far.
func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ops = map[faultfs.Kind]int{}
}

// flushes is how many there were since.
func (c *counter) flushes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ops[faultfs.SyncFile] + c.ops[faultfs.SyncFolder]
}

func claimOf(t *testing.T, h *files.Home, lineage string) ledger.Record {
	t.Helper()
	r, err := ledger.New(ledger.Key{Project: "p", Lineage: lineage},
		ledger.Change{Event: ledger.Claim, Now: stamp.Wall(time.Now(), 0), Actor: h.Instances().Self(), Lease: time.Minute})
	must(t, err)
	return r
}

// A claimer that comes too late flushes nothing and leaves no file behind: a flush before the election is
// decided would be paid by each of those who lose it.
func TestLosersFlushNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "home")
	c := &counter{ops: map[faultfs.Kind]int{}}
	winner, loser := c.open(t, dir), c.open(t, dir)
	must(t, winner.Ledger().Create(context.Background(), claimOf(t, winner, "l")))
	names := func() (out []string) {
		entries, err := os.ReadDir(filepath.Join(dir, "ledger"))
		must(t, err)
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	before := names()
	c.reset()
	for range 3 {
		if err := loser.Ledger().Create(context.Background(), claimOf(t, loser, "l")); !errors.Is(err, ledger.ErrExists) {
			t.Fatalf("a second claim: %v", err)
		}
	}
	if n := c.flushes(); n > 0 {
		t.Errorf("three refused claims flushed %d times", n)
	}
	if after := names(); len(after) != len(before) {
		t.Errorf("the folder held %q, and after the refused claims %q", before, after)
	}
}

// Eight race for each key, and no more than one flush pair is paid for it.
func TestRaceFlushesOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "home")
	c := &counter{ops: map[faultfs.Kind]int{}}
	homes := make([]*files.Home, 8)
	for i := range homes {
		homes[i] = c.open(t, dir)
	}
	must(t, homes[0].Ledger().Create(context.Background(), claimOf(t, homes[0], "first"))) // whatever is made once
	for _, lineage := range []string{"a", "b", "c", "d"} {
		c.reset()
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for _, h := range homes {
			rec := claimOf(t, h, lineage)
			wg.Go(func() {
				err := h.Ledger().Create(context.Background(), rec)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else if !errors.Is(err, ledger.ErrExists) {
					t.Errorf("%s: %v", lineage, err)
				}
			})
		}
		wg.Wait()
		if won != 1 {
			t.Errorf("%s has %d winners", lineage, won)
		}
		if n := c.flushes(); n > 2 {
			t.Errorf("%s: %d flushes for eight who raced", lineage, n)
		}
	}
}

// A lineage has one winner for good: whatever becomes of its record, no later claim succeeds, in this process or the next.
func TestOneWinnerForGood(t *testing.T) {
	t.Parallel()
	launch := []ledger.Change{{Event: ledger.BeginLaunch, Lease: time.Minute, Launch: "launch", Episode: "e", Evidence: "evidence/x"}}
	bound := append(launch[:1:1], ledger.Change{Event: ledger.Bind, Launch: "launch", Run: "r2"})
	for name, changes := range map[string][]ledger.Change{
		"claimed":   nil,
		"deferred":  {{Event: ledger.Defer, Reason: "not_quiet"}},
		"declined":  {{Event: ledger.Decline, Reason: "no_update_witness"}},
		"completed": append(bound[:2:2], ledger.Change{Event: ledger.SettleOK}),
		"failed":    append(bound[:2:2], ledger.Change{Event: ledger.SettleBad}),
		"cancelled": append(launch[:1:1], ledger.Change{Event: ledger.Abort, Reason: "launch_failed"}),
		"pruned":    {{Event: ledger.Decline, Reason: "no_update_witness"}, {Event: ledger.Prune, Lease: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "home")
			c := &counter{ops: map[faultfs.Kind]int{}}
			h := c.open(t, dir)
			ctx, key := context.Background(), ledger.Key{Project: "p", Lineage: "l"}
			must(t, h.Ledger().Create(ctx, claimOf(t, h, "l")))
			now := stamp.Wall(time.Now(), 0)
			for _, change := range changes {
				change.Now, change.Actor = now.Add(90*24*time.Hour), h.Instances().Self()
				if change.Event != ledger.Prune {
					change.Now = now
				}
				_, err := h.Ledger().Update(ctx, key, func(cur ledger.Record, _ stamp.Time) (ledger.Record, error) { return ledger.Apply(cur, change) })
				must(t, err)
			}
			for _, later := range []*files.Home{h, c.open(t, dir)} {
				if err := later.Ledger().Create(ctx, claimOf(t, later, "l")); !errors.Is(err, ledger.ErrExists) {
					t.Errorf("a second claim: %v", err)
				}
			}
		})
	}
}
