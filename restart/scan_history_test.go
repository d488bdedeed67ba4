package restart_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/witness"
)

// history is a run store with n deaths that are made as they are read, so that what is measured is the scan's own memory.
type history struct {
	run.Store
	n    int
	born time.Time
	// peak is the most live heap that was seen while runs were read.
	peak uint64
	gets int
}

func (h *history) at(i int) run.Run {
	r := run.Run{ID: fmt.Sprintf("run-%06d", i), Project: "acme", Name: fmt.Sprintf("agent-%d", i), Lineage: fmt.Sprintf("run-%06d", i), Workspaces: []string{fmt.Sprintf("/ws/%06d/a/long/way/down", i)},
		Recipe: run.Recipe{Command: []string{"agent", fmt.Sprint(i), "--with", "some", "more", "words"}, Dir: "/ws", Marking: run.Idempotent},
		Roots:  []witness.Root{{Root: classify.Root{Name: "acme", Dirs: []string{"/srv/acme"}, Modules: []string{"acme"}}, Kind: "git", Runtime: "python"}}}
	r.Ended = &run.End{At: stamp.Time{Wall: h.born.Add(time.Duration(i) * time.Second)}, Exit: classify.Exit{Code: 1}, Cause: classify.RateLimit}
	return r
}

func (h *history) List(context.Context) iter.Seq2[run.Run, error] {
	return func(yield func(run.Run, error) bool) {
		for i := range h.n {
			if !yield(h.at(i), nil) {
				return
			}
		}
		h.look()
	}
}

func (h *history) Get(_ context.Context, id string) (run.Run, error) {
	if h.gets++; h.gets%20000 == 0 {
		h.look()
	}
	i := 0
	if _, err := fmt.Sscanf(id, "run-%d", &i); err != nil {
		return run.Run{}, err
	}
	return h.at(i), nil
}

func (h *history) look() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.peak = max(h.peak, m.HeapAlloc)
}

func scanned(tb testing.TB, n, limit int) (past int, grown uint64, took time.Duration) {
	tb.Helper()
	s, err := newSim(tb.TempDir(), restart.Settings{})
	if err != nil {
		tb.Fatal(err)
	}
	h := &history{Store: s.stores.Runs, n: n, born: time.Now().Add(-time.Duration(n+10) * time.Second)}
	healer, err := restart.New(s.config(func(c *restart.Config) { c.Stores.Runs = h }))
	if err != nil {
		tb.Fatal(err)
	}
	h.look()
	before := h.peak
	began := time.Now()
	got, err := healer.Scan(tb.Context(), 0, limit)
	if err != nil {
		tb.Fatal(err)
	}
	took = time.Since(began)
	for i, p := range got {
		if p.Error != "" || p.Code != string(classify.RateLimit) || i > 0 && p.Died.After(got[i-1].Died) {
			tb.Fatalf("death %d is %+v", i, p)
		}
	}
	h.look()
	return len(got), h.peak - before, took
}

// TestScanLongHistory: a scan of 100,000 deaths keeps what it prints and little more, and with a limit next to nothing.
func TestScanLongHistory(t *testing.T) {
	const n = 100_000
	past, grown, took := scanned(t, n, 0)
	t.Logf("%d deaths: %d bytes each, %v a death", past, grown/n, took/n)
	if past != n || grown > n*1500 {
		t.Errorf("%d deaths in %d MiB, want %d in %d MiB at most", past, grown>>20, n, n*1500>>20)
	}
	past, grown, took = scanned(t, n, 50)
	t.Logf("newest %d: %d KiB, %v", past, grown>>10, took)
	if past != 50 || grown > 8<<20 {
		t.Errorf("the newest %d took %d KiB, want 50 and 8 MiB at most", past, grown>>10)
	}
}

// BenchmarkScan says what a scan of a history of 100,000 deaths costs beside the reading of the runs themselves.
func BenchmarkScan(b *testing.B) {
	for _, limit := range []int{0, 50} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			var grown uint64
			var took time.Duration
			past := 1
			for b.Loop() {
				past, grown, took = scanned(b, 100_000, limit)
			}
			b.ReportMetric(float64(grown)/float64(past), "live-B/death")
			b.ReportMetric(float64(took.Microseconds())/float64(past), "us/death")
		})
	}
}
