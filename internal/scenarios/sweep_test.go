package scenarios

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/restart/restarttest"
)

// slowed is set where the race detector makes everything several times as slow.
var slowed bool

// every is how many steps a sweep passes over for each that it breaks at.
var every = flag.Int("every", 0, "let the sweeps break at each N-th step; 1 is all of them, 0 as many as there is time for")

// due tells whether a sweep breaks at a step. Plays begin at different ones, so that together they still meet every kind
// of step.
func due(s script, n, usual int) bool {
	switch {
	case *every > 0:
		usual = *every
	case testing.Short():
		usual *= 6
	case slowed:
		usual *= 3
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.name))
	return (n+int(h.Sum32()%1000))%usual == 0
}

// tally counts what a sweep did.
type tally struct {
	mu     sync.Mutex
	broken int
	of     map[string]int
}

func (c *tally) add(ends []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.broken++
	for _, e := range ends {
		c.of[e]++
	}
}

// TestPowerCutAtEachStep cuts the power before each durable operation of every play's passes. Of what was not flushed
// nothing survives, or some of it by chance. The next boot's healer goes on to the end.
func TestPowerCutAtEachStep(t *testing.T) {
	t.Parallel()
	var all tally
	t.Run("plays", func(t *testing.T) {
		for _, s := range load(t) {
			if s.damages() {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				st := newStorage(t, onDisk)
				var p *play
				var one sync.Mutex // cuts of launches that go on side by side come one after the other
				// The store fills up its spare files beside the play: a cut at one of those may outlast the play's last line.
				var cutting sync.RWMutex
				over := false
				st.hook = func(op faultfs.Op) error {
					cutting.RLock()
					defer cutting.RUnlock()
					if op.Kind == faultfs.Look || over || p == nil || !p.passing.Load() || !due(s, op.N, 8) {
						return nil
					}
					one.Lock()
					defer one.Unlock()
					for _, fate := range []faultfs.Survival{{}, {Seed: uint64(op.N)}} {
						w := p.w.PowerCut(p.storage.cut(t, fate).open())
						all.add(toTheEnd(t, w, fmt.Sprintf("the power is cut before %s, survival %+v", op, fate)))
						w.Close()
					}
					return nil
				}
				made := newPlay(t, s, st)
				cutting.Lock()
				p = made
				cutting.Unlock()
				for _, l := range s.lines {
					if l.command() {
						p.do(l)
					}
				}
				cutting.Lock()
				over = true
				cutting.Unlock()
				p.sound()
			})
		}
	})
	t.Logf("%d power cuts; they ended as %v", all.broken, all.of)
}

// breakage is what a sweep does to a healer at a step.
type breakage struct {
	name string
	done bool // after the step, not before it
	act  func(h *restarttest.Healer) error
}

// TestHealerBreaksAtEachStep kills the healer before each durable step of every play, lets the step fail, and lets it be done
// and its acknowledgement get lost. The story goes on, with another healer where that one is dead.
func TestHealerBreaksAtEachStep(t *testing.T) {
	t.Parallel()
	for _, b := range []breakage{
		{"killed before", false, func(h *restarttest.Healer) error { h.Kill(); return nil }},
		{"failed at", false, func(*restarttest.Healer) error { return errStep }},
		{"not told of", true, func(*restarttest.Healer) error { return errStep }},
	} {
		t.Run(strings.ReplaceAll(b.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			var all tally
			t.Run("plays", func(t *testing.T) {
				for _, s := range load(t) {
					if s.filesOnly() {
						continue
					}
					t.Run(s.name, func(t *testing.T) {
						t.Parallel()
						for n := 1; ; n++ {
							if !due(s, n, 3) {
								continue
							}
							ends, broke := b.at(t, s, n)
							if !broke || t.Failed() {
								return
							}
							all.add(ends)
						}
					})
				}
			})
			t.Logf("%s %d steps; they ended as %v", b.name, all.broken, all.of)
		})
	}
}

// at plays a script in which the n-th step of its healers breaks.
func (b breakage) at(t *testing.T, s script, n int) (ends []string, broke bool) {
	t.Helper()
	p := newPlay(t, s, newStorage(t, inMemory))
	defer func() { p.w.Close() }()
	p.loose = true
	var mu sync.Mutex
	steps, when := 0, ""
	p.each = func(h *restarttest.Healer) {
		h.Hook(func(op restarttest.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if op.Done != b.done {
				return nil
			}
			if steps++; steps == n {
				when = op.Name
				return b.act(h)
			}
			return nil
		})
	}
	for _, l := range s.lines {
		if l.command() {
			p.do(l)
		}
	}
	if p.stopped != nil {
		p.goOn(line{}, nil)
	}
	p.sound()
	return toTheEnd(t, p.w, fmt.Sprintf("the healer is %s step %d, %s", b.name, n, when)), when != ""
}

// toTheEnd lets the healer go on until nothing is left to do, and checks what every story must come to: no lineage was
// put back twice, every record is final and one that the machine can have made, every launch has its evidence and its
// slot, and the next pass has nothing to do.
func toTheEnd(t *testing.T, w *restarttest.World, when string) (ends []string) {
	t.Helper()
	ctx := context.Background()
	bad := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: %s", when, fmt.Sprintf(format, args...))
	}
	set := w.Healer().Settings()
	set.Disabled = false
	w.Configure(set)
	w.Launches(restarttest.Runs)
	var recs []ledger.Record
	for rounds := 0; ; rounds++ {
		res, err := w.Pass()
		if err != nil || res.Failed() {
			bad("a pass: %+v, %v", res.Outcomes, err)
			return nil
		}
		busy := len(res.Outcomes) > 0 || !res.Next.IsZero() || w.Bells() > 0
		for _, a := range w.Agents("") {
			if a.Alive() {
				a.Done()
				busy = true
			}
		}
		if res.Held != "" {
			if _, err := w.Healer().Resume(ctx, "a person"); err != nil {
				bad("resume: %v", err)
			}
			busy = true
		}
		recs = nil
		for r, err := range w.Stores().Ledger.List(ctx) {
			if err != nil {
				bad("a record cannot be read: %v", err)
				return nil
			}
			recs = append(recs, r)
			busy = busy || r.Open()
		}
		if !busy {
			break
		}
		if rounds == 40 {
			bad("after %d rounds there is still something to do: %+v", rounds, res)
			return nil
		}
		w.Advance(2 * time.Minute)
	}
	times := map[string]int{}
	for _, s := range w.Starts() {
		if times[s.Lineage]++; times[s.Lineage] == 2 {
			bad("%s was put back twice", s.Name)
		}
	}
	for _, r := range recs {
		ends = append(ends, string(r.State)+" "+r.Reason)
		if r.Launch == nil && times[r.Lineage] > 0 {
			bad("%s was put back, and its record knows of no launch", r.Facts.Death.Name)
		}
		if r.Launch == nil || !r.Pruned.IsZero() {
			continue
		}
		if files, err := w.Stores().Evidence.Get(ctx, r.Key); err != nil || len(files["facts.json"]) == 0 || len(files["failure.txt"]) == 0 {
			bad("the evidence of %s: %v, %d files", r.Key, err, len(files))
		}
		if st, err := w.Stores().Storm.State(ctx); err != nil || !hasSlot(st.Slots, r.Launch.ID) {
			bad("launch %s has no slot (%v)", r.Launch.ID, err)
		}
	}
	for _, x := range ledger.Check(w.Stores().Ledger.List(ctx)) {
		bad("an impossible record: %s", x)
	}
	return ends
}

func hasSlot(slots []storm.Slot, launch string) bool {
	return slices.ContainsFunc(slots, func(s storm.Slot) bool { return s.Launch == launch })
}
