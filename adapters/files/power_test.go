package files_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
)

// seeds is how many chances each power cut gets, beside the two sure ones.
func seeds() int {
	if testing.Short() || slowed {
		return 1
	}
	return 6
}

// acks are the steps of a story that were acknowledged so far.
type acks struct {
	mu sync.Mutex
	of map[string][]string
}

func (a *acks) note(lineage string) func(string) {
	return func(step string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.of == nil {
			a.of = map[string][]string{}
		}
		a.of[lineage] = append(a.of[lineage], step)
	}
}

func (a *acks) at(lineage string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.of[lineage]...)
}

// booted opens a home on what a power cut left, in another boot of the machine: the ledger's index goes by the boot's id.
func booted(t *testing.T, disk *faultfs.Disk) *files.Home {
	t.Helper()
	root, err := disk.Open("/home")
	must(t, err)
	if d, err := root.Sub("ledger"); err == nil {
		if b, _, err := durable.ReadFile(d, ".newest", 1<<20); err == nil {
			must(t, durable.Leave(d, ".t", ".newest", []byte(strings.ReplaceAll(string(b), host.BootID(), "another boot"))))
		}
	}
	return opened(t, disk)
}

func opened(t *testing.T, disk durable.FS) *files.Home {
	t.Helper()
	h, err := files.Open(files.Config{Dir: "/home", FS: disk})
	must(t, err)
	return h
}

// TestPowerCutAfterEachOperation cuts the power after each prefix of the story, keeps nothing, everything or some of what
// was not flushed, and looks at what the next boot finds.
func TestPowerCutAfterEachOperation(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"": false, " on a plain file system": true} {
		t.Run("power cut"+name, func(t *testing.T) {
			t.Parallel()
			disk := &faultfs.Disk{Plain: plain}
			var told acks
			cuts, torn := 0, 0
			var mu sync.Mutex
			look := func(op faultfs.Op) error {
				if op.Kind == faultfs.Look {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				cuts++
				for seed := range uint64(seeds() + 2) {
					s := faultfs.Survival{All: seed == 1}
					if seed > 1 {
						s.Seed = seed + 100*uint64(op.N)
					}
					h := booted(t, disk.Boot(s))
					torn += afterCut(t, h, &told, "before "+op.String(), s)
					must(t, h.Close())
				}
				return nil
			}
			h := opened(t, faultfs.Tap(disk, look))
			for _, lineage := range []string{"l1", "l2"} {
				must(t, story(h, lineage, told.note(lineage)))
			}
			must(t, h.Close())
			mu.Lock()
			defer mu.Unlock()
			afterCut(t, booted(t, disk.Boot(faultfs.Survival{})), &told, "in the end", faultfs.Survival{})
			if cuts < 100 || torn == 0 && seeds() > 1 {
				t.Errorf("the power was cut %d times and tore %d claims: the story is too short", cuts, torn)
			}
			t.Logf("%d cuts, each with %d fates; %d torn claims", cuts, seeds()+2, torn)
		})
	}
}

// afterCut looks at a home after a power cut, and goes on with it.
func afterCut(t *testing.T, h *files.Home, told *acks, when string, s faultfs.Survival) (torn int) {
	t.Helper()
	fault := func(err error) {
		t.Helper()
		if err != nil {
			t.Errorf("the power is cut %s, survival %+v: %v", when, s, err)
		}
	}
	for _, lineage := range []string{"l1", "l2"} {
		acked := told.at(lineage)
		for _, bad := range broken(h, lineage, acked) {
			fault(bad)
		}
		k := ledger.Key{Project: "p", Lineage: lineage}
		var damage *ledger.DamageError
		if _, err := h.Ledger().Get(t.Context(), k); errors.As(err, &damage) {
			torn++
			fault(reclaim(t, h, k))
		}
		// Whatever was cut off, the name can be taken again.
		items, err := h.Doorbell().Pending(t.Context())
		fault(err)
		for _, i := range items {
			fault(i.Err) // it would be an error of every pass
		}
		fault(h.Runs().Start(t.Context(), run.Run{ID: lineage + "-again", Project: "p", Name: lineage}, func(*run.Run) error { return nil }))
	}
	same(t, h)
	for _, p := range ledger.Check(h.Ledger().List(t.Context())) {
		fault(errors.New(p.String()))
	}
	fault(story(h, "l3", func(string) {}))
	return torn
}

// reclaim takes a torn claim, which only one may.
func reclaim(t *testing.T, h *files.Home, k ledger.Key) error {
	r := record(t, k, h.Instances().Self())
	if err := h.Ledger().(ledger.Reclaimer).Reclaim(t.Context(), r); err != nil {
		return err
	}
	if err := h.Ledger().(ledger.Reclaimer).Reclaim(t.Context(), r); !errors.Is(err, ledger.ErrExists) {
		return errors.New("a torn claim had two winners")
	}
	return nil
}

// TestPowerCutAfterAKill kills the story before each operation; another process goes on, and then the power is cut. What
// the killed one left unflushed must not take with it what the other was told.
func TestPowerCutAfterAKill(t *testing.T) {
	t.Parallel()
	var disk faultfs.Disk
	var told acks
	var mu sync.Mutex
	h := opened(t, faultfs.Tap(&disk, func(op faultfs.Op) error {
		if op.Kind == faultfs.Look {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		left := disk.Kill()
		other := opened(t, left)
		var more acks
		if err := story(other, "l3", more.note("l3")); err != nil {
			t.Errorf("killed before %s: %v", op, err)
		}
		must(t, other.Close())
		// A process that does one thing only flushes nothing by the way.
		single := disk.Kill()
		other = opened(t, single)
		must(t, errors.Join(other.Answers().Append(t.Context(), ledger.Answer{Run: "l4"}), other.Close()))
		for _, c := range []struct {
			disk    *faultfs.Disk
			lineage string
			acked   []string
		}{{left, "l3", more.at("l3")}, {single, "l4", []string{"answer"}}} {
			found := booted(t, c.disk.Boot(faultfs.Survival{}))
			for _, bad := range append(broken(found, "l1", told.at("l1")), broken(found, c.lineage, c.acked)...) {
				t.Errorf("killed before %s, then the power is cut: %v", op, bad)
			}
			must(t, found.Close())
		}
		return nil
	}))
	must(t, story(h, "l1", told.note("l1")))
	must(t, h.Close())
}
