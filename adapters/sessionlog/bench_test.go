package sessionlog

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/session/sessiontest"
)

// BenchmarkAppend measures what a durable event of 300 bytes costs when 1, 8 or 64 sessions append at once, judged and
// encoded, against the bare way with a file for each session: append and fdatasync. The two take turns within one run;
// what is reported is the median of the ratios ("xbare").
func BenchmarkAppend(b *testing.B) {
	text := []byte(`"` + strings.Repeat("x", 180) + `"`) // with its frame some 300 bytes
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			dir := b.TempDir()
			s := mustOpen(b, Config{Path: filepath.Join(dir, "sessions.log")})
			bare := make([]*os.File, writers)
			for i := range bare {
				f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint("bare", i)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				bare[i] = f
			}
			names := make([]string, writers)
			for i := range names {
				names[i] = fmt.Sprint("session-", i)
			}
			event := []byte(strings.Repeat("x", 300))
			const each = 6
			turn := 0
			round := func(one func(w, i int) error) time.Duration {
				began := time.Now()
				var wg sync.WaitGroup
				for w := range writers {
					wg.Go(func() {
						for i := range each {
							if err := one(w, i); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				return time.Since(began)
			}
			var ratios []float64
			for b.Loop() {
				turn++
				x := round(func(w, _ int) error {
					if _, err := bare[w].Write(event); err != nil {
						return err
					}
					return unix.Fdatasync(int(bare[w].Fd()))
				})
				y := round(func(w, i int) error {
					_, err := s.Append(b.Context(), names[w], []session.Draft{session.Say(now(), fmt.Sprint(turn, "-", i), text)})
					return err
				})
				ratios = append(ratios, float64(y)/float64(x))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "xbare")
			b.ReportMetric(ratios[len(ratios)/10], "xbare-quiet")
		})
	}
}

// BenchmarkRead reads a session of 100,000 events, by pages.
func BenchmarkRead(b *testing.B) {
	sessiontest.BenchRead(b, mustOpen(b, Config{Path: filepath.Join(b.TempDir(), "sessions.log")}))
}

// BenchmarkOpenSessions is the memory of a store with 10,000 sessions of ten events.
func BenchmarkOpenSessions(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := mustOpen(b, Config{Path: filepath.Join(b.TempDir(), "sessions.log")})
		for i := range 10_000 {
			var batch []session.Draft
			for j := range 10 {
				batch = append(batch, say(fmt.Sprint(j)))
			}
			r, ticket, err := s.add(fmt.Sprint("session-", i), batch)
			if err != nil || r.Err() != nil {
				b.Fatal(err, r.Err())
			}
			if i%100 == 99 {
				if err := s.log.Wait(b.Context(), *ticket); err != nil {
					b.Fatal(err)
				}
			}
		}
		if _, err := s.List(b.Context(), "", 10_000); err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/10_000, "B/session")
		runtime.KeepAlive(s)
	}
}
