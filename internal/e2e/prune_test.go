package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
)

// muchLater is a clock by which everything of a story is older than is kept.
func muchLater() stamp.Time {
	c := &clock{}
	c.forward(40 * 24 * time.Hour)
	return c.now()
}

// pruneUntilKilled is the pruner's side. It prints how many durable operations there were.
func (r role) pruneUntilKilled(ctx context.Context) error {
	count := 0
	var mu sync.Mutex
	kill := faultfs.KillAt(r.Kill)
	p, err := wire(ctx, r.Home, options{now: muchLater, notifiers: []notify.Notifier{&notifytest.Recorder{}},
		fs: faultfs.Tap(durable.System{}, func(op faultfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if op.Kind != faultfs.Look {
				count++
			}
			return kill(op)
		})})
	if err != nil {
		return err
	}
	if _, err := p.healer.Prune(ctx); err != nil {
		return err
	}
	if err := p.close(); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	fmt.Println(count)
	return nil
}

// attic is a state folder in which things have come to their end, and others have not.
type attic struct {
	w                         *world
	healed, left, rang, lives *agent
	was                       map[string]run.Run // before anything was pruned
	replacement               run.Run
}

func newAttic(t *testing.T) *attic {
	t.Helper()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	a := &attic{w: w, lives: w.start("lives", "wait:never"), left: w.start("left", "rate_limit")}
	a.healed = w.broken("healed", "mark:preparing")
	a.rang = w.start("rang", "wait:ring", "bug")
	w.update("v2")
	w.tell("update")
	a.healed.dies()
	a.left.dies()
	w.passUntil("the end of what was put back", func() bool { return w.stands(a.healed) == "settled_ok replacement_ok" })
	w.pass()
	// It dies after the last pass: its doorbell waits.
	w.tell("ring")
	a.rang.dies()
	a.was = map[string]run.Run{"healed": a.healed.run(), "left": a.left.run(), "rang": a.rang.run(), "lives": a.lives.run()}
	a.replacement = a.healed.replacement()
	return a
}

// pruned checks a state folder after everything old was pruned: all that was to go is gone, all else is there, and no
// lineage can be claimed again.
func (a *attic) pruned(t *testing.T, p *parts) {
	t.Helper()
	ctx := t.Context()
	key := a.was["healed"].Key()
	rec, err := p.home.Ledger().Get(ctx, key)
	if err != nil || rec.Pruned.IsZero() || rec.State != ledger.SettledOK || rec.Launch == nil || rec.Launch.Bound == nil || rec.Reason != "replacement_ok" {
		t.Errorf("the settled record is %+v (%v), want a tombstone that says what became of it", rec, err)
	}
	if _, err := p.home.Evidence().Get(ctx, key); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("its evidence: %v, want that it is gone", err)
	}
	if _, err := p.home.Reports().GetReport(ctx, rec.Episode); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("its report: %v, want that it is gone", err)
	}
	fresh, err := ledger.New(key, ledger.Change{Event: ledger.Claim, Now: muchLater(), Actor: p.home.Instances().Self()})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.home.Ledger().Create(ctx, fresh); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("its lineage was claimed again: %v", err)
	}
	if x, err := p.healer.Explain(ctx, key.Lineage); err != nil || x.Record == nil {
		t.Errorf("the tombstone cannot be shown: %+v, %v", x, err)
	}
	if _, ok, err := p.home.Answers().Answer(ctx, a.was["left"].ID); ok || err != nil {
		t.Errorf("the answer is still there (%v)", err)
	}
	for _, r := range []run.Run{a.was["healed"], a.was["left"]} {
		if _, err := p.home.Runs().Get(ctx, r.ID); !errors.Is(err, run.ErrNotFound) {
			t.Errorf("run %s: %v, want that it is gone", r.Name, err)
		}
	}
	if _, err := p.home.Runs().Holder(ctx, project, "healed"); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("the name of the pruned runs: %v, want that nobody has it", err)
	}
	for _, r := range []run.Run{a.was["rang"], a.was["lives"]} {
		if _, err := p.home.Runs().Get(ctx, r.ID); err != nil {
			t.Errorf("run %s is lost: %v", r.Name, err)
		}
		if h, err := p.home.Runs().Holder(ctx, project, r.Name); err != nil || h.ID != r.ID {
			t.Errorf("run %s lost its name: %v", r.Name, err)
		}
	}
	if items, err := p.home.Doorbell().Pending(ctx); err != nil || len(items) != 1 || items[0].Note.Run != a.was["rang"].ID {
		t.Errorf("the doorbells are %+v (%v), want the one that rang", items, err)
	}
	for _, bad := range ledger.Check(p.home.Ledger().List(ctx)) {
		t.Errorf("an impossible record: %s", bad)
	}
}

// prune prunes until nothing is left to prune.
func prune(t *testing.T, p *parts) {
	t.Helper()
	for range 5 {
		n, err := p.healer.Prune(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n.Records+n.Evidence+n.Reports+n.Answers+n.Runs == 0 {
			return
		}
	}
	t.Error("there is always something left to prune")
}

// TestPruneKilledAtEachStep kills a pruner before each of its durable operations; the next one goes on, and nothing that
// was to stay is lost.
func TestPruneKilledAtEachStep(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	s := scene{a.w, a.healed}
	whole := play(t, role{Play: "pruner", Home: s.copy(t)})
	whole.endsWell()
	total := 0
	if _, err := fmt.Sscan(whole.out.String(), &total); err != nil || total < 30 {
		t.Fatalf("a whole pruning has %d durable operations (%v): %s", total, err, whole.out.String())
	}
	t.Run("kills", func(t *testing.T) {
		for n := 1; n <= total; n += stride() {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				home := s.copy(t)
				play(t, role{Play: "pruner", Home: home, Kill: n}).ends()
				p, err := wire(t.Context(), home, options{now: muchLater, notifiers: []notify.Notifier{&notifytest.Recorder{}}})
				if err != nil {
					t.Fatal(err)
				}
				defer p.close()
				prune(t, p)
				a.pruned(t, p)
			})
		}
	})
	t.Logf("%d kills", total)
}

// TestPrune: logs go with their runs, those of others stay; an old doorbell of a pruned run starts nothing; nothing that
// is young is touched, and nothing at all while the healer is paused.
func TestPrune(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	before := snapshot(t, a.w.home.Dir())
	if n, err := a.w.healer.Prune(a.w.ctx); err != nil || n.Records+n.Runs+n.Answers+n.Reports != 0 {
		t.Errorf("right away %+v were pruned (%v), want nothing", n, err)
	}
	if after := snapshot(t, a.w.home.Dir()); len(after) != len(before) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
	logs := func() (out []string) {
		found, err := filepath.Glob(filepath.Join(a.w.home.Dir(), "runs", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			out = append(out, filepath.Base(f))
		}
		return out
	}
	if !slices.Contains(logs(), a.replacement.ID+".log") {
		t.Fatalf("the story is wrong: the replacement has no log among %v", logs())
	}
	a.w.clock.forward(40 * 24 * time.Hour)
	prune(t, a.w.parts)
	a.pruned(t, a.w.parts)
	for _, f := range logs() {
		if strings.HasPrefix(f, a.replacement.ID) || strings.HasPrefix(f, a.was["left"].ID) || strings.HasPrefix(f, a.was["healed"].ID) {
			t.Errorf("%s is still there", f)
		}
	}
	if _, err := os.Stat(filepath.Join(a.w.home.Dir(), "runs", a.was["rang"].ID+".log")); err != nil {
		t.Errorf("the log of the run that rang: %v", err)
	}
	err := a.w.home.Doorbell().Ring(a.w.ctx, doorbell.Note{Schema: doorbell.Schema, Run: a.was["healed"].ID, At: a.w.clock.now(), Text: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.w.healer.Pass(a.w.ctx, everything); err != nil {
		t.Fatal(err)
	}
	if n := a.w.runsOf("healed"); n != 0 {
		t.Errorf("a doorbell of a pruned run made %d runs", n)
	}
	a.w.tell("never")
}
